"""Many runs at once: the sums of `RunningValue` for arrays (runs, rounds), and worlds whose logs they are of."""

from __future__ import annotations

import numpy as np
from scipy import stats

from manyarms.sequential.mixture import log_mixture

Runs = np.ndarray  # (runs, rounds)


def sums(x: Runs, means: Runs | float) -> tuple[Runs, Runs]:
    """The variation, and the excess over the conditional means, after every round of every run."""
    total = np.cumsum(x, axis=1)
    before = np.hstack([np.zeros((len(x), 1)), total[:, :-1]])
    guess = np.minimum(1.0, (0.5 + before) / np.arange(1, x.shape[1] + 1))
    excess = total - np.cumsum(np.broadcast_to(means, x.shape), axis=1)
    return np.cumsum((x - guess) ** 2, axis=1), excess


def log_e_paths(x: Runs, means: Runs | float) -> Runs:
    """ln E at the running average of the conditional means, after every round of every run."""
    return log_mixture(*sums(x, means), 1.0)


def reached(x: Runs, means: Runs | float, alpha: float) -> Runs:
    """Is ln E at least ln(1/α)? It is at most the excess, so that most of it need not be computed."""
    variation, excess = sums(x, means)
    found = excess >= -np.log(alpha)
    found[found] = log_mixture(variation[found], excess[found], 1.0) >= -np.log(alpha)
    return found


def ever(found: Runs) -> int:
    """In how many runs, at any time."""
    return int(found.any(axis=1).sum())


def most_misses(runs: int, alpha: float) -> int:
    """More than this many come with probability below 1e-6, if one comes with probability alpha at most."""
    return int(stats.binom.isf(1e-6, runs, alpha))


def first(found: Runs) -> np.ndarray:
    """The first round, from 1 on, in which something was reached; far away where it never was."""
    return np.where(found.any(axis=1), found.argmax(axis=1) + 1, 10**9)


class World:
    """Two actions with Bernoulli rewards; `propensity` of action 1 may look at all that happened in its own run."""

    def __init__(self, kind: str, runs: int, rounds: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        shape = (runs, rounds)
        self.values = np.empty((2, runs, rounds))
        self.values[0], self.values[1] = 0.2, 0.3
        if kind == "drifting":
            self.values[1] = 0.4 + 0.3 * np.sin(np.arange(rounds) / 150)
        self.p, self.r, self.a = np.empty(shape), np.empty(shape), np.empty(shape, dtype=bool)
        wins, plays = np.ones((2, runs)), np.full((2, runs), 2.0)
        ahead = np.zeros(runs)
        for t in range(rounds):
            p = np.full(runs, 0.3)
            if kind in ("learning", "drifting"):  # mostly the action that looks better, more so with time
                share = max(0.05, 1 / np.sqrt(t + 1))
                better = wins[1] / plays[1] > wins[0] / plays[0]
                p = np.where(better, 1 - share / 2, share / 2)
            elif kind == "spiteful":  # explores less while the estimate is too high, so as to keep it there
                p = np.where(ahead > 0, 0.05, 0.5)
            elif kind == "heavy tails":  # down to 0.002, so that weights go up to 500
                p = np.maximum(0.002, rng.random(runs) ** 4)
            a = rng.random(runs) < p
            if kind == "drifting":  # the value answers to what was done
                self.values[1, :, t] = np.clip(self.values[1, :, t] + np.where(ahead > 0, -0.1, 0.1), 0, 1)
            value = np.where(a, self.values[1, :, t], self.values[0, :, t])
            r = (rng.random(runs) < value).astype(float)
            wins[1] += a * r
            plays[1] += a
            wins[0] += ~a * r
            plays[0] += ~a
            ahead += a * r / p - self.values[1, :, t]
            self.p[:, t], self.a[:, t], self.r[:, t] = p, a, r
        self.weights = np.where(self.a, 1 / self.p, 0.0)  # of the policy that always plays action 1
        self.live = self.p * self.values[1] + (1 - self.p) * self.values[0]


KINDS = ("fixed", "learning", "spiteful", "heavy tails", "drifting")
