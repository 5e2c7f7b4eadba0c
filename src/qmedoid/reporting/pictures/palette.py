"""Colors and line styles: whose figures they are can be told with every kind of color vision, and in print."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from qmedoid.exceptions import ParameterError

Role = Literal["ours", "printed", "baseline"]
"""Whose figures: ours, ours as the paper prints the method, or those of another method."""

PAPER: dict[str, Any] = {"marker": "D", "color": "black", "markersize": 5, "linestyle": "none", "zorder": 6}
"""What the paper states is a black diamond everywhere."""
MUTED = "#666666"
"""For what is not compared by color."""

# After Okabe and Ito. The strong colors are ours alone; a second method of ours is a darker, a third a lighter shade.
_COLORS: dict[Role, tuple[str, ...]] = {
    "ours": ("#0072B2", "#003F66", "#4FA3D9"),
    "printed": ("#D55E00", "#8A3C00", "#F0945A"),
    "baseline": ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A7A7A", "#7B5EA7", "#A6761D"),
}
_DASHES: dict[Role, tuple[Any, ...]] = {
    "ours": ("-", (0, (1, 1))),
    "printed": ((0, (5, 1.5)), (0, (3, 1, 1, 1))),
    "baseline": ("-", (0, (4, 2)), (0, (6, 2, 1, 2)), (0, (1, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1))),
}
_DOTS: dict[Role, str] = {"ours": "o", "printed": "s", "baseline": "o"}


@dataclass(frozen=True)
class Look:
    """How one method is drawn, in all panels of a picture."""

    role: Role
    color: str
    dashes: Any

    @property
    def line(self) -> dict[str, Any]:
        """Arguments of a line; ours are wider and lie above the others."""
        is_other = self.role == "baseline"
        return {
            "color": self.color,
            "linestyle": self.dashes,
            "linewidth": 1.3 if is_other else 2.1,
            "zorder": 3 if is_other else 4,
        }

    @property
    def dot(self) -> dict[str, Any]:
        """Arguments of a dot: larger than a diamond, so that it shows below one."""
        return {"color": self.color, "marker": _DOTS[self.role], "markersize": 7, "linestyle": "none", "zorder": 5}


def looks(methods: Iterable[tuple[str, Role]]) -> dict[str, Look]:
    """A look per label, in the order in which labels first appear."""
    found: dict[str, Look] = {}
    counts: dict[Role, int] = dict.fromkeys(get_args(Role), 0)
    for label, role in methods:
        if label not in found:
            colors, dashes = _COLORS[role], _DASHES[role]
            found[label] = Look(role, colors[counts[role] % len(colors)], dashes[counts[role] % len(dashes)])
            counts[role] += 1
    return found


def check_role(role: str) -> None:
    """Raise where there is no such role."""
    if role not in get_args(Role):
        raise ParameterError(f"The 'role' parameter must be one of {', '.join(get_args(Role))}. Got {role!r} instead.")
