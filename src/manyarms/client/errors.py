"""The exceptions of the client: those of a live store in this process where there is one, and what only a network adds.

ServiceError                a LiveError: the service did not do it, or its answer cannot be read; .status, .problem, .request_id
├── Unreachable             no answer: no connection, or it broke, or took too long
├── Unauthorised            401 and 403: no key, an unknown one, or one that may not do this
├── RemoteConflict          a manyarms.errors.Conflict
├── RemoteUnknownEvent      a manyarms.errors.UnknownEvent
├── RemoteOverloaded        a manyarms.errors.Overloaded
├── RemoteStoreUnavailable  a manyarms.errors.StoreUnavailable
└── RemoteInvalidInput      a manyarms.errors.InvalidInput, with .argument and .expected
    └── RemoteUnknownAction a manyarms.errors.UnknownAction

A caller catches `Conflict` or `UnknownEvent` as it would in process; the Remote classes add what is known of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from manyarms._base.typing import JSON, Spec
from manyarms.errors import (
    Conflict,
    InvalidInput,
    LiveError,
    Overloaded,
    StoreUnavailable,
    UnknownAction,
    UnknownEvent,
)


class ServiceError(LiveError):
    """A call that the service did not serve, or whose answer cannot be read.

    status: of the answer; None without one. problem: the body of the answer where it is an RFC 9457 problem, else empty.
    request_id: under which the service's log has the call; None where it was not told. retry_after: seconds that the
    service asks for before another try; None where it does not.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        problem: Mapping[str, JSON] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        Exception.__init__(self, message)  # the classes beside this one want other arguments
        self.status = status
        self.problem: Spec = dict(problem or {})
        self.request_id = request_id
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), str(self), dict(vars(self)))


class Unreachable(ServiceError):
    """No answer came. Whether the service has done what was asked is unknown, but where no connection was made.

    decide and reward may be called again with the same ids: they are counted once.
    """


class Unauthorised(ServiceError):
    """The service wants a key, does not know this one, or does not let it do this."""


class RemoteConflict(ServiceError, Conflict):
    """An id that was used before, for something else: the first use stands."""


class RemoteUnknownEvent(ServiceError, UnknownEvent):
    """No decision has this id: it was never made, or its record has been compacted or erased."""


class RemoteOverloaded(ServiceError, Overloaded):
    """Too much at once, for the service or for this key. Nothing of the call was kept; it may be tried again later."""


class RemoteStoreUnavailable(ServiceError, StoreUnavailable):
    """The service cannot read or write its store now. Nothing of the call was kept; it may be tried again."""


class RemoteInvalidInput(ServiceError, InvalidInput):
    """An argument that the service refuses.

    argument, expected: as the service names them; `came` is None, as it does not send back what came.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        problem: Mapping[str, JSON] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status=status, problem=problem, request_id=request_id, retry_after=retry_after)
        argument, expected = self.problem.get("argument"), self.problem.get("expected")
        self.argument = argument if isinstance(argument, str) else "request"
        self.expected = expected if isinstance(expected, str) else message
        self.came = None


class RemoteUnknownAction(RemoteInvalidInput, UnknownAction):
    """An action id that does not exist, is retired, or is given twice."""


def _again(kind: type[ServiceError], message: str, state: dict[str, object]) -> ServiceError:
    """An error that was sent to another process."""
    made = kind(message)
    vars(made).update(state)
    return made


__all__ = [
    "RemoteConflict",
    "RemoteInvalidInput",
    "RemoteOverloaded",
    "RemoteStoreUnavailable",
    "RemoteUnknownAction",
    "RemoteUnknownEvent",
    "ServiceError",
    "Unauthorised",
    "Unreachable",
]
