"""Errors as clients of Personalizer know them: {"error": {code, message, target, details, innerError}}.

The stable version knows three codes, the previews fifty: there `innerError` has the code that a preview would have told, here
the header x-ms-error-code repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from manyarms.errors import Conflict, ManyArmsError, UnknownEvent
from manyarms.service import problems
from manyarms.service.personalizer.versions import PREFIX, is_stable

# what is said where nobody has said more
CODES = {
    400: "BadRequest",
    401: "401",
    403: "403",
    404: "ResourceNotFound",
    405: "BadRequest",
    409: "BadRequest",
    413: "PayloadSizeExceeded",
    415: "BadRequest",
    429: "429",
    500: "InternalServerError",
    503: "InternalServerError",
}
GATEWAY = {"401", "403", "429"}  # the gateway in front of Personalizer told its status as the code


class PersonalizerError(Exception):
    """A request that is refused. target: the part of the request that it is about."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        target: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.target = status, code, message, target
        self.headers = dict(headers or {})


def is_personalizer(path: str) -> bool:
    """Whether errors of this path have Personalizer's form."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def refused(
    request: Request,
    status: int,
    code: str | None = None,
    message: str = "",
    target: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer to a request that is refused; code: None for the usual one of a status."""
    status = 400 if status == 422 else status
    fine = code or CODES.get(status, "BadRequest" if status < 500 else "InternalServerError")
    stable = is_stable(request.scope["path"])
    coarse = fine
    if stable and fine not in GATEWAY:
        coarse = "ResourceNotFound" if status == 404 else "BadRequest" if status < 500 else "InternalServerError"
    body: dict[str, Any] = {
        "code": coarse,
        "message": message,
        "target": target,
        "details": [],
        "innerError": {"code": fine} if coarse != fine else None,
    }
    told = dict(headers or {})
    if not stable:
        told["x-ms-error-code"] = fine
    return JSONResponse({"error": body}, status, told)


def error_response(
    request: Request, status: int, problem: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    """The answer where the service itself refuses (no key, no such path, too large, too many, an unexpected error): the members
    of its problem details in Personalizer's form."""
    return refused(request, status, None, str(problem.get("detail", "")), problem.get("argument"), headers)


def of_exception(request: Request, error: PersonalizerError | ManyArmsError, code: str) -> Response:
    """The answer where a call refuses, or one of our errors came up; code: of what is wrong with such a request."""
    if isinstance(error, PersonalizerError):
        return refused(request, error.status, error.code, error.message, error.target, error.headers)
    status, body, headers = problems.of_error(error, request.scope.get("manyarms.request"))
    if status >= 500:
        return refused(request, status, None, body["detail"], None, headers)
    if isinstance(error, UnknownEvent):
        return refused(request, 404, "ResourceNotFound", body["detail"], "eventId")
    target = "eventId" if isinstance(error, Conflict) else body.get("argument")
    return refused(request, status, code, body["detail"], target)


__all__ = ["PersonalizerError", "error_response", "is_personalizer", "of_exception", "refused"]
