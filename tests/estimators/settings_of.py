"""Estimators of methods with other settings than their parameters reach, as a study makes them."""

from dataclasses import replace


def with_settings(estimator, **changes):
    """An object of a subclass of an estimator's class whose settings are changed."""
    kind = type(estimator)
    changed = type(kind.__name__, (kind,), {"_settings": lambda self: replace(kind._settings(self), **changes)})
    return changed(**estimator.get_params(deep=False))
