"""The benchmarks run, at tiny sizes and without a look at the clock; what they compare us with is the same model."""

from __future__ import annotations

import importlib
import json
import math
import runpy
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

import manyarms as ma

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
OURS = [
    *(
        "lints",
        "hierts",
        "mets",
        "mets-many-effects",
        "mets-real",
        "mets-onehot",
        "batches",
        "action-contexts",
        "churn",
        "propensity",
    ),
    *("drift", "ids", "state", "textbook", "numpy", "allplayed", "threads"),
]
MODULES = {"mabwiser": "mabwiser", "contextualbandits": "contextualbandits", "vw": "vowpalwabbit"}


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/online.py, found as it is when it is run: beside its own modules."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("online")


def tiny(online: ModuleType) -> object:
    # the large catalogue has to be larger than what is drawn unit by unit, so that blocks are built and opened
    return online.Sizes(
        small=200,
        large=5_000,
        peers=300,
        dim=3,
        effects=2,
        rounds=12,
        played=8,
        turns=2,
        batch=4,
        peer_turns=1,
        listed=20,
        listed_dim=3,
        churn=40,
        taught=40,
        asked=3,
        contexts=30,
        alone=3,
        scored=4,
    )


@pytest.mark.parametrize("part", OURS)
def test_every_part_runs(online: ModuleType, part: str) -> None:
    figures = online.PARTS[part](tiny(online))
    assert figures
    for name, value in figures.items():
        assert value is not None and math.isfinite(value) and value >= 0, name


def test_parts_are_ours_and_the_peers(online: ModuleType) -> None:
    assert sorted(online.PARTS) == sorted([*OURS, *MODULES])


@pytest.mark.filterwarnings("ignore")  # what the peers have to warn of is theirs
@pytest.mark.parametrize("part", list(MODULES))
def test_peers_run_where_they_are_installed(online: ModuleType, part: str) -> None:
    pytest.importorskip(MODULES[part])
    figures = online.PARTS[part](tiny(online))
    assert figures[f"{part}_300_over_ours"] > 0


