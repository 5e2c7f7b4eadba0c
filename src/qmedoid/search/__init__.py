"""Search and training procedures that ask an objective and know nothing of estimators (algorithms 7, 10 and 18)."""
