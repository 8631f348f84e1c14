"""How many operations a second a GPU's matrix units do at most, to compare a step with."""

import re

import torch

# Dense bf16 with float32 sums. Data sheets print twice as much where they count sparsity.
_PEAKS = (
    ("B200", 2250e12),  # NVIDIA HGX platform page: 36 PFLOPS sparse for 8 of them
    ("H200 NVL", 835.5e12),  # NVIDIA H200 data sheet: 1,671 TFLOPS sparse
    ("H200", 989.5e12),  # the same: 1,979 TFLOPS sparse
    ("GH200", 989.5e12),  # NVIDIA GH200 data sheet: 1,979 TFLOPS sparse
    ("H100 NVL", 835.5e12),  # NVIDIA H100 data sheet: 1,671 TFLOPS sparse
    ("H100 PCIe", 756.5e12),  # the same: 1,513 TFLOPS sparse
    ("H100", 989.5e12),  # the same, SXM: 1,979 TFLOPS sparse
    ("A100", 312e12),  # NVIDIA A100 data sheet
    ("L40S", 362e12),  # NVIDIA L40S data sheet
    ("L4", 121e12),  # NVIDIA L4 data sheet: 242 TFLOPS sparse
)


def peak_flop_per_second(name: str) -> float | None:
    """Return the most of a device of this name; None for a part of one, or one we do not know."""
    words = set(re.findall(r"\w+", name))
    if "MIG" in words:
        return None
    return next((most for device, most in _PEAKS if words >= {*device.split()}), None)


def peak_of(device: torch.device) -> float | None:
    """Return the most of this device; None for a CPU."""
    return (
        peak_flop_per_second(torch.cuda.get_device_name(device)) if device.type == "cuda" else None
    )
