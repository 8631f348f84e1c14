"""Settings of training runs that are short enough for a test."""

from typing import Any

from noisegen.options import parse_values


def settings(text: str) -> dict[str, Any]:
    """Return settings written as for --set, with spaces between them."""
    return parse_values(text.split())


SHORT = settings(
    "batch_tokens=512 precision=fp32 validation_rows=30 validate_every=4 negatives=16"
    " lr=1e-3 warmup=2"
)
