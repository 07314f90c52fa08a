"""Contexts as people have them: every form of a row gives the same bits, and what cannot be one is refused with its reason."""

from __future__ import annotations

import sqlite3
from collections import namedtuple
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms.errors import InvalidInput
from manyarms.logs import Encoding, TableEncoder
from manyarms.logs.contexts import encoded

FRAME: dict[str, list[Any]] = {
    "age": [20.0, 47.5, None, 33.0],
    "visits": [3, 0, 12, 7],
    "premium": [True, False, False, True],
    "town": ["Ulm", "Bonn", None, "Ulm"],
    "taste": [[0.5, -1.0], [0.25, 2.0], [0.0, 0.0], [1.0, 1.0]],
}
ROWS = [{name: values[i] for name, values in FRAME.items()} for i in range(4)]


@pytest.fixture
def encoder() -> TableEncoder:
    return Encoding().fit(FRAME, list(FRAME))


def test_a_row_is_encoded_as_in_its_table_bit_for_bit(encoder: TableEncoder) -> None:
    whole = encoder.apply(FRAME)
    for row, expected in zip(ROWS, whole, strict=True):
        np.testing.assert_array_equal(encoded(encoder, row), expected)
        np.testing.assert_array_equal(encoded(encoder, {"not read": object(), **row}), expected)
    np.testing.assert_array_equal(encoded(encoder, ROWS), whole)
    np.testing.assert_array_equal(encoded(encoder, FRAME), whole)


finite = st.floats(-1e9, 1e9)


@given(
    st.lists(st.tuples(finite, st.none() | finite, st.none() | st.text(max_size=3)), min_size=2, max_size=8),
    st.booleans(),
    st.tuples(finite, st.none() | st.text(max_size=3)),
)
def test_one_row_and_many_agree_whatever_was_fitted(rows: list[Any], plain: bool, new: tuple[Any, ...]) -> None:
    numbers, gaps, texts = (list(column) for column in zip(*rows, strict=True))
    gaps[0] = 1.0
    texts[0] = "a"
    table = {"n": numbers, "g": gaps, "t": texts}
    encoder = Encoding(standardise=not plain, intercept=plain).fit(table, list(table))
    whole = encoder.apply({"n": [*numbers, new[0]], "g": [*gaps, 0.5], "t": [*texts, new[1]]})
    last = {"n": new[0], "g": 0.5, "t": new[1]}
    each = [*({"n": n, "g": g, "t": t} for n, g, t in zip(numbers, gaps, texts, strict=True)), last]
    np.testing.assert_array_equal([encoded(encoder, row) for row in each], whole)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_and_their_rows(library: str, encoder: TableEncoder) -> None:
    frames = pytest.importorskip(library)
    frame = frames.table(FRAME) if library == "pyarrow" else frames.DataFrame(FRAME)
    whole = encoder.apply(FRAME)
    np.testing.assert_array_equal(encoded(encoder, frame), whole)
    row: dict[str, Callable[[int], Any]] = {
        "pandas": lambda i: frame.iloc[i],
        "polars": lambda i: frame.row(i, named=True),
        "pyarrow": lambda i: frame.to_struct_array()[i],
    }
    for i in range(4):
        np.testing.assert_array_equal(encoded(encoder, row[library](i)), whole[i])
    with pytest.raises(InvalidInput, match=r"encoder="):
        encoded(None, frame)


def test_rows_of_other_makes(encoder: TableEncoder) -> None:
    whole = encoder.apply(FRAME)
    Row = namedtuple("Row", FRAME)  # type: ignore[misc]
    tuples = [Row(**row) for row in ROWS]
    np.testing.assert_array_equal(encoded(encoder, tuples[1]), whole[1])
    np.testing.assert_array_equal(encoded(encoder, tuples), whole)
    numbers = Encoding().fit({"a": [1.0, 2.0], "t": ["x", "y"]}, ["a", "t"])
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    rows = connection.execute("select 1.5 as a, 'y' as t union all select 2.5, 'x'").fetchall()
    np.testing.assert_array_equal(encoded(numbers, rows[0]), numbers.row({"a": 1.5, "t": "y"}))
    np.testing.assert_array_equal(encoded(numbers, rows), numbers.apply({"a": [1.5, 2.5], "t": ["y", "x"]}))


def test_numbers_stay_as_they_are(encoder: TableEncoder) -> None:
    for x in (np.zeros(3), np.zeros((2, 3)), [1.0, 2.0], [[1.0], [2.0]], (1.0, 2.0), [], None, "text", 3.0):
        assert encoded(encoder, x) is x
        assert encoded(None, x) is x


