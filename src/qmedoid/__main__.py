"""``python -m qmedoid``."""

from qmedoid.cli import main

if __name__ == "__main__":
    main()
