"""Methods that classify by distances to medoids, one folder each, behind one protocol."""
