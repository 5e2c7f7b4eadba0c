"""scikit-learn estimators: validate, fit, hold a model (algorithms 7, 10, 16 and 20)."""
