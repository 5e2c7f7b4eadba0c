"""Models of every kind that a file can hold, made from random numbers."""

import dataclasses
from functools import partial

import numpy as np

from qmedoid.geometry.scaling import RankScaling, Scaling, SignedLog
from qmedoid.methods.comparisons.part import ComparisonsPart
from qmedoid.methods.evidence.part import EvidencePart, Group, Neighbors, Terms
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.methods.neighbors.part import NeighborsPart, RowCells
from qmedoid.methods.part import Calibration
from qmedoid.methods.rare.geometry import RareGeometry
from qmedoid.methods.rare.part import RarePart
from qmedoid.methods.variational.ansatz import AngleMap, Ansatz
from qmedoid.methods.variational.model import Network, VariationalModel
from qmedoid.methods.variational.readout import Readout, make_readout
from qmedoid.model.contract import Column, Contract, Dates, Levels, Numbers
from qmedoid.model.decision import Decision
from qmedoid.model.model import Model
from qmedoid.model.novelty import Far, fit_novelty
from qmedoid.model.operating_point import Counts, OperatingSummary
from qmedoid.model.refinement import CircuitInputs, Refinement
from qmedoid.model.training_summary import HeldOutCurve, SeenRows, TrainingSummary

COLUMNS = (
    Column("amount", "number"),
    Column("age | `x`\n_y_", "number", missing=True),
    Column("paid", "boolean"),
    Column("when", "date", missing=True),
    Column("Größe", "category", levels=("L", "M", "S\x00", "ü", "日本")),
    Column("shop", "category", missing=True, is_open=True),
)
PAIRS = CircuitInputs()
OUTPUTS = (("=L", "=M", "=ü"), (": frequency", ": target mean"))


def encodings(rng):
    """One of every kind of encoding, with every option; 12 encoded columns."""
    return (
        Numbers(np.nan),
        Numbers(-0.0, indicator=True),
        Numbers(1.0),
        Dates(("hour", "days"), rng.normal(size=2), indicator=True),
        Levels(("L", "M", "S\x00", "ü", "日本"), rng.normal(size=(7, 3)), OUTPUTS[0]),
        Levels(("", " ", "a", "a,b"), np.vstack([rng.normal(size=(5, 2)), [[np.nan, 0.5]]]), OUTPUTS[1]),
    )


def fusion_model(rng, *, n_columns=12, n_classes=2, per_class=1, **changes):
    subsets = tuple(
        tuple(int(c) for c in rng.permutation(n_columns)[: rng.integers(1, 4)]) for _ in range(rng.integers(2, 6))
    )
    anchors, medoids = len(subsets), n_classes * per_class
    values = {
        "input_scaling": Scaling(rng.normal(size=n_columns), rng.uniform(0.5, 2, n_columns)),
        "configuration": subsets,
        "weights": tuple(rng.normal(size=len(subset)) for subset in subsets),
        "signed": True,
        "feature_scaling": Scaling(rng.normal(size=anchors), rng.uniform(0.5, 2, anchors)),
        "medoids": rng.normal(size=(medoids, anchors)),
        "medoid_classes": np.repeat(np.arange(n_classes), per_class),
        "medoid_rows": rng.permutation(1000)[:medoids],
        "multipliers": rng.uniform(0.5, 1, n_classes),
        "alpha": float(rng.uniform()),
        "use_angular": True,
        "angle": "true",
    }
    return NearestPart(**(values | changes))


def circuit(rng, *, n_inputs, n_classes=2, readout="strings", n_qubits=2, n_reps=2, precision="float64", **changes):
    settings = {"reupload": True, "final_rz": False} | changes
    learn_scales = settings.pop("learn_scales", True)
    network = Network(
        Ansatz(n_qubits, n_inputs, n_reps, **settings),
        make_readout(readout, n_qubits, n_classes),
        rng.uniform(0.5, 2, n_inputs),
        learn_scales,
        precision,
    )
    angle_map = AngleMap(rng.normal(size=n_inputs), rng.uniform(0.5, 2, n_inputs), 3.5, 1.25)
    return VariationalModel(angle_map, network, rng.normal(size=network.n_parameters))


