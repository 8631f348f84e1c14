"""Learn noise from real pairs, fit recipes to an error rate, and measure how real noise is."""
