"""The paper's experiments, cell by cell, and its tables made from them (algorithm 21)."""
