"""Rare events: a logistic sum of distances to many prototypes of two classes."""
