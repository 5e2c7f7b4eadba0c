"""The geometry of the method: arrays in, arrays out (algorithms 1 to 6, 8 and 13)."""
