"""Small losses over batches, for both minimizers."""

import numpy as np


class Quadratic:
    """½ Σ k_j (θ_j − x_j)² around a batch x that is drawn near a centre; counts what it is asked."""

    def __init__(self, center=(1.0, -2.0, 0.5), stiffness=(1.0, 3.0, 0.5), noise=0.2):
        self.center, self.stiffness, self.noise = np.array(center), np.array(stiffness), noise
        self.draws, self.asked = 0, []

    def draw(self, rng):
        self.draws += 1
        return self.center + self.noise * rng.normal(size=len(self.center))

    def value(self, theta, batch):
        self.asked.append((theta.copy(), batch))
        return float(0.5 * self.stiffness @ (theta - batch) ** 2)

    def value_and_gradient(self, theta, batch):
        return self.value(theta, batch), self.stiffness * (theta - batch)


class Scripted:
    """Losses as listed, one per step, whatever the parameters; the gradient is 1 everywhere."""

    def __init__(self, losses):
        self.losses, self.step = losses, -1

    def draw(self, _rng):
        self.step += 1

    def value(self, _theta, _batch):
        return self.losses[self.step]

    def value_and_gradient(self, theta, batch):
        return self.value(theta, batch), np.ones_like(theta)
