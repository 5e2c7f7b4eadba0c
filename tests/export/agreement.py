"""What an export says of records is what the model decides: scores, classes, nearest medoids, probabilities."""

import numpy as np


def assert_sql_agrees(found, saved, table, outputs=None):
    """What a statement selected is what the model decides; `outputs` renames outputs."""
    called = {name: name for name in found} | (outputs or {})
    decided = saved.decide(table, on_mismatch="warn")
    margins = np.array(found[called["margin"]])
    np.testing.assert_allclose(margins, decided.margins, rtol=0, atol=1e-9)
    clear = np.abs(decided.margins) > 1e-9
    expected = saved.classes_[decided.codes]
    assert [one for one, is_clear in zip(found[called["prediction"]], clear, strict=True) if is_clear] == (
        expected[clear].tolist()
    )
    nearest = np.column_stack([values for name, values in found.items() if name.startswith("nearest_")])
    np.testing.assert_array_equal(nearest, saved.model.medoids.numbers[decided.nearest])
    if len(saved.classes_) > 2:
        scores = np.column_stack([values for name, values in found.items() if name.startswith("score_")])
        np.testing.assert_allclose(scores, decided.scores, rtol=0, atol=1e-9)
    if saved.model.decision.probabilistic:
        names = [name for name in found if name.startswith(called.get("probability", "probability_"))]
        probabilities = saved.model.decision.probabilities(decided.scores)
        expected = probabilities[:, 1:] if len(saved.classes_) == 2 else probabilities
        np.testing.assert_allclose(np.column_stack([found[name] for name in names]), expected, rtol=0, atol=1e-12)


def assert_onnx_agrees(found, saved, table):
    """What onnxruntime found is what the model decides."""
    decided = saved.decide(table, on_mismatch="warn")
    np.testing.assert_allclose(found["scores"], decided.scores, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["margin"], decided.margins, rtol=0, atol=1e-9)
    clear = np.abs(decided.margins) > 1e-9
    np.testing.assert_array_equal(found["label"][clear], saved.classes_[decided.codes][clear])
    np.testing.assert_array_equal(found["nearest"], saved.model.medoids.numbers[decided.nearest])
    assert ("probabilities" in found) == saved.model.decision.probabilistic
    if "probabilities" in found:
        expected = saved.model.decision.probabilities(decided.scores)
        np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=1e-12)
