"""Keys, sizes and rates: what the service itself refuses has Personalizer's form under its paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyarms.errors import StorageError, StoreUnavailable
from manyarms.service import Service, create_app, make_config
from manyarms.service.keys import Keys
from manyarms.service.personalizer import default_agent
from service.personalizer.calling import asking, serving
from service.personalizer.test_refusals import refused

KEY = "Ocp-Apim-Subscription-Key"


def test_the_key_comes_in_personalizers_header(tmp_path: Path) -> None:
    keys = Keys.open(tmp_path / "keys.json", make=True)
    text = keys.add("shop", ["decide", "reward"])
    with serving(default_agent(seed=0), keys=keys) as service:
        for headers in ({}, {KEY: "another"}):
            for preview in (False, True):
                answer = service.call("POST", "/rank", asking(), preview, headers=headers)
                assert answer.status_code == 401
                error = answer.json()["error"]
                assert error["code"] == "401"
                assert KEY in error["message"]  # what is missing is named
        answer = service.call("POST", "/rank", asking(eventId="one"), headers={KEY: text})
        assert answer.status_code == 201
        assert service.call("POST", "/events/one/reward", {"value": 1}, headers={KEY: text}).status_code == 204
        answer = service.call("GET", "/configurations/service", headers={KEY: text})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "403")


@pytest.mark.parametrize("preview", [False, True], ids=["v1.0", "preview"])
def test_bodies_that_are_too_large(preview: bool) -> None:
    with serving() as service:
        answer = service.call("POST", "/rank", asking(contextFeatures=[{"a": "x" * 20_000_000}]), preview)
        refused(answer, 413, "PayloadSizeExceeded", None, preview)


def test_too_many_requests() -> None:
    with serving(rate=1.0, burst=2) as service:
        answers = [service.call("POST", "/rank", asking()) for _ in range(8)]
        last = next(answer for answer in answers if answer.status_code != 201)
        assert last.status_code == 429
        assert last.json()["error"]["code"] == "429"
        assert int(last.headers["retry-after"]) >= 1


def test_unexpected_errors_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as service:
        monkeypatch.setattr(service.live, "submit_decision", lambda **_: 1 / 0)
        answer = service.call("POST", "/rank", asking(), preview=True)
        assert answer.status_code == 500
        assert answer.json()["error"]["code"] == answer.headers["x-ms-error-code"] == "InternalServerError"
        assert "division" not in answer.text


def test_a_store_that_is_out_of_reach_or_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as service:
        for error, status in ((StoreUnavailable("no disk"), 503), (StorageError("/a/path is damaged"), 500)):

            def fails(error: Exception = error, **_: object) -> None:
                raise error

            monkeypatch.setattr(service.live, "submit_decision", fails)
            answer = service.call("POST", "/rank", asking(), preview=True)
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, "InternalServerError")
            assert "/a/path" not in answer.text
            assert ("retry-after" in answer.headers) is (status == 503)


def test_the_api_description_has_every_path() -> None:
    with serving() as service:
        config = make_config({}, {"store": "in this process", "personalizer": True})
        paths = create_app(Service(service.live, config, owned=False)).openapi()["paths"]
        assert {"201", "400", "409"} <= paths["/personalizer/v1.0/rank"]["post"]["responses"].keys()
        named = paths["/personalizer/multislot/events/{eventId}/reward"]["post"]["parameters"]
        assert [one["name"] for one in named] == ["eventId", "api-version"]
