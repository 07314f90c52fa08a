"""What manyarms is measured against: NumPy written in two ways a person would write it, and other people's libraries.

All have one linear model per action, a N(0, I) prior (or the ridge that equals it) and no intercept, run on one thread, and
update in a round only what their interface lets them update. Each peer is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from _timing import Learner

from manyarms._base.typing import Array
from manyarms.worlds import MixedEffect


class CarefulNumPy:
    """Exact LinTS in NumPy, with all that can be had without a new idea: every score in two products, one update a round.

    Covariances are kept as upper triangles, and by column: of the layouts tried (full matrices, triangles by row,
    triangles by column; einsum, matmul, dot) this is the fastest by far. It still has to look at every action.
    """

    def __init__(self, actions: int, dim: int, variance: float, noise: float, seed: int) -> None:
        self.rows, self.columns = np.triu_indices(dim)
        self.twice = np.where(self.rows == self.columns, 1.0, 2.0)
        self.full = np.empty((dim, dim), dtype=np.int64)
        self.full[self.rows, self.columns] = self.full[self.columns, self.rows] = np.arange(len(self.rows))
        self.S = np.repeat((variance * np.eye(dim))[self.rows, self.columns][:, None], actions, axis=1)
        self.mean, self.noise = np.zeros((dim, actions)), noise
        self.rng = np.random.default_rng(seed)

    def decide(self, x: Array) -> int:
        score = (self.twice * x[self.rows] * x[self.columns]) @ self.S
        np.sqrt(score, out=score)
        score *= self.rng.standard_normal(len(score))
        score += x @ self.mean
        return int(score.argmax())

    def observe(self, x: Array, action: int, reward: float) -> None:
        s = self.S[self.full, action] @ x
        v = float(s @ x) + self.noise**2
        self.mean[:, action] += s * ((reward - float(x @ self.mean[:, action])) / v)
        self.S[:, action] -= s[self.rows] * s[self.columns] / v


class EinsumNumPy:
    """The same with full covariance matrices and einsum, as most people would write it."""

    def __init__(self, actions: int, dim: int, variance: float, noise: float, seed: int) -> None:
        self.S = np.tile(variance * np.eye(dim), (actions, 1, 1))
        self.mean, self.noise = np.zeros((actions, dim)), noise
        self.rng = np.random.default_rng(seed)

    def decide(self, x: Array) -> int:
        sd = np.sqrt(np.einsum("i,aij,j->a", x, self.S, x))
        return int((self.mean @ x + sd * self.rng.standard_normal(len(sd))).argmax())

    def observe(self, x: Array, action: int, reward: float) -> None:
        s = self.S[action] @ x
        v = float(s @ x) + self.noise**2
        self.mean[action] += s * ((reward - float(x @ self.mean[action])) / v)
        self.S[action] -= np.outer(s, s) / v


class Textbook:
    """LinTS to the letter: in every round invert every action's precision and draw every action's parameter.

    A Python loop over the actions with `multivariate_normal` as NumPy has it, like the pseudocode and most public code;
    `batched` does all inversions, all Cholesky factors and all draws in one call each instead.
    """

    def __init__(
        self, actions: int, dim: int, variance: float, noise: float, seed: int, *, batched: bool = False
    ) -> None:
        self.precision = np.tile(np.eye(dim) / variance, (actions, 1, 1))
        self.information, self.noise = np.zeros((actions, dim)), noise
        self.rng = np.random.default_rng(seed)
        self.batched = batched

    def decide(self, x: Array) -> int:
        if self.batched:
            S = np.linalg.inv(self.precision)
            mean = np.einsum("aij,aj->ai", S, self.information)
            noise = np.einsum("aij,aj->ai", np.linalg.cholesky(S), self.rng.standard_normal(mean.shape))
            return int(((mean + noise) @ x).argmax())
        score = np.empty(len(self.precision))
        for action, (P, b) in enumerate(zip(self.precision, self.information, strict=True)):
            S = np.linalg.inv(P)
            score[action] = x @ self.rng.multivariate_normal(S @ b, S)
        return int(score.argmax())

    def observe(self, x: Array, action: int, reward: float) -> None:
        self.precision[action] += np.outer(x, x) / self.noise**2
        self.information[action] += x * (reward / self.noise**2)


class MABWiser:
    """MABWiser's LinTS. `partial_fit` visits every arm; arms without data take the same way as the others."""

    def __init__(self, world: MixedEffect) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        policy = LearningPolicy.LinTS(alpha=world.noise, l2_lambda=1.0)
        self.model = MAB(list(range(world.actions)), policy, n_jobs=1, seed=1)
        x = world.contexts(1)
        self.model.fit([0], [world.reward(x[0], 0)], x)

    def decide(self, x: Array) -> int:
        return int(self.model.predict(x[None]))

    def observe(self, x: Array, action: int, reward: float) -> None:
        self.model.partial_fit([action], [reward], x[None])


