"""Answers that are errors, as exceptions: by the problem's type where the service names it, else by the status.

A 404 that does not name an unknown event is none: a wrong address must not look like events that are gone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from manyarms._base.text import shortened
from manyarms._base.typing import JSON
from manyarms.client.call import Answer, Call
from manyarms.client.errors import (
    RemoteConflict,
    RemoteInvalidInput,
    RemoteOverloaded,
    RemoteStoreUnavailable,
    RemoteUnknownAction,
    RemoteUnknownEvent,
    ServiceError,
    Unauthorised,
)
from manyarms.client.reading import Unreadable, parsed

TRANSIENT = frozenset({429, 502, 503, 504})  # what may be gone at the next try
LONGEST = 500  # letters of a message that somebody else wrote

# "urn:manyarms:problem:unknown-event", without the marks between words
BY_TYPE: Mapping[str, type[ServiceError]] = {
    "invalidinput": RemoteInvalidInput,
    "unknownaction": RemoteUnknownAction,
    "unknownevent": RemoteUnknownEvent,
    "conflict": RemoteConflict,
    "overloaded": RemoteOverloaded,
    "storeunavailable": RemoteStoreUnavailable,
    "refused": ServiceError,  # a LiveError that is none of these
}
BY_STATUS: Mapping[int, type[ServiceError]] = {
    401: Unauthorised,
    403: Unauthorised,
    409: RemoteConflict,
    422: RemoteInvalidInput,
    429: RemoteOverloaded,
    503: RemoteOverloaded,
}


def error_of(call: Call[object], answer: Answer, retry_after: float | None = None) -> ServiceError:
    """The exception that an answer stands for."""
    try:
        body = parsed(answer.content)
    except Unreadable:
        body = None
    problem = body if isinstance(body, Mapping) else {}
    return problem_error(
        problem, answer.status, f"{call.method} {call.path}",
        request_id=answer.headers.get("x-request-id"), retry_after=retry_after,
    )  # fmt: skip


def problem_error(
    problem: Mapping[str, JSON],
    status: int,
    what: str,
    *,
    request_id: str | None = None,
    retry_after: float | None = None,
) -> ServiceError:
    """The exception of an RFC 9457 problem, of a whole answer or of an entry of a batch."""
    named = re.sub(r"[^a-z]", "", str(problem.get("type", "")).rpartition(":")[2].lower())
    kind = BY_STATUS.get(status, ServiceError)
    if kind is not Unauthorised:
        kind = BY_TYPE.get(named, kind)
    said = [text for name in ("title", "detail") if isinstance(text := problem.get(name), str) and text]
    if len(said) == 2 and said[0] in said[1]:
        del said[0]
    message = f"{what}: {status}" + (f", {shortened(': '.join(said), LONGEST)}" if said else "")
    instance = problem.get("instance")
    if request_id is None and isinstance(instance, str):
        request_id = instance
    return kind(message, status=status, problem=problem, request_id=request_id, retry_after=retry_after)


def refusal(message: str, answer: Answer) -> ServiceError:
    """The exception for an answer that cannot be read."""
    return ServiceError(
        f"{message}; is this the address of a decision service?",
        status=answer.status, request_id=answer.headers.get("x-request-id"),
    )  # fmt: skip


__all__ = ["TRANSIENT", "error_of", "problem_error", "refusal"]
