"""What all tests start from."""

import gc
import os
import signal

from hypothesis import settings

# Before anything imports SciPy, so that scikit-learn's checks of array inputs run instead of being skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Laws that name no number of examples are tried on so many, and on others in every run.
settings.register_profile("check", max_examples=int(os.environ.get("QMEDOID_EXAMPLES", "100")), deadline=None)
settings.load_profile("check")
# A shell starts what it puts in the background with Ctrl-C turned off, and some tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What is there when tests begin stays to the end: the collector of garbage need not look at it again and again.

    Fits make many objects and few cycles, so it need not look often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
