"""Draw the picture of the page on explanations: ``python docs/make_explanation.py`` writes pictures/decision.svg."""

from pathlib import Path

import pandas as pd

from qmedoid import MedoidClassifier
from qmedoid.datasets import shipped_path

PICTURE = Path(__file__).parent / "pictures" / "decision.svg"


def picture() -> str:
    """The decision about one patient, on white: a page that includes it may be dark."""
    table = pd.read_csv(shipped_path("heart.csv"))
    X, y = table.drop(columns="HeartDisease"), table["HeartDisease"]
    saved = MedoidClassifier(random_state=0).fit(X, y).to_saved()
    svg = saved.explain(X, row=6, fixed=["Age", "Sex"]).to_svg()
    start = svg.index("<title>")
    return f'{svg[:start]}<rect width="100%" height="100%" fill="#fff"/>\n{svg[start:]}\n'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
