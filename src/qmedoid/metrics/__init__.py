"""Numbers that judge predictions: arrays in, numbers out (algorithm 9)."""
