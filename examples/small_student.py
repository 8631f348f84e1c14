"""A student in a quarter of its size: matrices of weights in eight bits, to send or to store.

    pip install 'noisegen[train]'
    noisegen train news.txt --preset robust-minilm -o run              # an hour of CPU time
    python examples/small_student.py pack run/student student.tar.xz   # 24 MB
    python examples/small_student.py unpack student.tar.xz student
    noisegen evaluate student --baseline minilm --pairs posts.tsv -o report

Each row of a matrix has its own scale. Rounding changes vectors less than training does
(docs/guides/train.md has figures). Unpacked weights are floats again: the file is small, and the
student is as fast as before.
"""

import argparse
import io
import lzma
import shutil
import tarfile
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

WEIGHTS, SCALE = "model.safetensors", ".scale"
LEVELS = 127  # steps of eight bits on either side of zero


def pack(folder: Path, file: Path) -> None:
    """Write a student's folder into one file, its matrices in eight bits."""
    if not (folder / WEIGHTS).is_file():
        raise SystemExit(f"{folder} has no {WEIGHTS}: give the folder `student` of a run")
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != file)
    try:
        contents = {path: path.read_bytes() for path in paths}
        contents |= {p: eight_bits(contents[p]) for p in paths if p.name == WEIGHTS}
        with tarfile.open(file, "w:xz", preset=3) as tar:
            for path, content in contents.items():
                info = tarfile.TarInfo(path.relative_to(folder).as_posix())
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    except (OSError, SafetensorError) as error:
        raise SystemExit(f"cannot pack {folder} into {file}: {error}") from None


def unpack(file: Path, folder: Path) -> None:
    """Write the folder of a student that was packed, with weights as floats."""
    if folder.exists():
        raise SystemExit(f"{folder} exists: give the name of a new folder")
    try:
        with tarfile.open(file, "r:xz") as tar:  # its own filters came with Python 3.11.4
            for member in filter(tarfile.TarInfo.isfile, tar):
                path, content = folder / member.name, tar.extractfile(member)
                if not content or not path.resolve().is_relative_to(folder.resolve()):
                    raise tarfile.TarError(f"{member.name} is outside of the folder")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
        for path in {folder / WEIGHTS, *folder.rglob(WEIGHTS)}:
            path.write_bytes(floats(path.read_bytes()))
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError, SafetensorError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise SystemExit(f"cannot unpack {file}: {error}; give a file that `pack` wrote") from None


def eight_bits(content: bytes) -> bytes:
    """Return weights with each row of a matrix of floats as eight bits and a scale."""
    small = {}
    for name, weights in load(content).items():
        small[name] = weights
        if weights.ndim == 2 and weights.dtype == np.float32:
            scale = np.abs(weights).max(1, keepdims=True) / LEVELS
            scale = np.maximum(scale, np.finfo(np.float32).tiny)
            small[name] = np.round(weights / scale).astype(np.int8)
            small[name + SCALE] = scale
    return save(small)


def floats(content: bytes) -> bytes:
    """Return the weights that `eight_bits` wrote, as floats."""
    small = load(content)
    scales = {name: small.pop(name + SCALE) for name in [*small] if name + SCALE in small}
    weights = {
        name: values * scales[name] if name in scales else values for name, values in small.items()
    }
    return save(weights, metadata={"format": "pt"})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", choices=["pack", "unpack"])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    {"pack": pack, "unpack": unpack}[given.work](given.source, given.target)
