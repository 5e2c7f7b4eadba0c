"""What is kept on disk: saved models, checkpoints and atomic files (algorithms 12 and 19)."""
