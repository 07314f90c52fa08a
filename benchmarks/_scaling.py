"""What benchmarks/scaling.py measures: each study varies one size and times several operations at every value of it.

Sizes: K actions, P of them played, d entries of a context, L effects, n rows, rows of a batch. Times are CPU time of one thread,
the median of many calls; bytes are what `nbytes` says. Setting an agent up is not timed.
"""

from __future__ import annotations

import gc
import importlib.util
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from _timing import clock

import manyarms as ma
from manyarms._base.typing import Array
from manyarms.agents.agent import Agent

LEAST, LONG = 0.2, 1.0  # seconds of a measurement, and of a call that is not made again
FEWEST, MOST = 5, 400  # calls


@dataclass(frozen=True)
class Series:
    """One operation of a study, and what theory says of its exponent."""

    title: str
    theory: str
    unit: str = "s"  # or "B"


@dataclass(frozen=True)
class Study:
    """A size that is varied, and what is timed at each of its values."""

    variable: str
    values: tuple[int, ...]
    quick: tuple[int, ...]
    setting: str
    run: Callable[[int], dict[str, float]]
    series: dict[str, Series]
    needs: str = ""  # a package without which it is left out
    decades: float = 2.0  # at the upper end, that exponents are fitted to

    @property
    def possible(self) -> bool:
        """Whether it can be measured here."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None


def median_seconds(work: Callable[[], object]) -> float:
    """Of one call: the median of as many as fit into a moment, or one where it takes long, after one that is not counted."""
    if once(work) > LONG:
        return once(work)
    spent: list[float] = []
    gc.disable()  # its pauses belong to nobody
    began = time.perf_counter()
    try:
        while len(spent) < FEWEST or (time.perf_counter() - began < LEAST and len(spent) < MOST):
            start = clock()
            work()
            spent.append(clock() - start)
    finally:
        gc.enable()
    return float(np.median(spent))


def once(work: Callable[[], object]) -> float:
    """Seconds of a call that cannot be repeated."""
    start = clock()
    work()
    return clock() - start


# ---- agents -----------------------------------------------------------------------------------------------------------


def lints(actions: int, dim: int) -> Agent:
    """Independent actions with a common prior."""
    return ma.LinTS(ma.ActionPrior(actions, np.zeros(dim), np.eye(dim)), seed=0)


def hierts(actions: int, dim: int) -> Agent:
    """Actions with a common mean."""
    return ma.HierTS(ma.HierarchicalPrior(actions, np.zeros(dim), np.eye(dim), np.eye(dim)), seed=0)


def mets(actions: int, dim: int, effects: int = 5, *, categories: bool = False) -> Agent:
    """Actions that mix effects: by weights of their own, or each in one category."""
    rng = np.random.default_rng(0)
    if categories:
        weights = np.eye(effects)[rng.integers(effects, size=actions)]
    else:
        weights = rng.uniform(-1, 1, (actions, effects))
    size = effects * dim
    return ma.meTS(ma.MixedEffectPrior(weights, np.zeros((effects, dim)), 3 * np.eye(size), np.eye(dim)), seed=0)


def taught(agent: Agent, played: int) -> Agent:
    """After one row of each of so many actions, whose rewards have a signal."""
    rng = np.random.default_rng(1)
    ids = rng.choice(agent.actions, played, replace=False) if agent.actions <= 1 << 22 else np.arange(played) * 7
    X = rng.uniform(-1, 1, (played, agent.dim))
    signal = rng.standard_normal((agent.dim, 8))[:, ids % 8]
    agent.observe(X, ids, np.einsum("nd,dn->n", X, signal) + rng.standard_normal(played))
    return agent


def contexts(dim: int, number: int = 512) -> Iterator[Array]:
    """Contexts without end."""
    return itertools.cycle(np.random.default_rng(2).uniform(-1, 1, (number, dim)))


def decision(agent: Agent) -> float:
    """Seconds of a decision in one context."""
    some = contexts(agent.dim)
    return median_seconds(lambda: agent.decide(next(some)))


def observation(agent: Agent) -> float:
    """Seconds of learning one row, of actions that have been played."""
    some, rng = contexts(agent.dim), np.random.default_rng(3)
    ids = agent.belief.catalogue.played.rows[:200].tolist()
    actions = itertools.cycle(rng.permutation(ids).tolist())
    return median_seconds(lambda: agent.observe(next(some), next(actions), 1.0))


# ---- studies ----------------------------------------------------------------------------------------------------------


def by_actions(actions: int) -> dict[str, float]:
    """Decisions over ever larger catalogues, 500 of whose actions have been played."""
    out, played = {}, min(500, actions // 2)
    makers = {
        "lints": lambda: lints(actions, 10),
        "hierts": lambda: hierts(actions, 10),
        "mets_categories": lambda: mets(actions, 10, categories=True),
        "mets_weights": lambda: mets(actions, 10),
    }
    for name, make in makers.items():
        agent = taught(make(), played)
        if name == "mets_weights":
            out["mets_weights_first"] = once(lambda agent=agent: agent.decide(np.ones(10)))  # type: ignore[misc]
        out[name] = decision(agent)
        if name in ("lints", "mets_weights"):
            out[f"{name}_bytes"] = float(agent.nbytes)
        del agent
        gc.collect()
    return out


def by_played(played: int) -> dict[str, float]:
    """Decisions and rows when ever more actions have been played."""
    out = {}
    makers = {
        "lints": lambda: lints(2_000_000, 10),
        "hierts": lambda: hierts(2_000_000, 10),
        "mets_categories": lambda: mets(2_000_000, 10, categories=True),
    }
    for name, make in makers.items():
        agent = taught(make(), played)
        out[name] = decision(agent)
        if name == "lints":
            out["lints_bytes"] = float(agent.nbytes)
        else:
            out[f"{name}_observe"] = observation(agent)
        del agent
        gc.collect()
    return out


def by_dim(dim: int) -> dict[str, float]:
    """Decisions and rows with ever longer contexts."""
    out = {}
    makers = {
        "lints": lambda: lints(100_000, dim),
        "hierts": lambda: hierts(100_000, dim),
        "mets_categories": lambda: mets(100_000, dim, categories=True),
    }
    for name, make in makers.items():
        agent = taught(make(), 2_000)
        out[name] = decision(agent)
        out[f"{name}_observe"] = observation(agent)
        if name == "lints":
            out["lints_bytes"] = agent.nbytes / 2_000
        del agent
        gc.collect()
    return out


def by_effects(effects: int) -> dict[str, float]:
    """The same with ever more effects."""
    agent = taught(mets(20_000, 10, effects, categories=True), 2_000)
    weighted = taught(mets(20_000, 10, effects), 2_000)
    return {
        "mets_categories": decision(agent),
        "mets_weights": decision(weighted),
        "mets_categories_observe": observation(agent),
    }


def by_rows(rows: int) -> dict[str, float]:
    """Logs of ever more rows: sDM, and estimates of a policy's value."""
    rng = np.random.default_rng(0)
    X, A, R = rng.uniform(-1, 1, (rows, 10)), rng.integers(1_000, size=rows), rng.standard_normal(rows)
    log = ma.LoggedData(X, A, R, 1_000, propensities=np.full(rows, 1e-3))
    prior = ma.HierarchicalPrior(1_000, np.zeros(10), np.eye(10), np.eye(10))
    few = ma.LoggedData(X, A % 100, R, 100, propensities=np.full(rows, 1e-2))
    policy = ma.SoftmaxPolicy(rng.standard_normal((100, 10)))
    return {
        "sdm": median_seconds(lambda: ma.sdm(log, prior)),
        "evaluate": median_seconds(lambda: ma.evaluate(policy, few, ["ips", "snips"], bias=False)),
    }


