"""Build the compiled kernels: one extension per ``kernels/_*.pyx``, each over the C file of the same name.

Every extension is optional. Without a C compiler the package installs all the same and runs on the NumPy
twins; ``QMEDOID_NO_EXTENSIONS=1`` asks for that on purpose.
"""

import os
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = Path("src/qmedoid/kernels")
GLUE = Path("build/cython")
"""Where Cython writes its C files."""
FLAGS = (
    ["/O2"]
    if sys.platform == "win32"
    # Square roots vectorise only when errno and traps are out of the way; sums keep the order they are written in.
    else ["-O3", "-g0", "-std=c11", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fopenmp-simd"]
)


class BuildKernels(build_ext):
    """Compiles extensions side by side, and what Cython wrote with few optimisations: the loops are in the C files."""

    def build_extensions(self) -> None:
        self.parallel = self.parallel or os.cpu_count()
        compile_all = self.compiler.compile

        def compile_each(sources: list[str], *, extra_postargs: list[str], **options: Any) -> list[str]:
            made = []
            for source in sources:
                less = ["-O1"] if sys.platform != "win32" and GLUE in Path(source).parents else []
                made += compile_all([source], extra_postargs=[*extra_postargs, *less], **options)
            return made

        self.compiler.compile = compile_each
        super().build_extensions()


def longest_first(pyx: Path) -> tuple[int, str]:
    """Order of the kernels by the size of their C files: the last to be compiled must not be the one to wait for."""
    sources = (KERNELS / "c").glob(f"{pyx.stem.removeprefix('_')}*")
    return -sum(source.stat().st_size for source in sources), pyx.stem


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
        for pyx in sorted(KERNELS.glob("_*.pyx"), key=longest_first)
    ]
    made = cythonize(
        found,
        build_dir=GLUE.as_posix(),
        # Elsewhere new processes would run this file again.
        nthreads=(os.cpu_count() or 1) if sys.platform == "linux" else 0,
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False},
    )
    for extension in made:  # said here, because Cython does not pass it on
        extension.optional = True
    return made


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
