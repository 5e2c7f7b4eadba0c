"""
Choose a threshold for a budget of alerts
=========================================

Somebody can look at 20, 40 or 80 payments. What do they find, and how many of the alerts are false? The model keeps
the answer from rows that were held out, for every threshold.
"""

import matplotlib.pyplot as plt
from pyarrow import parquet

from qmedoid import MedoidClassifier
from qmedoid.datasets import shipped_path

payments = parquet.read_table(shipped_path("creditcard_sample.parquet")).drop_columns("Time")
payments = payments.take(list(range(0, payments.num_rows, 6)))
X, y = payments.drop_columns("Class"), payments["Class"].to_numpy()
model = MedoidClassifier(method="evidence", positive=1, random_state=0).fit(X, y)
saved = model.to_saved()

# %%
# Precision and recall for growing budgets, with 95 % intervals:

budgets = [5, 10, 20, 40, 80, 120, 160, 240]
found = saved.budgets(budgets)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, color in (("precision", "#b8460e"), ("recall", "#1f6fb5")):
    low, value, high = ([one[f"{name}{end}"] for one in found] for end in ("_low", "", "_high"))
    axes.plot(budgets, value, "o-", color=color, label=name)
    axes.fill_between(budgets, low, high, color=color, alpha=0.15)
axes.axvline((y == 1).sum(), color="grey", ls="--", lw=1)
axes.annotate(f" {(y == 1).sum()} frauds", ((y == 1).sum(), 0.02), color="grey")
axes.set(xlabel=f"alerts among {len(y):,} payments", ylim=(0, 1.02), title="What a budget of alerts finds")
axes.legend()

# %%
# A copy of the model with the threshold of the budget decides so from now on:

careful = saved.at_operating_point({"alert_rate": 40 / len(y)})
expected = careful.expected_
print(
    f"threshold {expected.threshold:.3f}: precision {expected.precision.value:.0%}, recall {expected.recall.value:.0%}"
)
plt.show()
