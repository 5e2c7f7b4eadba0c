"""Any sampler of the second version, by one adapter: counts, seeds, options, and what is refused."""

import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
pytest.importorskip("qiskit_ibm_runtime", reason='needs: pip install "qmedoid[ibm]"')
import qiskit_ibm_runtime as runtime
from qiskit.primitives import (
    BackendEstimatorV2,
    BackendSamplerV2,
    DataBin,
    SamplerPubResult,
    StatevectorEstimator,
    StatevectorSampler,
)
from qiskit.providers.fake_provider import GenericBackendV2
from qiskit_aer import AerSimulator, primitives
from qiskit_aer.noise import NoiseModel
from qiskit_aer.primitives import EstimatorV2
from qiskit_aer.primitives import SamplerV2 as AerSampler
from qiskit_ibm_runtime.fake_provider import FakeManilaV2, FakeTorino
from tests.quantum.counts import run
from tests.quantum.devices.runtime_standin import StandinBackend, StandinSampler, StandinService, standin_device
from tests.quantum.runs.toy_run import toy_plan

from qmedoid.exceptions import JobError, MissingExtraError, ModelError, ParameterError, QMedoidWarning
from qmedoid.geometry.overlap import pair_overlaps
from qmedoid.quantum import BlockSampler, Device, SamplerExpectations, SamplerSwapTest, as_device
from qmedoid.quantum.circuits.compact_swap import form_named
from qmedoid.quantum.devices import blocks
from qmedoid.quantum.devices.blocks import device_noise
from qmedoid.quantum.devices.sampling import CircuitBatch, has_failed

INTERFERENCE = form_named("interference")
MANILA = FakeManilaV2()
SHOTS = 2000


def batches(device, *, n=3, d=1, shots=SHOTS, seed=0):
    """Two batches of known tests, and what their copies read without noise."""
    pack, rng = device.pack(INTERFERENCE, d, 4), np.random.default_rng(seed)
    made, chances = [], []
    for size in (n, 2):
        left, right = rng.normal(size=(2, size * pack.n_copies, d))
        made.append(CircuitBatch(pack, INTERFERENCE.angles(left, right).reshape(size, -1), shots))
        chances.append(pair_overlaps(left, right).reshape(size, -1))
    return made, chances


def agree(counts, chances, tolerance, shots=SHOTS):
    assert [ones.shape for ones in counts] == [expected.shape for expected in chances]
    for ones, expected in zip(counts, chances, strict=True):
        np.testing.assert_allclose(ones / shots, expected, atol=tolerance)


class OneTagged:
    """A service that knows jobs by their tags."""

    def __init__(self, *jobs):
        self.listed = jobs

    def jobs(self, *, job_tags, limit):
        return [job for job in self.listed if job.tag in job_tags][:limit]

    def job(self, name):
        return next(job for job in self.listed if job.name == name)


def client_side():
    return pytest.importorskip("qiskit_ibm_runtime.executor_sampler", reason="of qiskit-ibm-runtime 0.50")


def deprecated(make):
    with pytest.deprecated_call():
        return make()


def of_first_version(name):
    return deprecated(getattr(primitives, name))


SAMPLERS = {
    "StatevectorSampler": lambda: StatevectorSampler(seed=np.random.default_rng(1)),
    "Aer": AerSampler,
    "BackendSamplerV2": lambda: BackendSamplerV2(backend=MANILA),
    "runtime, a job": lambda: client_side().Sampler(mode=MANILA),
    "runtime, a batch": lambda: client_side().Sampler(mode=runtime.Batch(backend=MANILA)),
    "runtime, a session": lambda: client_side().Sampler(mode=runtime.Session(backend=MANILA)),
    "runtime, the one on its way out": lambda: deprecated(lambda: runtime.SamplerV2(mode=MANILA)),
    "blocks": lambda: BlockSampler(NoiseModel(), seed=1),
    "a fake backend": lambda: MANILA,
    "a generic backend": lambda: GenericBackendV2(5, seed=1),
    "Aer's simulator": AerSimulator,
    "Aer's simulator of a device": lambda: AerSimulator.from_backend(MANILA),
    "simulator": lambda: "simulator",
    "a name": lambda: "fake_manila",
    "none": lambda: None,
}


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
def test_counts_are_those_of_the_circuits(make):
    device = as_device(make(), n_qubits=5, seed=1)
    for d in (1, 2):
        made, chances = batches(device, d=d)
        agree(run(device, made), chances, 0.05 if device.quality is None else 0.15)


