"""
Explain a decision, and what would turn it
==========================================

Every decision is an exact sum. This script shows the sum of one patient by column, and the smallest change that leads
to the other class.
"""

import matplotlib.pyplot as plt
from pyarrow import csv

from qmedoid import MedoidClassifier
from qmedoid.datasets import shipped_path

heart = csv.read_csv(shipped_path("heart.csv"))
known, new = heart.slice(0, 600), heart.slice(600)
model = MedoidClassifier(random_state=0).fit(known.drop_columns("HeartDisease"), known["HeartDisease"])
why = model.explain(new, row=8, fixed=["Age", "Sex"])
print(*why.sentences, sep="\n")

# %%
# The columns of the table, and everything that belongs to no column, add up to the margin in log-odds:

parts = [(f"{one['name']} is {one['cell']}", one["contribution"]) for one in why["columns"]]
parts.append(("no column: start, calibration", sum(why["terms"].values())))
assert abs(sum(value for _, value in parts) - why["margin"]) < 1e-9
names, values = zip(*sorted(parts, key=lambda part: abs(part[1])), strict=True)
figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
bars = axes.barh(names, values, color=["#b8460e" if value > 0 else "#1f6fb5" for value in values])
axes.bar_label(bars, fmt="%+.2f", padding=3)
axes.axvline(0, color="black", lw=0.8)
axes.margins(x=0.15)
axes.set(xlabel="log-odds: right raises the odds of class 1", title=f"Margin {why['margin']:+.2f}: called class 1")

# %%
# Changes of one column that turn the decision; each was scored:

for flip in why.flips:
    change = f"{flip['column']} {flip['to']} instead of {flip['cell']}"
    print(f"{change}: called {flip['prediction']} with {flip['probability']:.0%}")
plt.show()
