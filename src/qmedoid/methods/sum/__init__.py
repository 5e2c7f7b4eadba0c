"""A weighted sum of methods and parts."""
