"""JSON documents of circuits: what they carry, and what a measurement plans and shows."""

from typing import Annotated, Literal, NotRequired, TypedDict

from qmedoid.model.documents import Label, OfClassDict, TrainingRowDict


class CalibrationCurveDict(TypedDict):
    """Scores b_c + slope · s_c, and a curve on top of them; see the page on circuits."""

    slope: Annotated[float, "What scores are multiplied by."]
    biases: Annotated[list[float], "What is added to the score of each class."]
    knots: Annotated[list[float], "Places of the curve; none without one."]
    heights: Annotated[list[float], "What is added there; linear between."]


class TrainedCircuitInputsDict(TypedDict):
    names: Annotated[list[str], "Names of the features."]
    center: Annotated[list[float], "Training mean of each feature."]
    scale: Annotated[list[float], "Training deviation of each feature."]
    clip: Annotated[float, "Largest standardized value."]
    span: Annotated[float, "Angle that it is mapped to, in radians."]
    scales: Annotated[list[float], "Factor on the angle of each input."]
    features: Annotated[list[float] | None, "Features of the record; null without one."]
    angles: Annotated[list[float] | None, "Angles of the record in the circuit; null where they are open."]


class TrainedCircuitReadoutDict(TypedDict):
    kind: Annotated[Literal["strings", "parity", "direct"], "Name of the read-out."]
    observables: NotRequired[Annotated[list[str], "Pauli strings, qubit 0 last (strings)."]]
    weights: NotRequired[Annotated[list[list[float]], "Weight of every string for every class (strings)."]]
    biases: NotRequired[Annotated[list[float], "Bias of every class (strings)."]]
    states: NotRequired[Annotated[list[list[int]], "Basis states of every class (parity, direct)."]]
    floor: NotRequired[Annotated[float, "Smallest probability whose logarithm is taken."]]


class TrainedCircuitMethodDict(TypedDict):
    name: Annotated[str, "Its name."]
    residual: Annotated[bool, "Whether the circuit corrects its scores: the offset."]
    between_two: Annotated[bool, "Whether the circuit decides between two classes."]
    refine_below: Annotated[float | None, "Largest margin that is left to the circuit; null for all records."]
    calibration: Annotated[CalibrationCurveDict, "Of the negative dissimilarities, before the circuit."]
    scores: Annotated[list[float] | None, "Dissimilarities of the record; null without one."]
    decides: Annotated[bool | None, "Whether the circuit decides the record."]


class TrainedCircuitBetweenDict(TypedDict):
    second: Annotated[int, "Code of the class of the first score of the read-out."]
    best: Annotated[int, "Code of the class of the second."]
    scores: Annotated[list[float], "Calibrated scores of all classes, whose joint share of the two is kept."]


class TrainedCircuitDecisionDict(TypedDict):
    priors: Annotated[list[float] | None, "Class frequencies of the fit; null where they are not known."]
    log_ratios: Annotated[list[float] | None, "What other priors add to the scores; null for none."]
    cut: Annotated[float | None, "Log-odds from which on the second of two is called."]
    biases: Annotated[list[float] | None, "Added to the scores of three or more classes to decide."]


class TrainedCircuitExpectedDict(OfClassDict):
    probabilities: Annotated[list[float], "Of the classes, in their order."]


class CircuitHeadDict(TypedDict):
    format: Annotated[int, "Number of this format."]
    qmedoid: Annotated[str, "Version that wrote it."]
    model: Annotated[str | None, "SHA-256 of the model's file; null inside of that file."]
    row: Annotated[int | None, "Row of the record in its table; null without a record."]


class TrainedStepsDict(TypedDict):
    classes: Annotated[list[Label], "Classes in the order of all scores."]
    inputs: Annotated[TrainedCircuitInputsDict, "What turns features into the angles x of the circuit."]
    rotations: Annotated[list[list[float]], "Trained angles by layer and qubit, layers of R_y and R_z in turn."]
    readout: Annotated[TrainedCircuitReadoutDict, "From outcomes to the scores of classes."]
    precision: Annotated[Literal["float64", "float32"], "In which the model itself simulates it."]
    method: Annotated[TrainedCircuitMethodDict | None, "The method before the circuit; null for a circuit alone."]
    offset: Annotated[list[float] | None, "Scores that those of the read-out are added to; null for none."]
    between: Annotated[TrainedCircuitBetweenDict | None, "The two classes that it decides between; null for all."]
    recalibration: Annotated[CalibrationCurveDict | None, "Of the scores after the circuit; null for none."]
    decision: Annotated[TrainedCircuitDecisionDict, "From scores to the class."]
    expected: Annotated[TrainedCircuitExpectedDict | None, "What the steps give for the record; null without one."]


