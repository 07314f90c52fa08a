"""Every call of the clients: how it is called, the request that it makes, an answer to it, and the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from client.scripted import decision

EVENT = {
    "id": "e/1", "at": 10.5, "position": 7, "arm": "agent", "version": 3, "unit": None, "actions": ["a", "b"],
    "context": [0.5, 1.0], "candidates": None, "exclude": None, "k": 2, "propensity": 0.5, "propensity_kind": "exact",
    "active": True, "erased": False, "details": {}, "rewards": [{"action": "a", "id": "", "value": 1, "at": 11}],
}  # fmt: skip
WHY = {
    "event": "e", "arm": "agent", "action": "a", "version": 3, "explained_by": 3, "exact": True, "propensity": 0.5,
    "propensity_kind": "exact", "unexplained": None, "greedy": None,
    "explanation": {
        "quantity": "expected reward", "score": 0.5, "sd": 0.1, "root_share": 0.5, "root_variance_share": None,
        "features": [{"name": "x[0]", "value": 1.0, "contribution": 0.5, "root": 0.25, "leaf": 0.25}],
    },
}  # fmt: skip
ACTION = {"row": 0, "id": "a", "retired": False, "capped": False}
DEPLOYMENT = {"shares": {"agent": 1}, "holdout": 0.05, "holdout_arm": "careful", "shadows": ["other"]}
SETTINGS = {"aggregate": "sum", "default": None, "wait": 60, "reward_range": [0, 1]}
CHALLENGE = {"name": "careful", "state": "running", "gain": 0.1, "gain_low": -0.2, "events": 12}
STATUS = {
    "version": 3, "waiting": 4, "at": 10.0, "learner": True, "deployment": DEPLOYMENT, "arms": ["agent"], "alarms": [],
    "failures": {}, "learned": 12,
}  # fmt: skip
COMPACTION = {"version": 3, "moved": True, "decisions": 5, "rewards": 4, "operations": 1, "bytes": 100, "dry_run": True}


@dataclass(frozen=True)
class Case:
    """name, arguments: of the call. method, path, body: of the request. answer, status: to it. says: what must be true of the
    result. again: whether it is tried again where it may have arrived."""

    name: str
    arguments: tuple[Any, ...]
    method: str
    path: str
    body: Any
    answer: Any
    says: Callable[[Any], bool]
    given: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    again: bool = False


CASES = [
    Case(
        "decide", ([0.5, 1],), "POST", "/v1/decide",
        {"context": [0.5, 1.0], "id": "e1", "k": 2, "exclude": [3, 4], "unit": "u", "deferred": True, "propensity": True},
        decision("e1", "a"),
        lambda d: (d.id, d.action, d.actions, d.learning.lag, d.propensity) == ("e1", "a", ("a", 1000), 4, 0.25),
        {"id": "e1", "k": np.int64(2), "exclude": {4, 3}, "unit": "u", "deferred": True, "propensity": True}, again=True,
    ),
    Case(
        "decide", ({"age": np.float32(2), "city": "x", "new": True, "gone": None, "v": np.ones(2)},), "POST", "/v1/decide",
        {"context": {"age": 2.0, "city": "x", "new": True, "gone": None, "v": [1.0, 1.0]}, "id": "e", "baseline": 3,
         "candidates": [1, 2]},
        decision("e"), lambda d: d.active and d.logged,
        {"id": "e", "baseline": np.int32(3), "candidates": np.array([1, 2])}, again=True,
    ),
    Case(
        "decide", (), "POST", "/v1/decide", {"action_contexts": [[1.0], [2.0]], "id": "e"}, decision("e"), lambda d: True,
        {"action_contexts": [[1], [2]], "id": "e"}, again=True,
    ),
    Case(
        "decide_many", ([{"context": [1], "id": "e"}, {"context": [2], "id": "f", "k": 2}],), "POST", "/v1/decide/batch",
        {"decisions": [{"context": [1.0], "id": "e"}, {"context": [2.0], "id": "f", "k": 2}]},
        {"decisions": [{"status": 200, **decision("e")}, {"status": 409, "type": "urn:manyarms:problem:conflict"}]},
        lambda found: found[0].id == "e" and found[1].status == 409, again=True,
    ),
    Case("reward", ("e", np.float64(0.5)), "POST", "/v1/reward", {"event": "e", "value": 0.5, "action": "a", "id": "click"},
         None, lambda found: found is None, {"action": "a", "id": "click"}, status=204, again=True),
    Case("reward", ("e",), "POST", "/v1/reward", {"event": "e", "value": 1.0}, None, lambda found: found is None,
         status=204, again=True),
    Case("reward_many", ([{"event": "e"}, {"event": "f", "value": 2}],), "POST", "/v1/reward/batch",
         {"rewards": [{"event": "e", "value": 1.0}, {"event": "f", "value": 2.0}]},
         {"rewards": [{"status": 204}, {"status": 404}]},
         lambda found: found[0] is None and found[1].status == 404, again=True),
    Case("activate", ("e",), "POST", "/v1/activate", {"event": "e"}, None, lambda found: found is None, status=204, again=True),
    Case("event", ("e/1",), "GET", "/v1/events/e%2F1", None, EVENT,
         lambda e: e.rewards[0].value == 1.0 and e.action == "a" and e.context == [0.5, 1.0] and e.body["k"] == 2, again=True),
    Case("event", ("..",), "GET", "/v1/events/%2E%2E", None, EVENT, lambda e: e.at == 10.5, again=True),
    Case("events", (), "GET", "/v1/events?limit=5&arm=agent&action=a%20b&id=ann&since=2.5&rewarded=true", None,
         {"events": [EVENT, EVENT], "next": None}, lambda found: [e.id for e in found] == ["e/1", "e/1"],
         {"arm": "agent", "action": "a b", "page": 5, "text": "ann", "since": 2.5, "rewarded": True}, again=True),
    Case("why", ("e",), "GET", "/v1/events/e/why", None, WHY,
         lambda why: why.explanation.features[0].root == 0.25 and why.body["greedy"] is None,
         again=True),
    Case("erase", ("e",), "DELETE", "/v1/events/e", None, None, lambda found: found is None, status=204),
    Case("catalogue", (), "GET", "/v1/catalogue?limit=1000&search=a", None, {"count": 1, "actions": [ACTION], "next": None},
         lambda found: [one.id for one in found] == ["a"], {"search": "a"}, again=True),
    Case("action", (7,), "GET", "/v1/catalogue/7", None, ACTION, lambda one: not one.retired, again=True),
    Case("add_actions", (), "POST", "/v1/catalogue", {"ids": ["a", "b"], "weights": [[1.0], [0.5]]}, {"ids": ["a", "b"]},
         lambda ids: ids == ("a", "b"), {"ids": ["a", "b"], "weights": [[1], [0.5]]}, status=201),
    Case("update_action", ("a",), "PATCH", "/v1/catalogue/a", {"weights": [0.5], "retired": True}, ACTION,
         lambda one: one.id == "a", {"weights": [0.5], "retired": True}),
    Case("retire", ("a",), "POST", "/v1/catalogue/retire", {"actions": ["a"]}, None, lambda found: found is None, status=204),
    Case("reinstate", ([1, 2],), "POST", "/v1/catalogue/reinstate", {"actions": [1, 2]}, None, lambda found: found is None,
         status=204),
    Case("agents", (), "GET", "/v1/agents", None,
         {"agents": [{"name": "agent", "share": 1, "holdout": False, "shadow": False, "exact_propensities": True}]},
         lambda found: found[0].share == 1.0, again=True),
    Case("load_agent", ("careful", "two"), "POST", "/v1/agents", {"name": "careful", "folder": "two", "learns": False},
         {"name": "careful"}, lambda found: found is None, {"learns": False}, status=201),
    Case("remove_agent", ("a b",), "DELETE", "/v1/agents/a%20b", None, None, lambda found: found is None, status=204),
    Case("promote", ("careful",), "POST", "/v1/agents/careful/promote", None, DEPLOYMENT, lambda d: d.shares == {"agent": 1.0}),
    Case("roll_back", (), "POST", "/v1/agents/roll-back", None, DEPLOYMENT, lambda d: d.holdout == 0.05),
    Case("deployment", (), "GET", "/v1/deployment", None, DEPLOYMENT, lambda d: d.shadows == ("other",), again=True),
    Case("deploy", ({"agent": 1},), "PUT", "/v1/deployment", DEPLOYMENT, DEPLOYMENT, lambda d: d.holdout_arm == "careful",
         {"holdout": 0.05, "holdout_arm": "careful", "shadows": ["other"]}),
    Case("challenge", ("careful",), "POST", "/v1/agents/careful/challenge",
         {"alpha": 0.1, "margin": 0.0, "guard": 0.02, "mean_time": 10_000}, {"challenges": [CHALLENGE]},
         lambda found: found[0].state == "running", {"alpha": 0.1}, status=201),
    Case("report", (), "GET", "/v1/report", None, {"version": 3, "values": {}}, lambda r: r.body["version"] == 3, again=True),
    Case("status", (), "GET", "/v1/status", None, STATUS, lambda s: s.waiting == 4 and s.body["learned"] == 12, again=True),
    Case("settings", (), "GET", "/v1/settings", None, SETTINGS, lambda s: s.reward_range == (0.0, 1.0), again=True),
    Case("change_settings", (), "PATCH", "/v1/settings", {"default": None, "wait": 60.0}, SETTINGS, lambda s: s.wait == 60.0,
         {"default": None, "wait": 60}),
    Case("compact", (60,), "POST", "/v1/admin/compact", {"keep": 60.0, "dry_run": False}, COMPACTION,
         lambda c: c.decisions == 5, {"dry_run": False}),
    Case("compact", (60,), "POST", "/v1/admin/compact", {"keep": 60.0, "dry_run": True}, COMPACTION,
         lambda c: c.dry_run, again=True),
    Case("backup", (), "POST", "/v1/admin/backup", None, {"file": "b.db", "bytes": 10}, lambda b: b.bytes == 10, status=201),
    Case("health", (), "GET", "/readyz", None, {"status": "ok", "reasons": []}, lambda h: h.ready, again=True),
    Case("edge_bundle", ("agent",), "GET", "/v1/edge/agent", None, b"\x00\xff", lambda b: b.data == b"\x00\xff", again=True),
    Case("edge_key", (), "GET", "/v1/edge/key", None, {"public_key": "ab", "algorithm": "Ed25519", "previous": ["cd"]},
         lambda keys: keys.all == ("ab", "cd"), again=True),
    Case("upload_decisions", ("agent", [{"id": "e"}]), "POST", "/v1/edge/agent/decisions", {"decisions": [{"id": "e"}]},
         {"decisions": [{"status": 200}]}, lambda found: found == (None,), again=True),
]  # fmt: skip
