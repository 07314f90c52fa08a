"""Which worlds count for the thesis, what stands beside them, and bounds that say nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms.worlds.image_features import train_network
from manyarms_thesis.catalogue import Experiment
from manyarms_thesis.dts import image_tasks
from manyarms_thesis.dts.action_contexts import ACTION_CONTEXTS
from manyarms_thesis.dts.bound import BOUND
from manyarms_thesis.dts.bound_claims import at_random, expected_largest
from manyarms_thesis.dts.common import SCALED
from manyarms_thesis.harness.online import ACTION_CONTEXTS as ACTION_CONTEXTS_VARIANT
from manyarms_thesis.harness.results import Results
from tiny_dts import EXPERIMENTS, played, tiny

ALL = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
LINEAR_LINKS = ("dts-actions", "dts-action-contexts", "dts-scaling", "dts-misspecified", "dts-bound")


@ALL
def test_a_context_for_each_action_beside_a_shared_one(experiment: Experiment) -> None:
    """Wherever contexts are chosen in; in pictures every action has its own, and one action alone has no choice."""
    cells = tiny(experiment).cells("smoke")
    each = {cell.panel for cell in cells if cell.variant == ACTION_CONTEXTS_VARIANT}
    if experiment.name in ("dts-images", "dts-posterior"):
        assert not each
        assert any("context" in remark for remark in experiment.remarks)
    elif experiment is ACTION_CONTEXTS:
        assert {cell.parameters["scheme"] for cell in cells} == {"one context for all", "a context for each action"}
    else:
        assert each
        assert all("contexts" in cell.task.__name__ for cell in cells if cell.panel in each)
        assert not any("contexts" in cell.task.__name__ for cell in cells if cell.variant == "")


@pytest.mark.parametrize("experiment", [e for e in EXPERIMENTS if e.name != "dts-posterior"], ids=lambda e: e.name)
def test_moments_stand_beside_the_thesiss_rule(experiment: Experiment) -> None:
    """Wherever links are not linear: a method by the thesis's rule has a twin by moments, equal in all else."""

    def settings(call: Any) -> dict[str, Any]:
        return {k: v for k, v in call.parameters.items() if k != "approximation"}

    for cell in experiment.cells("smoke"):
        if cell.parameters.get("links") == "linear" or experiment.name in LINEAR_LINKS:
            continue
        by_moments = [call for call in cell.methods.values() if call.parameters.get("approximation") == "moments"]
        for name, call in cell.methods.items():
            if call.function.__name__.endswith("dts") and call.parameters.get("approximation", "thesis") == "thesis":
                assert any(
                    twin.function is call.function and settings(twin) == settings(call) for twin in by_moments
                ), (cell.panel, name)


def test_what_an_experiment_asks_is_said_in_plain_words() -> None:
    for experiment in EXPERIMENTS:
        assert experiment.question.endswith("?")
        for scale in experiment.scales:
            said = experiment.setting_at(scale)
            assert said.endswith(".") and "{" not in said and "[" not in said


def test_a_vacuous_bound_covers_nothing() -> None:
    """A bound counts where it is below the regret of playing at random, and only there."""
    results = played(BOUND.name).variant("")
    (covered,) = [made for made in BOUND.claims(results) if "first latent term" in made.statement]
    assert covered.verdict == "undecided" and "vacuous in" in covered.detail  # six rounds: no bound says anything
    telling = {
        key: {**columns, "bound": np.full_like(np.asarray(columns["bound"]), 1e-3 + np.max(columns["regret"]))}
        for key, columns in results.runs.items()
    }
    lower = Results(results.experiment, "smoke", list(results.cells.values()), telling)
    (covered,) = [made for made in BOUND.claims(lower) if "first latent term" in made.statement]
    assert covered.verdict == "held" and covered.detail.startswith("vacuous in")


def test_playing_at_random_loses_the_expected_largest() -> None:
    rng = np.random.default_rng(0)
    for K in (2, 20, 500):
        drawn = rng.standard_normal((4_000, K)).max(axis=1)
        assert abs(expected_largest(K) - drawn.mean()) < 5 * drawn.std() / np.sqrt(4_000)
    results = played(BOUND.name).variant("")
    panel = results.panels[0]
    cell = results.cells[panel]
    lost = []
    for seed in range(300):
        world = cell.problem(seed=seed)
        X = world.contexts(cell.rounds)
        lost.append(world.regret(X, np.zeros(cell.rounds, dtype=int)).sum())
    error = np.std(lost) / np.sqrt(300)
    # sqrt(E |x|^2) for E |x|: a little too much, never too little
    assert np.mean(lost) - 4 * error < at_random(results, panel) < 1.15 * np.mean(lost) + 4 * error


def test_scaled_links_are_a_variant() -> None:
    for experiment in EXPERIMENTS:
        for scale in experiment.scales:
            for cell in experiment.cells(scale):
                assert (cell.variant == SCALED) == bool(cell.parameters.get("scaled")), cell.panel


# ---- networks for features of pictures


def test_a_network_is_trained_once_on_the_offline_pictures_of_its_task(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MANYARMS_CACHE", str(tmp_path))
    image_tasks._task.cache_clear()
    told = {"data": "mnist", "source": "made-up", "actions": 4, "dim": 5, "truth": "labels", "tasks": 2}
    seen = []

    def spy(pictures: Any, allowed: Any, *arguments: Any) -> Any:
        seen.append(allowed.sum() / len(allowed))
        return train_network(pictures, allowed, *arguments, steps=20)

    monkeypatch.setattr(image_tasks, "train_network", spy)
    worlds = [image_tasks.image_task(**told, percent=10, features="network", seed=seed) for seed in (0, 2)]
    assert len(seen) == 1 and seen[0] == pytest.approx(0.1)  # both runs share task 0
    assert worlds[0]._prepared is worlds[1]._prepared
    image_tasks._task.cache_clear()  # as in another process
    monkeypatch.setattr(image_tasks, "train_network", None)
    again = image_tasks.image_task(**told, percent=10, features="network", seed=4)
    np.testing.assert_array_equal(again._prepared.test, worlds[0]._prepared.test)
    image_tasks._task.cache_clear()
