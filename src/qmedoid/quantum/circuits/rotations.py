"""States with real amplitudes by Y rotations, from the most significant qubit down, for many states at once.

The gates are the same for all states of a register; only the angles differ.
"""

from collections.abc import Sequence

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit import ParameterExpression, Qubit

from qmedoid.arrays import Array

OUTCOME = "outcome"
"""Name of the classical register that circuits are measured into."""
Angle = float | ParameterExpression


def append_multiplexed_ry(
    circuit: QuantumCircuit, angles: Sequence[Angle], target: Qubit, controls: Sequence[Qubit], *, last: bool = True
) -> None:
    """Rotate the target by an angle for each state of the controls, in the order of a Gray code.

    Between two rotations one control flips the sense of those to come, so 2**k of each do for k controls. The last
    flip may be left out: the target is then flipped where the last of the controls reads 1.
    """
    for step, angle in enumerate(angles, start=1):
        circuit.ry(angle, target)
        if controls and (last or step < len(angles)):
            lowest_set_bit = (step & -step).bit_length() - 1
            circuit.cx(controls[min(lowest_set_bit, len(controls) - 1)], target)


def multiplexed(angles: Array) -> Array:
    r"""Angles :math:`\theta` of the Gray code sequence that rotates by ``angles[..., j]`` when the controls read j.

    .. math:: \text{angles}_j = \sum_i (-1)^{|j \wedge g(i)|}\,\theta_i, \qquad g(i) = i \oplus \lfloor i/2\rfloor .
    """
    size = angles.shape[-1]
    index = np.arange(size)
    gray = index ^ (index >> 1)
    signs = 1.0 - 2.0 * (np.bitwise_count(gray[:, None] & index[None, :]) % 2)
    theta: Array = angles @ signs.T / size
    return theta


def flipped_upper_half(amplitudes: Array) -> Array:
    """Amplitudes (..., 2**n) after the lowest qubit was flipped where the highest reads 1."""
    half = amplitudes.shape[-1] // 2
    if half < 2:
        return amplitudes
    upper = amplitudes[..., half:].reshape(*amplitudes.shape[:-1], half // 2, 2)[..., ::-1]
    return np.concatenate([amplitudes[..., :half], upper.reshape(*amplitudes.shape[:-1], half)], axis=-1)


def tree_angles(amplitudes: Array, *, without_last: bool = False) -> Array:
    """Angles that prepare real amplitudes (..., 2**n): one for the highest qubit, two for the next, and so on.

    With `without_last` they are those of multiplexed rotations without their last flip.
    """
    layers: list[Array] = []
    while amplitudes.shape[-1] > 1:
        if without_last:
            amplitudes = flipped_upper_half(amplitudes)
        low, high = amplitudes[..., 0::2], amplitudes[..., 1::2]
        layers.append(multiplexed(2.0 * np.arctan2(high, low)))
        amplitudes = np.hypot(low, high)
    return np.concatenate([np.zeros((*amplitudes.shape[:-1], 0)), *reversed(layers)], axis=-1)
