r"""Adam on exact gradients, with a step size that falls along a cosine.

.. math::

   m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad
   \theta \leftarrow \theta - \eta_t\,\frac{m/(1-\beta_1^t)}{\sqrt{v/(1-\beta_2^t)} + \epsilon}, \quad
   \eta_t = \frac{\eta}{2}\Bigl(1 + \cos\frac{\pi (t-1)}{T}\Bigr)
"""

import math

import numpy as np

from qmedoid.arrays import Array
from qmedoid.search.training import (
    Batch,
    DifferentiableObjective,
    Minimum,
    OnStep,
    Stopping,
    TrainingState,
    begin_or_resume,
    clipped,
    run_steps,
)

_EPSILON = 1e-8


def minimize_adam(
    objective: DifferentiableObjective[Batch],
    start: Array | TrainingState,
    stopping: Stopping,
    *,
    rng: np.random.Generator | None = None,
    learning_rate: float = 0.02,
    beta1: float = 0.9,
    beta2: float = 0.999,
    clip_norm: float | None = None,
    on_step: OnStep | None = None,
) -> Minimum:
    """Minimise a loss over batches by its gradient, one evaluation a step.

    Parameters are those of :func:`~qmedoid.search.spsa.minimize_spsa`; `learning_rate` is the first step size η, and
    `beta1` and `beta2` are the memories of the two running means.
    """

    def advance(state: TrainingState) -> float:
        t = state.step + 1
        loss, gradient = objective.value_and_gradient(state.theta, objective.draw(state.rng))
        gradient = clipped(gradient, clip_norm)
        state.evaluations += 1
        mean = beta1 * state.moments[0] + (1.0 - beta1) * gradient
        square = beta2 * state.moments[1] + (1.0 - beta2) * gradient**2
        state.moments = np.stack([mean, square])
        step_size = learning_rate * 0.5 * (1.0 + math.cos(math.pi * state.step / stopping.steps))
        scale = np.sqrt(square / (1.0 - beta2**t)) + _EPSILON
        state.theta = state.theta - step_size * (mean / (1.0 - beta1**t)) / scale
        return loss

    return run_steps(begin_or_resume(start, rng), advance, stopping, on_step)
