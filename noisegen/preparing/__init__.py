"""Raw web or social text to clean sentences, and the text preparation of two papers."""

from noisegen.preparing.laser import laser_text
from noisegen.preparing.run import prepare
from noisegen.preparing.social import social_text

__all__ = ["laser_text", "prepare", "social_text"]
