"""A fitted model as one SELECT statement."""
