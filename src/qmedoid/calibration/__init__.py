"""How scores become probabilities: the curve, and its fit on out-of-fold scores."""
