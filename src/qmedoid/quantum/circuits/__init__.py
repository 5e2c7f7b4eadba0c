"""The circuits in Qiskit, and the backends that run them (algorithms 6 and 15)."""
