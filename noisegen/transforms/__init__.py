"""The built-in transforms; importing this package registers them."""

from noisegen.transforms import characters, words  # noqa: F401
