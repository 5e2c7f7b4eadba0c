"""Dask, and nothing else of the package knows it: tasks that survive the death of workers, and lazy collections."""