@pytest.mark.parametrize("part", list(MODULES))
def test_a_missing_peer_is_null_and_said(
    online: ModuleType, part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(world: object) -> None:
        raise ImportError("no such library")

    monkeypatch.setitem(online.PEERS, part, missing)
    assert online.PARTS[part](tiny(online)) == {f"{part}_300_over_ours": None}
    assert "left out: no such library" in capsys.readouterr().out


@pytest.mark.slow
def test_ends_with_one_line_of_json_that_has_the_figures_by_name(
    online: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(world: object) -> None:
        raise ImportError("left out of this test")

    for name in MODULES:
        monkeypatch.setitem(online.PEERS, name, missing)
    online.main([], tiny(online))
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    # sizes are part of a name: put those of the real run in their place
    real = {"200": "1e4", "5000": "1e6", "300": "1e5"}
    names = {"_".join(real.get(word, word) for word in name.split("_")) for name in figures}
    goals = set(runpy.run_path(str(BENCHMARKS / "_report.py"))["GOALS"])  # afresh: other benchmarks add to it
    assert goals <= names
    assert {"mets_floor_ms", "lints_state_1e6_over_1e4", "lints_1e6_played", "mets_1e6_played"} <= names
    label = importlib.import_module("_timing").label
    sizes = online.Sizes()
    assert [label(n) for n in (sizes.small, sizes.large, sizes.peers)] == ["1e4", "1e6", "1e5"]
    assert sizes.many_effects == 20 and sizes.rounds == 3_000 and sizes.played == 5_000


def test_quick_leaves_the_peers_out(online: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    online.main(["--quick", "--only", "lints"], tiny(online))
    assert "lints_5000_over_200" in json.loads(capsys.readouterr().out.splitlines()[-1])
    online.main(["--list"])
    assert "contextualbandits" in capsys.readouterr().out


def test_verdicts(online: ModuleType) -> None:
    verdict = importlib.import_module("_report").verdict
    assert verdict("lints_1e6_ms", 0.5).endswith(", met") and verdict("lints_1e6_ms", 1.5).endswith(", MISSED")
    assert verdict("vw_1e5_over_ours", 5000.0).endswith(", met") and verdict("vw_1e5_over_ours", 5.0).endswith(
        ", MISSED"
    )
    assert verdict("vw_1e5_over_ours", None).endswith("not measured") and verdict("lints_1e6_played", 3) == ""


@pytest.mark.parametrize("kind", ["CarefulNumPy", "EinsumNumPy", "Textbook"])
def test_baselines_hold_the_same_posterior(online: ModuleType, kind: str) -> None:
    """A comparison of speed means something only where both compute the same thing."""
    actions, dim, variance, noise = 7, 4, 2.0, 0.5
    other = getattr(importlib.import_module("_peers"), kind)(actions, dim, variance, noise, 0)
    prior = ma.ActionPrior(actions, np.zeros(dim), variance * np.eye(dim))
    agent = ma.LinTS(prior, ma.Linear(noise), seed=0)
    rng = np.random.default_rng(3)
    for _ in range(40):
        x, action, reward = rng.standard_normal(dim), int(rng.integers(actions)), float(rng.standard_normal())
        agent.observe(x, action, reward)
        other.observe(x, action, reward)
    for action in range(actions):
        mean, covariance = agent.posterior(action)
        if kind == "Textbook":
            theirs = np.linalg.inv(other.precision[action])
            np.testing.assert_allclose(theirs @ other.information[action], mean, atol=1e-10)
            np.testing.assert_allclose(theirs, covariance, atol=1e-10)
        elif kind == "CarefulNumPy":
            np.testing.assert_allclose(other.mean[:, action], mean, atol=1e-10)
            np.testing.assert_allclose(other.S[other.full, action], covariance, atol=1e-10)
        else:
            np.testing.assert_allclose(other.mean[action], mean, atol=1e-10)
            np.testing.assert_allclose(other.S[action], covariance, atol=1e-10)


@pytest.mark.parametrize(
    ("kind", "options"), [("CarefulNumPy", {}), ("EinsumNumPy", {}), ("Textbook", {"batched": True})]
)
def test_baselines_choose_as_often_as_we_do(online: ModuleType, kind: str, options: dict[str, bool]) -> None:
    actions, dim, draws = 3, 2, 4_000
    other = getattr(importlib.import_module("_peers"), kind)(actions, dim, 1.0, 1.0, 1, **options)
    agent = ma.LinTS(ma.ActionPrior(actions, np.zeros(dim), np.eye(dim)), seed=2)
    for row, action, reward in (([1.0, 0.5], 0, 1.0), ([0.3, -1.0], 0, 0.5), ([1.0, 0.0], 1, -0.5)):
        agent.observe(row, action, reward)
        other.observe(np.array(row), action, reward)
    x = np.array([0.8, 0.4])
    chosen = np.bincount([other.decide(x) for _ in range(draws)], minlength=actions) / draws
    ours = np.bincount(agent.decide(np.tile(x, (draws, 1))), minlength=actions) / draws
    np.testing.assert_allclose(chosen, ours, atol=5 * math.sqrt(0.5 / draws))


def test_numpy_in_blocks_chooses_as_often_as_a_batch_of_ours(online: ModuleType) -> None:
    agent = ma.LinTS(ma.ActionPrior(6, np.array([0.2, -0.1]), np.eye(2)), seed=0)
    rng = np.random.default_rng(3)
    agent.observe(rng.uniform(-1, 1, (9, 2)), rng.integers(3, size=9), rng.standard_normal(9))
    X = np.tile([0.7, -0.4], (4000, 1))
    ours, theirs = agent.decide(X), importlib.import_module("_batches").NumPyInBlocks(agent).decide(X)
    assert stats.chi2_contingency([np.bincount(ours, minlength=6), np.bincount(theirs, minlength=6)]).pvalue > 1e-6
