"""Fitting without estimators: objectives for the search, and models made from arrays (algorithms 5, 7, 10 and 12)."""
