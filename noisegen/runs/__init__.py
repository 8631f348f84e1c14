"""Runs that write a folder in parts: claimed, resumed, spread over workers, described."""
