from qiskit.transpiler import Target

class BackendV2:
    name: str
    target: Target
