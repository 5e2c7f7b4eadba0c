"""All odd tables by their names, and all that are scored by a model of a plain one."""

from odd_base import joined
from odd_files import encodings, lines, names, signs, typed
from odd_frames import arrow, frames
from odd_numbers import sizes, spelt, units
from odd_scored import scored
from odd_targets import leaks, people, targets
from odd_words import dates, levels, truths, useless

PARTS = (
    encodings, signs, lines, names, typed, spelt, units, sizes, dates, truths, levels, useless, targets, leaks, people,
    frames, arrow,
)  # fmt: skip
ODD = {one.name: one for one in joined(*(part() for part in PARTS))}
SCORED = {one.name: one for one in scored()}
