"""The quick start, on text and a model that installed packages ship."""
