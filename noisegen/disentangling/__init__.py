"""Heads that part meaning and language (or noise) in the vectors of a frozen encoder."""
