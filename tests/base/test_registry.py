"""A registry finds parts by decorator, by the modules of a package, and by entry points of other distributions."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from manyarms._base.registry import Registry
from manyarms.errors import InvalidInput

MODULE = """
from {package} import PARTS

@PARTS.register({name!r})
def part():
    return {name!r}
"""


def test_a_decorator_enters_a_part_under_its_name_and_aliases() -> None:
    registry: Registry[type] = Registry("shape", group="manyarms.test.none")

    @registry.register("round", "circular")
    class Round: ...

    assert registry["round"] is registry["circular"] is Round
    assert list(registry) == ["round"] and "circular" in registry and "square" not in registry


def test_a_part_knows_the_name_it_was_entered_under() -> None:
    registry: Registry[type] = Registry("shape", group="manyarms.test.none")

    @registry.register("round", "circular")
    class Round: ...

    class Rounder(Round): ...

    assert registry.name_of(Round) == "round"
    with pytest.raises(InvalidInput, match=r"a registered shape.*Rounder"):
        registry.name_of(Rounder)


def test_an_unknown_name_is_refused_with_the_known_and_the_nearest() -> None:
    registry: Registry[object] = Registry("shape", group="manyarms.test.none")
    registry.register("round")(object())
    with pytest.raises(InvalidInput, match=r"one of round.*did you mean round"):
        registry["rounded"]


def test_a_name_is_taken_once() -> None:
    registry: Registry[object] = Registry("shape", group="manyarms.test.none")
    registry.register("round")(int)
    registry.register("round")(int)  # the same part again: its module was imported twice
    with pytest.raises(InvalidInput, match="not taken"):
        registry.register("round")(float)
    with pytest.raises(InvalidInput, match="not taken"):
        registry.register("square", "round")(float)


def test_files_of_the_package_and_entry_points_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, group = "shapes_of_a_test", "manyarms.test.shapes"
    (tmp_path / package).mkdir()
    head = f"from manyarms._base.registry import Registry\nPARTS = Registry('shape', group={group!r}, package={package!r})\n"
    (tmp_path / package / "__init__.py").write_text(head)
    (tmp_path / package / "inside.py").write_text(MODULE.format(package=package, name="inside"))
    (tmp_path / "other_distribution.py").write_text(MODULE.format(package=package, name="outside"))
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = metadata.EntryPoint("outside", "other_distribution", group)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry])
    try:
        parts = __import__(package).PARTS
        assert "inside" not in vars(sys.modules[package]), "nothing is imported before the first look-up"
        assert parts["outside"]() == "outside" and sorted(parts) == ["inside", "outside"]
    finally:
        for name in (package, f"{package}.inside", "other_distribution"):
            sys.modules.pop(name, None)
