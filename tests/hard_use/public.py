"""What is public, found by introspection: what `manyarms`, and its topic packages export."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from itertools import chain
from types import ModuleType
from typing import Any

import manyarms


def _names(module: ModuleType) -> list[str]:
    return list(getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")])


def _walk(module: ModuleType, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name in sorted(_names(module)):
        try:
            value = getattr(module, name)
        except manyarms.errors.MissingExtra:
            continue
        if inspect.ismodule(value):
            if depth and value.__name__.startswith("manyarms."):
                yield from _walk(value, f"{prefix}{name}.", depth - 1)
        elif str(getattr(value, "__module__", "")).startswith("manyarms"):
            yield prefix + name, value


# documented modules that no topic exports
BESIDE = ("service.keys",)


def _beside() -> Iterator[tuple[str, Any]]:
    for package in BESIDE:
        yield from _walk(importlib.import_module(f"manyarms.{package}"), f"{package}.", 0)


def everything() -> dict[str, Any]:
    """Public classes and functions by the shortest name that a user can write after `manyarms.`."""
    found: dict[int, tuple[str, Any]] = {}
    for name, value in chain(_walk(manyarms, "", 2), _beside()):
        known = found.get(id(value))
        if callable(value) and (known is None or name.count(".") < known[0].count(".")):
            found[id(value)] = (name, value)
    return dict(found.values())


def is_protocol(value: Any) -> bool:
    """What is described here for others to implement, and cannot be called."""
    return inspect.isclass(value) and (getattr(value, "_is_protocol", False) or inspect.isabstract(value))


def is_alias(value: Any) -> bool:
    """A name for a type, such as `Union[...]` or a new type."""
    return not inspect.isclass(value) and not inspect.isroutine(value)


def annotation_of(parameter: inspect.Parameter) -> str:
    """A parameter's annotation as text."""
    note = parameter.annotation
    return (
        ""
        if note is inspect.Parameter.empty
        else note
        if isinstance(note, str)
        else getattr(note, "__name__", str(note))
    )


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that can be given by name, without `self`."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    listed = inspect.signature(function).parameters
    return {name: p for name, p in listed.items() if p.kind in kinds and name not in ("self", "cls")}


def methods_of(value: type) -> dict[str, Any]:
    """Public methods, the inherited ones too; also the class methods that make an instance."""
    found = {}
    for name, member in inspect.getmembers(value):
        if not name.startswith("_") and (inspect.isfunction(member) or inspect.ismethod(member)):
            found[name] = member
    return found


def _types_in(note: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", note))


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def results(public: dict[str, Any]) -> set[str]:
    """Records that are made by the library alone: a function, or a field of such a record, gives one, and nothing asks for one.

    An agent or a policy is no record: functions give them too, and they are there to be made and used.
    """
    classes = {value.__name__: value for value in public.values() if inspect.isclass(value)}
    records = {name for name, value in classes.items() if dataclasses.is_dataclass(value)}
    given, asked = set[str](), set[str]()
    for value in public.values():
        if is_alias(value) or is_protocol(value) or (inspect.isclass(value) and issubclass(value, BaseException)):
            continue
        for function in methods_of(value).values() if inspect.isclass(value) else [value]:
            if (signature := _signature(function)) is not None:
                note = signature.return_annotation
                given |= _types_in(note if isinstance(note, str) else getattr(note, "__name__", ""))
                asked |= {name for p in parameters_of(function).values() for name in _types_in(annotation_of(p))}
    found = records & (given - asked)
    while True:
        fields = {name for one in found for f in dataclasses.fields(classes[one]) for name in _types_in(str(f.type))}
        more = (records & (fields - asked)) - found
        if not more:
            return found
        found |= more
