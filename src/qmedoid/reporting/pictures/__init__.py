"""Plots for reports: arrays in, pictures out; Matplotlib is imported only when one is drawn."""
