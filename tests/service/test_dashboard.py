"""The dashboard's calls: the page is served as it is, needs no key and holds no figures; the figures need one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np
import pytest

import manyarms as ma
from manyarms.client import in_process
from manyarms.live import Live
from manyarms.service import create_app, make_config
from manyarms.service.calls.dashboard import ASSETS, PAGE
from manyarms.service.keys import Keys
from manyarms.service.runtime import Service

NAMES = ["plain", "a/b", "a/b/statistics", "<script>alert(1)</script>", "100 % ε?#&", "..", "item 6"]


def a_live(path: Path) -> Live:
    agent = ma.LinTS(ma.ActionPrior(len(NAMES), np.zeros(2), np.eye(2)), seed=0, catalogue=NAMES)
    return ma.live.open(path, agent, default=0.0, wait=0.0, reward_range=(0.0, 1.0), background=False)


class Dashboard:
    """A service on a store, its statistics followed by hand, and a client of it."""

    def __init__(self, path: Path, keys: Keys | None = None) -> None:
        self.live = a_live(path)
        self.service = Service(self.live, make_config({}, {"store": "here"}), keys=keys, owned=False)
        self.client = httpx.Client(
            transport=in_process(create_app(self.service)), base_url="http://localhost", timeout=60
        )

    def decide(self, action: str, reward: float | None = None) -> str:
        made = self.live.decide([1.0, 0.5], candidates=[action])
        if reward is not None:
            self.live.reward(made.id, reward)
        return made.id

    def get(self, path: str, **options: object) -> httpx.Response:
        self.service.statistics.catch_up()
        return self.client.get(path, **options)  # type: ignore[arg-type]


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Dashboard]:
    made = Dashboard(tmp_path / "live.db")
    yield made
    made.client.close()
    made.service.close()
    made.live.close()


# ---- the page


def test_every_file_of_the_page_is_served_and_nothing_else(dashboard: Dashboard) -> None:
    there = {one.name for one in files("manyarms.service.dashboard").iterdir() if not one.name.startswith("__")}
    assert there == {PAGE, *ASSETS}
    for path, kind in (
        ("/", "text/html; charset=utf-8"),
        *((f"/assets/{name}", kind) for name, kind in ASSETS.items()),
    ):
        answer = dashboard.client.get(path)
        assert answer.status_code == 200 and answer.headers["content-type"] == kind
        assert answer.headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-cache"
        tag = answer.headers["etag"]
        assert re.fullmatch(r'"[0-9a-f]{32}"', tag)  # strong
        again = dashboard.client.get(path, headers={"If-None-Match": f'"other", {tag}'})
        assert again.status_code == 304 and again.headers["etag"] == tag and not again.content
        assert dashboard.client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize("name", ["__init__.py", "nothing.js", "%2e%2e/keys.py", "..%2fkeys.py", "app.js%00", PAGE])
def test_no_other_file_can_be_had(dashboard: Dashboard, name: str) -> None:
    assert dashboard.client.get(f"/assets/{name}").status_code == 404


def test_the_page_needs_nothing_from_elsewhere_and_has_nothing_inline() -> None:
    texts = {name: files("manyarms.service.dashboard").joinpath(name).read_text("utf-8") for name in (PAGE, *ASSETS)}
    for name, text in texts.items():
        addresses = {found for found in re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text) if "www.w3.org" not in found}
        assert not addresses, name
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", texts[PAGE])
    for name in ASSETS:
        if name.endswith(".js"):
            unsafe = re.findall(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc|javascript:",
                texts[name],
            )
            assert not unsafe, name  # what comes from data goes in as text
    linked = set(re.findall(r'(?:src|href)="/assets/([^"]+)"', texts[PAGE]))
    imported = {found for name in ASSETS for found in re.findall(r'from "\./([^"]+)"', texts[name])}
    assert linked | imported == set(ASSETS)


# ---- who may see figures


def test_figures_need_a_key_that_may_read_and_the_page_needs_none(tmp_path: Path) -> None:
    keys = Keys.open(tmp_path / "keys.json", make=True)
    reader, decider = keys.add("reader", ["read"]), keys.add("decider", ["decide"])
    made = Dashboard(tmp_path / "live.db", keys)
    try:
        for path in ("/v1/dashboard", "/v1/events", "/v1/catalogue/plain/statistics"):
            assert made.get(path).status_code == 401
            assert made.get(path, headers={"Authorization": f"Bearer {decider}"}).status_code == 403
            assert made.get(path, headers={"Authorization": f"Bearer {reader}"}).status_code == 200
        assert made.get("/").status_code == made.get("/assets/app.js").status_code == 200
    finally:
        made.client.close()
        made.service.close()
        made.live.close()


# ---- figures


def test_figures_follow_what_is_decided(dashboard: Dashboard) -> None:
    assert dashboard.get("/v1/dashboard").json()["day"]["decisions"] == 0
    for number in range(6):
        dashboard.decide("plain", 1.0 if number % 2 else None)
    body = dashboard.get("/v1/dashboard?minutes=1440").json()
    assert body["day"]["decisions"] == 6 and body["day"]["rewards"] == 3 and body["mean_reward"] == 0.5
    assert body["coverage"]["top"] == [
        {
            "action": "plain",
            "plays": 6,
            "rewarded": 3,
            "total": 3.0,
            "last": body["coverage"]["top"][0]["last"],
            "mean": 0.5,
        }
    ]
    assert sum(body["series"]["decisions"]) == 6


def test_latency_of_answers_is_told(dashboard: Dashboard) -> None:
    for _ in range(3):
        dashboard.get("/v1/events")
    assert dashboard.get("/v1/dashboard").json()["latency"]["/v1/events"]["count"] == 3


@pytest.mark.parametrize("query", ["minutes=0", "minutes=1441", "minutes=x", "minutes=1e3"])
def test_no_other_times(dashboard: Dashboard, query: str) -> None:
    answer = dashboard.get(f"/v1/dashboard?{query}")
    assert answer.status_code == 422 and answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("name", NAMES)
def test_the_figures_of_an_action_whatever_it_is_called(dashboard: Dashboard, name: str) -> None:
    event = dashboard.decide(name, 1.0)
    dashboard.live.learn()
    path = f"/v1/catalogue/{quote(name, safe='')}/statistics"
    if name == "..":  # a client takes it for the folder above, whatever it is written as
        path = "/v1/catalogue/%2E%2E/statistics"
    answer = dashboard.get(path)
    if name == ".." and answer.status_code == 404:
        return
    body = answer.json()
    assert (body["action"], body["plays"], body["total"], body["retired"]) == (name, 1, 1.0, False)
    assert body["interval"]["events"] == 1 and sum(body["series"]["plays"]) == 1
    found = dashboard.get("/v1/events", params={"action": name}).json()["events"]
    assert [one["id"] for one in found] == [event] and found[0]["actions"] == [name] and found[0]["reward"] == 1.0


def test_an_action_that_there_is_not(dashboard: Dashboard) -> None:
    for path in ("/v1/catalogue/nothing/statistics", "/v1/events?action=nothing"):
        answer = dashboard.get(path)
        assert answer.status_code == 404 and answer.json()["type"] == "urn:manyarms:problem:unknown-action"


def test_events_by_pages_and_filters(dashboard: Dashboard) -> None:
    ids = [dashboard.decide("plain" if number % 2 else "a/b", 1.0 if number < 3 else None) for number in range(9)]
    page = dashboard.get("/v1/events?limit=4").json()
    assert [one["id"] for one in page["events"]] == ids[:4:-1]
    rest = dashboard.get("/v1/events", params={"limit": 500, "before": page["next"]}).json()
    assert [one["id"] for one in rest["events"]] == ids[4::-1] and rest["next"] is None
    assert [one["id"] for one in dashboard.get("/v1/events?rewarded=true").json()["events"]] == ids[2::-1]
    assert [one["id"] for one in dashboard.get(f"/v1/events?id={ids[5][:12]}").json()["events"]] == [ids[5]]
    assert len(dashboard.get("/v1/events?arm=agent").json()["events"]) == 9
    for empty in ("arm=nobody", "arm=%00", "id=%00", "since=99999999999"):
        assert dashboard.get(f"/v1/events?{empty}").json()["events"] == []


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "before=0", "before=x", "since=nan", "since=-1", "arm=", "rewarded=maybe"]
)
def test_questions_for_events_that_make_no_sense(dashboard: Dashboard, query: str) -> None:
    assert dashboard.get(f"/v1/events?{query}").status_code == 422