class ContextualBandits:
    """contextualbandits' LinTS, with one observation of every arm: arms without data would not be drawn from a model."""

    ROWS = 20_000  # every arm looks through all rows that it is given: fewer at a time are sooner done

    def __init__(self, world: MixedEffect) -> None:
        from contextualbandits.online import LinTS

        # it refuses random_state=0, and of its ways to fit and to sample the default ones are the fastest here
        self.model = LinTS(
            world.actions, lambda_=1.0, v_sq=world.noise**2, fit_intercept=False, random_state=1, njobs=1
        )
        for start in range(0, world.actions, self.ROWS):
            arms = np.arange(start, min(start + self.ROWS, world.actions))
            x = world.contexts(len(arms))
            self.model.partial_fit(x, arms, world.reward(x, arms))

    def decide(self, x: Array) -> int:
        return int(self.model.predict(x[None])[0])

    def observe(self, x: Array, action: int, reward: float) -> None:
        self.model.partial_fit(x[None], np.array([action]), np.array([reward]))


class VowpalWabbit:
    """Vowpal Wabbit's cb_explore_adf with SquareCB: context times action's name, so one linear model per action.

    It has no Thompson sampling; this is its comparable online learner. A round's K lines of text are parsed once and
    serve the prediction and, with the label put in, the update.
    """

    def __init__(self, world: MixedEffect) -> None:
        import vowpalwabbit

        bits = max(18, int(np.ceil(np.log2(4 * world.actions * world.dim))))  # so many weights that few collide
        self.model = vowpalwabbit.Workspace(
            f"--cb_explore_adf --squarecb --quiet -q ca --ignore_linear c -b {bits} --random_seed 1"
        )
        self.lines = [f"|a {action}" for action in range(world.actions)]
        self.rng = np.random.default_rng(1)
        self.examples: list[Any] = []
        self.probability = 1.0

    def decide(self, x: Array) -> int:
        shared = "shared |c " + " ".join(f"{i}:{value:.6f}" for i, value in enumerate(x.tolist()))
        self.examples = self.model.parse([shared, *self.lines])
        # single precision leaves a few of many probabilities a hair below zero
        chances = np.cumsum(np.maximum(self.model.predict(self.examples), 0.0))
        action = int(np.searchsorted(chances, chances[-1] * self.rng.random(), side="right"))
        action = min(action, len(chances) - 1)
        self.probability = max(float(chances[action] - (chances[action - 1] if action else 0.0)), 1e-9)
        return action

    def observe(self, x: Array, action: int, reward: float) -> None:
        self.examples[action + 1].set_label_string(f"0:{-reward:.6f}:{self.probability:.9f}")
        self.model.learn(self.examples)
        self.model.finish_example(self.examples)


PEERS: dict[str, Callable[[MixedEffect], Learner]] = {
    "mabwiser": MABWiser,
    "contextualbandits": ContextualBandits,
    "vw": VowpalWabbit,
}
