"""Search and training procedures that ask an objective and know no model (algorithms 7, 10 and 18)."""
