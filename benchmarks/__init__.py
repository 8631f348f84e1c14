"""Ratios against limits and peers, both sides measured in one run: `python -m benchmarks`."""
