from qiskit import QuantumCircuit

class PassManager:
    def run(self, circuits: QuantumCircuit) -> QuantumCircuit: ...
