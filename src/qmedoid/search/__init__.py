"""Search procedures that ask an objective and know nothing of estimators (algorithms 7 and 10)."""
