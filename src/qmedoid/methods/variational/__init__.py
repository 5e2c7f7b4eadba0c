"""The variational quantum classifier as arrays: angle map, ansatz, read-outs, loss (algorithms 14, 15 and 17)."""
