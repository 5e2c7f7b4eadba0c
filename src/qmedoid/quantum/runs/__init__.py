"""Measurements on disk: runs that go on where they were stopped, with what they showed and a page of it."""
