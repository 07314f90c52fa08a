"""From a call to the arithmetic: how many of our files are on the stack at the deepest point of `decide` and `observe`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import manyarms as ma

MOST = 8
OURS = str(Path(ma.__file__).parent)
D, K = 3, 9000  # more units than are drawn one by one, so that meTS goes through its blocks


def chain(*, shared: bool) -> ma.DiffusionPrior:
    rng = np.random.default_rng(2)
    links = [ma.priors.NetworkLink.random(D, 8, rng, scaled=True) for _ in range(2)]
    return ma.DiffusionPrior(K, D, links, [0.5, 0.8, 1.0], shared)


def mixed() -> ma.MixedEffectPrior:
    return ma.worlds.MixedEffect(actions=K, effects=2, dim=D, seed=0).prior()


AGENTS: dict[str, Callable[[], ma.Agent]] = {
    "LinTS": lambda: ma.LinTS(ma.ActionPrior(K, np.zeros(D), np.eye(D)), seed=0),
    "meTS": lambda: ma.meTS(mixed(), seed=0),
    "meTS-GLM": lambda: ma.meTS(mixed(), ma.Logistic(), seed=0),
    "HierTS": lambda: ma.HierTS(mixed(), seed=0),
    "dTS": lambda: ma.dTS(chain(shared=True), seed=0),
    "dTS, independent chains": lambda: ma.dTS(chain(shared=False), seed=0),
    "LinUCB": lambda: ma.LinUCB(mixed(), seed=0),
    "epsilon-greedy": lambda: ma.agents.EpsilonGreedyAgent(mixed(), epsilon=0.5, seed=0),
}


def deepest(call: Callable[[], object]) -> list[str]:
    """Our files on the stack where it holds most of them, outermost first."""
    best: list[str] = []

    def look(frame: FrameType | None, event: str, _: object) -> None:
        if event not in ("call", "c_call"):
            return
        files: dict[str, None] = {}
        while frame is not None:
            if frame.f_code.co_filename.startswith(OURS):
                files[frame.f_code.co_filename.removeprefix(OURS)] = None
            frame = frame.f_back
        if len(files) > len(best):
            best[:] = reversed(files)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return best


@pytest.mark.parametrize("name", AGENTS)
def test_few_files_from_the_call_to_the_arithmetic(name: str) -> None:
    agent, x = AGENTS[name](), np.array([0.5, -0.3, 0.8])
    X, actions, rewards = np.tile(x, (80, 1)), np.arange(80) % 7, np.ones(80)
    calls: dict[str, Callable[[], object]] = {
        "decide": lambda: agent.decide(x),
        "decide k": lambda: agent.decide(x, k=3, exclude=[1]),
        "decide by contexts of actions": lambda: agent.decide(action_contexts=X, candidates=np.arange(80)),
        "observe": lambda: agent.observe(x, 3, 1.0),
        "observe a batch": lambda: agent.observe(X, actions, rewards),
    }
    for _ in range(2):  # before anything is known, and after
        for what, call in calls.items():
            files = deepest(call)
            assert 1 < len(files) <= MOST, (what, files)