def test_missing_values_of_every_library_are_the_same(encoder: TableEncoder) -> None:
    expected = encoder.apply(FRAME)[2]
    gone: list[Any] = [None, float("nan"), np.float32("nan"), Decimal("nan")]
    try:
        import pandas
    except ImportError:
        pass
    else:
        gone += [pandas.NA, pandas.NaT]
    for nothing in gone:
        np.testing.assert_array_equal(encoded(encoder, ROWS[2] | {"age": nothing, "town": nothing}), expected)
        np.testing.assert_array_equal(encoded(encoder, [ROWS[2] | {"age": nothing, "town": nothing}]), [expected])
    with pytest.raises(InvalidInput, match=r"'visits'.*as when the encoder was fitted.*missing"):
        encoded(encoder, ROWS[0] | {"visits": None})


def test_numbers_of_every_kind(encoder: TableEncoder) -> None:
    expected = encoded(encoder, ROWS[0])
    for seven in (3, 3.0, np.int8(3), np.float64(3), Decimal(3)):
        np.testing.assert_array_equal(encoded(encoder, ROWS[0] | {"visits": seven}), expected)
    np.testing.assert_array_equal(encoded(encoder, ROWS[0] | {"premium": np.True_}), expected)
    np.testing.assert_array_equal(encoded(encoder, ROWS[0] | {"taste": np.array([0.5, -1.0])}), expected)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"age": "old"}, r"column 'age': expected a number, got the text 'old'"),
        ({"age": [1, 2]}, r"column 'town'|column 'visits'"),
        ({"visits": [1]}, r"column 'visits': expected a number"),
        ({"age": float("inf")}, r"column 'age': expected finite numbers"),
        ({"age": 10**400}, r"column 'age': expected finite numbers"),
        ({"town": 7}, r"column 'town': expected texts, such as 'Bonn', 'Ulm', got the number 7"),
        ({"town": b"Ulm"}, r"column 'town': expected a text"),
        ({"taste": 7}, r"column 'taste': expected 2 numbers, got 7"),
        ({"taste": [1.0, 2.0, 3.0]}, r"column 'taste': expected 2 numbers"),
        ({"taste": ["a", "b"]}, r"column 'taste': expected 2 numbers"),
        ({"taste": [np.inf, 1.0]}, r"taste: expected finite numbers"),
    ],
)
def test_what_is_no_row_is_refused_with_its_column(change: dict[str, Any], told: str, encoder: TableEncoder) -> None:
    with pytest.raises(InvalidInput, match=told):
        encoded(encoder, ROWS[0] | change)


def test_numbers_for_texts_in_a_table_are_refused_too(encoder: TableEncoder) -> None:
    with pytest.raises(InvalidInput, match=r"column 'town': expected texts, such as .*, got the number 1 at row 0"):
        encoded(encoder, FRAME | {"town": [1, 2, 3, 4]})
    codes = Encoding(categorical=("code",), intercept=False).fit({"code": [7, 9, 7.5]}, ["code"])
    np.testing.assert_array_equal(encoded(codes, {"code": 7}), [1, 0, 0, 0])
    np.testing.assert_array_equal(encoded(codes, {"code": "7.5"}), [0, 1, 0, 0])
    np.testing.assert_array_equal(encoded(codes, {"code": 9.0}), [0, 0, 1, 0])
    np.testing.assert_array_equal(encoded(codes, {"code": True}), [0, 0, 0, 1])


def test_absent_columns_are_named(encoder: TableEncoder) -> None:
    for x in ({"age": 3.0}, {"age": [3.0]}, {}):
        with pytest.raises(
            InvalidInput, match=r"expected the columns age, visits, premium, town, taste, got no column"
        ):
            encoded(encoder, x)
    with pytest.raises(InvalidInput, match=r"contexts\[1\]: .* got no column 'taste'"):
        encoded(encoder, [ROWS[0], {k: v for k, v in ROWS[1].items() if k != "taste"}], "contexts")
    with pytest.raises(InvalidInput, match=r"x\[1\]: expected a mapping"):
        encoded(encoder, [ROWS[0], 3])
    for x in (ROWS[0], FRAME, ROWS):
        with pytest.raises(InvalidInput, match=r"encoder="):
            encoded(None, x)


def test_vectors_alone_and_an_intercept_alone() -> None:
    vectors = Encoding(intercept=False, standardise=False).fit({"v": [[1.0, 2.0], [3.0, 4.0]]}, ["v"])
    np.testing.assert_array_equal(encoded(vectors, {"v": [5.0, 6.0]}), [5.0, 6.0])
    np.testing.assert_array_equal(encoded(vectors, {"v": [[5.0, 6.0]]}), [[5.0, 6.0]])
    one = Encoding().fit({"v": [1.0]}, [])
    np.testing.assert_array_equal(encoded(one, {"v": 2.0}), [1.0])
    np.testing.assert_array_equal(encoded(one, {"v": [2.0, 3.0]}), [[1.0], [1.0]])
    np.testing.assert_array_equal(encoded(one, [{"v": 2.0}, {}]), [[1.0], [1.0]])
