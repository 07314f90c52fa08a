"""meTS with mixing weights from real interactions: item factors of a truncated SVD, as a recommender would have them.

The catalogues are read from `MANYARMS_DATA` (gowalla, amazon-book, epinions: 41,000 to 263,000 items); without it one of the same
kind is made up: a spectrum that decays, and lengths with a heavy tail. Factors are taken as they are (popular items are long),
scaled to a mean square of 1, and with length 1 each (`cosine`), which leaves fewer blocks closed.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _report import Figures
from _timing import Play, alternate, floor_of_scoring, milliseconds, over, summary
from scipy import sparse
from scipy.sparse.linalg import svds

import manyarms as ma
from manyarms._base.typing import Array, Ints
from manyarms.worlds import MixedEffect

SHARE = 0.75  # of a score's variance that is the effects'


def real(
    data: str | None, made_up: int, effects: tuple[int, ...], dim: int, rounds: int, turns: int, batch: int
) -> Figures:
    """A decision against the floor for that catalogue, with nothing played and after some rounds; the worst catalogue counts."""
    figures, worst = Figures(), dict[str, float]()
    for name, factors in _catalogues(data, made_up, max(effects)):
        for number in effects:
            for kind in ("svd", "cosine"):
                found = _measured(_scaled(factors[:, :number], kind), dim, rounds, turns, batch)
                about = f"l{number}" if kind == "svd" else f"l{number}_{kind}"
                print(
                    f"  {name}, {len(factors):,} items, {about}: " + ", ".join(f"{k} {v:.3g}" for k, v in found.items())
                )
                for what, value in found.items():
                    figures[f"mets_real_{about}_{name}_{what}"] = value
                    worst[f"mets_real_{about}_{what}"] = max(value, worst.get(f"mets_real_{about}_{what}", value))
    head = {name: value for name, value in worst.items() if name.endswith(("over_floor", "first_decision_s"))}
    return {**head, **figures}


def _measured(weights: Array, dim: int, rounds: int, turns: int, batch: int) -> dict[str, float]:
    world = MixedEffect(
        len(weights),
        weights.shape[1],
        dim,
        weights=weights,
        effect_scale=SHARE / dim,
        action_scale=(1 - SHARE) / dim,
        seed=1,
    )
    agent = ma.meTS(world.prior(), seed=0)
    play = Play(agent, world)
    start = time.perf_counter()
    agent.decide(world.contexts(1)[0])
    built = time.perf_counter() - start
    floor = floor_of_scoring(weights, np.random.default_rng(0))
    first = alternate(turns, lambda: play.decisions(batch), floor)
    print("    " + summary(("decision", "floor"), first))
    play.rounds(rounds)
    later = alternate(turns, lambda: play.decisions(batch), floor)
    return {
        "over_floor": over(first, 0, 1),
        "learned_over_floor": over(later, 0, 1),
        "ms": milliseconds(first, 0),
        "played": agent.played,
        "first_decision_s": built,
    }


def _scaled(factors: Array, kind: str) -> Array:
    lengths = np.sqrt(np.einsum("al,al->a", factors, factors))
    scale: Array = np.full_like(lengths, np.sqrt(np.mean(lengths**2))) if kind == "svd" else lengths
    return factors / np.where(scale > 0, scale, 1.0)[:, None]


# ---- catalogues -------------------------------------------------------------------------------------------------------


def _catalogues(data: str | None, made_up: int, effects: int) -> Iterator[tuple[str, Array]]:
    """Names, and item factors (K, L), the strongest first."""
    if data is None:
        print("  MANYARMS_DATA is not set: one catalogue, made up")
        rng = np.random.default_rng(0)
        lengths = rng.pareto(2.5, (made_up, 1)) + 0.1
        yield "made_up", lengths * rng.standard_normal((made_up, effects)) * (1.0 + np.arange(effects)) ** -0.5
        return
    folder = Path(data)
    for name, files in (("gowalla", ("train", "valid", "test")), ("amazon-book", ("valid", "test"))):
        pairs = [_lists(folder / name / f"{file}.txt.gz") for file in files]
        yield name.replace("-", "_"), _factors(np.concatenate(pairs), effects)
    with gzip.open(folder / "epinions" / "ratings.csv.gz", "rt") as lines:
        ratings = np.loadtxt(lines, delimiter=",", skiprows=1, usecols=(0, 1), dtype=np.int64)
    yield "epinions", _factors(ratings, effects)


def _lists(path: Path) -> Ints:
    """Pairs (user, item) of lines "user item item ..."."""
    with gzip.open(path, "rt") as lines:
        rows = [np.array(line.split(), dtype=np.int64) for line in lines]
    return np.concatenate([np.column_stack([np.full(len(row) - 1, row[0]), row[1:]]) for row in rows if len(row) > 1])


def _factors(pairs: Ints, effects: int) -> Array:
    """(K, L): right singular vectors of the users' table of items, times the roots of the singular values."""
    users, items = (np.unique(column, return_inverse=True)[1] for column in pairs.T)
    table = sparse.csr_matrix((np.ones(len(users)), (users, items)))
    table.data[:] = 1.0
    _, values, vectors = svds(table, k=effects, random_state=0)
    return np.ascontiguousarray((vectors[::-1] * np.sqrt(values[::-1])[:, None]).T)


__all__ = ["real"]
