"""cIPS and cLPI on one log with exact gradients, from any start, whatever the number of actions.

A policy of heavyweight form, pi(a|x) ∝ exp(xᵀ beta_a). A log enters through the weights that it adds up to,
w(x, a) = 1/n sum_i 1[X_i = x, A_i = a] R_i / max(pi0(a|x), tau), with W(x) = sum_a w(x, a) and V(x) = sum_a w(x, a) pi(a|x):

    cLPI   U = sum w(x, a) log pi(a|x)     dU / d beta_a = sum_x (w(x, a) - W(x) pi(a|x)) x
    cIPS   V = sum w(x, a) pi(a|x)         dV / d beta_a = sum_x pi(a|x) (w(x, a) - V(x)) x

**At the uniform policy the second is the first over K**, with no remainder: there pi = 1/K and V(x) = W(x)/K, so that
pi (w - V(x)) = (w - W(x) pi)/K. (Row by row: the gradient of pi(A|X) is pi(A|X) times that of log pi(A|X), and pi(A|X) = 1/K
for all rows.) Both objectives want the same step, and cIPS asks for it K times more softly. SGD with a rate that suits cLPI
needs K times as many steps for the first one's work. Adam's step is rate m/(sqrt(v) + eps), the same for g and g/K as long as
|g|/K is well above eps; where it is well below, Adam is SGD with a rate of rate/eps.

**Kinds of actions.** Actions that were never logged and start at the same vector have the same gradient in every step, and
stay alike. So a catalogue whose never-logged actions start at G different vectors needs as many rows of beta as there are
logged actions and vectors, with the number of actions of each kind in the softmax: exact, and as cheap for a million actions
as for a thousand. A zero start has G = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from manyarms._base.typing import Array
from manyarms_thesis.pwll.finite_softmax import Objective

Start = Literal["zero", "random", "logging"]
FIRST, SECOND = 0.9, 0.999  # Adam's, as everywhere
RATES = {
    "SGD": (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0),
    "Adam": (0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
}


@dataclass(frozen=True, eq=False)
class Catalogue:
    """A log of few contexts on many actions, by kinds of them; logged actions are kinds of one."""

    contexts: Array  # (m, d)
    counts: Array  # (N,) actions of a kind
    weights: Array  # (m, N) w(x, a)
    rewards: Array  # (m, N) mean rewards
    start: Array  # (N, d)

    @property
    def actions(self) -> int:
        """K."""
        return int(self.counts.sum())

    @property
    def logged(self) -> Array:
        """(N,) whether any row rewards the kind."""
        return np.asarray((self.weights > 0).any(axis=0))

    def masses(self, beta: Array) -> Array:
        """(m, N) the policy's probability of all actions of a kind together."""
        scores = self.contexts @ beta.T + np.log(self.counts)
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        return np.asarray(scores)

    def objective(self, beta: Array, objective: Objective) -> float:
        """U or V."""
        each = self.masses(beta) / self.counts
        return float((self.weights * (np.log(np.maximum(each, 1e-300)) if objective == "likelihood" else each)).sum())

    def gradient(self, masses: Array, objective: Objective) -> Array:
        """(N, d) that of the parameters of one action of each kind."""
        each = masses / self.counts
        if objective == "likelihood":
            slopes = self.weights - self.weights.sum(axis=1, keepdims=True) * each
        else:
            slopes = each * (self.weights - (self.weights * each).sum(axis=1, keepdims=True))
        return np.asarray(slopes.T @ self.contexts)

    def value(self, masses: Array) -> float:
        """The mean reward of drawn actions."""
        return float((self.rewards * masses).sum() / len(masses))

    def mode_value(self, masses: Array) -> float:
        """The mean reward of the most probable action; of all of them alike where several are."""
        each = masses / self.counts
        top = self.counts * (each >= each.max(axis=1, keepdims=True) * (1 - 1e-9))
        return float(((self.rewards * top).sum(axis=1) / top.sum(axis=1)).mean())

    @property
    def best_likelihood(self) -> Array:
        """(m, N) the policy that maximises cLPI, w / W: within reach, as contexts are independent."""
        return np.asarray(self.weights / self.weights.sum(axis=1, keepdims=True))


