"""
The same model with shots
=========================

Every distance in a model is what a small circuit, the compact SWAP test, measures. With finitely many shots distances
are estimates, and so are margins: the more shots, the fewer decisions change. Needs the extra ``quantum``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from qmedoid import NearestMedoidClassifier
from qmedoid.quantum import SamplerSwapTest

X, y = load_breast_cancer(return_X_y=True)
model = NearestMedoidClassifier(max_passes=0, random_state=0).fit(X[::2], y[::2])
records = X[1:61:2]
exact = model.decision_function(records)

# %%
# Margins of 30 records, measured with 64 and with 4,096 shots, on a simulator:

figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharey=True)
for ax, shots in zip(axes, (64, 4096), strict=True):
    measured = model.measured_by(SamplerSwapTest(shots=shots, seed=7, circuit="compact_swap")).decision_function(
        records
    )
    same = np.mean((measured > 0) == (exact > 0))
    ax.axhline(0, color="grey", lw=0.8)
    ax.axvline(0, color="grey", lw=0.8)
    ax.plot(exact, measured, "o", color="#1f6fb5", alpha=0.6)
    ax.set(xlabel="exact margin", title=f"{shots} shots: {same:.0%} decided alike")
axes[0].set_ylabel("measured margin")
plt.show()
