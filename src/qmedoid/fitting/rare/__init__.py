"""A rare-event model from training rows: prototypes, their hardest counterparts, a logistic sum of evidence."""
