"""Diffusion Thompson sampling: the cost of a round against the size of the catalogue, and of pre-training.

    python benchmarks/diffusion.py [--device cuda]

Ends with one line of JSON. Rounds are at d=20, L=4 with non-linear links, one thread:

- `dts_1e6_ms` (goal: at most 0.5), `dts_1e6_decide_ms`, `dts_1e6_over_1e4`: a shared chain by moments, after 3,000 rounds;
- `dts_thesis_1e6_ms`: the same by the thesis's rule;
- `own_1e6_ms`, `own_1e6_over_1e4` and `own_us_per_played`: one chain per action by particles, the default;
- `own_thesis_1e4_ms`: one chain per action by the thesis's rule, which draws all unplayed chains afresh, at K = 10,000;
- `pretrain_s` and `pretrain_distance`: pre-training on 10,000 points of a Swiss roll, L=40, with what PyTorch takes.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import json
import time
from dataclasses import dataclass

import numpy as np

import manyarms as ma
from manyarms._base.typing import Array

DIM, DEPTH, HIDDEN, NOISE = 20, 4, 60, 1.0


def chain(actions: int, shared: bool) -> ma.DiffusionPrior:
    """The thesis's non-linear chain (line 1622), with links scaled so that scores stay of order one."""
    rng = np.random.default_rng(1)
    links = [ma.priors.NetworkLink.random(DIM, HIDDEN, rng, scaled=True) for _ in range(DEPTH)]
    return ma.DiffusionPrior(actions, DIM, links, [1.0] * (DEPTH + 1), shared)


class Play:
    """An agent in a world drawn from its own prior; parameters are drawn for the actions it plays, and only for them."""

    def __init__(self, actions: int, shared: bool, rule: str | None = None, seed: int = 0) -> None:
        self.prior = chain(actions, shared)
        self.agent = ma.dTS(self.prior, approximation=rule, seed=seed)
        self.rng = np.random.default_rng(seed)
        self.centre = self.prior.draw_centres(self.rng, 1)
        self.theta: dict[int, Array] = {}

    def rounds(self, number: int) -> tuple[float, float]:
        """CPU seconds of one round, decide and observe, and of its decision."""
        deciding = learning = 0.0
        for x in self.rng.uniform(-1, 1, (number, DIM)):
            start = time.process_time()
            action = int(self.agent.decide(x))
            deciding += time.process_time() - start
            reward = float(x @ self._parameter(action)) + NOISE * float(self.rng.standard_normal())
            start = time.process_time()
            self.agent.observe(x, action, reward)
            learning += time.process_time() - start
        return (deciding + learning) / number, deciding / number

    def _parameter(self, action: int) -> Array:
        if action not in self.theta:
            centre = self.centre[0] if self.prior.shared else self.prior.draw_centres(self.rng, 1)[0]
            self.theta[action] = centre + self.rng.standard_normal(DIM)
        return self.theta[action]


@dataclass(frozen=True)
class Compared:
    """Medians over turns: a round at K = 1e6 over one at 1e4, milliseconds of it and of its decision; actions played there."""

    ratio: float
    milliseconds: float
    deciding: float
    played: int


def compare(shared: bool, before: int, turns: int, rounds: int) -> Compared:
    """A million actions against ten thousand, by the default rule, taking turns."""
    small, large = Play(10_000, shared), Play(1_000_000, shared)
    for side in (small, large):
        side.rounds(before)
    times = np.array([[side.rounds(rounds) for side in (small, large)] for _ in range(turns)])  # turn, side, what
    ratio, (whole, deciding) = np.median(times[:, 1, 0] / times[:, 0, 0]), np.median(times[:, 1], axis=0)
    return Compared(float(ratio), float(whole * 1e3), float(deciding * 1e3), large.agent.played)


def alone(actions: int, shared: bool, before: int, turns: int, rounds: int) -> float:
    """Milliseconds of a round by the thesis's rule."""
    play = Play(actions, shared, "thesis")
    play.rounds(before)
    return float(np.median([play.rounds(rounds)[0] for _ in range(turns)]) * 1e3)


def sliced_distance(a: Array, b: Array) -> float:
    """Sliced Wasserstein distance: mean over 100 directions of the mean gap between sorted projections."""
    directions = np.random.default_rng(0).standard_normal((a.shape[1], 100))
    directions /= np.linalg.norm(directions, axis=0)
    return float(np.abs(np.sort(a @ directions, axis=0) - np.sort(b @ directions, axis=0)).mean())


def pretraining(device: str) -> dict[str, float | None]:
    """Seconds of pre-training on 10,000 points of a Swiss roll with L = 40, and how near its draws come to fresh points."""
    roll = ma.worlds.SwissRoll(10)
    try:
        trained = ma.pretrain(roll.sample(10_000, 0), 40, device=device)
    except ma.errors.MissingExtra as missing:
        print(missing)
        return {"pretrain_s": None, "pretrain_distance": None}
    fresh, again = roll.sample(10_000, 1), roll.sample(10_000, 2)
    found = {"pretrain_s": trained.seconds, "pretrain_distance": sliced_distance(trained.sample(10_000), fresh)}
    print(f"pre-training on {device}: {found}; two samples of the roll are {sliced_distance(again, fresh):.4f} apart")
    return {name: float(value) for name, value in found.items()}


def main() -> None:
    """Run everything and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="where to pre-train: cpu or cuda")
    parser.add_argument("--quick", action="store_true", help="few rounds, no pre-training: does it run?")
    options = parser.parse_args()
    before, own_before, turns, rounds = (20, 10, 2, 5) if options.quick else (3_000, 400, 15, 20)
    figures: dict[str, float | int | None] = {}
    by = compare(True, before, turns, rounds)
    figures |= {"dts_1e6_over_1e4": by.ratio, "dts_1e6_ms": by.milliseconds, "dts_1e6_decide_ms": by.deciding}
    figures |= {"dts_1e6_played": by.played, "dts_thesis_1e6_ms": alone(1_000_000, True, before, turns, rounds)}
    print(f"shared chain, by moments: {by} (thesis's rule: {figures['dts_thesis_1e6_ms']:.2f} ms)", flush=True)
    by = compare(False, own_before, turns, rounds)
    figures |= {"own_1e6_over_1e4": by.ratio, "own_1e6_ms": by.milliseconds, "own_1e6_played": by.played}
    figures["own_us_per_played"] = 1e3 * by.milliseconds / max(1, by.played)
    figures["own_thesis_1e4_ms"] = alone(10_000, False, max(1, own_before // 20), 3, max(1, rounds // 4))
    print(
        f"one chain per action, by particles: {by} (thesis's rule at 1e4: {figures['own_thesis_1e4_ms']:.0f} ms)",
        flush=True,
    )
    if not options.quick:
        figures |= pretraining(options.device)
    print(json.dumps({name: round(v, 5) if isinstance(v, float) else v for name, v in figures.items()}))


if __name__ == "__main__":
    main()
