"""`python -m noisegen` is the command line."""

from noisegen.cli import main

main()
