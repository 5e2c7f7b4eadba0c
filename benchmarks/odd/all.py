"""All odd tables by their names, and all that are scored by a model of a plain one."""

from benchmarks.odd.base import joined
from benchmarks.odd.files import encodings, lines, names, signs, typed
from benchmarks.odd.frames import arrow, frames
from benchmarks.odd.numbers import sizes, spelt, units
from benchmarks.odd.scored import scored
from benchmarks.odd.targets import leaks, people, targets
from benchmarks.odd.words import dates, levels, truths, useless

PARTS = (
    encodings, signs, lines, names, typed, spelt, units, sizes, dates, truths, levels, useless, targets, leaks, people,
    frames, arrow,
)  # fmt: skip
ODD = {one.name: one for one in joined(*(part() for part in PARTS))}
SCORED = {one.name: one for one in scored()}
