"""First stages that are fitted in one go: their held-out rows, and how they are chosen."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackContext

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._folds import check_splits, stratified_splits
from qmedoid.estimators._parameters import Constraint, Flag, Folds, Optional, check_parameters
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.channels import Channels
from qmedoid.geometry.row_groups import part_of
from qmedoid.methods.base import Measured, Method

REPORTS = 20
"""How often a fit in one go tells callbacks how far it is, at most."""
Told = Callable[[float], None]
"""Hears how much of a fit is done, from 0 to 1."""


class Apart(NamedTuple):
    """What is said of rows by models that have not seen them.

    Attributes
    ----------
    scores : ndarray of shape (n, C)
        Dissimilarities.
    deltas : ndarray of shape (n, m) or None
        What a circuit is fed, where the stage has deltas of its own.
    fold : ndarray of shape (n,) or None
        The fold that held each row out; None where rows were left out one by one.
    """

    scores: Array
    deltas: Array | None = None
    fold: Codes | None = None


@dataclass(frozen=True, eq=False)
class FirstFit:
    """A fitted first stage with what it says of the training rows, see `calibrated_stage`.

    Attributes
    ----------
    model : Method
    measured, apart : Measured
    folds : list of ndarray
    """

    model: Method
    measured: Measured
    apart: Measured
    folds: list[Codes]


class FirstStageSettings(BaseEstimator):
    """Settings of a first stage, and its fit for a `GeometricClassifier`."""

    _constraints: ClassVar[Mapping[str, Constraint]] = {"cv": Optional(Folds()), "refit": Flag()}
    cv: Any
    refit: bool

    def check(self) -> None:
        """Raise for settings that are not allowed."""
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)

    def fit_stage(
        self,
        table: Array,
        codes: Codes,
        classes: npt.NDArray[Any],
        seed: int,
        told: Told,
        groups: Codes | None = None,
    ) -> FirstFit:
        """Fit the model, on all rows or on the training part of the only split; groups are left out together."""
        if self.cv is None:
            model, apart = self._fit_rows(table, codes, classes, seed, told, groups)
            fold = np.zeros(len(codes), dtype=np.intp) if apart.fold is None else apart.fold
            folds = [np.flatnonzero(fold == number) for number in range(fold.max() + 1)]
            return self._described(model, table, apart, folds)
        splits = stratified_splits(self.cv, table, codes, classes, np.random.default_rng(seed), groups)
        check_splits(type(self).__name__, splits, codes, classes)
        if not self.refit and len(splits) > 1:
            raise ParameterError(
                f"refit=False keeps the training rows of a single split, but cv made {len(splits)}. "
                "Pass refit=True, or a cv with one split."
            )
        n_fits = len(splits) + bool(self.refit)
        scores = np.full((len(codes), len(classes)), np.nan)
        deltas: Array | None = None
        for number, (train, held_out) in enumerate(splits):
            own_told, own_groups = _part_of(told, number, n_fits), part_of(groups, train)
            model, own = self._fit_rows(table[train], codes[train], classes, seed, own_told, own_groups)
            found = model.measure(table[held_out])
            scores[held_out] = found.scores
            if own.deltas is not None and found.deltas is not None:
                deltas = np.full((len(codes), own.deltas.shape[1]), np.nan) if deltas is None else deltas
                deltas[train], deltas[held_out] = own.deltas, found.deltas
            model = model.with_row_numbers(train)
        if self.refit:
            model, own = self._fit_rows(table, codes, classes, seed, _part_of(told, n_fits - 1, n_fits), groups)
            deltas = own.deltas
        return self._described(model, table, Apart(scores, deltas), [held_out for _, held_out in splits])

    @abstractmethod
    def _fit_rows(
        self,
        table: Array,
        codes: Codes,
        classes: npt.NDArray[Any],
        seed: int,
        told: Told,
        groups: Codes | None,
    ) -> tuple[Method, Apart]:
        """The model of these rows, and what models that have not seen them say of them."""

    def _described(self, model: Method, table: Array, apart: Apart, folds: list[Codes]) -> FirstFit:
        measured = model.measure(table)
        unseen = np.isfinite(apart.scores)
        channels = Channels(measured.channels.distance, measured.channels.angle)
        apart_all = Measured(channels, np.where(unseen, apart.scores, measured.scores), measured.nearest, apart.deltas)
        self.models_ = [model]
        self.model_ = model
        self._medoid_tables = [table[model.medoid_rows]]
        return FirstFit(model, measured, apart_all, folds)


def reported(owner: Any, task: CallbackContext) -> Told:
    """What tells the callbacks of a classifier how far a fit is."""
    told = 0

    def report(share: float) -> None:
        nonlocal told
        while told < min(REPORTS, int(share * REPORTS + 1e-9)):
            told += 1
            task.subcontext(f"{told} of {REPORTS}").call_on_fit_task_begin(estimator=owner).call_on_fit_task_end(
                estimator=owner
            )

    return report


def _part_of(told: Told, number: int, n_fits: int) -> Told:
    return lambda share: told((number + share) / n_fits)
