"""Distilling robust students: data, objectives, the loop, checkpoints."""
