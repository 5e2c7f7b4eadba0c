"""Quantum circuits of a model: what they are, where they run, what they measure and how it is kept."""
