"""Answers of the service as results with types: fields are checked, unknown ones left out, missing ones named.

A result is a frozen dataclass whose annotations, types and not strings, say what its fields may be. A field that has a default
may be missing. `field(metadata={AS_IT_IS: True})` takes any JSON, `field(metadata={WHOLE: True})` the whole object.

    read(ServiceSettings, {"aggregate": "sum", "default": None, "wait": 60, "reward_range": [0, 1], "new": 1})
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, Union, cast, get_args, get_origin

from manyarms._base.typing import JSON

Result = TypeVar("Result")

WHOLE, AS_IT_IS = "whole", "as it is"
_PLAIN = {str: "a text", bool: "true or false", int: "an integer", float: "a number", types.NoneType: "null"}


class Unreadable(Exception):
    """An answer that is not what was expected; the message says where."""


def parsed(content: bytes) -> JSON:
    """The JSON of an answer's body."""
    try:
        found: JSON = json.loads(content.decode("utf-8"), parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the body is not JSON ({len(content):,} bytes): {error}") from None
    return found


def _refused(name: str) -> JSON:
    raise ValueError(f"{name} is no number of JSON")


def read(kind: type[Result], value: JSON, where: str = "the answer") -> Result:
    """`value` as a result of this class."""
    return cast(Result, _read(kind, value, where))


def member(value: JSON, name: str) -> JSON:
    """A field of the answer that must be there."""
    if not isinstance(value, Mapping):
        raise Unreadable(f"the answer: expected an object, got {_said(value)}")
    if name not in value:
        raise Unreadable(f"the answer has no field {name!r}")
    return value[name]


def listed(value: JSON, name: str) -> list[JSON]:
    """A field of the answer that must be a list."""
    found = member(value, name)
    if not isinstance(found, list):
        raise Unreadable(f"{name}: expected a list, got {_said(found)}")
    return found


def _read(kind: Any, value: JSON, where: str) -> object:
    if is_dataclass(kind):
        return _record(cast(type, kind), value, where)
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _one_of(inside, value, where)
    if origin is tuple:
        return _tuple(inside, value, where)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise Unreadable(f"{where}: expected an object, got {_said(value)}")
        return {name: _read(inside[1], one, f"{where}.{name}") for name, one in value.items()}
    return _plain(kind, value, where)


def _record(kind: type, value: JSON, where: str) -> object:
    if not isinstance(value, Mapping):
        raise Unreadable(f"{where}: expected an object, got {_said(value)}")
    found: dict[str, object] = {}
    for field in fields(cast(Any, kind)):
        if field.metadata.get(WHOLE):
            found[field.name] = dict(value)
        elif field.name in value and field.metadata.get(AS_IT_IS):
            found[field.name] = value[field.name]
        elif field.name in value:
            found[field.name] = _read(field.type, value[field.name], f"{where}.{field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise Unreadable(f"{where} has no field {field.name!r}")
    return kind(**found)


def _one_of(kinds: tuple[Any, ...], value: JSON, where: str) -> object:
    said = []
    for kind in kinds:
        try:
            return _read(kind, value, where)
        except Unreadable as error:
            said.append(error)
    if len(kinds) == 2 and types.NoneType in kinds:  # what is wrong inside it says more than that it is not null
        raise said[kinds.index(types.NoneType) ^ 1]
    wanted = " or ".join(_PLAIN.get(kind, "an object") for kind in kinds)
    raise Unreadable(f"{where}: expected {wanted}, got {_said(value)}")


def _tuple(inside: tuple[Any, ...], value: JSON, where: str) -> object:
    if not isinstance(value, list):
        raise Unreadable(f"{where}: expected a list, got {_said(value)}")
    if len(inside) == 2 and inside[1] is Ellipsis:
        inside = (inside[0],) * len(value)
    if len(inside) != len(value):
        raise Unreadable(f"{where}: expected a list of {len(inside)}, got one of {len(value)}")
    return tuple(_read(kind, one, f"{where}[{i}]") for i, (kind, one) in enumerate(zip(inside, value, strict=True)))


def _plain(kind: Any, value: JSON, where: str) -> object:
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an integer of 400 digits
            number = math.inf
        if math.isfinite(number):
            return number
        fits = False
    if not fits:
        raise Unreadable(f"{where}: expected {_PLAIN[kind]}, got {_said(value)}")
    return value


def _said(value: JSON) -> str:
    """What came, in short: the kind of it, never the whole."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value) if not isinstance(value, int) or abs(value) < 10**40 else "a very large integer"
    return text if len(text) <= 40 else f"{text[:37]}..."


__all__ = ["AS_IT_IS", "WHOLE", "Unreadable", "listed", "member", "parsed", "read"]
