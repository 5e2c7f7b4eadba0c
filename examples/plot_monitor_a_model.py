"""
Monitor a model: are there too many alerts?
===========================================

Batches of new records arrive without labels. The model says how many alerts it expects of a batch of this size, so
that a batch that is out of the ordinary shows at once.
"""

import matplotlib.pyplot as plt
import numpy as np
from pyarrow import csv

from qmedoid import MedoidClassifier
from qmedoid.datasets import shipped_path

heart = csv.read_csv(shipped_path("heart.csv"))
rng = np.random.default_rng(0)
heart = heart.take(rng.permutation(heart.num_rows))
known, later = heart.slice(0, 500), heart.slice(500)
model = MedoidClassifier(positive=1, random_state=0).fit(known.drop_columns("HeartDisease"), known["HeartDisease"])
saved = model.to_saved()

# %%
# Five batches as the table has them, and three of a ward where nearly all have chest pain without angina:

batches = [later.slice(80 * number, 80) for number in range(5)]
ward = later.filter(np.isin(later["ChestPainType"].to_numpy(zero_copy_only=False), ["ASY"]))
batches += [ward.slice(60 * number, 60) for number in range(3)]
drifts = [saved.alert_rate_drift(saved.decide(batch)) for batch in batches]

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
days = np.arange(1, len(batches) + 1)
axes.fill_between(
    days, [one.low for one in drifts], [one.high for one in drifts], color="#1f6fb5", alpha=0.2, step="mid"
)
colors = ["#1f6fb5" if one.low <= one.alert_rate <= one.high else "#b8460e" for one in drifts]
axes.scatter(days, [one.alert_rate for one in drifts], color=colors, zorder=3, s=50)
axes.set(xlabel="batch", ylabel="alert rate", ylim=(0, 1), title="Alerts, and what is expected (shaded)")

# %%
# Which columns are not as they were, in the last batch:

print(*saved.novelty_report(batches[-1]).lines, sep="\n")
plt.show()
