"""Frames of every library hold the same columns as a plain mapping: narwhals reads them, and is not loaded for less."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms.logs import Columns, Encoding, from_frame
from manyarms.logs.contexts import encoded
from manyarms.logs.frame_columns import frame_tables, table_of
from manyarms.logs.tables import Column

BERLIN = dt.timezone(dt.timedelta(hours=2))
PLAIN: dict[str, list[Any]] = {
    "count": [3, None, 5],
    "share": [0.5, 0.25, None],
    "premium": [True, False, True],
    "town": ["Ulm", None, "Bonn"],
    "taste": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "when": [dt.datetime(2026, 1, 1, 12), None, dt.datetime(2026, 1, 2)],
    "zoned": [dt.datetime(2026, 1, 1, 12, tzinfo=BERLIN)] * 3,
    "price": [Decimal("1.50"), Decimal("2.25"), None],
    "nothing": [None, None, None],
}


def same(found: Column, wanted: Column) -> None:
    assert found.kind == wanted.kind
    np.testing.assert_array_equal(found.absent, wanted.absent)
    if wanted.categories is not None:
        np.testing.assert_array_equal(found.texts(), wanted.texts())
    else:
        np.testing.assert_array_equal(found.values[~found.absent], wanted.values[~wanted.absent])


def made(library: str) -> Any:
    frames = pytest.importorskip(library)
    if library == "pyarrow":
        return frames.table(PLAIN)
    return frames.DataFrame(PLAIN if library == "polars" else {k: frames.Series(v) for k, v in PLAIN.items()})


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_are_those_of_a_plain_mapping(library: str) -> None:
    found, wanted = frame_tables(made(library)), frame_tables(PLAIN)
    assert not found.complaints and not wanted.complaints
    for name in PLAIN:
        same(found.table[name], wanted.table[name])


def test_other_types_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    typed = {
        "count": pandas.array([3, None, 5], dtype="Int64"),
        "premium": pandas.array([True, False, True], dtype="boolean"),
        "town": pandas.Categorical(["Ulm", None, "Bonn"]),
    }
    table = table_of(pandas.DataFrame(typed), list(typed))
    for name in typed:
        same(table[name], table_of(PLAIN, [name])[name])
    same(table_of({"town": typed["town"]}, ["town"])["town"], table["town"])  # a mapping of such columns
    same(table_of(pandas.DataFrame({"town": ["Ulm", None, "Bonn"]}, dtype="string"), ["town"])["town"], table["town"])
    with pytest.raises(InvalidInput, match="'town' twice"):
        frame_tables(pandas.DataFrame([[1, 2]], columns=["town", "town"]))
    with pytest.raises(InvalidInput, match="column 'z'"):
        table_of(pandas.DataFrame({"z": [1 + 2j]}), ["z"])


def test_plans_of_frames_are_carried_out() -> None:
    polars = pytest.importorskip("polars")
    encoder = Encoding().fit(PLAIN, ["count", "town"])
    frame = polars.DataFrame(PLAIN)
    np.testing.assert_array_equal(encoded(encoder, frame.lazy()), encoder.apply(PLAIN))
    with pytest.raises(InvalidInput, match="column 's'"):
        table_of(polars.DataFrame({"s": [{"a": 1}]}), ["s"])


def test_batches_of_arrow_and_what_gives_its_data_as_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    encoder = Encoding().fit(PLAIN, ["count", "town"])
    batch = pa.RecordBatch.from_pydict({"count": PLAIN["count"], "town": PLAIN["town"]})

    class Other:
        """A frame of a library that is not known, which can hand its columns over."""

        columns = ("count", "town")

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table(batch).__arrow_c_stream__(requested_schema)

    for frame in (batch, Other()):
        np.testing.assert_array_equal(encoded(encoder, frame), encoder.apply(PLAIN))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_log_is_the_same_from_every_library(library: str) -> None:
    frames = pytest.importorskip(library)
    plain = {"age": [31.0, 47.0], "town": ["Ulm", None], "item": ["pear", "fig"], "click": [0, 1], "p": [0.5, 0.25]}
    frame = frames.table(plain) if library == "pyarrow" else frames.DataFrame(plain)
    columns = Columns(context=["age", "town"], action="item", reward="click", propensity="p")
    found, wanted = from_frame(frame, columns), from_frame(plain, columns)
    np.testing.assert_array_equal(found.contexts, wanted.contexts)
    assert list(found.catalogue or ()) == list(wanted.catalogue or ()) == ["pear", "fig"]


def test_mappings_of_lists_need_nothing_of_it() -> None:
    program = (
        "import sys; from manyarms.logs import from_frame; "
        "from_frame({'x': [1.0, 2.0], 'town': ['a', None], 'action': [0, 1], 'reward': [0, 1]}); "
        "print(sorted({'narwhals', 'pandas', 'polars', 'pyarrow'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600)
    assert answer.stdout.strip() == "[]"


def test_what_is_no_frame_is_refused() -> None:
    for wrong in (3, "text", None, object(), np.zeros((2, 2))):
        with pytest.raises(InvalidInput, match="frame"):
            frame_tables(wrong)
