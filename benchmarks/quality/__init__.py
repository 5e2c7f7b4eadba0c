"""The quality study: all methods on the same repeated splits of many tables, and on the credit-card frauds."""
