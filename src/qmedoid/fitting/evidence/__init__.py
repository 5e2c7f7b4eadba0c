"""An evidence model from training rows: medoids, groups of columns, signed weights by closed-form leave-one-out."""
