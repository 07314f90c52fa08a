"""Logs from hostile hands: what has no meaning is refused by name, and what a log keeps is its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from manyarms import evaluate, inspect
from manyarms.errors import InvalidInput, ManyArmsError
from manyarms.logs import (
    Actions,
    Columns,
    Encoding,
    LoggedData,
    concatenate,
    estimate_propensities,
    from_frame,
    read_csv,
    read_parquet,
    to_csv,
    to_parquet,
)
from manyarms.policies import UniformPolicy

K, ROWS = 5, 8
rng = np.random.default_rng(0)
X, ACTIONS, REWARDS = rng.normal(size=(ROWS, 2)), rng.integers(K, size=ROWS), rng.random(ROWS)
PROPENSITIES = np.full(ROWS, 0.2)


def made(**changes: Any) -> LoggedData:
    fields = {"contexts": X, "actions": ACTIONS, "rewards": REWARDS, "action_count": K, "propensities": PROPENSITIES}
    return LoggedData(**{**fields, **changes})


def framed(**changes: Any) -> LoggedData:
    columns = {"x_0": X[:, 0], "x_1": X[:, 1], "action": ACTIONS, "reward": REWARDS, "propensity": PROPENSITIES}
    return from_frame({**columns, **changes})


def first(value: Any, rest: Any) -> np.ndarray:
    """The array with another first entry, of Python objects."""
    array = np.array(rest, dtype=object)
    array[0] = value
    return array


def masked(array: np.ndarray) -> np.ma.MaskedArray:
    mask = np.zeros(array.shape, dtype=bool)
    mask[0] = True
    return np.ma.array(array, mask=mask)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("contexts", masked(X)), ("contexts", np.array([["1", 2.0]] * ROWS, dtype=object)), ("contexts", X + 0j),
        ("contexts", np.zeros((ROWS, 2), [("f", float)])), ("contexts", X.astype(np.longdouble) * np.longdouble("1e400")),
        ("contexts", np.full((ROWS, 2), 1e200)), ("contexts", np.empty((ROWS, 0))), ("contexts", [[10**400, 1]] * ROWS),
        ("rewards", first("0.5", REWARDS)), ("rewards", first(None, REWARDS)), ("rewards", masked(REWARDS)),
        ("actions", masked(ACTIONS)), ("actions", np.full(ROWS, 2**63, np.uint64)), ("actions", ACTIONS > 1),
        ("actions", [2**70] * ROWS), ("actions", np.full(ROWS, 2**64 - 1, np.uint64)),
        ("propensities", masked(PROPENSITIES)),
        ("propensities", PROPENSITIES.astype(str)), ("propensities", first(10**400, PROPENSITIES)),
        ("propensities", np.full(ROWS, 1.1)), ("propensities", []), ("propensities_are_estimates", "yes"),
        ("groups", np.array([1.0, np.nan] * 4)), ("groups", first(None, [1] * ROWS)), ("groups", masked(ACTIONS)),
        ("groups", np.array([b"\xff"] * ROWS)), ("groups", np.zeros((ROWS, 1))), ("groups", first("a", [1] * ROWS)),
        ("event_ids", [None] * ROWS), ("timestamps", ["2020-01-01"] * ROWS), ("timestamps", masked(np.zeros(ROWS, "M8[s]"))),
        ("logging", UniformPolicy), ("logging", dict), ("logging", UniformPolicy(K + 1)), ("catalogue", list("abcde")),
        ("encoder", 3), ("notes", "a note"), ("notes", 3), ("sources", "x"), ("sources", (("a", "b"),)),
        ("action_count", 10**30), ("action_count", 2.5), ("first_row", [1, 2]), ("first_row", np.arange(3)),
        ("column_names", 3),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_field_that_means_nothing_is_refused_by_its_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=field):
        made(**{field: value})


def test_positions_lie_in_their_origin() -> None:
    for wrong in (np.arange(ROWS) + 1, np.arange(ROWS) - 1, np.arange(ROWS - 1)):
        with pytest.raises(InvalidInput, match="positions"):
            made(origin=made(), positions=wrong)
    with pytest.raises(InvalidInput, match="origin"):
        made(origin=3, positions=np.arange(ROWS))


def test_labels_of_any_honest_type_are_kept() -> None:
    assert made(groups=np.array([2**63, 1] * 4, dtype=np.uint64)).groups[0] == str(2**63)  # type: ignore[index]
    assert made(groups=np.arange(ROWS) > 3).groups.tolist() == [0] * 4 + [1] * 4  # type: ignore[union-attr]
    assert made(groups=np.array(["a", "b"] * 4, dtype=object)).groups.dtype.kind == "U"  # type: ignore[union-attr]
    assert made(timestamps=np.array(["NaT"] * ROWS, "M8[us]")).timestamps is not None


@pytest.mark.parametrize(
    "index",
    [np.ma.array([0, 1], mask=[True, False]), [0.5], [[1], [1, 2]], None, True, [-9], slice("a", None), slice(0, 5, 0)],
)
def test_rows_that_are_none_are_refused(index: Any) -> None:
    with pytest.raises(InvalidInput, match="index"):
        made().rows(index)


def test_rows_by_a_list_of_truths() -> None:
    assert len(made().rows([True, False] * 4)) == 4 and len(made().rows(3)) == 1


def test_a_log_does_not_change_with_the_arrays_that_it_came_from() -> None:
    """Nor do the caller's arrays lose their own rights."""
    given = {"contexts": X, "actions": ACTIONS, "rewards": REWARDS, "propensities": PROPENSITIES}
    given |= {"groups": np.arange(ROWS), "support": np.tile(np.arange(K), (ROWS, 1))}
    given |= {"support_probabilities": np.full((ROWS, K), 0.2), "timestamps": np.zeros(ROWS, "M8[s]")}
    given = {name: array.copy() for name, array in given.items()}
    log = made(**given)
    before = {name: getattr(log, name).copy() for name in given}
    for array in given.values():
        array.view(np.int64)[...] = 1
    for name, array in before.items():
        np.testing.assert_array_equal(getattr(log, name), array)
        with pytest.raises(ValueError, match="read-only"):
            getattr(log, name)[0] = 0