@pytest.mark.parametrize(
    "sampler", [lambda: StatevectorSampler(), AerSampler, lambda: BackendSamplerV2(backend=MANILA)]
)
def test_simulators_of_one_state_get_few_qubits_by_default(sampler):
    device = as_device(sampler())
    assert device.n_qubits == 100
    assert device.pack(INTERFERENCE, 1, 1000).n_copies <= 12
    made, chances = batches(device)
    agree(run(device, made), chances, 0.15)


@pytest.mark.parametrize("make", [lambda: AerSimulator.from_backend(MANILA), FakeManilaV2, AerSimulator])
def test_noise_of_a_simulated_device_is_known_by_a_hash(make):
    known, others = as_device(make()).noise, {as_device(one).noise for one in (None, "fake_nairobi")}
    assert as_device(make()).noise == known
    assert known not in others


@pytest.mark.parametrize("make", [lambda: None, lambda: MANILA, lambda: GenericBackendV2(5, seed=1)])
def test_jobs_differ_and_the_same_seed_repeats_them(make):
    backend = make()
    made, _ = batches(Device(backend, n_qubits=5))
    runs = {
        (seed, job): run(Device(backend, n_qubits=5, seed=seed), made, seed=[job]) for seed in (1, 2) for job in (0, 1)
    }
    again = run(Device(backend, n_qubits=5, seed=1), made, seed=[0])
    assert all(map(np.array_equal, again, runs[1, 0]))
    found = [np.concatenate([ones.ravel() for ones in one]) for one in runs.values()]
    for first in range(4):
        for second in range(first):
            assert not np.array_equal(found[first], found[second])


def test_seeds_that_repeat_shots_are_refused_or_warned_of():
    with pytest.raises(ParameterError, match=r"same shots for every circuit.*default_rng\(7\)"):
        as_device(StatevectorSampler(seed=7))
    seeded = client_side().Sampler(mode=MANILA)
    seeded.options.simulator.seed_simulator = 5
    for sampler in (AerSampler(seed=5), BackendSamplerV2(backend=MANILA, options={"seed_simulator": 5}), seeded):
        with pytest.warns(QMedoidWarning, match="fixed seed 5"):
            as_device(sampler)
    with warnings.catch_warnings():
        warnings.simplefilter("error", QMedoidWarning)
        for name in ("StatevectorSampler", "Aer", "BackendSamplerV2", "runtime, a job", "blocks"):
            as_device(SAMPLERS[name]())


class Changed:
    """A sampler that runs something else than it was asked for."""

    def __init__(self, change):
        self.change, self.inner = change, BlockSampler(NoiseModel(), seed=0)

    def run(self, pubs):
        return self.inner.run(self.change(list(pubs)))


@pytest.mark.parametrize(
    "change",
    [
        lambda pubs: [(circuit, angles, shots + 1) for circuit, angles, shots in pubs],
        lambda pubs: [(circuit, angles[:-1], shots) for circuit, angles, shots in pubs],
        lambda pubs: pubs[:1],
        lambda pubs: [*pubs, pubs[0]],
    ],
    ids=["shots", "circuits", "fewer batches", "more batches"],
)
def test_a_sampler_that_runs_something_else_is_refused(change):
    device = as_device(Changed(change), n_qubits=4)
    made, _ = batches(device)
    with pytest.raises(ModelError, match="The job returned"):
        run(device, made)


