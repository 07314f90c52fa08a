"""Which column is what, by its name: usual names are found, guesses are told, and ambiguous ones are asked about."""

from __future__ import annotations

from typing import Any

import pytest

from manyarms.errors import InvalidInput
from manyarms.logs import Columns, from_frame, inspect
from manyarms.logs.usual_names import USUAL

ROWS = {"price": [1.0, 2.0, 3.0]}
WHO = {"sku": ["a", "b", "a"], "clicked": [0, 1, 0]}


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        (WHO | {"customer_id": ["u", "v", "u"]}, {"action": "sku", "reward": "clicked", "group": "customer_id"}),
        ({"itemId": [0, 1, 0], "Purchase": [0, 1, 0], "p": [0.5, 0.5, 0.5]}, {"action": "itemId", "propensity": "p"}),
        ({"Product ID": ["a", "b", "a"], "conversion": [0, 1, 0], "event_time": ["2024-01-01"] * 3},
         {"action": "Product ID", "reward": "conversion", "timestamp": "event_time"}),
        ({"ad_id": [3, 4, 3], "label": [0, 1, 0], "pi_0": [0.5, 0.5, 0.5]}, {"reward": "label", "propensity": "pi_0"}),
        ({"item_id": [0, 1, 0], "item": ["a", "b", "a"], "reward": [0, 1, 0]}, {"action": "item_id"}),
        ({"action": [0, 1, 0], "sku": ["a", "b", "a"], "reward": [0, 1, 0], "click": [1, 1, 0]},
         {"action": "action", "reward": "reward"}),
        (WHO | {"user": ["u", "v", "u"], "session_id": [1, 2, 3]}, {"group": "user"}),
    ],
)  # fmt: skip
def test_usual_names_are_found_and_told(table: dict[str, Any], parts: dict[str, str]) -> None:
    found = inspect(ROWS | table)
    assert parts.items() <= found.parts.items()
    told = " ".join(found.notes)
    read = " ".join(from_frame(ROWS | table).notes)
    for part, name in parts.items():
        if part != name:
            assert f"{part} is the column {name!r}" in told and f"{part} is the column {name!r}" in read


@pytest.mark.parametrize(
    ("table", "part", "names"),
    [
        ({"sku": ["a", "b", "a"], "product_id": [1, 2, 1], "reward": [0, 1, 0]}, "action", ("sku", "product_id")),
        ({"action": [0, 1, 0], "click": [0, 1, 0], "purchase": [0, 1, 0]}, "reward", ("click", "purchase")),
        (WHO | {"user_id": [1, 2, 3], "customer": [1, 2, 3]}, "group", ("user_id", "customer")),
        (WHO | {"p": [0.5] * 3, "pi0": [0.5] * 3}, "propensity", ("p", "pi0")),
    ],
)
def test_two_of_equal_standing_are_asked_about(table: dict[str, Any], part: str, names: tuple[str, str]) -> None:
    for read in (from_frame, inspect):
        with pytest.raises(InvalidInput, match=rf"columns\.{part}.*'{names[0]}' and '{names[1]}'"):
            read(ROWS | table)
    for name in names:
        assert inspect(ROWS | table, Columns(**{part: name})).parts[part] == name  # type: ignore[arg-type]
    if part not in ("action", "reward"):
        assert part not in inspect(ROWS | table, Columns(**{part: None})).parts  # type: ignore[arg-type]
    elsewhere = Columns(context=(names[1],))  # said to be something else
    assert inspect(ROWS | table, elsewhere).parts[part] == names[0]


def test_a_weaker_name_of_the_wrong_kind_is_no_candidate() -> None:
    table = ROWS | {"action": [0, 1, 0], "label": ["x", "y", "z"], "r": [0, 1, 0]}
    assert inspect(table).parts["reward"] == "r"


def test_no_name_stands_for_two_parts() -> None:
    names = [name for ranks in USUAL.values() for rank in ranks for thing in rank for name in thing]
    assert len(names) == len(set(names))
