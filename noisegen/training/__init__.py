"""Training of robust students: data, objectives, training methods, and the trainer."""
