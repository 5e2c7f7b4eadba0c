"""The few hot loops, compiled ahead of time, each with its NumPy twin."""