def test_a_log_of_a_frame_does_not_change_with_the_frame() -> None:
    frame = {"x_0": X[:, 0].copy(), "action": ACTIONS.copy(), "reward": REWARDS.copy(), "group": np.arange(ROWS)}
    log = from_frame(frame)
    for column in frame.values():
        column[:] = 0
    np.testing.assert_array_equal(log.contexts[:, 0], X[:, 0])
    np.testing.assert_array_equal(log.rewards, REWARDS)
    np.testing.assert_array_equal(log.groups, np.arange(ROWS))  # type: ignore[arg-type]


def test_what_is_private_already_is_not_copied(tmp_path: Any) -> None:
    """A log with other notes shares its arrays, and so does one that was read: nothing is held twice."""
    log = made()
    assert log.with_notes("again").contexts is log.contexts
    converted = made(contexts=X.astype(np.float32))
    assert converted.contexts.base is None and not converted.contexts.flags.writeable
    to_parquet(log, tmp_path / "log.parquet")
    to_csv(log, tmp_path / "log.csv")
    for read in (read_parquet(tmp_path / "log.parquet"), read_csv(tmp_path / "log.csv")):
        assert read.contexts.base is None and not read.contexts.flags.writeable
        assert read.with_notes("again").contexts is read.contexts
        np.testing.assert_array_equal(read.contexts, X)


# ---- frames and files


