from qiskit.transpiler import Target

class BackendV2:
    target: Target
