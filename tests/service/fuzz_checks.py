"""What must be true of every answer of the service, whatever was asked: beside the checks of schemathesis, our own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

import manyarms

PROBLEM = "application/problem+json"
OF_THIS_MACHINE = (
    "Traceback (most", 'File "', "site-packages", ".py", str(Path(manyarms.__file__).parent), str(Path.home()), "/tmp/",
    "SELECT ", "INSERT ",
)  # fmt: skip
SECRET, SECRET_NUMBER = "a secret of the context", 87654.321987654
"""What contexts that do not fit are made of: it is in no answer to whoever sends it."""
HEADERS = {"x-content-type-options": "nosniff", "x-frame-options": "DENY", "referrer-policy": "no-referrer"}


def wrong_with(response: httpx.Response) -> list[str]:
    """What is wrong with an answer."""
    return [*_of_any(response), *(_of_refusal(response) if response.status_code >= 400 else ())]


def _of_any(response: httpx.Response) -> Iterator[str]:
    if response.status_code >= 500:
        yield f"a failure of the server: {response.status_code}"
    if not response.headers.get("x-request-id"):
        yield "no X-Request-Id"
    for name, value in HEADERS.items():
        if response.headers.get(name) != value:
            yield f"{name} is {response.headers.get(name)!r}"
    if response.headers.get("content-type", "").partition(";")[0].endswith("json"):
        try:
            json.loads(response.content, parse_constant=_refuse)
        except ValueError as error:
            yield f"not JSON: {error}"
    if response.request.method != "GET" and any(secret in response.text for secret in (SECRET, str(SECRET_NUMBER))):
        yield "the answer repeats the context"
    if response.status_code in (204, 304) and response.content:
        yield "a body where there is none"


def _of_refusal(response: httpx.Response) -> Iterator[str]:
    try:
        told = response.json()
    except ValueError:
        yield "a refusal without JSON"
        return
    if response.request.url.path.startswith("/personalizer/"):
        yield from _of_personalizer(told)
    else:
        yield from _of_problem(response, told)
    text = "\n".join(_texts(told))
    yield from (f"{mark!r} in a refusal" for mark in OF_THIS_MACHINE if mark in text)


def _of_problem(response: httpx.Response, told: Any) -> Iterator[str]:
    if response.headers.get("content-type") != PROBLEM:
        yield f"a refusal as {response.headers.get('content-type')!r}"
    if not isinstance(told, dict):
        yield "a refusal that is no problem"
        return
    for name in ("type", "title", "detail", "instance"):
        if not isinstance(told.get(name), str) or not told[name]:
            yield f"a problem without {name}"
    if told.get("status") != response.status_code:
        yield f"a problem of status {told.get('status')!r}"
    if told.get("type") != "about:blank" and not str(told.get("type")).startswith("urn:manyarms:problem:"):
        yield f"a problem of type {told.get('type')!r}"
    if told.get("instance") != f"urn:manyarms:request:{response.headers.get('x-request-id')}":
        yield "a problem that names another request"
    if response.status_code in (429, 503) and not response.headers.get("retry-after"):
        yield "no Retry-After"


def _of_personalizer(told: Any) -> Iterator[str]:
    error = told.get("error") if isinstance(told, dict) else None
    if not isinstance(error, dict) or not all(isinstance(error.get(name), str) for name in ("code", "message")):
        yield "an error of another form than Personalizer's"


def _texts(told: object) -> Iterator[str]:
    """All texts of an answer."""
    if isinstance(told, dict | list):
        for one in [*told, *told.values()] if isinstance(told, dict) else told:
            yield from _texts(one)
    else:
        yield str(told)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
