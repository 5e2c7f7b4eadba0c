"""Fits of tables that are larger than memory: passes over partitions, whose summaries are merged."""
