"""Human review of realism: a blind sample, a page in the browser to judge it, and a report."""

from noisegen.review.reporting import report
from noisegen.review.sample import make, more
from noisegen.review.server import serve

__all__ = ["make", "more", "report", "serve"]
