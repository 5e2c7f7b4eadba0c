"""
Compare with plain baselines
============================

Is the model better than a logistic regression or boosted trees on *this* table? The same rows are fitted and judged
by all, and the verdict says when a baseline is ahead.
"""

import matplotlib.pyplot as plt
from pyarrow import csv
from sklearn.model_selection import train_test_split

import qmedoid
from qmedoid.datasets import shipped_path

heart = csv.read_csv(shipped_path("heart.csv"))
known, new = train_test_split(range(heart.num_rows), stratify=heart["HeartDisease"].to_numpy(), random_state=0)
known, new = heart.take(known), heart.take(new)
found = qmedoid.compare(
    qmedoid.MedoidClassifier(random_state=0),
    known.drop_columns("HeartDisease"), known["HeartDisease"], new.drop_columns("HeartDisease"), new["HeartDisease"],
)  # fmt: skip
print(found.verdict())

# %%
# Log-loss on the same new rows; less is better:

names = [one["name"] for one in found.methods]
figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
bars = axes.barh(names, [one["log_loss"] for one in found.methods], color=["#1f6fb5", *["#9aa5b1"] * (len(names) - 1)])
axes.bar_label(bars, fmt="%.3f", padding=4)
axes.invert_yaxis()
axes.margins(x=0.12)
axes.set(xlabel=f"log-loss on {found.n_rows} rows that no model has seen", title="Ours beside plain baselines")
plt.show()
