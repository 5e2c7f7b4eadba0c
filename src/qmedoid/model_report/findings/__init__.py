"""Coded findings about a model and a table."""