def evidence_model(rng, *, n_columns=12, n_classes=2, per_class=2, n_known=0):
    n_medoids, n_terms, n_outputs = n_classes * per_class, 9, 1 if n_classes == 2 else n_classes
    knots = rng.integers(1, 5, n_columns)
    groups = tuple(
        Group(tuple(int(c) for c in rng.permutation(n_columns)[:size]), rng.uniform(0.1, 2, size), bool(number % 2))
        for number, size in enumerate(rng.integers(1, 4, 4))
    )
    return EvidencePart(
        rank_scaling=RankScaling(
            np.concatenate([[0], np.cumsum(knots)]),
            np.concatenate([np.sort(rng.normal(size=count)) for count in knots]),
            np.concatenate([np.sort(rng.normal(size=count)) for count in knots]),
        ),
        linear_scaling=Scaling(rng.normal(size=n_columns), rng.uniform(0.5, 2, n_columns)),
        medoids=rng.normal(size=(n_medoids, n_columns)),
        medoid_classes=np.repeat(np.arange(n_classes), per_class),
        medoid_rows=rng.permutation(1000)[:n_medoids],
        column_weights=np.maximum(rng.normal(size=n_columns), 0.0),
        groups=groups,
        terms=Terms(
            group=rng.integers(0, len(groups), n_terms),
            medoid=rng.integers(0, n_medoids, n_terms),
            channel=np.arange(n_terms) % 3,
            length=rng.uniform(0.5, 2, n_terms),
            center=rng.normal(size=n_terms),
            weights=rng.normal(size=(n_terms, n_outputs)),
        ),
        intercepts=rng.normal(size=n_outputs),
        n_classes=n_classes,
        neighbors=Neighbors(
            records=rng.normal(size=(n_known, n_columns)),
            classes=rng.integers(0, n_classes, n_known),
            rows=rng.permutation(1000)[:n_known],
            amounts=rng.normal(size=(n_known, n_outputs)),
            n_nearest=min(4, n_known),
            length=float(rng.uniform(0.5, 2)),
            by_rank=bool(n_known % 2),
        )
        if n_known
        else None,
    )


def rare_model(rng, *, n_columns=12, n_classes=2, rare_class=1):
    assert n_classes == 2
    scaling = SignedLog(
        Scaling(rng.normal(size=n_columns), rng.uniform(0.5, 2, n_columns)),
        Scaling(rng.normal(size=n_columns), rng.uniform(0.5, 2, n_columns)),
    )
    metrics = np.vstack([np.ones(n_columns), np.maximum(rng.normal(size=n_columns), 0.0)])
    geometry = RareGeometry(
        scaling, rng.normal(size=(5, n_columns)), rng.normal(size=(9, n_columns)), np.arange(9) >= 6, metrics,
        ("plain", "contrast"), (1, 3), 0.2, 0.005,
    )  # fmt: skip
    n_features = sum(geometry.n_features)
    return RarePart(
        geometry=geometry,
        medoid_rows=rng.permutation(1000)[:14],
        center=rng.normal(size=n_features),
        scale=rng.uniform(0.5, 2, n_features),
        weights=rng.normal(size=n_features),
        intercept=-3.25,
        circuit_features=np.array([0, 1, 5]),
        rare_class=rare_class,
    )


def geometric(
    rng,
    *,
    n_classes=2,
    refine_below=None,
    inputs=PAIRS,
    residual=False,
    circuit_settings=(),
    first=fusion_model,
    curved=False,
    **of,
):
    """Parts, their weights, a calibration and a refinement, as fields of a model."""
    made = first(rng, n_classes=n_classes, **of)
    fields = made if isinstance(made, dict) else one_part(made, n_classes)
    curve = (np.sort(rng.normal(scale=3, size=4)), np.sort(rng.normal(size=4))) if curved else ()
    fields |= {"calibration": Calibration(float(rng.uniform(1, 30)), rng.normal(size=n_classes), *curve)}
    if refine_below is None:
        return fields
    between, part = 2 if inputs.decides_between_two(n_classes) else n_classes, fields["parts"][0]
    angular = getattr(part, "use_angular", True)
    inputs = CircuitInputs("own") if part.n_features else CircuitInputs(inputs.kind, inputs.fused, angular)
    n_inputs = inputs.n_features(n_classes, part.n_features)
    trained = circuit(rng, n_inputs=n_inputs, n_classes=between, **dict(circuit_settings))
    return fields | {
        "refinement": Refinement(trained, inputs, refine_below, residual, getattr(part, "rare_class", None))
    }


def one_part(part, n_classes=2):
    """A part as it is, as fields of a model."""
    return {
        "method": part.name,
        "parts": (part,),
        "weights": np.ones(1),
        "biases": np.zeros(n_classes),
        "calibration": Calibration.plain(n_classes),
    }


def recalibrated(rng):
    """A model with a circuit and a calibration after it."""
    calibration = Calibration(1.5, rng.normal(size=2), np.array([-1.0, 0.5, 2.0]), np.array([0.2, -0.1, 0.4]))
    fields = geometric(rng, first=evidence_model, refine_below=1.0)
    return fields | {"refinement": dataclasses.replace(fields["refinement"], recalibration=calibration)}


def records_of(part):
    """Rows as a table would give them, one for each medoid."""
    cells = {"amount": 1.5, "age | `x`\n_y_": None, "paid": True, "when": "2026-02-03T04:05:06", "Größe": "日本"}
    return tuple({**cells, "shop": f"={i}", "count": i} for i in range(len(part.rows.numbers)))


