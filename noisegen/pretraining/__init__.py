"""Pre-training on noisy text: masked tokens on both sides of pairs, and their contrast (RCP)."""
