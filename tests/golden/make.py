"""Write the golden values anew: ``cd tests && python -m golden.make [NAME ...]``.

To be run only where a wrong value is put right, in a commit that says so. See ``tests/test_golden.py``.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from golden import adapter, files
from golden.cases import CASES


def values_of(name: str, folder: Path) -> dict[str, Any]:
    """The values of a case by its model saved and loaded again."""
    case = adapter.prepared(CASES[name]())
    fitted = adapter.build(case)
    loaded = adapter.saved(fitted, folder / "model")
    described = adapter.describe(loaded, folder / "model", case.new, case.explained)
    return described | {"configuration": adapter.configuration(fitted)}


def main() -> None:
    for name in sys.argv[1:] or CASES:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            files.write(name, values_of(name, Path(folder)))
        print(f"{name}: {time.perf_counter() - start:.2f} s, {files.path_of(name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
