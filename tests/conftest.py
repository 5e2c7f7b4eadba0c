"""Set before anything imports SciPy, so that scikit-learn's checks of array inputs run instead of being skipped."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
