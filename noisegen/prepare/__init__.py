"""Raw web or social text to clean sentences; the package is also the function `prepare`."""

from noisegen.options import callable_package

callable_package(__name__, "noisegen.prepare.prepare:prepare")
