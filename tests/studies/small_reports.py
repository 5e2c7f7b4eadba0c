"""A small report with every kind of part, and a hostile one."""

from benchmarks.studies.document import Document, Heading, Picture, Section, Table

from qmedoid.markup.charts import picture

SVG = picture(8, 8, "ROC curves", "")


def comparison() -> Table:
    return Table(
        name="heart_test",
        title="Heart: test rows",
        columns=[
            Heading("method"),
            Heading("paper", "accuracy"),
            Heading("ours", "accuracy"),
            Heading("±", "accuracy", is_error=True),
            Heading("paper", "macro-F1", digits=2),
            Heading("rows"),
        ],
        rows=[
            ["fusion", 0.8478, 0.84, 0.0064, 0.85, 284_807],
            ["forest", None, -0.00001, None, -0.5, 7],
        ],
        note="Means of 20 splits.",
    )


def report() -> Document:
    return Document(
        title="The paper, table by table",
        introduction=["What was done.", "And how."],
        findings=["A plain baseline wins.", "The search\nhelps."],
        sections=[
            Section("Heart", ["Some words."], [comparison(), Picture("heart_roc", "ROC curves", SVG, "Bands.")]),
            Section(
                "Fraud",
                [],
                [Table("fraud", "Fraud", [Heading("method"), Heading("recall")], [["a, b", 0.5]])],
            ),
        ],
        provenance={"command": "qmedoid reproduce heart", "seed": "0"},
    )


HOSTILE = "<script>alert('&\"')</script>"


def hostile_report() -> Document:
    table = Table("t", HOSTILE, [Heading(HOSTILE, HOSTILE), Heading("x")], [[HOSTILE, HOSTILE]], HOSTILE)
    return Document(
        title=HOSTILE,
        introduction=[HOSTILE],
        findings=[HOSTILE],
        sections=[Section(HOSTILE, [HOSTILE], [table, Picture("p", HOSTILE, SVG, HOSTILE)])],
        provenance={HOSTILE: HOSTILE},
    )