def in_register(name, change):
    """Results with what was measured changed, and in a register of another name."""
    return lambda results: [
        SamplerPubResult(DataBin(**{name: change(one.data.outcome)}, shape=one.data.shape)) for one in results
    ]


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (in_register("meas", lambda bits: bits), "returned NoneType as 'outcome'"),
        (in_register("outcome", lambda bits: bits.bitcount()), "returned ndarray as 'outcome'"),
        (lambda results: [{0: 0.5} for _ in results], "returned NoneType as 'outcome'"),
        (lambda _: None, "The job returned NoneType"),
    ],
    ids=["another register", "counts", "quasi-probabilities", "nothing"],
)
def test_results_of_another_kind_are_refused_and_not_paid_for_again(results, message):
    class Job:
        def __init__(self, inner):
            self.inner = inner

        def result(self):
            return results(self.inner.result())

    class Sampler:
        n_jobs = 0

        def run(self, pubs):
            self.n_jobs += 1
            return Job(BlockSampler(NoiseModel(), seed=0).run(pubs))

    sampler = Sampler()
    plan = toy_plan(as_device(sampler, n_qubits=4))
    with pytest.raises(JobError, match=rf"jobs failed; job 0 with ModelError: .*{message}"):
        plan.run()
    assert sampler.n_jobs == len(plan.jobs)


def test_options_of_the_callers_sampler_stay_as_they_are():
    sampler = client_side().Sampler(mode=MANILA)
    sampler.options.environment.job_tags = ["mine"]
    sampler.options.default_shots = 77
    seen, run = [], sampler.run
    sampler.run = lambda pubs: seen.append(sampler.options.environment.job_tags) or run(pubs)
    device = as_device(sampler, n_qubits=5)
    made, _ = batches(device, shots=50)
    device.submit(made, key="abc").result()
    assert seen == [["mine", "abc"]]
    assert sampler.options.environment.job_tags == ["mine"]
    assert sampler.options.default_shots == 77
    sampler.run = None
    with pytest.raises(TypeError):
        device.submit(made, key="abc")
    assert sampler.options.environment.job_tags == ["mine"]


def test_sampler_of_a_service_is_the_current_one_and_none_warns(monkeypatch):
    class Served(FakeManilaV2):
        service = OneTagged()

    def counted():
        device = as_device(Served(), n_qubits=5)
        assert not device.is_simulated
        made, chances = batches(device)
        agree(run(device, made), chances, 0.15)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counted()
        monkeypatch.delattr(runtime, "SamplerV2")  # as it will be one day
        counted()
    home = client_side()
    assert isinstance(Device(Served()).make_sampler(), home.Sampler)
    monkeypatch.setitem(sys.modules, home.__name__, None)  # as it was before
    made = []
    monkeypatch.setattr(runtime, "Sampler", lambda mode: made.append(mode))
    Device(Served()).make_sampler()
    assert len(made) == 1


@pytest.mark.parametrize(
    "wrong",
    [42, 3.5, [], {}, object(), FakeManilaV2, StatevectorSampler, sys, print, StatevectorEstimator()],
    ids=lambda one: type(one).__name__,
)
def test_what_is_no_backend_is_refused(wrong):
    with pytest.raises(ParameterError, match="'backend' parameter must be a Qiskit backend, a sampler"):
        as_device(wrong)


def test_names_that_are_not_there_are_refused():
    with pytest.raises(ParameterError, match=r"no fake device 'fake_manilla'\. There are: .*fake_manila, "):
        as_device("fake_manilla")
    for name in ("Simulator", "aer", ""):
        with pytest.raises(ParameterError, match=f"The device {name!r} was not found.*'simulator'"):
            as_device(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_qubits", 0),
        ("n_qubits", True),
        ("n_qubits", 2.0),
        ("seed", -1),
        ("seed", None),
        ("limits", {"readout": 0.0}),
        ("limits", {"coupler": 1.5}),
        ("limits", {"depth": 0.1}),
        ("limits", {"readout": "low"}),
        ("limits", 0.2),
    ],
)
def test_parameters_that_cannot_be_are_refused(name, value):
    with pytest.raises(ParameterError, match=name):
        Device(**{name: value})


