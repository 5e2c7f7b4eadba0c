"""Nearest training rows under a learnt metric."""
