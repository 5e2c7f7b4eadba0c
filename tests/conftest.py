"""What all tests start from."""

import os
import signal

# Before anything imports SciPy, so that scikit-learn's checks of array inputs run instead of being skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# A shell starts what it puts in the background with Ctrl-C turned off, and some tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
