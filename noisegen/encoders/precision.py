"""Which numbers this machine computes in."""


def cpu_has_bf16() -> bool:
    """Tell whether the processor multiplies in bf16; ImportError without torch, which knows."""
    import torch

    units = torch.cpu.get_capabilities()
    return bool(units.get("avx512_bf16") or units.get("amx_bf16"))
