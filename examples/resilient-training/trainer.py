"""The ranks: linear regression by gradient descent with momentum, in plain Python, so that any image with Ray runs it.

What a step computes depends on the state and on the step's number only. So a training that was interrupted ends with
the same bits as one that was not.
"""

from __future__ import annotations

import random
from pathlib import Path

import checkpoints

from workergroups import Dispatch, Execute, Worker, register

WEIGHTS = [0.5, -1.0, 2.0, 0.25, -0.75, 1.5, -2.0, 1.0]
"""What the training finds out."""


class Trainer(Worker):
    """One rank, which has the whole model and its part of each batch."""

    def __init__(self, batch_size: int = 256, learning_rate: float = 0.02) -> None:
        super().__init__()
        self.batch_size, self.learning_rate = batch_size, learning_rate
        self.attempt = ""

    @register(Dispatch.ONE_TO_ALL)
    def restore(self, attempt: str, checkpoint: str | None) -> int:
        """Take the state of a checkpoint, or begin; return the number of steps that were done. Ends other attempts."""
        state = checkpoints.load(Path(checkpoint)) if checkpoint else {}
        self.attempt = attempt
        self.step = state.get("step", 0)
        self.weights = state.get("weights", [0.0] * len(WEIGHTS))
        self.momentum = state.get("momentum", [0.0] * len(WEIGHTS))
        return self.step

    @register(Dispatch.ONE_TO_ALL)
    def gradient(self, attempt: str) -> list[float]:
        """Return the gradient of the mean squared error over this rank's part of the batch."""
        self._check(attempt)
        gradient = [0.0] * len(self.weights)
        for inputs, output in self._batch():
            error = dot(self.weights, inputs) - output
            gradient = add(gradient, inputs, 2 * error / self.batch_size)
        return gradient

    @register(Dispatch.ONE_TO_ALL)
    def update(self, attempt: str, gradient: list[float]) -> None:
        """Do a step with the mean of all ranks' gradients."""
        self._check(attempt)
        self.momentum = add(gradient, self.momentum, 0.9)
        self.weights = add(self.weights, self.momentum, -self.learning_rate)
        self.step += 1

    @register(Dispatch.ALL_TO_ALL, Execute.RANK_ZERO)
    def save(self, attempt: str) -> None:
        """Write a checkpoint. One rank is enough: all have the same state."""
        self._check(attempt)
        checkpoints.save(Path(attempt), self.step, {"weights": self.weights, "momentum": self.momentum})

    def _batch(self) -> list[tuple[list[float], float]]:
        """Return this rank's inputs and outputs of the next step."""
        numbers = random.Random(f"step {self.step} of rank {self.rank}")
        batch = []
        for _ in range(self.batch_size):
            inputs = [numbers.gauss(0, 1) for _ in WEIGHTS]
            batch.append((inputs, dot(WEIGHTS, inputs) + numbers.gauss(0, 0.1)))
        return batch

    def _check(self, attempt: str) -> None:
        if attempt != self.attempt:
            raise RuntimeError(f"attempt {self.attempt} has these ranks now, so {attempt} cannot go on")


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def add(a: list[float], b: list[float], factor: float) -> list[float]:
    return [x + factor * y for x, y in zip(a, b, strict=True)]