def test_a_device_that_is_given_stays_as_it_is_and_other_settings_are_refused():
    device = Device(MANILA, n_qubits=3, seed=2, limits={"readout": 0.5})
    assert as_device(device) is device
    assert as_device(device, n_qubits=3, seed=2, limits=device.quality.limits) is device
    for name, value, own in (("n_qubits", 50, "3"), ("seed", 9, "2"), ("limits", {"readout": 0.1}, r"\{.*0\.5.*\}")):
        with pytest.raises(ParameterError, match=rf"{name}=.* with a Device whose own is {own}: leave it out, or make"):
            as_device(device, **{name: value})


def test_limits_are_refused_where_no_rates_are_known():
    for device in ({}, {"backend": AerSimulator()}, {"sampler": AerSampler()}):
        with pytest.raises(ParameterError, match="reports no rates of qubits and couplers: leave 'limits' out"):
            Device(limits={"readout": 0.5}, **device)


@pytest.mark.parametrize(
    "estimator",
    [
        StatevectorEstimator,
        lambda: BackendEstimatorV2(backend=MANILA),
        EstimatorV2,
        lambda: of_first_version("Estimator"),
    ],
    ids=["Qiskit's", "of a backend", "Aer's", "of the first version"],
)
def test_estimators_are_no_samplers_and_one_sentence_says_so(estimator):
    for take in (as_device, lambda one: Device(sampler=one), lambda one: SamplerSwapTest(sampler=one),
                 lambda one: SamplerExpectations(sampler=one)):  # fmt: skip
        with pytest.raises(ParameterError, match=r"Got <.* instead, which is an estimator, which gives expectation"):
            take(estimator())


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: of_first_version("Sampler"), "first version"),
        (lambda: AerSampler, "is a class: make an object of it first, SamplerV2"),
        (lambda: 5, "no method"),
    ],
    ids=["first version", "class", "number"],
)
def test_what_is_no_sampler_is_refused_before_anything_runs(wrong, why):
    for take in (lambda one: Device(sampler=one), lambda one: SamplerSwapTest(sampler=one)):
        with pytest.raises(ParameterError, match=rf"'sampler' parameter must be .*{why}"):
            take(wrong())


class Unbounded:
    """A sampler that says nothing of its qubits."""

    def run(self, pubs):
        return BlockSampler(NoiseModel(), seed=0).run(pubs)


def test_sampler_that_does_not_say_its_qubits_gets_few_with_a_note():
    with pytest.warns(QMedoidWarning, match=r"Unbounded does not say how many qubits it has: 12 are used.*n_qubits="):
        device = as_device(Unbounded())
    assert device.n_qubits == device.pack(INTERFERENCE, 1, 1000).n_copies == 12
    with warnings.catch_warnings():
        warnings.simplefilter("error", QMedoidWarning)
        assert as_device(Unbounded(), n_qubits=40).pack(INTERFERENCE, 1, 1000).n_copies == 40
        assert as_device(BlockSampler(NoiseModel(), seed=0)).n_qubits == as_device(None).n_qubits == 100


def test_no_more_qubits_are_used_than_a_backend_has():
    class AllToAll:
        """A device whose qubits are all coupled, and which names no couplers."""

        name, num_qubits, target, service = "all_to_all", 7, AerSimulator().target, object()

    device = Device(AllToAll())
    assert device.pack(INTERFERENCE, 1, 1000).n_copies == 7
    with pytest.raises(ParameterError, match=r"takes 8 qubits, and all_to_all has 7: take more"):
        device.pack(form_named("compact_swap"), 32, 1)


class Tagged:
    def __init__(self, tag, name, failed=False, broken=False):
        self.tag, self.name, self.failed, self.broken = tag, name, failed, broken

    def errored(self):
        if self.broken:
            raise ConnectionError
        return self.failed

    def cancelled(self):
        return False


