"""What has to be known about samplers and jobs of others before they are relied on."""

from typing import Any

from qiskit.primitives import BackendSamplerV2, PrimitiveJob, StatevectorSampler

from qmedoid.exceptions import ParameterError, warn

MOST_IN_ONE_STATE = 12
"""Qubits side by side for simulators that hold all of them in one state."""
_ENDS = "errored", "cancelled"


def is_of(thing: Any, *packages: str) -> bool:
    """Whether an object, or a class that its own derives from, comes from a package."""
    return any(kind.__module__.startswith(packages) for kind in type(thing).__mro__)


def is_simulated_here(backend: Any) -> bool:
    """Whether a backend is simulated here by its noise: a fake device, a generic one, or a simulator of Aer."""
    return is_of(backend, "qiskit_aer", "qiskit_ibm_runtime.fake_provider", "qiskit.providers.fake_provider")


def is_dense(sampler: Any, backend: Any) -> bool:
    """Whether a sampler simulates here, with all qubits in one state."""
    if sampler is None:
        return False
    return isinstance(sampler, StatevectorSampler) or is_of(sampler, "qiskit_aer") or is_simulated_here(backend)


def check_seed(sampler: Any) -> None:
    """Refuse a sampler that draws the same shots for every circuit, and warn of one that does so in every job.

    Raises
    ------
    ParameterError
        Its shot noise would not average out, and stated errors would be wrong.
    """
    seed = _seed(sampler)
    if not isinstance(seed, int):
        return
    if isinstance(sampler, StatevectorSampler):
        raise ParameterError(
            f"StatevectorSampler(seed={seed}) draws the same shots for every circuit, so that errors do not average "
            f"out. Give it a generator, which goes on: StatevectorSampler(seed=numpy.random.default_rng({seed}))."
        )
    warn(
        f"The sampler has the fixed seed {seed}, and draws the same shots in every job: errors of tests at the same "
        "place of different jobs do not average out. Leave the seed out, or pass the backend itself with a seed, which "
        "gives every job its own."
    )


def _seed(sampler: Any) -> Any:
    """The seed that a sampler starts from in every job, if it has one."""
    if isinstance(sampler, StatevectorSampler) or is_of(sampler, "qiskit_aer"):
        return getattr(sampler, "seed", None)
    options: Any = getattr(sampler, "options", None)
    if isinstance(sampler, BackendSamplerV2):
        return getattr(options, "seed_simulator", None)
    return getattr(getattr(options, "simulator", None), "seed_simulator", None)


def runs_here(job: Any) -> bool:
    """Whether a job runs in a thread of this process: it draws from its sampler's generator when its turn comes."""
    return isinstance(job, PrimitiveJob)


def says_how_it_is(job: Any) -> bool:
    """Whether a job of a service tells how it is, so that one without a result yet need not be sent again."""
    return not runs_here(job) and any(callable(getattr(job, name, None)) for name in _ENDS)


def has_failed(job: Any) -> bool:
    """Whether a service says that a job ended without a result, so that fetching it again would be in vain."""
    try:
        return any(callable(ask) and bool(ask()) for ask in (getattr(job, name, None) for name in _ENDS))
    except Exception:  # any provider's: a service that does not answer has not said so
        return False
