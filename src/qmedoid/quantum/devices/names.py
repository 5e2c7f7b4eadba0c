"""Devices by name, and devices made of what users have at hand: a backend, a sampler or a name."""

import warnings
from types import ModuleType
from typing import Any

from qiskit.primitives import BaseEstimatorV2

from qmedoid.exceptions import MissingExtraError, ParameterError
from qmedoid.quantum.devices.device import Device

SIMULATOR = "simulator"
"""The name of the exact simulator."""


def as_device(backend: Any = None, **settings: Any) -> Device:
    """A device from a backend, a sampler of the second version, a name, or None for the exact simulator.

    Parameters
    ----------
    backend : Device, BackendV2, BaseSamplerV2, str or None
        Names are ``"simulator"``, those of fake devices such as ``"fake_torino"``, and those of the service's devices,
        for which the account that is saved on the machine is used.
    settings
        Of :class:`Device`; a device that is given has its own.
    """
    if isinstance(backend, Device):
        return backend
    if isinstance(backend, str):
        backend = _backend_named(backend)
    if backend is None:
        return Device(**settings)
    if not isinstance(backend, type | ModuleType | BaseEstimatorV2):
        if hasattr(backend, "target"):
            return Device(backend, **settings)
        if callable(getattr(backend, "run", None)):
            return Device(sampler=backend, **settings)
    made = f" Make an object of it first: {backend.__name__}()." if isinstance(backend, type) else ""
    raise ParameterError(
        f"The 'backend' parameter must be a Qiskit backend, a sampler of the second version, or a name such as "
        f"'simulator' or 'fake_torino'. Got {backend!r} instead.{made}"
    )


def _backend_named(name: str) -> Any:
    if name == SIMULATOR:
        return None
    try:
        import qiskit_ibm_runtime
        from qiskit_ibm_runtime.fake_provider import FakeProviderForBackendV2
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The device {name!r} needs Qiskit's runtime, which is not installed. Install it with: "
            'pip install "qmedoid[ibm]".',
            name=error.name,
        ) from error
    if name.startswith("fake_"):
        with warnings.catch_warnings():  # of devices that nobody asked for
            warnings.simplefilter("ignore")
            known = {backend.name: backend for backend in FakeProviderForBackendV2().backends()}
        if name not in known:
            raise ParameterError(f"There is no fake device {name!r}. There are: {', '.join(sorted(known))}.")
        return known[name]
    try:
        return qiskit_ibm_runtime.QiskitRuntimeService().backend(name)
    except Exception as error:  # of the service: no account, no such device, no network
        raise ParameterError(
            f"The device {name!r} was not found: {error} Use 'simulator', a fake device such as 'fake_torino', or save "
            "an account of the service first (QiskitRuntimeService.save_account)."
        ) from error
