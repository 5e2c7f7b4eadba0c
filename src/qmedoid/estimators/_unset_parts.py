"""Parameters of a part that is not set: the part is then its default, as in a fit."""

from collections.abc import Callable, Mapping
from typing import Any


def with_parts(estimator: Any, params: Mapping[str, Any], defaults: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Parameters for `set_params`, with the default of each part that is None and has parameters of its own among them.

    Parameters
    ----------
    estimator : estimator
    params : mapping
        As passed to `set_params`; those of a part have its name and two underscores before them.
    defaults : mapping of str to callable
        What makes the default of each part.
    """
    inner = {name.partition("__")[0] for name in params if "__" in name}
    unset = {name for name in defaults if params.get(name, getattr(estimator, name)) is None}
    return {**params, **{name: defaults[name]() for name in sorted(inner & unset)}}
