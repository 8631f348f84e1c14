"""Campaigns: trials without end of what noisegen promises; `python -m tests.campaigns --help`."""
