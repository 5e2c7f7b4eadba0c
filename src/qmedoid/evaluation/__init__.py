"""Data sets, splits, baselines and the tables made with them (algorithm 21)."""