def by_batch(number: int) -> dict[str, float]:
    """Decisions in ever more contexts at once."""
    out = {}
    X = np.random.default_rng(0).uniform(-1, 1, (number, 10))
    for name, agent in (
        ("lints", lints(100_000, 10)),
        ("mets_categories", mets(100_000, 10, categories=True)),
        ("mets_weights", mets(100_000, 10)),
    ):
        taught(agent, 1_000)
        out[name] = median_seconds(lambda agent=agent: agent.decide(X))  # type: ignore[misc]
    return out


def softmax(actions: int, dim: int) -> ma.SoftmaxPolicy:
    """A policy over all actions."""
    return ma.SoftmaxPolicy(np.random.default_rng(0).standard_normal((actions, dim), dtype=np.float32))


def by_policy_actions(actions: int) -> dict[str, float]:
    """A learned policy over ever more actions."""
    policy, some = softmax(actions, 16), contexts(16)
    return {"decide": median_seconds(lambda: policy.decide(next(some)))}


def by_policy_dim(dim: int) -> dict[str, float]:
    """A learned policy with ever longer contexts."""
    policy, some = softmax(100_000, dim), contexts(dim)
    return {"decide": median_seconds(lambda: policy.decide(next(some)))}


def step(actions: int, dim: int, batch: int) -> dict[str, float]:
    """A step of learning, forward and backward, over all actions."""
    from _softmax import our_step

    return {"step": median_seconds(our_step(actions, dim, batch))}


