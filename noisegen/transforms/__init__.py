"""The built-in transforms; importing this package registers them."""

from noisegen.transforms import case, characters, wiki, words  # noqa: F401
