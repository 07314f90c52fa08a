"""docs/renames.json: every public name of 0.1, and where it is now, or why it is gone."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

PAGE = json.loads((Path(__file__).resolve().parents[2] / "docs" / "renames.json").read_text())
NAMES: dict[str, str | dict[str, str]] = PAGE["names"]


def find(path: str) -> object:
    """What a dotted path names."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise LookupError(path)


def test_every_name_of_the_first_version_has_an_entry() -> None:
    """601 were counted in 0.1: what `ma.` answered, and what its modules and packages exported."""
    assert len(NAMES) == 601 and all(name.startswith("manyarms.") for name in NAMES)


@pytest.mark.parametrize("name", [name for name, now in NAMES.items() if isinstance(now, str)])
def test_a_new_place_is_there(name: str) -> None:
    now = NAMES[name]
    assert isinstance(now, str) and find(now) is not None


def test_what_is_gone_says_why() -> None:
    gone = {name: now for name, now in NAMES.items() if not isinstance(now, str)}
    assert gone and all(set(now) == {"gone"} and len(now["gone"]) > 5 for now in gone.values())
