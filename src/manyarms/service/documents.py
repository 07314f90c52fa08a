"""What the API's description says of refusals, and how answers are written."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

from manyarms.service.bodies import ProblemBody
from manyarms.service.problems import MEDIA_TYPE

ABOUT = {
    400: "The request cannot be read",
    401: "No key, or one that is not known",
    403: "The key lacks the scope, or a page of another site asks",
    404: "No such event, action or arm",
    405: "No such method here",
    408: "The body came too slowly",
    409: "An id that was used for something else, or a state that does not allow it",
    413: "The body is too large",
    415: "The body is not JSON",
    421: "Called by a name that is not this service's",
    422: "The request does not fit: `detail` says where",
    429: "More requests than the caller may make",
    500: "An unexpected error",
    503: "Too much is waiting, or the store cannot be reached: try again later",
}
ALWAYS = (401, 403, 421, 422, 429, 503)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The statuses that a call may refuse with, beside those that every call may."""
    return {
        status: {
            "description": ABOUT[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemBody.__name__}"}}},
        }
        for status in sorted({*ALWAYS, *statuses})
    }


WITH_BODY = (400, 408, 413, 415)


class Json(Response):
    """JSON, written at once."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """As bytes; not-a-number becomes null, as JSON has none."""
        return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)


def empty() -> Response:
    """204."""
    return Response(status_code=204)


def names_tag(header: str | None, tag: str) -> bool:
    """Whether If-None-Match names the tag of what there is; the tag with its quotes."""
    tags = [one.strip().removeprefix("W/") for one in (header or "").split(",")]
    return "*" in tags or tag in tags


__all__ = ["ALWAYS", "WITH_BODY", "Json", "empty", "names_tag", "refusals"]
