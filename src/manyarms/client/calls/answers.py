"""Ways to read an answer, shared by calls: nothing, a record, a list, entries of a batch, a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from manyarms._base.typing import JSON
from manyarms.client.call import Answer
from manyarms.client.errors import ServiceError
from manyarms.client.problems import TRANSIENT, problem_error
from manyarms.client.reading import Unreadable, listed, member, parsed, read

T = TypeVar("T")


def nothing(answer: Answer) -> None:
    """Of a call that only has to be done."""


def a(kind: type[T]) -> Callable[[Answer], T]:
    """A record."""
    return lambda answer: read(kind, parsed(answer.content))


def several(name: str, kind: type[T]) -> Callable[[Answer], tuple[T, ...]]:
    """A list of records in a field of the answer."""

    def readers(answer: Answer) -> tuple[T, ...]:
        return tuple(read(kind, one, f"{name}[{i}]") for i, one in enumerate(listed(parsed(answer.content), name)))

    return readers


def following(answer: Answer, name: str) -> str | int | None:
    """Where the next page begins; None after the last."""
    found = member(parsed(answer.content), name)
    if isinstance(found, bool) or not isinstance(found, str | int | None):
        raise Unreadable(f"{name}: expected where the next page begins, or null")
    return found


def batch(
    name: str, number: int, what: str, entry: Callable[[JSON, str], T]
) -> Callable[[Answer], tuple[T | ServiceError, ...]]:
    """As many entries as were sent, each with a status of its own: a result or an error."""

    def one(value: JSON, where: str) -> T | ServiceError:
        status = value.get("status") if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or isinstance(status, bool) or not isinstance(status, int):
            raise Unreadable(f"{where}: expected an object with a status")
        if 200 <= status < 300:
            return entry(value, where)
        return problem_error(value, status, f"{what}, {where}")

    def readers(answer: Answer) -> tuple[T | ServiceError, ...]:
        entries = listed(parsed(answer.content), name)
        if len(entries) != number:
            raise Unreadable(f"{name}: expected {number} entries, got {len(entries)}")
        return tuple(one(value, f"{name}[{i}]") for i, value in enumerate(entries))

    return readers


def some_unfinished(entries: tuple[T | ServiceError, ...]) -> bool:
    """Whether entries of a batch were refused for now."""
    return any(isinstance(one, ServiceError) and one.status in TRANSIENT for one in entries)


__all__ = ["a", "batch", "following", "nothing", "several", "some_unfinished"]
