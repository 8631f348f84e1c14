"""Training of robust students: data, objectives, the trainer and its methods."""
