"""Files and data frames in: what they hold, how it becomes numbers, and scoring chunk by chunk."""
