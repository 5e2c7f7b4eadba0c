"""Where circuits run: any sampler of the second version behind one adapter, and simulated devices."""

from qmedoid.exceptions import MissingExtraError

try:
    from qmedoid.quantum.devices.device import Device, as_device
    from qmedoid.quantum.devices.quality import Limits
    from qmedoid.quantum.devices.simulators import BlockSampler
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in ("qiskit", "qiskit_aer", "rustworkx"):
        raise
    raise MissingExtraError(
        "qmedoid.quantum.devices needs Qiskit and Aer, which are not both installed. Install them with: "
        'pip install "qmedoid[quantum]".',
        name=error.name,
    ) from error

__all__ = ["BlockSampler", "Device", "Limits", "as_device"]
