"""Zero-shot transfer: fine-tune on a labelled English task, test in other languages, noisy too."""
