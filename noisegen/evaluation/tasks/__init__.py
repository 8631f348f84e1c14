"""Fine-tune encoders on labelled tasks and test them clean and noisy."""
