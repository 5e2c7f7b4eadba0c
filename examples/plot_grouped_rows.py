"""
Rows that belong together
=========================

Three visits of one patient are not three patients. If the fit does not know, it judges itself by rows whose copies it
has seen, and promises too much. ``groups=`` (``--group-column``) tells it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

from qmedoid import EvidenceClassifier

X, y = load_breast_cancer(return_X_y=True)
X_known, X_new, y_known, y_new = train_test_split(X, y == 0, test_size=0.5, stratify=y, random_state=0)
rng = np.random.default_rng(0)
visits = np.repeat(X_known, 3, axis=0) * rng.normal(1, 0.001, (3 * len(X_known), X.shape[1]))
labels, patient = np.repeat(y_known, 3), np.repeat(np.arange(len(X_known)), 3)

# %%
# Expected recall with its 95 % interval, without and with the patients, and what new patients show:

figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
for line, (name, groups) in enumerate({"rows alone": None, "patients given": patient}.items()):
    model = EvidenceClassifier(random_state=0).fit(visits, labels, groups=groups)
    expected, shown = model.expected_.recall, recall_score(y_new, model.predict(X_new))
    axes.plot([expected.low, expected.high], [line, line], color="#1f6fb5", lw=6, alpha=0.4)
    axes.plot(expected.value, line, "o", color="#1f6fb5", label="expected by the fit" if line == 0 else None)
    axes.plot(shown, line, "d", color="#b8460e", ms=9, label="on new patients" if line == 0 else None)
    print(f"{name}: expected {expected.value:.3f}, on new patients {shown:.3f}")
axes.set_yticks([0, 1], ["rows alone", "patients given"])
axes.set(xlabel="recall of malignant tumors", ylim=(-0.6, 2.4), title="Copies on both sides promise too much")
axes.legend(loc="upper left")
plt.show()
