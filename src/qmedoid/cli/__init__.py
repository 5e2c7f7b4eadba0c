"""The command line: ``qmedoid``."""

from qmedoid.cli.app import main

__all__ = ["main"]
