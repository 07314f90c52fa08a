"""Errors as clients get them: problem details (RFC 9457), one table from our exceptions to statuses.

A problem says what was wrong with the request, never where in the code it was found. What a client sent is not sent back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException

from manyarms.errors import (
    Conflict,
    InvalidInput,
    LiveError,
    ManyArmsError,
    Overloaded,
    StorageError,
    StoreUnavailable,
    UnknownAction,
    UnknownEvent,
)
from manyarms.service.request_log import logger

MEDIA_TYPE = "application/problem+json"
Refusal = tuple[int, dict[str, Any], dict[str, str]]
"""Status, body and headers."""
RETRY_AFTER = 1  # seconds
# the first that fits counts: name of the problem, status, title
TABLE: tuple[tuple[type[ManyArmsError], str, int, str], ...] = (
    (UnknownAction, "unknown-action", 422, "No such action, or not one that can be chosen"),
    (InvalidInput, "invalid-input", 422, "The request does not fit"),
    (UnknownEvent, "unknown-event", 404, "No such event"),
    (Conflict, "conflict", 409, "The id was used for something else"),
    (Overloaded, "overloaded", 503, "Too much is waiting"),
    (StoreUnavailable, "store-unavailable", 503, "The store cannot be reached"),
    (LiveError, "refused", 409, "It cannot be done as things are"),
    (StorageError, "storage", 500, "The store refuses"),
    (ManyArmsError, "refused", 400, "The request is refused"),
)
NAMES = {"x": "context"}
"""Arguments that requests call otherwise."""
TITLES = {
    400: "Bad request",
    401: "A key is needed",
    403: "Not with this key",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "It cannot be done as things are",
    413: "Too large",
    415: "Not JSON",
    421: "Another host was meant",
    422: "The request does not fit",
    429: "Too many requests",
    500: "Unexpected error",
    503: "Not now",
}


class Problem(HTTPException):
    """A refusal with a status of its own; `extra` are further members of the problem's body."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.name = name
        self.extra = extra


def unexpected(name: object) -> Problem:
    """What a client is told of an error that nobody thought of: under which request the log has it."""
    return Problem(500, f"an unexpected error; the service's log has it under request {name}")


def body_of(
    status: int, detail: str, *, name: str | None = None, title: str | None = None, **extra: Any
) -> dict[str, Any]:
    """The members of a problem."""
    return {
        "type": "about:blank" if name is None else f"urn:manyarms:problem:{name}",
        "title": title or TITLES.get(status, "Refused"),
        "status": status,
        "detail": detail,
        **extra,
    }


def of_error(error: ManyArmsError, request: object = None) -> Refusal:
    """Status, body and headers of one of our errors. What a client is not told of the store goes into the service's log.

    request: its id.
    """
    name, status, title = next(row[1:] for row in TABLE if isinstance(error, row[0]))
    extra: dict[str, Any] = {}
    detail = str(error)
    if isinstance(error, InvalidInput):  # without what came, which may be a context
        argument = NAMES.get(error.argument, error.argument)
        extra = {"argument": argument, "expected": error.expected}
        detail = f"{argument}: expected {error.expected}"
    if isinstance(error, StorageError):  # which names paths of this machine, or the database's
        detail = "the store cannot be reached" if status == 503 else "the store refuses"
        detail += ": the service's own log says why"
        how = logging.ERROR if status == 500 else logging.WARNING
        told = {"request": request, "reason": str(error)}
        logger().log(how, "storage", extra=told, exc_info=error if status == 500 else None)
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else {}
    return status, body_of(status, detail, name=name, title=title, **extra), headers


def of_http(error: HTTPException) -> Refusal:
    """The same of a refusal of the framework's, or a `Problem`."""
    name, extra = getattr(error, "name", None), getattr(error, "extra", {})
    detail = str(error.detail or TITLES.get(error.status_code, ""))
    return error.status_code, body_of(error.status_code, detail, name=name, **extra), dict(error.headers or {})


def of_form(mistakes: Sequence[Any]) -> Refusal:
    """The same of a body or of parameters that do not have the form they should; what came is not repeated."""
    if any(one.get("type") == "json_invalid" for one in mistakes):
        return of_http(Problem(400, "the body is not JSON", name="not-json"))
    told = [{"where": ".".join(map(str, one["loc"])) or "body", "problem": str(one["msg"])} for one in mistakes[:20]]
    first = f"{told[0]['where']}: {told[0]['problem']}" if told else "the request does not have the form it should"
    more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
    return 422, body_of(422, first + more, name="invalid-input", title="The request does not fit", errors=told), {}


def require_json(content_type: str | None) -> None:
    """Refuse a body that is said to be of another type than JSON, or of none."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Problem(415, "expected a body with Content-Type: application/json", name="not-json")


__all__ = [
    "MEDIA_TYPE", "TABLE", "Problem", "Refusal", "body_of", "of_error", "of_form", "of_http", "require_json", "unexpected",
]  # fmt: skip
