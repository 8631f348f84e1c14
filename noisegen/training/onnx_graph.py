"""ONNX graphs of students: from token ids to sentence vectors, in floats or with weights of int8.

The graph of int8 stores matrices with eight bits per number and a scale per 32 numbers, and
computes in floats: quantized activations harm (docs/development/log.md, 7). Runtimes restore the
matrices of products once, when they load the graph.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.tokens import Padded, attending

INPUTS = ("input_ids", "attention_mask")
OUTPUTS = ("last_hidden_state", "sentence_embedding")
OPSET = 18
BLOCK = 32  # numbers of a row or column that share a scale
LEVELS = 127  # steps of eight bits on either side of zero
Floats = npt.NDArray[np.float32]
_LEAST = 1_024  # numbers; smaller matrices stay floats
# Endings of names of tensors.
_SCALE, _INT8, _FLOATS, _BLOCKS, _SHAPE = "_scale", "_int8", "_floats", "_blocks", "_shape"


class _Graph(nn.Module):
    """A student as a function from ids and mask to the states of tokens and vectors of texts."""

    def __init__(self, student: SentenceEncoder) -> None:
        super().__init__()
        self.student = student

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return states (rows, longest, hidden) and vectors (rows, width)."""
        head = self.student.head
        states = self.student.network(
            input_ids=input_ids, attention_mask=attention_mask
        ).last_hidden_state
        batch = Padded(input_ids, attention_mask.bool(), np.zeros(0, np.int64), 0)
        vectors = states
        for step, module in zip(head.settings.steps, head.steps, strict=True):
            vectors = step.apply(module, vectors, batch)
        return states, vectors


def write_graph(student: SentenceEncoder, path: Path) -> None:
    """Write the student's ONNX graph in float32, for any number of rows and tokens."""
    rows, tokens = torch.export.Dim("rows"), torch.export.Dim("tokens")
    ids = torch.from_numpy(student.tokenizer.tokenize(["see you", "c u"]).padded(0))
    with attending(student.config, "eager"), torch.no_grad():
        torch.onnx.export(
            _Graph(student).eval(),
            (ids, torch.ones_like(ids)),
            path,
            input_names=INPUTS,
            output_names=OUTPUTS,
            opset_version=OPSET,
            dynamo=True,
            dynamic_shapes=({0: rows, 1: tokens}, {0: rows, 1: tokens}),
            external_data=False,
            verbose=False,
        )
    _forget_paths(path)


def _forget_paths(path: Path) -> None:
    """Remove the notes of the exporter from a graph: traces with the paths of this machine."""
    import onnx

    model = onnx.load(path)
    graph = model.graph
    for part in (graph, *graph.node, *graph.initializer, *graph.value_info):
        del part.metadata_props[:]
        part.doc_string = ""
    onnx.save(model, path)


def write_int8(source: Path, path: Path) -> None:
    """Write a copy of an ONNX graph whose matrices have eight bits per number."""
    import onnx
    from onnx import helper

    model = onnx.load(source)
    graph = model.graph
    readers: defaultdict[str, list[Any]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            readers[name].append(node)
    small, nodes, kept = [], [], []
    for tensor in graph.initializer:
        name, read = tensor.name, readers[tensor.name]
        axis = _scaled_axis(tensor, read)
        if axis is None:
            kept.append(tensor)
            continue
        matrix = onnx.numpy_helper.to_array(tensor)
        stored: dict[str, npt.NDArray[Any]] = {}
        if read[0].op_type == "Gather":
            stored[_INT8], stored[_SCALE] = eight_bits(matrix, 1)
            for node in read:
                nodes += _gathered(node, name)
                graph.node.remove(node)
        else:
            stored[_INT8], stored[_SCALE] = eight_bits(_blocks(matrix, axis), 2 - axis)
            stored[_SHAPE] = np.array(matrix.shape, np.int64)
            nodes += _restored(name + _INT8, name + _SCALE, name + _BLOCKS)
            nodes.append(helper.make_node("Reshape", [name + _BLOCKS, name + _SHAPE], [name]))
        small += [onnx.numpy_helper.from_array(each, name + end) for end, each in stored.items()]
    del graph.initializer[:]
    graph.initializer.extend([*kept, *small])
    others = [*graph.node]
    del graph.node[:]
    graph.node.extend([*nodes, *others])
    _sort(graph)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _scaled_axis(tensor: Any, readers: list[Any]) -> int | None:
    """Return the axis along which a matrix has scales; None for a tensor that stays as it is."""
    import onnx

    kinds = {node.op_type for node in readers}
    is_matrix = len(tensor.dims) == 2 and tensor.data_type == onnx.TensorProto.FLOAT
    if not is_matrix or np.prod(tensor.dims) < _LEAST or len(kinds) != 1:
        return None
    places = {[*node.input].index(tensor.name) for node in readers}
    if kinds == {"Gather"} and places == {0}:
        return 0
    if kinds == {"MatMul"} and places == {1}:
        return 1
    if kinds == {"Gemm"} and places == {1}:
        transposed = {a.i for node in readers for a in node.attribute if a.name == "transB"}
        return 0 if transposed == {1} else 1
    return None


def _blocks(matrix: Floats, axis: int) -> Floats:
    """Return a matrix with each row (`axis` 0) or column (1) cut into blocks of `BLOCK` numbers.

    The shape is (rows, blocks, block) or (blocks, block, columns). If the length of a row or column
    is no multiple of `BLOCK`, it is one block.
    """
    rows, columns = matrix.shape
    length = (columns, rows)[axis]
    block = BLOCK if length % BLOCK == 0 else length
    return matrix.reshape((rows, -1, block) if axis == 0 else (-1, block, columns))


def eight_bits(values: Floats, axis: int) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return numbers as int8, and their scales: one for all numbers along `axis`."""
    scale = np.abs(values).max(axis, keepdims=True) / LEVELS
    scale = np.maximum(scale, np.finfo(np.float32).tiny).astype(np.float32)
    return np.round(values / scale).astype(np.int8), scale


def _restored(values: str, scale: str, name: str) -> list[Any]:
    """Return nodes that make the floats `name` of int8 values and their scale."""
    from onnx import TensorProto, helper

    floats = name + _FLOATS
    return [
        helper.make_node("Cast", [values], [floats], to=TensorProto.FLOAT),
        helper.make_node("Mul", [floats, scale], [name]),
    ]


def _gathered(node: Any, name: str) -> list[Any]:
    """Return nodes in place of a Gather of rows: it gathers int8 values and scales."""
    from onnx import helper

    ids, made = node.input[1], node.output[0]
    return [
        helper.make_node("Gather", [name + _INT8, ids], [made + _INT8], axis=0),
        helper.make_node("Gather", [name + _SCALE, ids], [made + _SCALE], axis=0),
        *_restored(made + _INT8, made + _SCALE, made),
    ]


def _sort(graph: Any) -> None:
    """Order the nodes of a graph so that each follows the nodes whose results it reads."""
    known = {"", *(value.name for value in (*graph.input, *graph.initializer))}
    waiting, ordered = [*graph.node], []
    while waiting:
        later = []
        for node in waiting:
            if known.issuperset(node.input):
                ordered.append(node)
                known.update(node.output)
            else:
                later.append(node)
        waiting = later
    del graph.node[:]
    graph.node.extend(ordered)
