"""What a call is: the request it makes of its arguments, and the result it makes of the answer. Written once, for both clients.

    class Deciding:
        @call
        def activate(self, event: str) -> Call[None]:
            return Call("POST", "/v1/activate", body={"event": event}, read=nothing, again=True)

`Client().activate(event)` sends it and gives the result; `AsyncClient().activate(event)` is awaited for it. What gives a list
by pages is marked `pages`: it is iterated over, with `for` or with `async for`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from manyarms._base.typing import JSON

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Answer:
    """What came back: the status, the headers by their names in small letters, and the body."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True)
class Call(Generic[T_co]):
    """One request, and how its answer is read.

    method, path, query, headers: of the request; body: its JSON. read: the result of an answer that is no error.
    again: whether it may be sent twice, because it changes nothing or has ids. unfinished: whether an answer has entries
    that should be asked for again. fine: statuses that are no errors,
    beside those from 200 to 299. known: the result where nothing need be sent for it.
    """

    method: str
    path: str
    read: Callable[[Answer], T_co]
    body: JSON = None
    query: Mapping[str, str | int | float] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    again: bool = False
    unfinished: Callable[[T_co], bool] | None = None
    fine: tuple[int, ...] = ()
    known: T_co | None = None


@dataclass(frozen=True)
class Page(Generic[T_co]):
    """Some entries of a list, and the call for those that follow; None after the last."""

    entries: tuple[T_co, ...]
    following: Call[Page[T_co]] | None


class SendsNow(Protocol):
    """What sends a call and waits for its result."""

    def _send(self, call: Call[T]) -> T: ...


class SendsLater(Protocol):
    """What sends a call when it is awaited."""

    async def _send_later(self, call: Call[T]) -> T: ...


class _Described(Generic[P, T]):
    """A method of both clients; on the class itself, a function with the signature and the docstring of its description."""

    def __init__(self, describe: Callable[Concatenate[Any, P], T]) -> None:
        self._describe = describe
        update_wrapper(cast("Callable[..., object]", self), describe)

    @cached_property
    def _signature(self) -> inspect.Signature:
        """That of the description, and what it gives: of Call[X] the X."""
        found = inspect.signature(self._describe)
        gives = str(found.return_annotation)
        for outer in ("Call[", "Page["):
            if gives.startswith(outer):
                gives = gives[len(outer) : -1]
        return found.replace(return_annotation=gives)

    def _dressed(self, function: Any, client: object) -> Any:
        """A function that looks like its description."""
        update_wrapper(function, self._describe)
        del function.__wrapped__  # its signature would win
        given = list(self._signature.parameters.values())
        function.__signature__ = self._signature.replace(parameters=given if client is None else given[1:])
        return function

    def _unbound(self) -> Any:
        """The method as an attribute of the class: its first argument is a client."""
        name = self._describe.__name__

        def method(client: object, *arguments: object, **options: object) -> object:
            return getattr(client, name)(*arguments, **options)

        return self._dressed(method, None)


class call(_Described[P, Call[T]]):
    """A method that sends one call."""

    @overload
    def __get__(self, client: None, owner: type) -> Callable[..., object]: ...
    @overload
    def __get__(self, client: SendsNow, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: SendsLater, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: type) -> object:
        describe = self._describe
        if client is None:
            return self._unbound()
        if hasattr(client, "_send_later"):

            async def later(*arguments: P.args, **options: P.kwargs) -> T:
                return cast(T, await client._send_later(describe(client, *arguments, **options)))

            return self._dressed(later, client)

        def now(*arguments: P.args, **options: P.kwargs) -> T:
            return cast(T, client._send(describe(client, *arguments, **options)))

        return self._dressed(now, client)


class pages(_Described[P, Call[Page[T]]]):
    """A method that iterates over the entries of a list, page by page."""

    @overload
    def __get__(self, client: None, owner: type) -> Callable[..., object]: ...
    @overload
    def __get__(self, client: SendsNow, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: SendsLater, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Any, owner: type) -> object:
        describe = self._describe
        if client is None:
            return self._unbound()
        if hasattr(client, "_send_later"):

            async def later(*arguments: P.args, **options: P.kwargs) -> AsyncIterator[T]:
                following: Call[Page[T]] | None = describe(client, *arguments, **options)
                while following is not None:
                    page: Page[T] = await client._send_later(following)
                    for entry in page.entries:
                        yield entry
                    following = page.following

            return self._dressed(later, client)

        def now(*arguments: P.args, **options: P.kwargs) -> Iterator[T]:
            following: Call[Page[T]] | None = describe(client, *arguments, **options)
            while following is not None:
                page: Page[T] = client._send(following)
                yield from page.entries
                following = page.following

        return self._dressed(now, client)


__all__ = ["Answer", "Call", "Page", "call", "pages"]
