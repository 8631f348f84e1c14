"""Human review of how realistic noise is: a blind sample, a web page to judge it, and a report."""

from noisegen.review.reporting import report
from noisegen.review.sample import make, more
from noisegen.review.server import serve

__all__ = ["make", "more", "report", "serve"]
