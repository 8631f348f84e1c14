"""Runs that write an output folder: lock, records, workers, progress, manifest and dataset card."""
