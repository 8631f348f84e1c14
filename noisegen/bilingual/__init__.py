"""Bilingual dictionaries: read from files of several formats, compiled, and built from bitext."""
