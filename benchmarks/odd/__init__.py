"""Some four hundred odd tables, each with what it means, or what must be said of it."""
