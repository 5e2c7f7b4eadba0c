"""Fine-tuning of the circuit of a `MedoidClassifier`, on deltas of rows that its method was not fitted on."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.estimators._fine_tuning import FineTuningMixin, TuningRows, known_classes
from qmedoid.estimators._inputs import check_target, loss_weights
from qmedoid.exceptions import DataError, ModelError, warn
from qmedoid.geometry.row_groups import given_groups, part_of, row_groups
from qmedoid.methods.variational.model import VariationalModel
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.table import TableModel
from qmedoid.tables.row_hashes import row_hashes


class HybridTuningMixin(FineTuningMixin):
    """A classifier of raw tables whose circuit can be tuned for a noisy backend."""

    models_: list[HybridModel]
    variational_: Any

    def _tuning_rows(self, X: Any, y: Any, groups: Any) -> TuningRows:
        plain: Any = copy.copy(self)
        model = plain.model_ = self.models_[0]
        circuit = model.variational
        if not isinstance(circuit, VariationalModel):
            raise ModelError("This classifier has no circuit that could be tuned: its method decides every record.")
        table, matrix = plain._table_and_matrix(X)
        labels = plain._meant(check_target(y, len(matrix)))
        together = None if groups is None else given_groups(groups, len(matrix))
        new = _unseen(plain.table_model(), table)
        matrix, together = matrix[new], part_of(together, new)
        codes = known_classes(labels[new], plain.classes_)
        codes = 1 - codes if plain._is_reversed else codes
        together = row_groups(matrix, codes) if groups is None else together
        weights = loss_weights(self.variational_.class_weight, codes, plain._in_order(plain.classes_))
        data, rows = model.picked_training_data(matrix, codes, weights)
        return TuningRows(circuit, data, self.variational_.classes_, part_of(together, rows))

    def _hold_circuit(self, circuit: VariationalModel) -> None:
        estimator = copy.copy(self.variational_)
        estimator._hold_circuit(circuit)
        self.variational_ = estimator
        self.models_ = [replace(self.models_[0], variational=circuit), *self.models_[1:]]
        vars(self)["model_"] = self.models_[0]


def _unseen(model: TableModel, table: pa.Table) -> Codes:
    """The rows whose cells are not those of a row of the fit; too few of them are refused."""
    hashes = row_hashes(model, table)
    if hashes is None or model.seen is None:
        warn("The model keeps no hashes of its training rows: that these are new rows was not checked.")
        return np.arange(table.num_rows)
    known = np.isin(hashes, model.seen.hashes)
    checked = model.seen.among(hashes).checked
    if 2 * known.sum() > max(checked, 1):
        raise DataError(
            f"{known.sum():,} of {checked:,} rows have the cells of rows that the classifier was fitted on. Their "
            "deltas are those of rows that helped to choose the medoids: give rows that are new."
        )
    if known.any():
        warn(f"Rows left out, as they have the cells of rows that the classifier was fitted on: {known.sum():,}.")
    return np.flatnonzero(~known)
