"""Metrics of sentence encoders under noise, their statistics, and the report."""
