"""Makes evaluation.svg: the estimates of the policy of docs/evaluation.md.

.venv/bin/python docs/pictures/make_evaluation.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import manyarms as ma
from manyarms.evaluation import pictures


def picture() -> str:
    """Estimates with their intervals, on white paper whatever the reader's colours are."""
    world = ma.worlds.MixedEffect(actions=50, effects=3, dim=5, reward="logistic", action_scale=0.5, seed=0)
    rng = np.random.default_rng(0)
    old = ma.policies.SoftmaxPolicy(0.5 * world.theta + 0.3 * rng.standard_normal(world.theta.shape))
    new = ma.policies.SoftmaxPolicy(world.theta / 0.6)
    log = ma.worlds.log_from(world, 2_000, old)
    model = ma.rewards.Clipped(ma.sdm(ma.worlds.log_from(world, 2_000, old, seed=1), world.prior(), ma.Linear(0.5)))
    found = ma.evaluate(new, log, ["ips", "snips", "cips", "es", "ls", "dm", "dr"], model=model, bias=False)
    drawn = [(one.label, one.value, one.interval) for one in found.estimates]
    svg = pictures.whiskers(drawn, found.logged.value, title="estimates with their intervals")
    head, rest = svg.split("</title>", 1)
    return f'{head}</title><rect width="100%" height="100%" fill="#fff"/>{rest}\n'


if __name__ == "__main__":
    (Path(__file__).parent / "evaluation.svg").write_text(picture(), encoding="utf-8")
