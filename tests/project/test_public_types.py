"""What is public says what it takes and gives: no `Any` in its signatures, nor behind a name of ours."""

from __future__ import annotations

import importlib
import inspect
import re
import typing
from collections.abc import Iterator

import pytest

import manyarms as ma
from manyarms._base import typing as ours

ANY = re.compile(r"\bAny\b")
# only the folder knows what is in it; `load(folder, ma.Agent)` has a type
KNOWN = {"manyarms.load: expected", "manyarms.load: return"}


def _functions(kind: type) -> Iterator[tuple[str, object]]:
    for name, member in vars(kind).items():
        if name.startswith("_") and name not in ("__init__", "__new__", "__call__", "__getitem__"):
            continue
        if isinstance(member, property):
            member = member.fget
        elif isinstance(member, classmethod | staticmethod):
            member = member.__func__
        if inspect.isfunction(member):
            yield f"{kind.__name__}.{name}", member


def signatures() -> Iterator[tuple[str, str]]:
    """Every annotation of what is public, with where it stands."""
    for topic in (ma, *(importlib.import_module(f"manyarms.{name}") for name in ma._TOPICS)):
        for name in topic.__all__:
            thing = getattr(topic, name)
            if inspect.isfunction(thing):
                found: list[tuple[str, object]] = [(name, thing)]
            elif inspect.isclass(thing):
                own = [kind for kind in thing.__mro__ if kind.__module__.startswith("manyarms")]
                found = [pair for kind in own for pair in _functions(kind)]
                for kind in own:
                    fields = vars(kind).get("__annotations__", {})
                    yield from (
                        (f"{topic.__name__}.{kind.__name__}: {field}", str(said))
                        for field, said in fields.items()
                        if not field.startswith("_")
                    )
            else:
                continue
            for where, function in found:
                for argument, said in function.__annotations__.items():
                    yield f"{topic.__name__}.{where}: {argument}", str(said)


def test_no_public_signature_says_any() -> None:
    loose = {where for where, said in signatures() if ANY.search(said)}
    assert loose == KNOWN


def test_every_argument_of_a_public_function_has_a_type() -> None:
    for topic in (ma, *(importlib.import_module(f"manyarms.{name}") for name in ma._TOPICS)):
        for name in topic.__all__:
            thing = getattr(topic, name)
            if inspect.isfunction(thing) and thing.__module__.startswith("manyarms"):
                missing = set(inspect.signature(thing).parameters) - set(thing.__annotations__)
                assert not missing and "return" in thing.__annotations__, (name, missing)


@pytest.mark.parametrize("name", [name for name in ours.__all__ if name != "loose"])
def test_no_name_of_ours_stands_for_any(name: str) -> None:
    assert getattr(ours, name) is not typing.Any
