r"""Training of a variational model from several seeds, and the choice of circuit and threshold (algorithms 16 and 18).

Batches have the expected loss of all rows, also where a class is rare: a batch takes :math:`b_c` rows of every class,
at least a fixed share of the batch, and gives each of them the weight :math:`\pi_c/b_c`. So rare classes are seen at
every step, and yet the loss keeps the true prior.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError
from qmedoid.geometry.scaling import fit_standard
from qmedoid.kernels.backend import thread_count
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.kernels.ties import first_largest_of_rows, merged
from qmedoid.methods.part import OutOfFold
from qmedoid.methods.variational.ansatz import SPAN, AngleMap, Ansatz
from qmedoid.methods.variational.model import Batch, Network, Precision, VariationalModel
from qmedoid.methods.variational.readout import ReadoutKind, make_readout
from qmedoid.metrics.classification import evaluate
from qmedoid.metrics.thresholds import all_cuts, metric_at
from qmedoid.optimize.minimizers import GAINS, Minimum, Stopping, TrainingState, minimize_adam, minimize_spsa

Optimizer = Literal["adam", "spsa"]
MAX_DEFAULT_QUBITS = 4
"""Qubits where none are asked for: one per feature, up to this many."""
CLIP_RANGE = (3.0, 10.0)
"""Clip where none is asked for: heavy tails keep their order up to the second, plain features do not shrink below the
first."""


Split = tuple[Codes, Codes]
Sampling = Literal["importance", "uniform"]

# A class gets at least 1/(3C) of a batch, if it has as many rows.
_SHARE = 3


@dataclass(frozen=True)
class CircuitSettings:
    """The circuit, its read-out and its training, without what follows from the data."""

    n_qubits: int | None = None  # None takes one per feature, at most 4
    n_reps: int = 3  # of the ansatz
    reupload: bool = True
    final_rz: bool = False
    readout: ReadoutKind = "strings"  # kind of read-out
    scales: float | tuple[float, ...] = 1.0  # fixed input scales λ, one number or one per feature
    learn_scales: bool = True  # whether they are trained, from there on
    # Of the angle map; a clip of None takes the largest value of the training rows, within `CLIP_RANGE`.
    clip: float | None = None
    span: float = SPAN
    precision: Precision = "float64"  # of the simulation
    optimizer: Optimizer = "adam"  # exact gradients ("adam") or perturbations ("spsa")
    stopping: Stopping = field(default_factory=lambda: Stopping(steps=400))  # steps, early stop and what is kept
    batch_size: int = 256  # of the batches
    sampling: Sampling = "importance"
    learning_rate: float = 0.02  # first step size of Adam
    spsa_gains: tuple[float, float, float, float] = GAINS  # a, c, α and γ of SPSA
    clip_norm: float | None = None  # longest gradient that is followed

    def network(self, n_inputs: int, n_classes: int) -> Network:
        """The network for these numbers of features and classes."""
        n_qubits = min(n_inputs, MAX_DEFAULT_QUBITS) if self.n_qubits is None else self.n_qubits
        scales = np.atleast_1d(np.asarray(self.scales, dtype=np.float64))
        if len(scales) not in (1, n_inputs):
            raise DataError(f"There are {len(scales)} input scales for {n_inputs} features: pass one, or one for each.")
        ansatz = Ansatz(n_qubits, n_inputs, self.n_reps, reupload=self.reupload, final_rz=self.final_rz)
        readout = make_readout(self.readout, n_qubits, n_classes)
        return Network(ansatz, readout, np.resize(scales, n_inputs), self.learn_scales, self.precision)


class TrainingData(NamedTuple):
    """Features (n, m), class codes, class weights (C,) in the loss, and scores (n, C) to be corrected, if any."""

    features: Array
    codes: Codes
    class_weights: Array
    offset: Array | None = None

    def part(self, rows: Codes) -> "TrainingData":
        """Some of the rows."""
        offset = None if self.offset is None else self.offset[rows]
        return TrainingData(self.features[rows], self.codes[rows], self.class_weights, offset)


@dataclass
class Watch:
    """Progress callback and stop signal, shared by all trainings of a fit.

    The callback receives the number of the training among the seeds, steps done, steps in all, and batch loss.
    """

    on_step: Callable[[int, int, int, float], bool | None] | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def progress(self, seed: int, step: int, steps: int, loss: float) -> bool:
        """Call the progress callback, one report at a time; return whether to stop."""
        if self.on_step is not None:
            with self._lock:
                try:
                    if self.on_step(seed, step, steps, loss):
                        self.stop.set()
                except KeyboardInterrupt:
                    self.stop.set()
        return self.stop.is_set()


@dataclass(frozen=True)
class Trained:
    """A circuit per seed, its loss over all rows, and how its training went."""

    models: tuple[VariationalModel, ...]
    seed_losses: Array
    minima: tuple[Minimum, ...]

    @property
    def model(self) -> VariationalModel:
        """The circuit with the lowest loss."""
        return self.models[self.best]

    @property
    def best(self) -> int:
        """Number of the seed that was kept; one whose training diverged is never kept."""
        return int(np.argmin(np.where(np.isfinite(self.seed_losses), self.seed_losses, np.inf)))

    @property
    def stopped(self) -> bool:
        """Whether a training was asked to stop before its end."""
        return any(ended == "stopped" for _, _, ended in self.minima)


def train_variational(
    data: TrainingData, settings: CircuitSettings, seeds: Sequence[Sequence[int]], watch: Watch
) -> Trained:
    """Train one circuit per seed, the entropy of its generator, in parallel, and keep the best.

    An interrupt (Ctrl-C) stops the trainings; each keeps its best. An error in one, or in a callback, stops the others
    and is raised.
    """
    network = settings.network(data.features.shape[1], len(data.class_weights))
    # Sums down a column depend on how it lies in memory, and data frames lay it out otherwise than arrays.
    features = np.ascontiguousarray(data.features)
    angle_map = fit_angle_map(features, settings)
    inputs = angle_map.apply(features).astype(network.precision, copy=False)
    weights = data.class_weights[data.codes]
    rows = Batch(inputs, data.codes, weights / weights.sum(), data.offset)
    objective = batch_objective(network, rows, data.class_weights, settings.batch_size, settings.sampling)

    def train(number: int) -> Minimum:
        return _train_one(objective, settings, list(seeds[number]), watch, number)

    with ThreadPoolExecutor(min(len(seeds), thread_count(None))) as pool:
        futures: list[Future[Minimum]] = []
        try:
            for number in range(len(seeds)):
                futures.append(pool.submit(train, number))
            _wait_for(futures, watch)
        except KeyboardInterrupt:
            # Trainings that were not begun yet take one step, so that every seed has parameters.
            watch.stop.set()
            futures += [pool.submit(train, number) for number in range(len(futures), len(seeds))]
            _wait_for(futures, watch)
    minima = tuple(future.result() for future in futures)
    losses = np.array([network.loss(theta, rows) for theta, _, _ in minima])
    if not np.isfinite(losses).any():
        raise DataError(
            f"The training diverged: no loss is finite after {len(minima[0][1])} steps. Lower the step size "
            "(learning_rate, or the first of spsa_gains)."
        )
    return Trained(tuple(VariationalModel(angle_map, network, theta) for theta, _, _ in minima), losses, minima)


def _wait_for(futures: Sequence[Future[Minimum]], watch: Watch) -> None:
    """Wait for all trainings, and stop them where one fails.

    In short stretches: a signal that the system hands to another thread does not wake this one.
    """
    running = set(futures)
    while running:
        done, running = wait(running, timeout=0.1, return_when=FIRST_EXCEPTION)
        if any(future.exception() is not None for future in done):
            watch.stop.set()


def fit_angle_map(features: Array, circuit: CircuitSettings) -> AngleMap:
    """Fit the angle map: mean and deviation of the features, and the clip unless it is given (algorithm 14)."""
    scaling = fit_standard(features)
    clip = circuit.clip
    if clip is None:
        low, high = CLIP_RANGE
        clip = min(max(float(np.abs(scaling.apply(features)).max(initial=0.0)), low), high)
    return AngleMap(scaling.center, scaling.scale, clip, circuit.span)


def _train_one(
    objective: "BatchObjective", settings: CircuitSettings, entropy: list[int], watch: Watch, number: int
) -> Minimum:
    def on_step(now: TrainingState) -> bool:
        return watch.progress(number, now.step, settings.stopping.steps, now.losses[-1])

    state = objective.begun(entropy)
    how: dict[str, Any] = {"clip_norm": settings.clip_norm, "on_step": on_step}
    if settings.optimizer == "spsa":
        return minimize_spsa(objective, state, settings.stopping, gains=settings.spsa_gains, **how)
    return minimize_adam(objective, state, settings.stopping, learning_rate=settings.learning_rate, **how)


@dataclass(frozen=True)
class BatchObjective:
    """The loss of a network on batches of a data set."""

    network: Network
    data: Batch  # all rows, each with its weight in the loss over all of them
    draw_rows: Callable[[np.random.Generator], tuple[Codes, Array]]  # row numbers of a batch and their weights

    def begun(self, entropy: list[int]) -> TrainingState:
        """A training that begins."""
        rng, data = np.random.default_rng(entropy), self.data
        shares = np.bincount(data.codes, data.weights, self.network.readout.n_classes).astype(np.float64)
        # An offset contains the class frequencies already.
        return TrainingState(self.network.start(rng, shares=shares if data.offset is None else None), rng)

    def draw(self, rng: np.random.Generator) -> Batch:
        """The batch of the next step."""
        rows, weights = self.draw_rows(rng)
        offset = self.data.offset
        return Batch(self.data.inputs[rows], self.data.codes[rows], weights, None if offset is None else offset[rows])

    def value(self, theta: Array, batch: Batch) -> float:
        """Loss on a batch."""
        return self.network.loss(theta, batch)

    def value_and_gradient(self, theta: Array, batch: Batch) -> tuple[float, Array]:
        """Loss on a batch and its gradient."""
        return self.network.loss_and_gradient(theta, batch)


def batch_objective(
    network: Network, data: Batch, class_weights: Array, batch_size: int, sampling: Sampling
) -> BatchObjective:
    """The objective with batches of about `batch_size` rows; all rows where there are no more than that."""
    n = len(data.codes)
    if batch_size >= n:
        everything = np.arange(n)
        return BatchObjective(network, data, lambda _: (everything, data.weights))
    if sampling == "uniform":
        total = class_weights[data.codes].sum() / n

        def uniform(rng: np.random.Generator) -> tuple[Codes, Array]:
            rows = rng.choice(n, batch_size, replace=False)
            return rows, class_weights[data.codes[rows]] / (batch_size * total)

        return BatchObjective(network, data, uniform)
    members = [np.flatnonzero(data.codes == c) for c in range(len(class_weights))]
    counts = batch_counts(np.array([len(rows) for rows in members]), batch_size)
    shares = np.array([data.weights[rows].sum() for rows in members])
    present = [c for c in range(len(members)) if counts[c]]
    weights = np.concatenate([np.full(counts[c], shares[c] / counts[c]) for c in present])

    def importance(rng: np.random.Generator) -> tuple[Codes, Array]:
        drawn = [members[c][rng.choice(len(members[c]), counts[c], replace=False, shuffle=False)] for c in present]
        return np.concatenate(drawn), weights

    return BatchObjective(network, data, importance)


def batch_counts(sizes: Codes, batch_size: int) -> Codes:
    """Rows of each class in a batch: in proportion, but for rare classes at least B/(3C) or all they have."""
    least = np.minimum(sizes, -(-batch_size // (_SHARE * len(sizes))))
    proportional = np.round(batch_size * sizes / sizes.sum()).astype(np.intp)
    counts: Codes = np.minimum(np.maximum(proportional, least), sizes)
    return counts


Selection = tuple[int, Array, OutOfFold]
"""Number of the best candidate, scores of all (larger is better), and out-of-fold scores of the best."""


def select_variational(
    data: TrainingData,
    candidates: Sequence[CircuitSettings],
    splits: Sequence[Split],
    entropy: Sequence[int],
    n_seeds: int,
    metric: str | None,
    watch: Watch,
) -> Selection | None:
    """Cross-validate every candidate; None when stopped before the first was scored.

    `metric` is a metric at thresholds of the other folds, for more than two classes that of the likeliest class; None
    is the mean log-likelihood.
    """
    best, scores, kept = 0, [], None
    for number, candidate in enumerate(candidates):
        found = out_of_fold(data, candidate, splits, [*entropy, number], n_seeds, watch)
        if found is None:
            break
        scores.append(out_of_fold_score(found, data.codes, metric))
        if kept is None or scores[-1] > scores[best]:
            best, kept = number, found
    return None if kept is None else (best, np.array(scores), kept)


def out_of_fold(
    data: TrainingData,
    candidate: CircuitSettings,
    splits: Sequence[Split],
    entropy: Sequence[int],
    n_seeds: int,
    watch: Watch,
) -> OutOfFold | None:
    """Out-of-fold scores of a candidate; None when stopped."""
    scores = np.full((len(data.codes), len(data.class_weights)), np.nan)
    fold = np.full(len(data.codes), -1, dtype=np.intp)
    for number, (train_rows, test_rows) in enumerate(splits):
        trained = train_candidate(data.part(train_rows), candidate, [*entropy, number], n_seeds, watch)
        if watch.stop.is_set():
            return None
        offset = None if data.offset is None else data.offset[test_rows]
        scores[test_rows] = trained.model.scores(data.features[test_rows], offset)
        fold[test_rows] = number
    return OutOfFold(scores, fold)


def train_candidate(
    data: TrainingData, candidate: CircuitSettings, entropy: Sequence[int], n_seeds: int, watch: Watch
) -> Trained:
    """Train a candidate from several seeds that follow from the entropy."""
    seeds = [[*entropy, seed] for seed in range(n_seeds)]
    return train_variational(data, candidate, seeds, watch)


def out_of_fold_score(found: OutOfFold, codes: Codes, metric: str | None) -> float:
    """Mean out-of-fold log-likelihood, or a metric over all out-of-fold rows.

    The threshold of every fold is chosen on the other folds. Algorithm 16 chooses it on the fold itself and takes the
    mean of the metric over the folds. More than two classes have no threshold: the likeliest is called, as printed, and
    the metric is "macro_f1" or "balanced_accuracy".
    """
    rows = np.flatnonzero(found.fold >= 0)
    if metric is None:
        log_p = log_softmax(found.scores[rows])
        return float(log_p[np.arange(len(rows)), codes[rows]].mean())
    n_classes = found.scores.shape[1]
    if n_classes > 2:
        figures = evaluate(codes[rows], first_largest_of_rows(found.scores[rows]), n_classes)
        return figures.average({"macro_f1": figures.f1, "balanced_accuracy": figures.recall}[metric])
    margin = merged(found.scores[:, 1] - found.scores[:, 0])
    above = np.empty(len(rows))
    for number in np.unique(found.fold[rows]):
        test = found.fold[rows] == number
        # A single fold has no others: its threshold is chosen on itself, as printed.
        others = rows[test] if test.all() else rows[~test]
        above[test] = margin[rows[test]] - all_cuts(codes[others] == 1, margin[others]).best(metric)
    return metric_at(codes[rows], above, 0.0, metric)
