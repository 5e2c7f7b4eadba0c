"""Where circuits run: any sampler of the second version behind one adapter, and simulated devices."""

from qmedoid.exceptions import MissingExtraError

try:
    from qmedoid.devices.device import Device
    from qmedoid.devices.names import as_device
    from qmedoid.devices.quality import Limits
    from qmedoid.devices.simulators import BlockSampler
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in ("qiskit", "qiskit_aer", "rustworkx"):
        raise
    raise MissingExtraError(
        "qmedoid.devices needs Qiskit and Aer, which are not both installed. Install them with: "
        'pip install "qmedoid[quantum]".',
        name=error.name,
    ) from error

__all__ = ["BlockSampler", "Device", "Limits", "as_device"]
