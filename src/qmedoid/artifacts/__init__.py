"""What is kept on disk: checkpoints of a training."""
