"""
Score in a database: export to SQL
==================================

The model becomes one ``SELECT``. SQLite, which is part of Python, gives the probabilities of the model itself.
"""

import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from pyarrow import csv

from qmedoid import MedoidClassifier
from qmedoid.datasets import shipped_path

heart = csv.read_csv(shipped_path("heart.csv"))
X = heart.drop_columns("HeartDisease")
model = MedoidClassifier(method="evidence", random_state=0).fit(X, heart["HeartDisease"])
with TemporaryDirectory() as folder:
    path = Path(folder) / "heart.sql"
    model.to_saved().export(path, format="sql", dialect="sqlite", table="patients")
    statement = path.read_text(encoding="utf-8")
print(f"{len(statement) / 1000:.0f} kB of SQL, which begins:", *statement.splitlines()[:4], sep="\n")

# %%
# A table of 100 patients, and the statement about it:

patients = X.slice(0, 100)
database = sqlite3.connect(":memory:")
database.execute(f"CREATE TABLE patients ({', '.join(patients.column_names)})")
marks = ", ".join("?" * patients.num_columns)
database.executemany(f"INSERT INTO patients VALUES ({marks})", zip(*patients.to_pydict().values(), strict=True))
answer = database.execute(statement)
columns = [one[0] for one in answer.description]
rows = answer.fetchall()
in_sql = np.array([row[columns.index("probability")] for row in rows])
here = model.predict_proba(patients)[:, 1]
print(f"largest difference: {abs(in_sql - here).max():.1e}")

figure, axes = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
axes.plot([0, 1], [0, 1], color="grey", lw=0.8)
axes.plot(here, in_sql, "o", color="#1f6fb5", alpha=0.5)
axes.set(xlabel="probability in Python", ylabel="probability in SQLite", title="The same model twice")
plt.show()