def novelty(rng):
    """A summary of 300 rows of 12 columns, the last of which has neither limits nor bins."""
    rows = rng.normal(size=(300, 12))
    dates, shares = Dates(("days", "hour"), np.zeros(2), indicator=True), Levels(("a",), np.zeros((3, 1)), (": share",))
    summary = fit_novelty(rows, [*[Numbers(0.0)] * 8, dates, shares])
    return dataclasses.replace(summary, far=Far(1.5, 3, 280))


def training(rng, n_classes):
    """A summary of 300 rows; for two classes with a curve, for more by day."""
    curve = HeldOutCurve.of(rng.random(250) < 0.3, np.round(rng.normal(size=250), 1)) if n_classes == 2 else None
    per_day = None if n_classes == 2 else 1.25
    return TrainingSummary(300, np.array([0, 7, 0, 300, 0, 290]), curve, per_day)


def table_model(fields, *, seed=0, n_classes=2, prevalence=None, **changes):
    classes = changes.pop("classes", ("no", "yes") if n_classes == 2 else tuple(range(n_classes)))
    values = {
        "contract": Contract(COLUMNS, "fraud?", {"id": "numbers its rows"}),
        "encodings": encodings(np.random.default_rng(seed)),
        **fields,
        "records": records_of(fields["parts"][0]),
        "parameters": {"kind": "signed", "sizes": [2, 5], "nested": {"a": None}, "seed": 0},
        "seen": SeenRows(bytes(range(16)), np.sort(np.random.default_rng(seed).integers(0, 2**63, 40)), n_classes > 2),
        "novelty": novelty(np.random.default_rng(seed)),
        "training": training(np.random.default_rng(seed), n_classes),
        "metrics": {"accuracy": 0.75, "loss": float("nan"), "low": float("-inf"), "by class": [1, 2.5]},
    }
    names = ("cut", "probabilistic", "priors", "shift", "operating", "biases")
    decision = Decision(classes, **{name: changes.pop(name) for name in names if name in changes})
    decision = decision if prevalence is None else decision.at_priors(prevalence)
    return Model(**(values | {"decision": decision} | changes))


def sum_model(rng, *, n_columns=12, n_classes=2, per_class=2):
    n_trees, n_rows, n_outputs = 3, 5, 1 if n_classes == 2 else n_classes
    near = rng.normal(size=(n_trees, 15))
    comparisons = ComparisonsPart(
        node_columns=rng.integers(-1, n_columns, (n_trees, 15)),
        row_numbers=rng.permutation(1000)[:n_rows],
        row_classes=rng.integers(0, n_classes, n_rows),
        near=rng.integers(0, n_rows, (n_trees, 15)),
        far=rng.integers(0, n_rows, (n_trees, 15)),
        near_values=near,
        far_values=near + rng.uniform(0.1, 2, near.shape),
        values=rng.normal(size=(n_trees, 31)),
        outputs=rng.integers(0, n_outputs, n_trees),
        intercepts=rng.normal(size=n_outputs),
        scaling=Scaling(rng.normal(size=n_columns), rng.uniform(0.5, 2, n_columns)),
        n_classes=n_classes,
    )
    base = evidence_model(rng, n_columns=n_columns, n_classes=n_classes, per_class=per_class)
    n_kept = 12
    neighbors = NeighborsPart(
        records=rng.normal(size=(n_kept, n_columns)),
        row_numbers=rng.permutation(1000)[:n_kept],
        row_classes=rng.integers(0, n_classes, n_kept),
        votes=rng.uniform(-1, 1, (n_kept, n_classes)),
        rank_scaling=base.rank_scaling,
        column_weights=np.maximum(rng.normal(size=n_columns), 0.0),
        length=0.5,
        n_nearest=3,
        cells=RowCells(np.array([7, 2]), np.repeat([1, 0], 6)),
    )
    parts = {"method": "sum", "parts": (base, comparisons, neighbors)}
    return parts | {"weights": rng.uniform(0.1, 2, 3), "biases": rng.normal(size=n_classes)}


def rare_sum(rng, *, n_columns=12, n_classes=2):
    comparisons = sum_model(rng, n_columns=n_columns, n_classes=n_classes)["parts"][1]
    parts = {"method": "rare", "parts": (rare_model(rng, n_columns=n_columns), comparisons)}
    return parts | {"weights": rng.uniform(0.1, 2, 2), "biases": rng.normal(size=2)}


