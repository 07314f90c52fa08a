"""Evaluations run one after the other, a few at most wait, and whatever happens to one, it ends."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from manyarms.service.personalizer import evaluating
from manyarms.service.personalizer.evaluations import MOST_RUNNING
from service.personalizer.calling import PATIENCE, asking, serving, until

CONTRACT = {"name": "all", "startTime": "2020-01-01T00:00:00Z", "endTime": "2120-01-01T00:00:00Z", "policies": []}


def test_a_few_wait_and_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()
    running: list[int] = [0]
    most: list[int] = [0]

    def slow(*_: Any) -> dict[str, Any]:
        running[0] += 1
        most[0] = max(most[0], running[0])
        assert let_go.wait(PATIENCE)
        running[0] -= 1
        raise RuntimeError("nobody thought of that")

    monkeypatch.setattr(evaluating, "evaluate", slow)
    with serving() as service:
        service.rank(asking())

        def begun(name: str) -> Any:
            return service.call("PUT", f"/evaluations/{name}", CONTRACT, preview=True)

        def told(name: str) -> str:
            return str(service.call("GET", f"/evaluations/{name}", preview=True).json()["status"])

        names = [f"e{number}" for number in range(MOST_RUNNING)]
        assert {begun(name).status_code for name in names} == {200}
        refused = begun("one-more")
        assert refused.status_code == 503 and refused.headers["Retry-After"]
        assert {told(name) for name in names} == {"Running"}
        let_go.set()
        until(lambda: {told(name) for name in names} == {"Failed"})
        assert most == [1]
        assert begun("one-more").status_code == 200
        until(lambda: told("one-more") == "Failed")
