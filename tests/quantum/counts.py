"""Counts of circuits on a device, and what infinitely many shots of them would show."""

from benchmarks.studies.measured import chances

from qmedoid.quantum.devices.sampling import counts_of


def run(device, batches, seed=()):
    """Run circuits as one job, and count how often each copy read 1, or of several bits each basis state."""
    return counts_of(device.submit(batches, seed=seed).result(), batches)


def chances_of(device, batch):
    """Probability that each copy reads 1, shape (circuits, copies), or each basis state."""
    return chances(device, batch.pack, batch.angles)
