"""The nearest medoid by distance and angle over searched groups of columns (algorithms 7, 8, 10 and 12)."""
