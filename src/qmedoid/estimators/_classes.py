"""Classes in the order of their codes, with the class of interest last."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Codes
from qmedoid.estimators._targets import class_codes, known_codes
from qmedoid.exceptions import ParameterError
from qmedoid.tables.targets import rest_label


@dataclass(frozen=True, eq=False)
class ClassOrder:
    """How labels become codes.

    Attributes
    ----------
    labels : ndarray
        The labels of the target in rising order.
    classes : ndarray of shape (C,)
        The classes by their codes: the labels, or ``"not …"`` and the label that all others are told from.
    places : ndarray
        The code of each label.
    """

    labels: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    places: Codes

    @classmethod
    def of(cls, target: npt.NDArray[Any], positive: Any) -> tuple["ClassOrder", Codes]:
        """The order of the classes of a target, and the code of every row.

        A positive class may be given by its label or by how that is written.
        """
        labels, codes = class_codes(target)
        if positive is None:
            order = cls(labels, labels, np.arange(len(labels)))
        else:
            place = _find(labels, positive)
            if len(labels) == 2:
                order = cls(labels, labels[[1 - place, place]], (np.arange(2) == place).astype(np.intp))
            else:
                # Both as text: one array and one column of a file hold them.
                text = str(labels[place])
                against = np.array([rest_label(text), text], dtype=object)
                order = cls(labels, against, (np.arange(len(labels)) == place).astype(np.intp))
        return order, order.places[codes]

    def codes(self, target: npt.NDArray[Any]) -> Codes:
        """The code of every validation row; labels that the training rows did not have are refused."""
        if len(self.classes) < len(self.labels):
            return self._is_positive(target)
        return self.places[known_codes(target, self.labels)]

    @property
    def codes_of_sorted(self) -> Codes:
        """The code of each class, the classes in rising order, as scikit-learn has them."""
        return np.argsort(self.classes, kind="stable")

    def meant(self, target: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The class that each label stands for; a label that is new stands for itself."""
        if len(self.classes) == len(self.labels):
            return target
        meant: npt.NDArray[Any] = self.classes[self._is_positive(target)]
        return meant

    def _is_positive(self, target: npt.NDArray[Any]) -> Codes:
        return np.asarray(target == self.labels[self.places == 1][0]).astype(np.intp)


def _find(labels: npt.NDArray[Any], positive: Any) -> int:
    for alike in (labels == positive, np.array([str(label) for label in labels.tolist()]) == str(positive)):
        if np.any(alike):
            return int(np.flatnonzero(alike)[0])
    raise ParameterError(
        f"The 'positive' parameter must be one of the classes, {labels.tolist()[:10]}. Got {positive!r} instead."
    )
