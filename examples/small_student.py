"""A student in 25 MB: the matrices of its weights in eight bits, to send or to store.

    pip install 'noisegen[train]'
    noisegen train news.txt --preset robust-minilm -o run              # an hour of CPU time
    python examples/small_student.py pack run/student student.tar.xz
    python examples/small_student.py unpack student.tar.xz student
    noisegen evaluate student --baseline minilm --pairs posts.tsv -o report

Each row of a matrix has its own scale, so vectors change by less than training does (docs/train.md
has figures). Unpacked, weights are floats again: the file is small, the student as fast as before.
"""

import io
import sys
import tarfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

WEIGHTS, SCALE = "model.safetensors", ".scale"
LEVELS = 127  # of eight bits, on either side of zero


def pack(folder: Path, file: Path) -> None:
    """Write a student's folder into one file, its matrices in eight bits."""
    with tarfile.open(file, "w:xz", preset=3) as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                content = path.read_bytes()
                content = eight_bits(content) if path.name == WEIGHTS else content
                info = tarfile.TarInfo(path.relative_to(folder).as_posix())
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))


def unpack(file: Path, folder: Path) -> None:
    """Write the folder of a student that was packed, with weights as floats."""
    with tarfile.open(file) as tar:
        tar.extractall(folder, filter="data")
    for path in folder.rglob(WEIGHTS):
        path.write_bytes(floats(path.read_bytes()))


def eight_bits(content: bytes) -> bytes:
    """Return weights with each row of a matrix as eight bits and a scale."""
    small = {}
    for name, weights in load(content).items():
        small[name] = weights.astype(np.float16)
        if weights.ndim == 2:
            scale = (np.abs(weights).max(1, keepdims=True) / LEVELS).astype(np.float16)
            scale = np.maximum(scale, np.finfo(np.float16).tiny)
            small[name + SCALE] = scale
            levels = np.round(weights / scale.astype(np.float32))
            small[name] = levels.clip(-LEVELS, LEVELS).astype(np.int8)
    return save(small)


def floats(content: bytes) -> bytes:
    """Return the weights that `eight_bits` wrote, as floats."""
    small = load(content)
    weights = {
        name: values.astype(np.float32) * small.get(name + SCALE, np.float16(1)).astype(np.float32)
        for name, values in small.items()
        if not name.endswith(SCALE)
    }
    return save(weights, metadata={"format": "pt"})


if __name__ == "__main__":
    {"pack": pack, "unpack": unpack}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