class TrainedCircuitDict(CircuitHeadDict, TrainedStepsDict):
    """What a trained circuit carries: all that leads from its outcomes to a probability."""

    kind: Annotated[Literal["variational"], "The trained circuit."]


class PairStepsDict(TypedDict):
    n_features: Annotated[int, "Entries of the vectors; at most so many where it is open."]
    overlap: Annotated[dict[str, float], "By at_zero and slope, the overlap s = at_zero + slope · P(outcome = 1)."]
    space: Annotated[str | None, "Which distance it is, in words; null where it is open."]
    angles: Annotated[list[float] | None, "Angles of its rotations, theta; null where they are open."]
    norms: Annotated[dict[str, float] | None, "Norms of record and medoid; null where the angles are open."]
    medoid: Annotated[TrainingRowDict | None, "The medoid; null where the angles are open."]
    expected: Annotated[dict[str, float] | None, "Overlap and distance in closed form; null without angles."]


class PairCircuitDict(CircuitHeadDict, PairStepsDict):
    """What a circuit of a record and a medoid carries: all that leads from its outcomes to a distance."""

    kind: Annotated[Literal["swap-test", "interference"], "The compact SWAP test, or interference."]


class CircuitShapeDict(TypedDict):
    columns: Annotated[int, "Entries of the vectors, a power of two."]
    tests: Annotated[int, "Distinct tests."]
    side_by_side: Annotated[int, "Tests that share a circuit."]
    qubits: Annotated[int, "Qubits of the circuit."]
    two_qubit_gates: Annotated[float, "Gates between two qubits of one test."]
    depth: Annotated[int, "Depth of the circuit."]


class TrainedPlanDict(TypedDict):
    records: Annotated[int, "Records that it decides."]
    inputs: Annotated[int, "Its inputs."]
    qubits: Annotated[int, "Qubits of one copy."]
    observables: Annotated[int, "Expectation values that are read from each copy."]
    circuits: Annotated[int, "Circuits that copies share."]
    calibration_circuits: Annotated[int, "Circuits of known inputs."]
    jobs: Annotated[int, "Jobs, which run after those of distances."]
    side_by_side: Annotated[int, "Copies that share a circuit."]
    two_qubit_gates: Annotated[float, "Gates between two qubits of one copy."]
    depth: Annotated[int, "Depth of the circuit."]


class DeviceDict(TypedDict):
    name: Annotated[str, "Name of the device."]
    qubits_of_the_device: Annotated[int | None, "Qubits that it has, where it says."]
    qubits_usable: Annotated[int | None, "Qubits within the limits on error rates, where it has such rates."]
    qubits_at_most: Annotated[int, "Qubits that are used at most."]
    seed: Annotated[int, "Of transpilation and of simulated measurements."]


class ExpectedErrorsDict(TypedDict):
    overlap_rms_error: Annotated[float, "Root mean square error of the overlaps s."]
    value_rms_error: Annotated[float | None, "Of expectation values of the trained circuit; null where none runs."]
    margin_rms_error: Annotated[float, "Root mean square error of the margins."]
    undecided: Annotated[int, "Records whose margin is within two errors of the cut."]
    undecided_rows: Annotated[list[int], "The first of them, counted from 0."]


class CircuitPlanDict(TypedDict):
    """What a measurement on a quantum device takes, and how sure it will be."""

    records: Annotated[int, "Records that are measured."]
    circuit: Annotated[Literal["interference", "compact_swap"], "Circuit of a test."]
    register: Annotated[Literal["column", "group", "paper"], "What a test is of."]
    shots: Annotated[int, "Shots of each circuit."]
    calibrate: Annotated[bool, "Whether known pairs run in every job."]
    tests_asked: Annotated[int, "Tests that the records ask for."]
    tests: Annotated[int, "Distinct ones among them, which run."]
    circuits: Annotated[int, "Circuits of tests, many of which share a circuit, and of the trained one."]
    circuits_per_record: Annotated[float, "The same for one record."]
    calibration_circuits: Annotated[int, "Circuits of known pairs and known inputs."]
    jobs: Annotated[int, "Jobs that the circuits are sent in."]
    total_shots: Annotated[int, "Shots of all circuits together."]
    device_seconds: Annotated[float, "About how long a device is busy, without its queue."]
    shapes: Annotated[list[CircuitShapeDict], "Circuits by their width."]
    trained_circuit: Annotated[
        TrainedPlanDict | None, "Of the trained circuit, counted above as well; null where none runs."
    ]
    device: Annotated[DeviceDict, "Where circuits run."]
    expected: Annotated[ExpectedErrorsDict, "What is to be expected."]


