"""Noise learned from real pairs, recipes fitted to them, and how real synthetic noise is."""