def test_jobs_are_found_by_their_key_unless_they_failed():
    device = Device()
    assert device.find("id", "a") is device.find("", "a") is None
    device.backend = type("Backend", (), {})()
    device.backend.service = OneTagged(Tagged("a", "1", failed=True), Tagged("b", "2"), Tagged("a", "3"))
    assert device.find("", "a").name == "3"
    assert device.find("", "c") is None
    assert device.find("2", "a").tag == "b"
    device.backend.service = OneTagged(Tagged("a", "1", failed=True))
    assert device.find("", "a") is None
    assert not has_failed(Tagged("a", "1", broken=True))  # a service that does not answer has said nothing
    assert not has_failed(object())


def test_seconds_are_those_of_the_device_and_its_pause():
    device = Device(MANILA, n_qubits=5)
    made, _ = batches(device, shots=1000)
    one = device.seconds(made[0])
    assert one > 3 * 1000 * 250e-6
    assert one == pytest.approx(3 * 1000 * (250e-6 + made[0].pack.circuit.estimate_duration(MANILA.target, unit="s")))
    assert Device().seconds(made[0]) == pytest.approx(3 * 1000 * 250e-6)


def test_missing_runtime_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "qiskit_ibm_runtime", None)
    for name in ("fake_manila", "ibm_somewhere"):
        with pytest.raises(MissingExtraError, match=r"qmedoid\[ibm\]"):
            as_device(name)
    assert as_device("simulator").name == "simulator"


def test_noise_of_a_sampler_of_aer_is_that_of_its_backend():
    """Circuits are put on the qubits of its backend, and made of gates that its noise knows."""
    device = as_device(AerSampler.from_backend(MANILA), n_qubits=5)
    assert device.quality is not None
    pack = device.pack(INTERFERENCE, 1, 5)
    rows = np.ones((5, 1))
    ones = run(device, [CircuitBatch(pack, INTERFERENCE.angles(rows, rows).reshape(1, -1), 4000)])[0][0]
    assert (ones > 20).all()  # equal vectors read 0 but for noise


def test_dry_run_asks_the_service_and_runs_nothing(tmp_path):
    class Checks(StandinSampler):
        seen = ()

        def run(self, pubs, *, shots=None, dry_run=False):
            self.seen = (*self.seen, dry_run)
            job = BlockSampler(NoiseModel(), seed=0).run(pubs, shots=shots)
            job.usage_estimation = {"quantum_seconds": 2.5}
            return job

    service = StandinService(tmp_path)
    backend = StandinBackend(service)
    sampler = Checks(backend)
    plan = toy_plan(Device(backend, sampler=sampler))
    assert plan.dry_run() == 2.5 * len(plan.jobs)
    assert sampler.seen == (True,) * len(plan.jobs)
    sampler.run = lambda pubs, dry_run: dry_run and BlockSampler(NoiseModel(), seed=0).run(pubs)
    assert plan.dry_run() is None  # the service does not say
    local = Device(sampler=client_side().Sampler(mode=MANILA), n_qubits=4)
    for device in (Device(n_qubits=4), standin_device(service), local):
        with pytest.raises(ParameterError, match=r"dry run is what the service .* has none: leave it out"):
            toy_plan(device).dry_run()
    assert service.submissions == []


def test_names_of_fake_devices_warn_of_nothing_and_make_no_other(monkeypatch):
    monkeypatch.setattr(FakeTorino, "__init__", lambda _: pytest.fail("another device is made"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_device("fake_manila").name == "fake_manila"


def test_noise_of_a_device_by_name_is_made_once_for_its_rates(monkeypatch):
    made, make = [], NoiseModel.from_backend
    monkeypatch.setattr(NoiseModel, "from_backend", lambda one: made.append(one.name) or make(one))
    monkeypatch.setattr(blocks, "_NOISE", {})
    for _ in range(3):
        as_device("fake_manila").make_sampler()
    assert made == ["fake_manila"]
    changed = as_device("fake_manila")
    changed.backend.target["measure"][(0,)].error = 0.3  # calibrated anew
    changed.make_sampler()
    assert made == ["fake_manila"] * 2
    assert device_noise(changed.backend).readout(0)[0, 1] == 0.3
    for seed in range(12):
        as_device(GenericBackendV2(2, seed=seed)).make_sampler()
    assert len(blocks._NOISE) == 8