class Twice:
    """A frame with two columns of one name."""

    columns = ("x", "x", "action", "reward")

    def __getitem__(self, name: str) -> np.ndarray:
        return {"x": REWARDS, "action": ACTIONS, "reward": REWARDS}[name]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: from_frame(Twice()), "'x' twice"),
        (lambda: from_frame({1: REWARDS, "1": REWARDS, "action": ACTIONS, "reward": REWARDS}), "'1' twice"),
        (lambda: from_frame({"x_0": [], "action": [], "reward": []}), "no row"),
        (lambda: framed(x_0=[1.0, "a"] * 4), "x_0"),
        (lambda: framed(x_0=[10**400] + [1] * 7), "x_0"),
        (lambda: framed(x_0=[10**400] + [0.5] * 7), "x_0"),
        (lambda: framed(x_0=3), "x_0"),
        (lambda: framed(x_0=None), "x_0"),
        (lambda: framed(x_0="abcdefgh"), "x_0"),
        (lambda: framed(reward=REWARDS + 0j), "reward"),
        (lambda: framed(action=masked(ACTIONS)), "missing entry at row 0"),
        (lambda: framed(action=[2**63] + [0] * 7), "action"),
        (lambda: framed(action=np.full(ROWS, 1e300)), "action"),
        (lambda: framed(timestamp=np.full(ROWS, 1e300)), "timestamp"),
        (lambda: framed(timestamp=["0001-01-01T00:00:00+14:00"] * ROWS), "timestamp"),
        (lambda: from_frame({"context": [[1.0, 2.0], None] * 4, "action": ACTIONS, "reward": REWARDS}), "missing entry"),
        (lambda: from_frame({"context": [[1.0, np.nan]] * ROWS, "action": ACTIONS, "reward": REWARDS}), "context"),
        (lambda: from_frame({"x": REWARDS, "action": ACTIONS, "reward": REWARDS}, {"action": "action"}), "columns"),
        (lambda: from_frame({"x": REWARDS, "action": ACTIONS, "reward": REWARDS}, catalogue=X), "catalogue"),
        (lambda: from_frame({"x": REWARDS, "action": ACTIONS, "reward": REWARDS}, encoder=X), "encoder"),
        (lambda: from_frame({"x": REWARDS, "action": ACTIONS, "reward": REWARDS}, drop_missing=X), "drop_missing"),
        (lambda: Columns(action=3), "columns.action"),
        (lambda: Columns(context=["x", 3]), "columns.context"),
        (lambda: Columns(propensities_are_estimates="no"), "columns.propensities_are_estimates"),
        (lambda: Encoding(categorical="town"), "categorical"),
        (lambda: Encoding(intercept=2), "intercept"),
        (lambda: Encoding().fit({"a": [1.0]}, "a"), "columns"),
        (lambda: Encoding().fit(None, ["a"]), "rows"),
        (lambda: Encoding().fit({"a": np.array([1e200, 1.0])}, ["a"]), "'a'"),
        (lambda: Encoding().fit({"a": [1.0, 2.0]}, ["a"]).apply({"a": np.array([1e200])}), "a"),
        (lambda: Actions(3), "ids"),
        (lambda: Actions(["a", "b", "c"]).ids([0.5]), "rows"),
        (lambda: Actions(["a", "b", "c"]).ids(masked(np.arange(2))), "rows"),
        (lambda: Actions(["a", "b", "c"]).row([1]), "action"),
        (lambda: Actions(["a", "b", "c"]).add([3]), "ids"),
        (lambda: concatenate(3), "logs"),
        (lambda: concatenate([made(), 3]), "logs"),
        (lambda: made().with_unit_rewards("1", 2), "low"),
        (lambda: made().with_unit_rewards(0, np.nan), "high"),
    ],
)  # fmt: skip
def test_what_makes_no_log_is_refused(make: Callable[[], Any], named: str) -> None:
    with pytest.raises(ManyArmsError, match=named):
        make()


def test_masked_entries_of_a_frame_are_missing_entries() -> None:
    frame = {"x": REWARDS, "action": masked(ACTIONS), "reward": REWARDS}
    np.testing.assert_array_equal(from_frame(frame, action_count=K, drop_missing=True).actions, ACTIONS[1:])


