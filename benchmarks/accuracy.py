"""How exact posteriors are after very many rows, against conditioning in rational numbers; ends with one line of JSON.

python benchmarks/accuracy.py                 100,000 rows, condition numbers of the action covariance from 1 to 1e12
python benchmarks/accuracy.py --only mets     one agent; --list names them; --rows for fewer rows

Three dimensions, four actions of which three are played, two effects, noise 0.5 in contexts from [-1, 1]^3; the action covariance
has a largest eigenvalue of 1 and its eigenvectors at random. The same rows come one by one (100,000 rank-one updates) and as one
log, in chunks of 10,000. For each agent, way and condition number there are two figures, the largest over actions and components:

- `..._mean`: how far a posterior mean is off, in posterior standard deviations;
- `..._sd`: the relative error of a posterior standard deviation.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from _report import Figures, as_json, report

import manyarms as ma
from manyarms._base.typing import Array, Ints
from manyarms.beliefs import Belief, Linear, belief_of

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))  # the exact posterior is the tests' own

from exact_gaussian import TwoLevels, covariance_of_condition

CONDITIONS = (1.0, 1e4, 1e8, 1e12)
AGENTS = ("lints", "hierts", "mets")
DIM, ACTIONS, EFFECTS, NOISE, CHUNK = 3, 4, 2, 0.5, 10_000

Rows = tuple[Array, Ints, Array]


def rows_of(number: int) -> Rows:
    """Rounds of three actions; the same for all."""
    rng = np.random.default_rng(1)
    X, A = rng.uniform(-1, 1, (number, DIM)), rng.integers(ACTIONS - 1, size=number)
    theta = rng.standard_normal((ACTIONS, DIM))
    return X, A, np.einsum("nd,nd->n", X, theta[A]) + NOISE * rng.standard_normal(number)


def prior_of(agent: str, condition: float) -> tuple[Belief, TwoLevels]:
    """The belief of an agent before any row, and the same model for the exact posterior."""
    rng = np.random.default_rng(2)
    Sigma = covariance_of_condition(rng, DIM, condition)
    likelihood, each = Linear(NOISE), np.stack([Sigma] * ACTIONS)
    one = np.stack([np.eye(DIM)] * ACTIONS)
    if agent == "lints":
        mean = rng.standard_normal(DIM)
        return belief_of(ma.ActionPrior(ACTIONS, mean, Sigma), likelihood), TwoLevels(mean, None, one, each)
    if agent == "hierts":
        mean, Omega = rng.standard_normal(DIM), np.eye(DIM)
        prior = ma.HierarchicalPrior(ACTIONS, mean, Omega, Sigma)
        return belief_of(prior, likelihood), TwoLevels(mean, Omega, one, each)
    b, mean, Omega = rng.uniform(-1, 1, (ACTIONS, EFFECTS)), rng.standard_normal(EFFECTS * DIM), np.eye(EFFECTS * DIM)
    effects = ma.MixedEffectPrior(b, mean.reshape(EFFECTS, DIM), Omega, Sigma)
    W = np.stack([np.kron(row, np.eye(DIM)) for row in b])
    return belief_of(effects, likelihood), TwoLevels(mean, Omega, W, each)


def errors(belief: Belief, means: Array, covariances: Array) -> tuple[float, float]:
    """The two figures."""
    mean, covariance = belief.action_posterior(np.arange(ACTIONS))
    wanted = np.sqrt(np.einsum("aii->ai", covariances))
    have = np.sqrt(np.einsum("aii->ai", covariance))
    return float(np.abs((mean - means) / wanted).max()), float(np.abs(have / wanted - 1).max())


def run(agent: str, number: int) -> Figures:
    """One agent, both ways, all condition numbers."""
    X, A, r = rows_of(number)
    figures: Figures = {}
    for condition in CONDITIONS:
        by_rows, exact = prior_of(agent, condition)
        by_log, _ = prior_of(agent, condition)
        for i in range(number):
            by_rows.observe(X[i : i + 1], A[i : i + 1], r[i : i + 1])
        starts = range(0, number, CHUNK)
        by_log.fold((X[i : i + CHUNK], A[i : i + CHUNK], r[i : i + CHUNK]) for i in starts)
        means, covariances, _ = exact.posterior(X, A, r, NOISE)
        for way, belief in (("rows", by_rows), ("log", by_log)):
            mean, sd = errors(belief, means, covariances)
            name = f"{agent}_{way}_" + f"{condition:.0e}".replace("e+0", "e").replace("e+", "e")
            figures |= {f"{name}_mean": mean, f"{name}_sd": sd}
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Posteriors against exact conditioning; ends with one line of JSON.")
    parser.add_argument("--only", action="append", choices=AGENTS, help="measure this agent (repeatable)")
    parser.add_argument("--list", action="store_true", help="name the agents")
    parser.add_argument("--rows", type=int, default=100_000, help="rows to learn")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(AGENTS))
        return
    chosen = options.only or AGENTS
    titles = {agent: f"{options.rows:,} rows, one by one and as a log" for agent in chosen}
    print(as_json(report({agent: partial(run, agent, options.rows) for agent in chosen}, titles)))


if __name__ == "__main__":
    main()
