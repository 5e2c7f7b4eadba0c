"""Build the compiled kernels: one extension per ``kernels/_*.pyx``, each over the C file of the same name.

Every extension is optional. Without a C compiler the package installs all the same and runs on the NumPy
twins; ``QMEDOID_NO_EXTENSIONS=1`` asks for that on purpose.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

KERNELS = Path("src/qmedoid/kernels")
FLAGS = (
    ["/O2"]
    if sys.platform == "win32"
    # Square roots vectorise only when errno and traps are out of the way; sums keep the order they are written in.
    else ["-O3", "-g0", "-std=c11", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fopenmp-simd"]
)


def extensions() -> list[Extension]:
    if os.environ.get("QMEDOID_NO_EXTENSIONS"):
        print("qmedoid: compiled kernels left out on request; the NumPy twins will be used (slower).")
        return []
    from Cython.Build import cythonize

    found = [
        Extension(
            f"qmedoid.kernels.{pyx.stem}",
            [pyx.as_posix(), (KERNELS / "c" / f"{pyx.stem.removeprefix('_')}.c").as_posix()],
            depends=[header.as_posix() for header in (KERNELS / "c").glob("*.h")],
            include_dirs=[(KERNELS / "c").as_posix()],
            extra_compile_args=FLAGS,
        )
        for pyx in sorted(KERNELS.glob("_*.pyx"))
    ]
    made = cythonize(
        found,
        build_dir="build/cython",
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False},
    )
    for extension in made:  # said here, because Cython does not pass it on
        extension.optional = True
    return made


setup(ext_modules=extensions())
