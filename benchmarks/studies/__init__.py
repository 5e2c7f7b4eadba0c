"""Data sets, splits, baselines and the studies made with them (algorithm 21)."""
