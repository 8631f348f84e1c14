"""Readers of input: files of all formats, tables, noisy-clean pairs, bitext and dictionaries."""
