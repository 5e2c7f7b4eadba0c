"""What is kept on disk: saved models, checkpoints of a training, and files that are whole or not there."""
