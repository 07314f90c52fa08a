"""Tables of results: the same rows as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from manyarms._base.tables import Shown, Table, text_of, texts_of
from manyarms._base.text import counted, number, shortened


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (12345, "12,345 rows"), (-1, "-1 rows")]
)
def test_what_is_counted_is_one_or_many(count: int, words: str) -> None:
    assert counted(count, "row") == words


def test_a_plural_of_its_own() -> None:
    assert (counted(1, "policy", "policies"), counted(3, "policy", "policies")) == ("1 policy", "3 policies")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0412712, "0.04127"),
        (12.5, "12.5"),
        (1234567.8, "1,234,568"),
        (2e99, "2e+99"),
        (-0.0, "0"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_have_digits_that_count(value: float, text: str) -> None:
    assert number(value) == text


def test_numbers_stand_under_each_other() -> None:
    found = Table("three", ("name", "value", "rows"), [("a", 0.4, 7), ("bb", 12.25, 12345), ("c", None, 0)]).text(80)
    assert found.splitlines() == [
        "three",
        "name  value    rows",
        "a      0.40       7",
        "bb    12.25  12,345",
        "c         -       0",
    ]


def test_a_column_of_far_apart_numbers_keeps_its_digits() -> None:
    assert texts_of([1e-9, 1.0]) == ["1e-09", "1"]
    assert texts_of([float("inf"), 0.5]) == ["inf", "0.5"]


def test_long_words_are_folded_into_the_width() -> None:
    table = Table("t " * 80, ("what", "n"), [("word " * 60, 3)], notes=["note " * 60])
    lines = table.text(70).splitlines()
    assert max(map(len, lines)) <= 70
    assert " ".join(" ".join(lines).split()).count("word") == 60


def test_html_is_escaped_and_has_every_cell() -> None:
    html = Table("<b>", ("a & b",), [("<script>",)], notes=["x < y"], parts=[Table("more", rows=[("name", 1)])]).html()
    assert "<script>" not in html and "<b>" not in html
    for text in ("&lt;b&gt;", "a &amp; b", "&lt;script&gt;", "x &lt; y", "more", "name"):
        assert text in html


@dataclass(frozen=True, repr=False)
class _Found(Shown):
    value: float
    weights: np.ndarray
    label: str = "line\nbreak"


def test_a_dataclass_shows_its_fields_unless_it_says_otherwise() -> None:
    found = _Found(0.123456, np.ones((3, 4)))
    assert repr(found) == "_Found(value=0.1235, weights=3 x 4 numbers, label=line break)"
    assert str(found).splitlines()[0] == "_Found" and "0.1235" in found._repr_html_()
    assert len(repr(_Found(0.0, np.ones(1), "x" * 500))) <= 120


def test_values_in_short() -> None:
    assert text_of(np.arange(3)) == "[0, 1, 2]" and text_of(np.zeros(1000)) == "1,000 numbers"
    assert text_of({"a": 1.0}) == "a: 1" and text_of(()) == "none" and text_of(list(range(9))) == "9 entries"
    assert text_of(True) == "yes" and text_of(np.float64(0.5)) == "0.5" and text_of(None) == "-"
    assert shortened("a  b\nc", 10) == "a b c" and shortened("x" * 20, 10) == "x" * 7 + "..."
