"""Comparisons: boosted trees whose splits ask which of two real rows is nearer."""
