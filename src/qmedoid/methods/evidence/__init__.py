"""Signed weights on distances to medoids, group of columns by group of columns."""
