"""A new part is a class like this one and a line in two registries: everything else works with it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_wine

import qmedoid
from qmedoid.arrays import Array, Codes
from qmedoid.estimators.parameters import with_parameters
from qmedoid.estimators.recipes import RECIPES, MethodClassifier
from qmedoid.methods.contributions import Contributions, GroupContribution
from qmedoid.methods.part import FittedParts, KeptRows, Part, Scored, measured_distances
from qmedoid.methods.registry import PARTS
from qmedoid.schema import RowNumbers, Values

WINE = load_wine(as_frame=True)
X, Y = (WINE.data - WINE.data.mean()) / WINE.data.std(), WINE.target_names[WINE.target]


@dataclass(frozen=True, eq=False)
class ToyPart(Part):
    """Squared distances to one medoid per class, the training row nearest to its mean."""

    medoids: Annotated[Array, Values("C M")]
    numbers: Annotated[Codes, RowNumbers("C")]
    name: ClassVar[str] = "toy"
    columns = property(lambda self: np.arange(self.medoids.shape[1]))
    rows = property(lambda self: KeptRows(self.numbers, np.arange(len(self.medoids)), self.medoids, np.copy, "Euclid"))
    facts = property(lambda self: {"description": "distances to the medoids", "groups": (tuple(self.columns.tolist()),),
                                   "kept": (), "vector_length": len(self.columns), "numbers": {}})  # fmt: skip

    def score(self, X, *, channels=False, threads=None):  # noqa: ARG002
        rows = X if isinstance(X, np.ndarray) else np.column_stack(X)
        return self._scored(np.sqrt(((rows[:, None] - self.medoids) ** 2).sum(axis=2)))

    def score_measured(self, X, backend):
        return self._scored(
            measured_distances(backend, X if isinstance(X, np.ndarray) else np.column_stack(X), self.medoids)
        )

    def _scored(self, distance):
        nearest = np.broadcast_to(np.arange(len(self.medoids)), distance.shape)
        return Scored(distance**2, nearest, distance, np.zeros_like(distance))

    def contributions(self, row, winner, other):
        columns = self.column_contributions(row, winner, other)[0]
        return Contributions(columns, (GroupContribution(self.facts["groups"][0], float(columns.sum())),), {})

    def column_contributions(self, X, winners, others):
        return (X - self.medoids[others]) ** 2 - (X - self.medoids[winners]) ** 2


@with_parameters
class ToyClassifier(MethodClassifier):
    method_name = "toy"
    cv: int = 3

    def _fit_rows(self, data, seed, progress):  # noqa: ARG002
        rows = [np.flatnonzero(data.codes == code) for code in range(len(data.classes))]
        middle = [own[((data.X[own] - data.X[own].mean(axis=0)) ** 2).sum(axis=1).argmin()] for own in rows]
        part = ToyPart(data.X[middle], np.array(middle))
        scored = part.score(data.X)
        biases = np.zeros(scored.scores.shape[1])
        return FittedParts((part,), np.ones(1), biases, scored, [np.arange(len(data.codes))])


def test_a_new_part_is_fitted_saved_explained_measured_reported_and_refused_by_exports(monkeypatch, tmp_path):
    monkeypatch.setitem(PARTS, "toy", f"{__name__}:ToyPart")
    monkeypatch.setitem(RECIPES, "toy", f"{__name__}:ToyClassifier")
    circuit = qmedoid.VariationalClassifier(n_steps=5, n_seeds=1, n_reps=1, cv=2)
    for refine, policy in (("never", "none"), (0.3, "selective")):
        toy = qmedoid.MedoidClassifier(method="toy", refine=refine, variational=circuit, random_state=0).fit(X, Y)
        assert (toy.method_, toy.refinement_, set(toy.decided_by(X)) - {"circuit"}) == ("toy", policy, {"toy"})
        assert toy.score(X, Y) > 0.9
        loaded = qmedoid.load(toy.save(tmp_path / "model"))
        np.testing.assert_array_equal(loaded.predict_proba(X), toy.predict_proba(X))
        why = loaded.explain(X, 3)
        added = sum(column["contribution"] for column in why["columns"]) + sum(why["terms"].values())
        assert added == pytest.approx(why["margin"], abs=1e-12)
        measured = loaded.measured_by(swap_test=qmedoid.compact_swap_test)
        np.testing.assert_allclose(measured.predict_proba(X), toy.predict_proba(X), atol=1e-9)
        found = loaded.measurement_plan(X.iloc[:2], shots=20_000, refine="simulated").run()
        np.testing.assert_array_equal(found.decided.codes, loaded.decide(X.iloc[:2]).codes)
        assert (
            "distances to the medoids"
            in loaded.report(tmp_path / f"{policy}.html", X.assign(y=Y), target="y").read_text()
        )
    plain = qmedoid.MedoidClassifier(method=ToyClassifier(), refine="never", random_state=0).fit(X, Y)
    for format, language in (("js", "JavaScript"), ("sql", "SQL"), ("onnx", "ONNX")):
        with pytest.raises(
            qmedoid.exceptions.ModelError, match=f"^{language} cannot express the part 'toy' of this model:"
        ):
            plain.to_saved().export(tmp_path / "out", format=format)
