"""Catalogues and encodings: stable, saved and applied again bit for bit, and clear about what is new."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyarms as ma
from manyarms.errors import InvalidInput, StorageError, UnknownAction
from manyarms.logs import Actions, Encoding, TableEncoder
from manyarms.logs.frame_columns import table_of

names = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=12, unique=True)


@given(names, names)
def test_rows_of_a_catalogue_never_change(first: list[str], second: list[str]) -> None:
    old = Actions(first)
    new = old.add(second)
    assert list(new)[: len(old)] == list(old)
    assert new.ids(new.rows(first + second)) == first + second
    assert len(new) == len(set(first) | set(second))
    assert Actions.from_arrays(new.arrays()) == new


def test_a_catalogue_is_saved_and_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    actions = Actions(["a", "ü", "c\0d", "\0"])  # numpy's own strings would lose the last
    actions.save(tmp_path / "actions")
    assert ma.load(tmp_path / "actions") == actions
    with pytest.raises(UnknownAction, match="'b'"):
        actions.rows(["a", "b"])
    with pytest.raises(UnknownAction):
        actions.ids([4])
    for bad in (["a", "a"], [""], ["a", 1], [1.0], [True], [2**63], "abc"):
        with pytest.raises(InvalidInput):
            Actions(bad)  # type: ignore[arg-type]
    with pytest.raises(StorageError):
        Actions.from_arrays({"utf8": np.zeros(1, dtype=np.uint8)})


FRAME = {"age": [20.0, 40.0, 60.0, 40.0], "town": ["Ulm", "Bonn", "Ulm", None], "code": [7, 7, 9, 12]}


def test_the_documented_encoding() -> None:
    encoder = Encoding(categorical=("code",), least_count=2).fit(FRAME, ["age", "town", "code"])
    assert encoder.names == [
        "intercept", "age", "town=Ulm", "town: other", "town: missing", "code=7", "code: other",
    ]  # fmt: skip
    scale = np.sqrt(200.0)
    expected = [
        [1, -20 / scale, 1, 0, 0, 1, 0],
        [1, 0, 0, 1, 0, 1, 0],
        [1, 20 / scale, 1, 0, 0, 0, 1],
        [1, 0, 0, 0, 1, 0, 1],
    ]
    np.testing.assert_allclose(encoder.apply(FRAME), expected, atol=1e-15)
    new = encoder.apply({"age": [40.0], "town": ["Rome"], "code": [3]})
    np.testing.assert_array_equal(new, [[1, 0, 0, 1, 0, 0, 1]])


def test_missing_numbers_become_the_mean_and_are_told() -> None:
    data = {"x": [1.0, np.nan, 3.0]}
    standard = Encoding(intercept=False).fit(data, ["x"])
    np.testing.assert_allclose(standard.apply(data), [[-1, 0], [0, 1], [1, 0]])
    plain = Encoding(intercept=False, standardise=False).fit(data, ["x"])
    np.testing.assert_array_equal(plain.apply(data), [[1, 0], [2, 1], [3, 0]])
    complete = Encoding().fit({"x": [1.0, 2.0]}, ["x"])
    with pytest.raises(InvalidInput, match=r"'x'.*missing number at row 1"):
        complete.apply({"x": [1.0, np.nan]})


def test_a_text_that_is_missing_for_the_first_time_counts_as_other() -> None:
    encoder = Encoding(intercept=False).fit({"t": ["a", "b"]}, ["t"])
    np.testing.assert_array_equal(encoder.apply({"t": [None, "c", "a"]}), [[0, 0, 1], [0, 0, 1], [1, 0, 0]])


def test_frequent_categories_are_kept_and_ties_go_by_name() -> None:
    encoder = Encoding(most_categories=2, intercept=False).fit({"t": list("ccbbaad")}, ["t"])
    assert encoder.names == ["t=a", "t=b", "t: other"]


def test_a_constant_column_keeps_its_scale() -> None:
    encoder = Encoding(intercept=False).fit({"x": [0.1] * 7, "z": [0.0] * 7}, ["x", "z"])
    np.testing.assert_allclose(encoder.apply({"x": [0.1, 1.1], "z": [0.0, 2.0]}), [[0, 0], [1, 2]], atol=1e-15)


def test_vectors_are_standardised_entry_by_entry() -> None:
    X = np.random.default_rng(0).normal(3, 2, size=(50, 4))
    encoder = Encoding(intercept=False).fit({"v": X}, ["v"])
    Z = encoder.apply({"v": X})
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(Z.std(axis=0), 1)
    with pytest.raises(InvalidInput, match="length 3"):
        encoder.apply({"v": X[:, :3]})


@given(st.integers(1, 7), st.integers(0, 100))
def test_chunks_change_nothing_but_rounding(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = {"x": rng.normal(1e3, 1, size=20), "t": rng.choice(list("abc"), size=20)}
    whole = Encoding().fit(data, ["x", "t"])
    parts = [table_of({k: v[i : i + rows] for k, v in data.items()}, ["x", "t"]) for i in range(0, 20, rows)]
    chunked = Encoding().fit(parts, ["x", "t"])
    assert chunked.names == whole.names
    np.testing.assert_allclose(chunked.apply(data), whole.apply(data), rtol=1e-9, atol=1e-9)


def test_saved_and_applied_again_bit_for_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    data = {"x": rng.normal(size=100) ** 3, "v": rng.normal(size=(100, 3)), "t": rng.choice(list("aäß☃"), size=100)}
    data["x"][5] = np.nan
    encoder = Encoding(most_categories=3).fit(data, list(data))
    encoder.save(tmp_path / "encoder")
    wanted = encoder.apply(data)
    for again in (ma.load(tmp_path / "encoder"), TableEncoder.from_json(encoder.as_json())):
        assert again.names == encoder.names
        assert again.apply(data).tobytes() == wanted.tobytes()
    with pytest.raises(StorageError):
        TableEncoder.from_json({"intercept": True})


def test_what_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'x'"):
        Encoding().fit({"x": [np.nan, np.nan]}, ["x"])
    with pytest.raises(InvalidInput, match="infinite"):
        Encoding().fit({"x": [np.inf, 1.0]}, ["x"])
    with pytest.raises(InvalidInput, match="categorical"):
        Encoding(categorical=("y",)).fit({"x": [1.0]}, ["x"])
    with pytest.raises(InvalidInput, match="at least one entry"):
        Encoding(intercept=False).fit({}, [])
    with pytest.raises(InvalidInput, match="one kind of entries"):
        Encoding().fit({"x": [1.0, "a"]}, ["x"])
    encoder = Encoding().fit({"x": [1.0, 2.0]}, ["x"])
    with pytest.raises(InvalidInput, match="numbers"):
        encoder.apply({"x": ["a"]})
    with pytest.raises(InvalidInput, match="'x'"):
        encoder.apply({"y": [1.0]})
