"""Hashed features: what they are called, that they are the same everywhere, and that they are fair."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyarms as ma
from manyarms.service.personalizer.errors import PersonalizerError
from manyarms.service.personalizer.features import DIM, crossed, flattened, hash_of, phi, shares, tokens

CONTEXT = [{"user": {"device": "mobile", "age": 31, "new": True, "tags": ["b", "a"]}}, {"at": [1.5, 2]}, {"no": None}]


def test_names_of_features() -> None:
    assert tokens(CONTEXT, "contextFeatures") == {
        "user.device=mobile": 1.0, "user.age": math.asinh(31), "user.new=true": 1.0, "user.tags=a": 1.0, "user.tags=b": 1.0,
        "at[0]": math.asinh(1.5), "at[1]": math.asinh(2),
    }  # fmt: skip


def test_objects_in_lists_are_merged() -> None:
    assert tokens([{"user": [{"a": "x"}, {"b": "y"}]}], "") == tokens([{"user": {"a": "x", "b": "y"}}], "")


def test_small_numbers_count_as_they_are_and_large_ones_by_their_size() -> None:
    assert tokens([{"a": 1e-3}], "")["a"] == pytest.approx(1e-3, rel=1e-6)
    assert tokens([{"a": -1e6}], "")["a"] == pytest.approx(-math.log(2e6))


def test_columns_are_called_as_logs_call_them(tmp_path: Path) -> None:
    """An encoder that was fitted to a mirrored log reads the same context of a rank call."""
    context = {"user": {"device": "mobile", "age": 31, "new": True}, "at": [1.5, 2]}
    line = {
        "_label_cost": 0, "_label_probability": 0.5, "_label_Action": 1, "_labelIndex": 0, "EventId": "e", "a": [1, 2],
        "p": [0.5, 0.5], "c": {**context, "_multi": [{"_tag": "one"}, {"_tag": "two"}]},
    }  # fmt: skip
    path = tmp_path / "log.json"
    path.write_text(json.dumps(line) + "\n")
    log = ma.logs.read_dsjson(path)
    columns = flattened([{name: value} for name, value in context.items()], "contextFeatures")
    assert log.encoder is not None
    assert set(columns) == set(log.encoder.columns)
    np.testing.assert_array_equal(log.encoder.row(columns), log.contexts[0])


def test_hashes_are_the_same_on_every_machine() -> None:
    assert hash_of("x:user.device=mobile") == 5980178286089250894
    pair = crossed(np.array([1], dtype=np.uint64), np.array([2], dtype=np.uint64))
    assert int(pair[0]) == 583880340377267059
    vector = phi({"user.device=mobile": 1.0}, [("pasta", {"kind=warm": 1.0})], dim=8)[0]
    np.testing.assert_allclose(vector, [-0.447214, 0.316228, 0.0, 0.0, 0.447214, 0.0, 0.763441, -0.447214], atol=1e-6)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.dictionaries(st.text(max_size=4), json_values, max_size=3), max_size=3))
def test_any_json_has_features(objects: list[dict[str, Any]]) -> None:
    found = tokens(objects, "contextFeatures")
    flattened(objects, "contextFeatures")
    vectors = phi(found, [("one", found), ("two", {})])
    assert vectors.shape == (2, DIM)
    assert np.isfinite(vectors).all()


def test_the_order_of_features_does_not_matter() -> None:
    one, other = {"a=1": 1.0, "b": 2.0}, {"b": 2.0, "a=1": 1.0}
    np.testing.assert_array_equal(phi(one, [("x", one)]), phi(other, [("x", other)]))


def test_places_and_signs_are_fair() -> None:
    """Each place is taken about equally often, each sign too: five standard deviations of a fair draw."""
    number = 64_000
    hashes = np.array([hash_of(f"a:feature {n}") for n in range(number)], dtype=np.uint64)
    for found in (hashes, crossed(hashes[:250], hashes[250:506])):
        counts = np.array([np.count_nonzero(found % np.uint64(64) == place) for place in range(64)])
        assert np.abs(counts - number / 64).max() < 5 * math.sqrt(number / 64)
        negative = np.count_nonzero(found >> np.uint64(63))
        assert abs(negative - number / 2) < 5 * math.sqrt(number / 4)


def test_the_parts_of_a_score_sum_to_it() -> None:
    rng = np.random.default_rng(0)
    context, own = tokens(CONTEXT, ""), tokens([{"kind": "warm", "price": 10}], "")
    weights = rng.normal(size=DIM)
    parts = dict(shares(context, "pasta", own, weights))
    assert sum(parts.values()) == pytest.approx(float(phi(context, [("pasta", own)])[0] @ weights))
    assert {"1", "user.age", "id=pasta", "kind=warm", "user.age^id=pasta", "user.age^kind=warm"} <= parts.keys()


def test_actions_are_hashed_together_as_one_by_one() -> None:
    context = tokens(CONTEXT, "")
    actions = [(f"a{number}", {f"f{number}=x": 1.0, "price": float(number)} if number else {}) for number in range(4)]
    together = phi(context, actions)
    for row, action in zip(together, actions, strict=True):
        np.testing.assert_allclose(row, phi(context, [action])[0], atol=1e-15)


def test_features_have_a_length_of_about_one() -> None:
    """On average over hashes: two features that meet add up or cancel alike."""
    lengths = []
    for world in range(300):
        context = {f"{world}.c{n}={n}": 1.0 for n in range(6)}
        vectors = phi(context, [(f"{world}.{n}", {f"{world}.f{n}={n}": 1.0}) for n in range(4)])
        lengths.append((vectors**2).sum(axis=1))
    assert np.mean(lengths) == pytest.approx(1.0, abs=0.05)


def test_actions_that_differ_by_their_id_alone_differ() -> None:
    one, other = phi({"a=1": 1.0}, [("one", {}), ("other", {})])
    assert not np.allclose(one, other)


def test_too_deep_is_refused() -> None:
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    with pytest.raises(PersonalizerError):
        tokens([{"a": deep}], "contextFeatures")
    with pytest.raises(PersonalizerError):
        flattened([{"a": deep}], "contextFeatures")