class CircuitLineDict(TypedDict):
    """How noise changes what a circuit reads, fitted to known pairs or known inputs."""

    columns: NotRequired[Annotated[int, "Entries of the vectors of a test."]]
    observable: NotRequired[Annotated[str, "Of a trained circuit: a string of Z, qubit 0 last, or a class."]]
    used: Annotated[bool, "Whether the line was inverted, or made no difference."]
    by_position: Annotated[bool, "Whether every place in a circuit has its own line."]
    known_pairs: Annotated[int, "Known pairs, or known inputs, that it was fitted to."]
    slope: Annotated[float | None, "Mean slope."]
    slope_error: Annotated[float | None, "Its standard error."]
    slope_least: Annotated[float | None, "Least slope of a place."]
    slope_most: Annotated[float | None, "Largest slope of a place."]
    intercept: Annotated[float | None, "Mean intercept."]
    intercept_error: Annotated[float | None, "Its standard error."]
    excess: Annotated[float | None, "Deviation from the line beyond shots."]


class TrainedResultDict(TypedDict):
    records: Annotated[int, "Records that it decided."]
    value_rms_error: Annotated[float, "Root mean square error of its expectation values by exact simulation."]
    value_rms_error_raw: Annotated[float, "The same without calibration."]
    value_rms_stated: Annotated[float, "The same as the run states it."]
    value_score_deviation: Annotated[float | None, "Their deviation in units of the stated ones: about 1."]
    calibration: Annotated[list[CircuitLineDict | None], "The line of every observable; null where none was fitted."]


class RepeatsDict(TypedDict):
    repeats: Annotated[int, "How often every job ran."]
    margin_rms_scatter: Annotated[float, "Root mean square of the deviations of margins between repeats."]
    margin_rms_planned: Annotated[float, "The error of margins that was planned for one of them."]
    decided_alike: Annotated[float, "Share of the records that all repeats decide alike."]


class CircuitResultDict(TypedDict):
    """What a measurement showed."""

    records: Annotated[int, "Records that were measured."]
    agreement: Annotated[float, "Share of them decided as the closed form decides."]
    undecided: Annotated[int, "Records whose margin is within two errors of the cut."]
    agreement_of_decided: Annotated[float | None, "Agreement of the others; null for none."]
    overlap_rms_error: Annotated[float, "Root mean square error of s by the closed form."]
    overlap_rms_error_raw: Annotated[float, "The same without calibration."]
    overlap_score_deviation: Annotated[float | None, "Their deviation in units of the stated ones: about 1."]
    margin_rms_error: Annotated[float, "Root mean square error of margins by the closed form."]
    margin_rms_stated: Annotated[float, "The same as the run states it."]
    calibration: Annotated[
        list[CircuitLineDict | None], "The line of every width of circuits; null where none was fitted."
    ]
    trained_circuit: Annotated[TrainedResultDict | None, "What the trained circuit showed; null where none ran."]
    repeats: Annotated[RepeatsDict | None, "How repeats scatter; null where every job ran once."]
    notes: Annotated[list[str], "What is worth knowing about the calibration."]


CircuitPlace = Literal["exact simulator", "simulated device", "device of a service", "sampler"]
"""What circuits run on; of a sampler that a caller made nothing else is known."""


class CircuitRunDict(TypedDict):
    """The records of a table, measured on a quantum device."""

    output: Annotated[str, "Folder of the run."]
    finished_before: Annotated[bool, "Whether the run was over already, and nothing was run."]
    where: Annotated[CircuitPlace, "What circuits ran on."]
    plan: Annotated[CircuitPlanDict, "What was planned when the run began."]
    started: Annotated[str, "When it began, in UTC."]
    finished: Annotated[str, "When it was over."]
    result: Annotated[CircuitResultDict, "What it showed."]
    files: Annotated[dict[str, str], "SHA-256 of the files of results in the folder, by their names."]
