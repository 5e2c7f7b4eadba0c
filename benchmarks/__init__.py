"""Measurements and studies of the library; none of it is in the wheel."""
