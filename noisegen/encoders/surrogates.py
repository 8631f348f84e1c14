"""Texts that have no UTF-8, made into texts that have."""


def whole(text: str) -> str:
    """Return the text with `?` for each half of a pair of surrogates, as Python itself does."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
