"""Numbers that judge predictions: arrays in, numbers out (algorithms 9 and 11)."""