def draw_catalogue(
    *,
    K: int,
    contexts: int,
    dim: int,
    k0: int,
    rows: int,
    kinds: int,
    luck: float,
    tau: float,
    scale: float,
    start: Start,
    spread: float,
    seed: int,
) -> Catalogue:
    """K actions with embeddings e_a ~ N(0, scale² I); in a context the logging policy plays the k0 of largest score xᵀ e_a.

    It plays these with softmax probabilities, `rows` times a context. An action's mean reward where it may be logged is
    luck u³, u uniform, and 0 elsewhere; so the uniform policy is worth almost nothing, as in a catalogue. kinds: how many
    different vectors the actions that are never logged start at (at most as many as there are such actions).
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((contexts, dim))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    embeddings = scale * rng.standard_normal((K, dim))
    scores = x @ embeddings.T
    top = np.argpartition(-scores, k0 - 1, axis=1)[:, :k0]
    shown = np.unique(top)
    rest = np.setdiff1d(np.arange(K), shown, assume_unique=True)
    others = rng.choice(rest, size=min(kinds, len(rest)), replace=False)
    chosen = np.concatenate([shown, others])
    counts = np.ones(len(chosen))
    if len(others):
        counts[len(shown) :] = np.diff(np.linspace(0, len(rest), len(others) + 1).astype(int))
    weights, rewards = np.zeros((contexts, len(chosen))), np.zeros((contexts, len(chosen)))
    for c in range(contexts):
        place = np.searchsorted(shown, top[c])
        logging = np.exp(scores[c, top[c]] - scores[c, top[c]].max())
        logging /= logging.sum()
        rewards[c, place] = luck * rng.random(k0) ** 3
        successes = rng.binomial(rng.multinomial(rows, logging), rewards[c, place])
        weights[c, place] = successes / np.maximum(logging, tau) / (rows * contexts)
    if start == "random":
        first = spread * rng.standard_normal((len(chosen), dim))
    else:
        first = embeddings[chosen] if start == "logging" else np.zeros((len(chosen), dim))
    return Catalogue(x, counts, weights, rewards, first)


@dataclass
class Optimiser:
    """Full-batch ascent: SGD (gradient ascent, as the gradient is exact), or Adam with its eps outside of the square root."""

    kind: str
    rate: float
    epsilon: float = 1e-8
    moments: tuple[Array, Array] | None = None
    steps: int = 0

    def step(self, beta: Array, gradient: Array) -> None:
        """Change beta in place, uphill."""
        if self.kind == "SGD":
            beta += self.rate * gradient
            return
        if self.moments is None:
            self.moments = np.zeros_like(beta), np.zeros_like(beta)
        self.steps += 1
        first, second = self.moments
        first += (1 - FIRST) * (gradient - first)
        second += (1 - SECOND) * (np.square(gradient) - second)
        size = np.sqrt(second / (1 - SECOND**self.steps)) + self.epsilon
        beta += (self.rate / (1 - FIRST**self.steps)) * first / size


def tuned_rate(catalogue: Catalogue, kind: str, epsilon: float, steps: int) -> float:
    """The rate after whose `steps` steps cLPI is largest: rates suit the likelihood, and both objectives get them."""
    reached = {}
    for rate in RATES[kind]:
        beta, optimiser = catalogue.start.copy(), Optimiser(kind, rate, epsilon)
        for _ in range(steps):
            optimiser.step(beta, catalogue.gradient(catalogue.masses(beta), "likelihood"))
        reached[rate] = catalogue.objective(beta, "likelihood")
    return max(reached, key=reached.__getitem__)


def checkpoints(steps: int, points: int) -> list[int]:
    """0, 1 and further numbers of steps, equally spaced in their logarithm, `steps` the last."""
    return sorted({0, *(round(t) for t in np.geomspace(1, steps, points))})


@dataclass(frozen=True)
class Ascent:
    """What an ascent met: at checkpoints, and when it left the plateau (not a number: it did not)."""

    times: Sequence[int]
    values: Array
    mode_values: Array
    left: float


def ascend(catalogue: Catalogue, objective: Objective, optimiser: Optimiser, steps: int, target: float) -> Ascent:
    """Climb for `steps` steps; the plateau is left once the value of drawn actions is `target` or more."""
    beta, times = catalogue.start.copy(), checkpoints(steps, 25)
    wanted, values, modes, left = set(times), [], [], math.nan
    for t in range(steps + 1):
        masses = catalogue.masses(beta)
        value = catalogue.value(masses)
        if math.isnan(left) and value >= target:
            left = float(t)
        if t in wanted:
            values.append(value)
            modes.append(catalogue.mode_value(masses))
        optimiser.step(beta, catalogue.gradient(masses, objective))
    return Ascent(times, np.array(values), np.array(modes), left)


def first_gradients(catalogue: Catalogue) -> tuple[Array, Array]:
    """(N, d) each: the gradients of cLPI and of cIPS at the start."""
    masses = catalogue.masses(catalogue.start)
    return catalogue.gradient(masses, "likelihood"), catalogue.gradient(masses, "value")


def at_zero(catalogue: Catalogue) -> Catalogue:
    """The same log from the uniform policy."""
    return replace(catalogue, start=np.zeros_like(catalogue.start))


__all__ = [
    "RATES", "Ascent", "Catalogue", "Optimiser", "Start", "ascend", "at_zero", "checkpoints", "draw_catalogue", "first_gradients",
    "tuned_rate",
]  # fmt: skip
