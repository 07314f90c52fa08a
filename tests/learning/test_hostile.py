"""Learning in hostile hands: what the checks return is what is used, and every refusal names its argument."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms import IPS, LoggedData, PACBayes, learn
from manyarms.errors import InvalidInput
from manyarms.policies import SoftmaxPolicy, UniformPolicy

pytest.importorskip("torch")
K, D, ROWS = 5, 2, 40
rng = np.random.default_rng(0)
BETA = rng.normal(size=(K, D))
FIELDS: dict[str, Any] = {
    "contexts": rng.normal(size=(ROWS, D)), "actions": rng.integers(K, size=ROWS), "rewards": rng.random(ROWS),
    "action_count": K, "propensities": np.full(ROWS, 0.2),
}  # fmt: skip


def run(log: dict[str, Any] | None = None, policy: Any = None, **changes: Any) -> Any:
    settings = {"epochs": 2, "batch": 16, "device": "cpu", **changes}
    return learn(LoggedData(**{**FIELDS, **(log or {})}), policy or SoftmaxPolicy(BETA), IPS(), **settings)


@pytest.mark.parametrize(("epochs", "batch"), [(np.uint8(20), np.uint8(2)), (np.int8(100), np.int8(20))])
def test_numbers_of_few_bits_train_as_many_epochs_as_they_say(epochs: Any, batch: Any) -> None:
    """20 epochs of 20 batches are 400 steps, which no 8 bits hold."""
    small, plain = run(epochs=epochs, batch=batch), run(epochs=int(epochs), batch=int(batch))
    assert len(small.history) == int(epochs)
    np.testing.assert_array_equal(small.policy.actions, plain.policy.actions)


@pytest.mark.parametrize("device", ["bogus", "meta", "", 3, b"cpu", "cpu:x"])
def test_a_device_that_is_not_there(device: Any) -> None:
    with pytest.raises(InvalidInput, match="device"):
        run(device=device)


@pytest.mark.parametrize("score", [math.nan, math.inf, None, "a", np.array([1, 2]), 10**400, 1j])
def test_a_score_is_a_finite_number(score: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="score"):
        run(score=lambda policy: score, folder=tmp_path, checkpoint_seconds=0)


def test_a_run_goes_on_where_its_score_failed(tmp_path: Path) -> None:
    """A checkpoint of the batches before is kept, and resumed with a better score."""
    with pytest.raises(InvalidInput, match="score"):
        run(score=lambda policy: math.nan, folder=tmp_path, checkpoint_seconds=0)
    again = run(score=lambda policy: 1.0, folder=tmp_path, checkpoint_seconds=0)
    np.testing.assert_array_equal(again.policy.actions, run(score=lambda policy: 1.0).policy.actions)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("validation", math.nan), ("validation", 1.0), ("validation", "a"), ("validation", [0.5]), ("validation", True),
        ("checkpoint_seconds", math.nan), ("checkpoint_seconds", -1), ("score", "x"), ("progress", 3), ("certified", "x"),
        ("prior_learned_from", 3), ("sampler", 3), ("sampler", len), ("towards", np.array([1, 2])), ("train", {}),
        ("learn_sigma", "x"), ("learning_rate", 5e-324), ("learning_rate", 1e40), ("l2", 1e40), ("l2", math.nan),
        ("epochs", 2.0), ("batch", 0), ("seed", -1), ("draws", 0.5), ("policy", UniformPolicy(K)), ("policy", len),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=name):
        run(**{name: value})


def test_what_is_no_policy_is_refused_before_its_prior_is_asked_for() -> None:
    with pytest.raises(InvalidInput, match="policy"):
        learn(LoggedData(**FIELDS), 3, PACBayes(IPS()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("log", "policy", "named"),
    [
        ({"contexts": FIELDS["contexts"] * 1e60}, None, "fp64"),
        ({}, SoftmaxPolicy(BETA * 1e60), "fp64"),
        ({}, SoftmaxPolicy(BETA, 1e-90), "fp64"),
        ({"propensities": np.full(ROWS, 1e-90)}, None, "precision"),
        ({"rewards": FIELDS["rewards"] * 1e90}, None, "precision"),
    ],
)
def test_numbers_beyond_single_precision_are_refused_at_the_start(log: Any, policy: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        run(log, policy)
