"""Same build and seed, same model: to the last bit, whatever the number of threads."""

import os
import subprocess
import sys

CODE = """
import hashlib
import numpy as np
from qmedoid import NearestMedoidClassifier, MedoidClassifier
rng = np.random.default_rng(0)
y = rng.integers(2, size=20_000)
X = np.cumsum(rng.normal(size=(20_000, 30)), axis=1) + 0.8 * y[:, None] + 5.0
model = NearestMedoidClassifier(max_passes=1, subset_sizes=(2, 2), n_anchors=8, cv=2, random_state=0).fit(X, y)
default = MedoidClassifier(random_state=0).fit(X[::15], y[::15])
evidence, trees, *_ = default.model_.parts
nearest = model.model_.parts[0]
digest = hashlib.sha256()
for array in (
    model.medoids_, nearest.medoids, nearest.feature_scaling.center, nearest.feature_scaling.scale,
    model.groups_.correlation, model.decision_function(X),
    evidence.medoid_rows, evidence.terms.weights, trees.values, trees.near_values, default.decision_function(X),
):
    digest.update(np.ascontiguousarray(array).tobytes())
print(digest.hexdigest(), model.configuration_, [step.score for step in model.search_trace_])
"""


def outcome(**environment: str) -> str:
    # Threads that wait for a core must not spin.
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_WAIT_POLICY": "passive"} | environment
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=True)
    return done.stdout


def test_threads_change_no_bit():
    alone, together = (
        outcome(QMEDOID_THREADS=count, OPENBLAS_NUM_THREADS=count, OMP_NUM_THREADS=count) for count in "12"
    )
    assert alone == together
