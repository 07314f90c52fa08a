"""LoggedData: what it accepts, what it refuses and how it says so, and what its parts and splits are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from manyarms.errors import InvalidInput, UnknownAction
from manyarms.logs import Actions, Encoding, LoggedData, LogSource, collect, concatenate


def made(rows: int = 12, **changes: Any) -> LoggedData:
    rng = np.random.default_rng(7)
    fields: dict[str, Any] = {
        "contexts": rng.normal(size=(rows, 3)),
        "actions": np.arange(rows) % 4,
        "rewards": rng.random(rows),
        "action_count": 5,
        "propensities": np.full(rows, 0.25),
    }
    return LoggedData(**(fields | changes))


def test_a_log_is_a_source_of_chunks_in_order() -> None:
    log = made(10, event_ids=[f"e{i}" for i in range(10)])
    assert isinstance(log, LogSource)
    parts = list(log.chunks(4))
    assert [len(part) for part in parts] == [4, 4, 2]
    assert np.shares_memory(parts[0].contexts, log.contexts)
    again = concatenate(parts)
    for name in ("contexts", "actions", "rewards", "propensities", "event_ids"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name))
    assert collect(log) is log
    assert (log.dim, log.action_count, len(log)) == (3, 5, 10)


def test_rows_by_slice_mask_and_numbers() -> None:
    log = made()
    np.testing.assert_array_equal(log.rows(slice(2, 5)).actions, log.actions[2:5])
    np.testing.assert_array_equal(log.rows(log.actions == 3).rewards, log.rewards[log.actions == 3])
    np.testing.assert_array_equal(log.rows([5, 0]).rewards, log.rewards[[5, 0]])
    for wrong in ([12], [0.5], np.zeros(3, dtype=bool), np.zeros(12, dtype=bool), slice(5, 5)):
        with pytest.raises(InvalidInput):
            log.rows(wrong)


@pytest.mark.parametrize(
    ("changes", "column", "row"),
    [
        ({"propensities": [0.5] * 7 + [0.0] + [0.5] * 4}, "propensities", "row 7"),
        ({"propensities": [0.5] * 7 + [1.5] + [0.5] * 4}, "propensities", "row 7"),
        ({"propensities": [0.5] * 7 + [np.nan] + [0.5] * 4}, "propensities", "row 7"),
        ({"propensities": [0.5] * 7 + [-0.1] + [0.5] * 4}, "propensities", "row 7"),
        ({"propensities": [0.5] * 7 + ["x"] + [0.5] * 4}, "propensities", "type"),
        ({"rewards": [0.5] * 3 + [np.inf] + [0.5] * 8}, "rewards", "row 3"),
        ({"rewards": np.array([0.5] * 3 + ["good"] + [0.5] * 8, dtype=object)}, "rewards", "row 3"),
        ({"actions": [0] * 9 + [5] + [0] * 2}, "actions", "row 9"),
        ({"actions": [0] * 9 + [-1] + [0] * 2}, "actions", "row 9"),
        ({"actions": [0] * 9 + [0.5] + [0] * 2}, "actions", "row 9"),
        ({"actions": np.array([0] * 9 + ["a"] + [0] * 2, dtype=object)}, "actions", "row 9"),
        ({"actions": ["a"] * 12}, "actions", "integers"),
        ({"contexts": [[1.0, 2.0]] * 5 + [[1.0]] + [[1.0, 2.0]] * 6}, "contexts", "row 5"),
        ({"contexts": [[1.0, 2.0]] * 5 + [[1.0, np.nan]] + [[1.0, 2.0]] * 6}, "contexts", "row 5, entry 1"),
        ({"rewards": [0.5] * 11}, "rewards", "11 rows"),
        ({"timestamps": ["today"] * 12}, "timestamps", "datetime64"),
        ({"groups": [[1]] * 12}, "groups", "shape"),
        ({"support": [[0, 1]] * 11 + [[2, 2]]}, "support", "row 11"),
        ({"support": [[0, 1]] * 4 + [[0, 9]] + [[0, 1]] * 7}, "support", "row 4"),
        ({"support_probabilities": [[0.5, 0.5]] * 12}, "support_probabilities", "support as well"),
        (
            {"support": [[0, 1]] * 12, "support_probabilities": [[0.5, 0.5]] * 2 + [[0.9, 0.2]] + [[0.5, 0.5]] * 9},
            "support_probabilities",
            "row 2",
        ),
        ({"catalogue": Actions(["a", "b"])}, "catalogue", "2 ids"),
        ({"propensities": None, "propensities_are_estimates": True}, "propensities_are_estimates", "without"),
    ],
)
def test_what_is_wrong_is_named_with_its_first_row(changes: dict[str, Any], column: str, row: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        made(**changes)
    assert caught.value.argument == column
    assert row in str(caught.value)


def test_messages_count_rows_of_the_file_and_use_its_names() -> None:
    with pytest.raises(InvalidInput, match=r"propensities \(column 'pscore'\).*0\.0 at row 103") as caught:
        made(propensities=[0.5] * 3 + [0.0] + [0.5] * 8, first_row=100, column_names={"propensities": "pscore"})
    assert "estimate_propensities" in str(caught.value)


def test_an_empty_log_and_a_single_action_are_refused() -> None:
    with pytest.raises(InvalidInput, match="empty log"):
        LoggedData(np.zeros((0, 2)), np.zeros(0, dtype=int), np.zeros(0), 3)
    with pytest.raises(InvalidInput, match="nothing to choose"):
        made(action_count=1, actions=np.zeros(12, dtype=int))
    with pytest.raises(UnknownAction):
        made(action_count=3)


def test_single_precision_may_overshoot_one() -> None:
    log = made(propensities=np.full(12, np.float32(1.0000001)))
    assert log.propensities is not None and log.propensities.max() == 1.0


def test_rounds_of_one_group_stay_together() -> None:
    groups = np.repeat([f"u{i}" for i in range(40)], 25)
    log = made(1000, groups=groups)
    for seed in range(5):
        a, b = log.split(0.3, seed)
        assert a.groups is not None and b.groups is not None
        assert not set(a.groups) & set(b.groups)
        assert len(a) + len(b) == 1000
        assert abs(len(a) - 300) <= 25
    with pytest.raises(InvalidInput, match="both sides"):
        made(6, groups=["same"] * 6).split(0.5)


def test_rows_are_split_at_random_and_the_same_way_for_a_seed() -> None:
    log = made(100)
    a, b = log.split(0.25, seed=3)
    assert (len(a), len(b)) == (25, 75)
    np.testing.assert_array_equal(np.sort(np.concatenate([a.rewards, b.rewards])), np.sort(log.rewards))
    np.testing.assert_array_equal(a.rewards, log.split(0.25, seed=3)[0].rewards)
    assert not np.array_equal(a.rewards, log.split(0.25, seed=4)[0].rewards)
    with pytest.raises(InvalidInput):
        log.split(0.0)


def test_a_log_says_why_it_cannot_serve() -> None:
    log = made(propensities=None)
    with pytest.raises(InvalidInput, match=r"propensities for IPS .*estimate_propensities"):
        log.require("propensities", purpose="IPS")
    with pytest.raises(InvalidInput, match="support for cLPI"):
        log.require("support", purpose="cLPI")
    with pytest.raises(InvalidInput, match="needed"):
        log.require("happiness", purpose="IPS")
    estimated = made(propensities_are_estimates=True)
    estimated.require("propensities", purpose="IPS")
    with pytest.raises(InvalidInput, match="estimated propensities"):
        estimated.require("known_propensities", purpose="an exact interval")
    with pytest.raises(InvalidInput, match="rewards from 0 to 5"):
        made(rewards=np.r_[np.zeros(11), 5.0]).require("unit_rewards", purpose="LS")
    log.require("unit_rewards", purpose="LS")


def test_rewards_move_to_the_unit_interval_with_a_note() -> None:
    log = made(rewards=np.linspace(-3, 5, 12))
    scaled = log.with_unit_rewards(-5, 5)
    np.testing.assert_allclose(-5 + 10 * scaled.rewards, log.rewards)
    assert "[-5, 5], the range as given" in scaled.notes[-1]
    own = log.with_unit_rewards()
    assert (own.rewards.min(), own.rewards.max()) == (0.0, 1.0)
    assert "of this log's own rewards" in own.notes[-1]
    with pytest.raises(InvalidInput):
        log.with_unit_rewards(0, 1)
    with pytest.raises(InvalidInput, match="low below high"):
        made(rewards=np.ones(12)).with_unit_rewards()


def test_logs_that_do_not_belong_together_are_not_joined() -> None:
    log = made()
    for other in (made(action_count=6), made(propensities=None), made(catalogue=Actions(list("abcde")))):
        with pytest.raises(InvalidInput, match="logs"):
            concatenate([log, other])
    with pytest.raises(InvalidInput):
        concatenate([])
    both = concatenate([log.with_notes("n"), made(propensities_are_estimates=True).with_notes("n", "m")])
    assert both.propensities_are_estimates and both.notes == ("n", "m")


def test_an_encoder_must_fit_the_contexts() -> None:
    encoder = Encoding().fit({"a": [1.0, 2.0]}, ["a"])
    with pytest.raises(InvalidInput, match="encoder"):
        made(encoder=encoder)