# ---- sizes


def test_a_huge_id_costs_nothing() -> None:
    """A uniform policy, its evaluation and an inspection of a log whose largest id is huge: no array is as long as that."""
    huge = 2**40
    log = made(action_count=huge)
    found = evaluate(UniformPolicy(huge), log, ["ips"])["ips"]
    np.testing.assert_allclose(found.value, np.mean(REWARDS / huge / 0.2))
    assert inspect(log).unseen[:2] == tuple(str(a) for a in range(K + 12) if a not in ACTIONS)[:2]
    assert inspect(made(), action_count=huge).action_count == huge
    with pytest.raises(InvalidInput, match="log"):
        estimate_propensities(made(action_count=2**50, propensities=None))


def test_inspection_speaks_of_what_a_log_would_refuse() -> None:
    frame = {"x": REWARDS, "action": ACTIONS, "reward": first(1e200, REWARDS).astype(float), "propensity": PROPENSITIES}
    assert any("rewards" in finding.what for finding in inspect(frame).problems)
    assert np.isfinite(inspect(frame).rewards.standard_deviation)


@pytest.mark.parametrize("propensity", [1e-300, 5e-324, 1e-99])
def test_inspection_of_propensities_that_are_hardly_there(propensity: float) -> None:
    overlap = inspect(made(propensities=np.r_[propensity, PROPENSITIES[1:]])).overlap
    assert overlap is not None and overlap.below[1e-6] == 1 / ROWS
    assert np.isfinite([overlap.mean_weight, overlap.largest_weight]).all()
    np.testing.assert_allclose(overlap.effective_sample_size, 1.0)  # one row carries all weight


@pytest.mark.parametrize(
    "by", [np.full(ROWS, np.nan), [[1], [1, 2]], masked(ACTIONS), first(None, [1] * ROWS), np.zeros(ROWS - 1)]
)
def test_groups_to_count_in_are_labels(by: Any) -> None:
    with pytest.raises(InvalidInput, match="by"):
        estimate_propensities(made(propensities=None), by=by)


def test_numbers_of_few_bits_count_as_python_does() -> None:
    log = made(propensities=None)
    small = estimate_propensities(log, "nearest", neighbours=np.uint8(3), folds=np.uint8(2), seed=np.uint8(1))
    same = estimate_propensities(log, "nearest", neighbours=3, folds=2, seed=1)
    np.testing.assert_array_equal(small.log.propensities, same.log.propensities)  # type: ignore[arg-type]
    assert type(Encoding(most_categories=np.uint8(3)).most_categories) is int


@pytest.mark.parametrize(
    "line", ['{"_label_cost": %s}', '{"_label_cost": 1, "a": [1, "x"], "p": [0.5, 0.5]}', '{"pdrop": "x"}']
)
def test_numbers_in_json_are_numbers(line: str, tmp_path: Any) -> None:
    from manyarms.logs import read_dsjson

    cost = "1" + "0" * 400
    rest = '"_label_cost": 1, "_label_probability": 0.5, "_labelIndex": 0, "c": {"_multi": [{"id": "a"}, {"id": "b"}]}'
    told = (line % cost if "%s" in line else line).rstrip("}")
    (tmp_path / "log.json").write_text("{" + rest + ", " + told.lstrip("{") + "}\n")
    with pytest.raises(ManyArmsError, match="line 1"):
        read_dsjson(tmp_path / "log.json")


def test_weights_beyond_all_measure_are_written_short() -> None:
    """A propensity of 1e-300 made a number of three hundred digits in the report."""
    frame = {"action": np.arange(40) % 4, "reward": np.ones(40), "propensity": np.full(40, 0.25)}
    frame["propensity"][3] = 1e-300
    words = " ".join(map(str, inspect(frame).findings))
    assert max(map(len, words.split())) < 60
