"""Measurements on disk: runs that go on where they were stopped, with what they showed and a page of it.

What has finished is never run again, and a job that a service runs already is fetched.
"""

from qmedoid.quantum.runs.files import JobFiles
from qmedoid.quantum.runs.folder import RunFolder

__all__ = ["JobFiles", "RunFolder"]
