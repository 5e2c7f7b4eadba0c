"""What is kept on disk: saved models and atomic files (algorithms 12 and 19)."""
