"""
Imbalanced classes without resampling
=====================================

3 % of the payments are frauds. Giving both classes the same weight, as copies or SMOTE do, does not rank them better:
it makes the probabilities wrong. An operating point does what is wanted, and leaves them right.
"""

import matplotlib.pyplot as plt
import numpy as np
from pyarrow import parquet
from sklearn.metrics import average_precision_score

from qmedoid import MedoidClassifier
from qmedoid.datasets import shipped_path

payments = parquet.read_table(shipped_path("creditcard_sample.parquet")).drop_columns("Time")
known, new = (payments.take(np.arange(start, payments.num_rows, 12)) for start in (0, 5))
X, y = known.drop_columns("Class"), known["Class"].to_numpy()
X_new, y_new = new.drop_columns("Class"), new["Class"].to_numpy()

fitted = {}
for name, weights in (("as they are", None), ("balanced", "balanced")):
    model = MedoidClassifier(method="evidence", positive=1, class_weight=weights, random_state=0)
    fitted[name] = model.fit(X, y).predict_proba(X_new)[:, list(model.classes_).index(1)]
    print(f"{name}: PR-AUC {average_precision_score(y_new, fitted[name]):.3f}")

# %%
# The sum of the probabilities should be the number of frauds:

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
bars = axes.barh(list(fitted), [one.sum() for one in fitted.values()], color=["#1f6fb5", "#b8460e"])
axes.bar_label(bars, fmt="%.0f", label_type="center", color="white", weight="bold")
axes.axvline(y_new.sum(), color="black", ls="--")
axes.annotate(f" {y_new.sum()} are true", (y_new.sum(), -0.05), xytext=(6, 0), textcoords="offset points")
axes.set(xlabel="frauds that the probabilities promise", title="Balanced weights promise frauds that are not there")
axes.margins(x=0.1)

# %%
# So leave the rows as they are, and say how many alerts there may be:

model = MedoidClassifier(method="evidence", operating_point={"alert_rate": 0.03}, positive=1, random_state=0).fit(X, y)
alerts = model.predict(X_new) == 1
print(f"{alerts.sum()} alerts find {y_new[alerts].sum()} of {y_new.sum()} frauds")
plt.show()
