"""File formats: one file per format, with one declaration of how it is read, cut and written."""
