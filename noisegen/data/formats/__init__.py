"""File formats: one declaration per format says how its files are read, split and written."""