def all_models():
    """Models by name: every stage, read-out, precision and policy."""
    rng = np.random.default_rng(12)
    nearest, fused = CircuitInputs("nearest", True), CircuitInputs("pairs", True)
    direct = {"readout": "direct", "n_qubits": 3, "precision": "float32", "learn_scales": False}
    several = {"n_classes": 4, "per_class": 3}
    return {
        "nearest": table_model(geometric(rng), cut=-0.25),
        "printed": table_model(geometric(rng, angle="printed", signed=False, alpha=1.0), probabilistic=False),
        "no angle": table_model(geometric(rng, use_angular=False, refine_below=0.5)),
        "selective": table_model(
            geometric(rng, refine_below=1.0, inputs=fused, residual=True),
            cut=0.1,
            priors=np.array([0.8, 0.2]),
            operating=OperatingSummary("macro_f1", None, 0.1, Counts(20, 10, 2, 68)),
            prevalence=0.1,
        ),
        "variational": table_model(
            geometric(rng, refine_below=np.inf, circuit_settings={"readout": "parity", "final_rz": True}), cut=0.5
        ),
        "several medoids": table_model(geometric(rng, **several), n_classes=4),
        "several classes": table_model(
            geometric(rng, refine_below=2.0, inputs=nearest, residual=True, **several), n_classes=4
        ),
        "all pairs": table_model(geometric(rng, refine_below=2.0, circuit_settings=direct, **several), n_classes=4),
        "circuit": table_model(one_part(circuit(rng, n_inputs=12, n_qubits=4, reupload=False)), cut=0.0),
        "float32": table_model(one_part(circuit(rng, n_inputs=12, precision="float32", n_reps=3))),
        "direct": table_model(one_part(circuit(rng, n_inputs=12, n_classes=3, **direct), 3), n_classes=3),
        "no rows": table_model(geometric(rng), records=None, novelty=None, training=None, parent="0a" * 32),
        "one deviates": table_model(geometric(rng, refine_below=-np.inf), classes=(False, True)),
        "numbers": table_model(geometric(rng), classes=(0.1, 1e300)),
        "evidence": table_model(
            geometric(rng, first=partial(evidence_model, n_known=7), curved=True),
            cut=-1.5,
            priors=np.array([0.75, 0.25]),
            operating=OperatingSummary("min_recall", 0.9, -1.5, Counts(20, 10, 2, 68)),
        ),
        "evidence and circuit": table_model(
            geometric(rng, first=evidence_model, curved=True, refine_below=1.0, residual=True),
            priors=np.array([0.9, 0.1]),
            operating=OperatingSummary("likeliest", None, 0.0, Counts(0, 0, 0, 7)),
        ),
        "evidence of classes": table_model(
            geometric(rng, first=partial(evidence_model, n_known=2), n_classes=4, curved=True),
            n_classes=4,
            priors=np.array([0.1, 0.2, 0.3, 0.4]),
            prevalence=[0.4, 0.3, 0.2, 0.1],
        ),
        "shifted": table_model(
            geometric(rng),
            cut=0.75,
            priors=np.array([0.5, 0.5]),
            operating=OperatingSummary("macro_f1", None, 0.75, Counts(20, 10, 2, 68)),
            prevalence=0.01,
        ),
        "shifted by cost": table_model(
            geometric(rng),
            cut=0.75,
            priors=np.array([0.5, 0.5]),
            operating=OperatingSummary("cost", 3.5, 0.75),
            prevalence=0.3,
        ),
        "sum": table_model(geometric(rng, first=sum_model, curved=True), priors=np.array([0.5, 0.5])),
        "sum of classes": table_model(
            geometric(rng, first=sum_model, n_classes=4),
            n_classes=4,
            priors=np.array([0.1, 0.2, 0.3, 0.4]),
            biases=np.array([0.5, -0.5, 1.0, -1.0]),
        ),
        "rare": table_model(geometric(rng, first=rare_model, curved=True), cut=0.5, priors=np.array([0.99, 0.01])),
        "rare, first class": table_model(geometric(rng, first=rare_model, rare_class=0)),
        "rare and circuit": table_model(geometric(rng, first=rare_model, refine_below=1.0, residual=True)),
        "recalibrated circuit": table_model(recalibrated(rng)),
        "rare and comparisons": table_model(geometric(rng, first=rare_sum, refine_below=1.0, residual=True)),
    }


def random_columns(n_rows=200, n_columns=12, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(scale=2, size=n_rows) for _ in range(n_columns)]


def same(a, b, where="model"):
    """Two values are of one type and have the same bits, all the way down."""
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), where
        assert a.tobytes() == b.tobytes(), where
    elif dataclasses.is_dataclass(a):
        assert type(a) is type(b), where
        for field in dataclasses.fields(a):
            same(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, Readout):
        assert (type(a), a.n_qubits, a.n_classes) == (type(b), b.n_qubits, b.n_classes), where
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, tuple | list):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{where}[{i}]")
    else:
        assert type(a) is type(b), where
        assert repr(a) == repr(b), where  # NaN is NaN, and −0.0 is not 0.0


def contents(path):
    """The files of a folder by their names."""
    return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
