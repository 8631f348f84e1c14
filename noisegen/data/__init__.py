"""Readers of all input: files and formats, tables, noisy-clean pairs, bitext, dictionaries."""
