"""Requests made from the API's own description, of all kinds and in any order; `make torture` sends 100,000.

Every answer is as it should be (`service.fuzz_checks`), as the description says, and the store replays afterwards.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import httpx
import pytest

from service import fuzz_checks, fuzzing
from service.server import TESTS, environment

# of schemathesis and what it uses, not of ours
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::DeprecationWarning:{package}")
    for package in ("schemathesis", "jsonschema", "requests")
]


def fuzzed(folder: Path, requests: int, **kind: bool) -> Counter[str]:
    with fuzzing.within(folder, **kind) as fuzz:
        fuzz.run(requests)
    assert fuzz.failures == {}, fuzzing.report(fuzz.statuses, fuzz.failures)
    assert fuzzing.replays(folder) == []
    assert fuzz.unsent < requests / 10
    return fuzz.statuses


def test_the_whole_api(tmp_path: Path) -> None:
    statuses = fuzzed(tmp_path, 450)
    assert any(what.endswith(" 200") for what in statuses) and any(what.endswith(" 422") for what in statuses)


def test_personalizers_calls(tmp_path: Path) -> None:
    statuses = fuzzed(tmp_path, 200, personalizer=True)
    assert any("/personalizer/" in what for what in statuses)


def test_with_keys(tmp_path: Path) -> None:
    statuses = fuzzed(tmp_path, 120, keys=True)
    assert any(what.endswith(" 401") for what in statuses)


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--in-process"], []], ids=["in this process", "a server"])
def test_thousands(options: list[str]) -> None:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "service.fuzzing",
        "--requests",
        "6000",
        "--seconds",
        "600",
        *options,
    ]
    run = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=1800, env=environment())
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-4000:]


# ---- the checks see what they are for


def wrong_with(status: int, body: object = None, path: str = "/v1/decide", **headers: str) -> list[str]:
    request = httpx.Request("POST", f"http://localhost{path}")
    given = {
        **fuzz_checks.HEADERS,
        "x-request-id": "abc",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return fuzz_checks.wrong_with(httpx.Response(status, headers=given, json=body, request=request))


PROBLEM = {"type": "about:blank", "title": "t", "status": 422, "detail": "d", "instance": "urn:manyarms:request:abc"}
AS = {"content_type": fuzz_checks.PROBLEM}


def test_an_answer_as_it_should_be_has_nothing_wrong() -> None:
    assert wrong_with(200, {}) == [] and wrong_with(422, PROBLEM, **AS) == []
    assert wrong_with(404, {"error": {"code": "c", "message": "m"}}, "/personalizer/v1.0/rank") == []


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (wrong_with(500, {**PROBLEM, "status": 500}, **AS), "a failure of the server"),
        (wrong_with(422, PROBLEM), "a refusal as 'application/json'"),
        (wrong_with(422, {**PROBLEM, "detail": ""}, **AS), "a problem without detail"),
        (wrong_with(422, {**PROBLEM, "status": 400}, **AS), "a problem of status 400"),
        (wrong_with(422, {**PROBLEM, "type": "https://x"}, **AS), "a problem of type"),
        (wrong_with(422, {**PROBLEM, "instance": "urn:manyarms:request:other"}, **AS), "names another request"),
        (wrong_with(422, {**PROBLEM, "detail": 'File "x", line 3'}, **AS), "in a refusal"),
        (wrong_with(422, {**PROBLEM, "detail": f"got {fuzz_checks.SECRET}"}, **AS), "repeats the context"),
        (wrong_with(200, {"decisions": [{"detail": fuzz_checks.SECRET_NUMBER}]}), "repeats the context"),
        (wrong_with(429, {**PROBLEM, "status": 429}, **AS), "no Retry-After"),
        (wrong_with(200, {}, x_request_id=""), "no X-Request-Id"),
        (wrong_with(200, {}, x_frame_options="ALLOW"), "x-frame-options"),
        (wrong_with(204, {}), "a body where there is none"),
        (wrong_with(404, PROBLEM, "/personalizer/v1.0/rank"), "another form than Personalizer's"),
    ],
)
def test_the_checks_find(found: list[str], wrong: str) -> None:
    assert any(wrong in one for one in found), found
