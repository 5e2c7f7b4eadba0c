"""Models of tables: calibrated methods, the decision, the contract and the explanation (algorithms 16 and 20)."""
