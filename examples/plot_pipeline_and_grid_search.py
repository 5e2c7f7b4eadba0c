"""
Pipeline and grid search
========================

The classifiers are scikit-learn estimators. Here a pipeline keeps the best columns, and a grid search by
cross-validation chooses how many columns and how many medoids.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from qmedoid import EvidenceClassifier

X, y = load_breast_cancer(return_X_y=True)
steps = make_pipeline(SelectKBest(), EvidenceClassifier(n_neighbors=0, n_pairs=4, n_triples=2, random_state=0))
columns, medoids = [3, 10, 30], [4, 32]
grid = {"selectkbest__k": columns, "evidenceclassifier__n_medoids": medoids}
search = GridSearchCV(steps, grid, cv=3, scoring="neg_log_loss").fit(X, y)
print(search.best_params_, f"log-loss {-search.best_score_:.3f}")

# %%
# The log-loss of every setting, the mean of three folds:

loss = -search.cv_results_["mean_test_score"].reshape(len(medoids), len(columns))
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for k, values in zip(columns, loss.T, strict=True):
    axes.plot(medoids, values, "o-", label=f"{k} columns")
axes.set_xscale("log", base=2)
axes.set_xticks(medoids, medoids)
axes.set(xlabel="medoids", ylabel="log-loss, three folds", title="Columns matter, medoids hardly")
axes.legend()
plt.show()
