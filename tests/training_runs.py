"""Training runs that are short enough for a test: settings, and a student with noisy words."""

from typing import Any

from models import bert_folder

import noisegen
from noisegen.options import parse_values

CLEAN = [f"i don't see you at the {a} one {b} tomorrow" for a in ("old", "new") for b in range(60)]
WORDS = ("see", "you", "at", "the", "old", "new", "one", "tomorrow", "don")


def settings(text: str) -> dict[str, Any]:
    """Return settings written as for --set, with spaces between them."""
    return parse_values(text.split())


SHORT = settings(
    "batch_tokens=512 precision=fp32 validation_rows=30 validate_every=4 negatives=16"
    " lr=1e-3 warmup=2"
)


def trained(folder, **given):
    """Train a student that reads `dont` as `don't`; return the folder of the student."""
    pairs = folder / "pairs.tsv"
    rows = [f"{clean.replace(chr(39), '').replace('you', 'u')}\t{clean}" for clean in CLEAN]
    pairs.write_text("noisy\tclean\n" + "\n".join(rows) + "\n", "utf-8")
    teacher = bert_folder(folder / "teacher", WORDS)
    values = {**SHORT, "noisy_words": 2000}
    out = str(folder / "run")
    noisegen.train(
        str(pairs), out, teacher=str(teacher), recipe="stored", steps=4, values=values, **given
    )
    return folder / "run" / "student"
