from qiskit.providers import BackendV2
from qiskit_aer.noise import NoiseModel

class _Options:
    noise_model: NoiseModel | None

class AerSimulator(BackendV2):
    options: _Options