def halves(low: int, high: int) -> tuple[int, ...]:
    """1, 3, 10, 30, ... from 10^low to 10^high."""
    return (*(m * 10**e for e in range(low, high) for m in (1, 3)), 10**high)


def doubled(low: int, high: int) -> tuple[int, ...]:
    """Powers of two."""
    return tuple(2**e for e in range(low.bit_length() - 1, high.bit_length()))


DECIDE = {"lints": "LinTS", "hierts": "HierTS", "mets_categories": "meTS, categories", "mets_weights": "meTS, weights"}


def _decisions(names: str, theory: str) -> dict[str, Series]:
    return {name: Series(f"{DECIDE[name]}: a decision", theory) for name in names.split()}


def _rows(names: str, theory: str) -> dict[str, Series]:
    return {f"{name}_observe": Series(f"{DECIDE[name]}: a row learned", theory) for name in names.split()}


STUDIES: dict[str, Study] = {
    "actions": Study(
        "K", halves(3, 7), (1_000, 3_000, 10_000), "d = 10, 5 effects, 500 played", by_actions,
        _decisions("lints hierts mets_categories", "0") | _decisions("mets_weights", "< 1")
        | {"mets_weights_first": Series("meTS, weights: the first decision", "1"),
           "lints_bytes": Series("LinTS: bytes", "0", "B"), "mets_weights_bytes": Series("meTS, weights: bytes", "1", "B")},
    ),
    "played": Study(
        "P", halves(2, 6), (100, 300, 1_000), "d = 10, K = 2,000,000, 5 categories", by_played,
        _decisions("lints hierts mets_categories", "1") | _rows("hierts mets_categories", "0")
        | {"lints_bytes": Series("LinTS: bytes", "1", "B")},
    ),
    "dim": Study(
        "d", doubled(4, 256), (4, 8, 16), "K = 100,000, 2,000 played, 5 categories", by_dim,
        _decisions("lints hierts mets_categories", "1 to 2") | _rows("lints hierts mets_categories", "2")
        | {"lints_bytes": Series("LinTS: bytes of a played action", "2", "B")}, decades=0.91,
    ),
    "effects": Study(
        "L", doubled(2, 64), (2, 4, 8), "K = 20,000, d = 10, 2,000 played", by_effects,
        _decisions("mets_categories mets_weights", "1 to 2") | _rows("mets_categories", "2"), decades=0.91,
    ),
    "rows": Study(
        "n", halves(4, 7), (1_000, 3_000, 10_000), "d = 10, K = 1,000 (the softmax policy: 100)", by_rows,
        {"sdm": Series("sDM: a log learned", "1"), "evaluate": Series("IPS and SNIPS of a softmax policy", "1")},
    ),
    "contexts": Study(
        "n", halves(1, 4), (10, 30, 100), "decided at once; K = 100,000, d = 10, 5 effects, 1,000 played", by_batch,
        {name: Series(f"{DECIDE[name]}: decisions", "1") for name in ("lints", "mets_categories", "mets_weights")},
    ),
    "policy-actions": Study(
        "K", halves(3, 7), (1_000, 3_000, 10_000), "d = 16", by_policy_actions,
        {"decide": Series("softmax policy: a decision", "1")},
    ),
    "policy-dim": Study(
        "d", doubled(4, 128), (4, 8, 16), "K = 100,000", by_policy_dim,
        {"decide": Series("softmax policy: a decision", "1")}, decades=0.91,
    ),
    "step-actions": Study(
        "K", halves(3, 6), (300, 1_000, 3_000), "d = 16, 256 rows", lambda actions: step(actions, 16, 256),
        {"step": Series("learning: a step", "1")}, needs="torch",
    ),
    "step-rows": Study(
        "rows", doubled(32, 2_048), (32, 64, 128), "K = 100,000, d = 16", lambda rows: step(100_000, 16, rows),
        {"step": Series("learning: a step", "1")}, needs="torch", decades=0.91,
    ),
    "step-dim": Study(
        "d", doubled(4, 128), (4, 8, 16), "K = 100,000, 256 rows", lambda dim: step(100_000, dim, 256),
        {"step": Series("learning: a step", "1")}, needs="torch", decades=0.91,
    ),
}  # fmt: skip
