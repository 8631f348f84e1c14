"""A CUDA device that is not there: its tensors compute on the CPU, and never meet the CPU's own.

`FakeDevice` counts what would make the host wait for a GPU: copies to the host, reads of one
number, results whose size depends on values, and uploads from memory that is not pinned.
"""

import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

CUDA = torch.device("cuda", 0)
INSIDE = torch.device("lazy", 0)  # what torch's C++ sees; backward passes stay in one thread
OURS = ("cuda", "lazy")
aten = torch.ops.aten
# Operations whose result has a size that the host must wait for.
SIZED_BY_VALUES = {
    aten.nonzero.default,
    aten.masked_select.default,
    aten._unique2.default,
    aten.unique_dim.default,
    aten.unique_consecutive.default,
}
READS = {
    aten._local_scalar_dense.default,
    aten.item.default,
    aten.is_nonzero.default,
    aten.equal.default,
}
# Operations with an argument that torch wants on the CPU.
WITH_LENGTHS = {aten._pack_padded_sequence.default, aten._pad_packed_sequence.default}
# Operations that only ask which kernel to use; 0 stands for plain products.
CHOICES = {aten._fused_sdp_choice.default}


class OnDevice(torch.Tensor):
    """A tensor that says it is on CUDA; `inner` holds its numbers on the CPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner, device):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=INSIDE,
        )
        made.inner, made.owner = inner, device
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        (owner, *_) = (x.owner for x in tree_flatten((args, kwargs))[0] if isinstance(x, OnDevice))
        return owner.run(func, args, kwargs or {})

    device = property(lambda self: CUDA)
    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)
    is_meta = property(lambda self: False)

    def tolist(self):
        return self.cpu().tolist()

    def untyped_storage(self):
        return self.inner.untyped_storage()

    def data_ptr(self):
        return self.inner.data_ptr()

    def __deepcopy__(self, memo):
        copy = OnDevice(self.inner.clone(), self.owner)
        if isinstance(self, torch.nn.Parameter):
            copy = torch.nn.Parameter(copy, self.requires_grad)
        return memo.setdefault(id(self), copy)

    def __repr__(self, **_):
        return f"OnDevice({tuple(self.shape)})"


class FakeDevice(TorchDispatchMode):
    """Lets torch believe in a GPU; `syncs` has the place in the code of every wait for it."""

    def __init__(self):
        super().__init__()
        self.syncs, self.ran = [], 0
        self.moving, self.weights = None, {}  # what moves; id -> new and old weight

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.run(func, args, kwargs or {})

    def wait(self, what):
        frames = [frame for frame in traceback.extract_stack() if "/noisegen/" in frame.filename]
        place = "?"
        if frames:
            last = frames[-1]
            place = f"{last.filename.rpartition('/noisegen/')[2]}:{last.lineno} ({last.name})"
        self.syncs.append(f"{what} at {place}")

    def run(self, func, args, kwargs):
        if func in CHOICES:
            return 0
        flat = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        ours = [x for x in flat if isinstance(x, OnDevice)]
        wanted = kwargs.get("device")
        target = torch.device(wanted) if wanted is not None else None
        if func is aten._to_copy.default or func is aten.copy_.default:
            return self.copied(func, args, kwargs, target)
        here = bool(ours) or (target is not None and target.type in OURS)
        if not here:
            return func(*args, **kwargs)
        self.ran += 1
        self.check(func, args, flat)
        self.note(func, args)
        inner = {id(x.inner): x for x in ours}
        if target is not None:
            kwargs = {**kwargs, "device": "cpu"}
        opened = tree_map(lambda x: x.inner if isinstance(x, OnDevice) else x, (args, kwargs))
        out = func(*opened[0], **opened[1])
        if func in READS:
            return out

        def closed(x):
            if not isinstance(x, torch.Tensor):
                return x
            return inner[id(x)] if id(x) in inner else OnDevice(x, self)

        if func in WITH_LENGTHS and isinstance(out, tuple):  # the sizes of steps stay on the CPU
            return closed(out[0]), out[1]
        return tree_map(closed, out)

    def check(self, func, args, flat):
        """Refuse tensors of two devices; a number of the CPU may join in, as with CUDA."""
        for x in flat:
            if not isinstance(x, OnDevice) and x.dim() and func not in WITH_LENGTHS:
                raise RuntimeError(f"{func}: a tensor on cuda:0 meets {tuple(x.shape)} on the CPU")

    def note(self, func, args):
        if func in READS:
            self.wait("a number read")
        if func in SIZED_BY_VALUES or (func is aten.repeat_interleave.Tensor):
            self.wait(func.__name__)
        if func in (aten.index.Tensor, aten.index_put_.default, aten.index_put.default):
            indices = [x for x in args[1] if x is not None]
            if any(x.dtype in (torch.bool, torch.uint8) for x in indices):
                self.wait("a boolean index")

    def copied(self, func, args, kwargs, target):
        if func is aten.copy_.default:
            to, given = args[:2]
            down = isinstance(given, OnDevice) and not isinstance(to, OnDevice)
            up = isinstance(to, OnDevice) and not isinstance(given, OnDevice)
            if down:
                self.wait("a copy to the host")
            if up and given.dim():
                self.upload(given)
            opened = [x.inner if isinstance(x, OnDevice) else x for x in (to, given)]
            func(*opened, *args[2:], **kwargs)
            return to
        given = args[0]
        is_ours = isinstance(given, OnDevice)
        if is_ours or (target is not None and target.type in OURS):
            kwargs = {**kwargs, "device": "cpu"}
        if is_ours and target is not None and target.type == "cpu":
            self.wait("a copy to the host")
            return func(given.inner, *args[1:], **kwargs)
        if is_ours:
            return OnDevice(func(given.inner, *args[1:], **kwargs), self)
        if target is not None and target.type in OURS:
            self.upload(given)
            return OnDevice(func(given, *args[1:], **kwargs).clone(), self)
        return func(given, *args[1:], **kwargs)

    def moved(self, module, function, recurse=True):
        """Move a module: torch sets the data of a weight, which tensors of two kinds do not let it.

        Weights that several modules share stay shared, also with a model kept aside as `_whole`.
        """
        for child in [*module.children(), *getattr(module, "_whole", ())] if recurse else ():
            child._apply(function)
        if self.moving is not function:
            self.moving, self.weights = function, {}
        for name, weight in module._parameters.items():
            if weight is not None:
                if id(weight) not in self.weights:
                    new = torch.nn.Parameter(function(weight.data), weight.requires_grad)
                    self.weights[id(weight)] = self.weights[id(new)] = new, weight
                module._parameters[name] = self.weights[id(weight)][0]
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else function(buffer)
        return module

    def upload(self, given):
        if given.dim() and not getattr(given, "is_locked", False):
            self.wait("an upload of memory that is not pinned")

    @contextmanager
    def present(self, monkeypatch, *, bf16=False):
        """Let torch find this device until the block ends, in all threads of an executor."""
        submit = ThreadPoolExecutor.submit

        def within(function, *args, **kwargs):
            with self:
                return function(*args, **kwargs)

        def pinned(tensor, *_):
            copy = tensor.clone()
            copy.is_locked = True
            return copy

        with monkeypatch.context() as patched:
            for name, answer in {
                "is_available": lambda: True,
                "device_count": lambda: 1,
                "get_device_name": lambda *_: "NVIDIA L4",
                "get_device_capability": lambda *_: (8, 9),
                "mem_get_info": lambda *_: (20 << 30, 24 << 30),
                "is_bf16_supported": lambda including_emulation=True: bf16,
                "synchronize": lambda *_: None,
                "set_device": lambda *_: None,
                "_lazy_init": lambda: None,
                "manual_seed_all": lambda *_: None,
                "get_rng_state": lambda *_: None,
                "set_rng_state": lambda *_: None,
            }.items():
                patched.setattr(torch.cuda, name, answer)
            # A build for CUDA would ask the driver, which is missing, whether it records a graph.
            patched.setattr(torch.accelerator, "current_accelerator", lambda *_, **__: None)
            patched.setattr(torch.backends.cudnn, "is_acceptable", lambda *_: False)
            patched.setattr(torch.Tensor, "pin_memory", pinned)
            # Inference mode hands whole operations to a dispatch mode, without their parts.
            patched.setattr(torch.inference_mode, "__enter__", torch.no_grad.__enter__)
            patched.setattr(torch.inference_mode, "__exit__", torch.no_grad.__exit__)
            patched.setattr(
                ThreadPoolExecutor, "submit", lambda pool, *a, **k: submit(pool, within, *a, **k)
            )
            patched.setattr(
                torch.nn.Module, "_apply", lambda *args, **more: self.moved(*args, **more)
            )
            with self:
                yield self
