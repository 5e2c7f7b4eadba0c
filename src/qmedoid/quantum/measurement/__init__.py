"""From a batch of records to circuits and back: tests, jobs, calibration, errors, and the plan of a run."""
