"""The calls under /v1: what they answer, and that it is what the store has."""

from __future__ import annotations

from pathlib import Path

import httpx
import numpy as np
import pytest

import manyarms as ma
from manyarms.client import in_process
from manyarms.live import Live
from manyarms.service import create_app
from service.conftest import SKUS, Calling, an_agent, is_problem

X = [1.0, 0.2, -0.3]


def decided(client: httpx.Client, **question: object) -> dict[str, object]:
    response = client.post("/v1/decide", json={"context": X, **question})
    assert response.status_code == 200, response.text
    found: dict[str, object] = response.json()
    return found


# ---- decisions


def test_an_answer_is_what_the_store_has(client: httpx.Client, live: Live) -> None:
    found = decided(client, id="one", unit="user 7", k=3, exclude=["SKU-3"])
    record = live.event("one")
    assert found["actions"] == record.actions and found["action"] == record.actions[0]
    assert (found["arm"], found["version"], found["propensity"]) == (record.arm, record.version, record.propensity)
    assert (found["propensity_kind"], found["logged"], found["active"]) == ("exact", True, True)
    assert record.unit == "user 7" and "SKU-3" not in record.actions
    np.testing.assert_array_equal(record.question.context, X)


def test_the_learning_block_says_what_is_folded(client: httpx.Client, live: Live) -> None:
    first = decided(client, id="a")
    assert first["learning"] == {"rows": 0, "lag": 1, "version": 0}
    client.post("/v1/reward", json={"event": "a", "value": 1.0})
    live.learn()
    assert decided(client)["learning"] == {"rows": 1, "lag": 1, "version": 1}


def test_the_same_id_is_the_same_decision_and_another_question_a_conflict(client: httpx.Client) -> None:
    assert decided(client, id="e") == decided(client, id="e")
    is_problem(client.post("/v1/decide", json={"context": [0, 0, 1], "id": "e"}), 409, "conflict")


def test_a_batch_is_its_decisions_one_by_one(client: httpx.Client, live: Live) -> None:
    questions = [{"context": X, "id": "b1"}, {"context": [1.0]}, {"context": X, "id": "b2", "candidates": ["SKU-4"]}]
    found = client.post("/v1/decide/batch", json={"decisions": questions}).json()["decisions"]
    assert [one["status"] for one in found] == [200, 422, 200]
    assert found[0]["actions"] == live.event("b1").actions and found[2]["action"] == "SKU-4"
    assert found[1]["argument"] == "context" and "status" in found[1]


def test_a_batch_that_is_too_large_is_refused(calling: Calling) -> None:
    client = calling(most_batch=2)
    is_problem(client.post("/v1/decide/batch", json={"decisions": [{"context": X}] * 3}), 422, "invalid-input")
    rewards = [{"event": "e"}] * 3
    is_problem(client.post("/v1/reward/batch", json={"rewards": rewards}), 422, "invalid-input")


def test_contexts_by_column(tmp_path: Path) -> None:
    encoder = ma.logs.Encoding().fit({"device": ["phone", "desk"], "age": [31, 54]}, ["device", "age"])
    prior = ma.ActionPrior(5, np.zeros(encoder.dim), np.eye(encoder.dim))
    agent = ma.LinTS(prior, catalogue=["a", "b", "c", "d", "e"], encoder=encoder, seed=0)
    with (
        ma.live.open(tmp_path / "l.db", agent, background=False) as live,
        httpx.Client(transport=in_process(create_app(live)), base_url="http://localhost") as client,
    ):
        answer = client.post("/v1/decide", json={"context": {"device": "phone", "age": 40}, "id": "e"})
        assert answer.status_code == 200
        np.testing.assert_allclose(
            live.event("e").question.context, encoder.row({"device": "phone", "age": 40}), rtol=0, atol=0
        )
        body = is_problem(client.post("/v1/decide", json={"context": {"device": "phone"}}), 422, "invalid-input")
        assert "age" in body["detail"]


# ---- rewards


def test_rewards_reach_the_store_and_count_once(client: httpx.Client, live: Live) -> None:
    decided(client, id="e", k=2)
    action = live.event("e").actions[1]
    for _ in range(2):
        assert client.post("/v1/reward", json={"event": "e", "value": 0.5}).status_code == 204
        assert client.post("/v1/reward", json={"event": "e", "value": 1.0, "action": action}).status_code == 204
    assert [(one.action, one.value) for one in live.rewards("e")] == [(live.event("e").actions[0], 0.5), (action, 1.0)]
    is_problem(client.post("/v1/reward", json={"event": "e", "value": 0.4}), 409, "conflict")
    is_problem(client.post("/v1/reward", json={"event": "e", "value": 2.0, "id": "late"}), 422, "invalid-input")
    is_problem(client.post("/v1/reward", json={"event": "nobody", "value": 1.0}), 404, "unknown-event")
    told = client.post("/v1/reward/batch", json={"rewards": [{"event": "e", "value": 0.5}, {"event": "no"}]}).json()
    assert [one["status"] for one in told["rewards"]] == [204, 404]


def test_a_deferred_decision_counts_once_it_is_activated(client: httpx.Client, live: Live) -> None:
    assert decided(client, id="d", deferred=True)["active"] is False
    client.post("/v1/reward", json={"event": "d", "value": 1.0})
    live.learn()
    assert live.status()["learned"] == 0
    for _ in range(2):
        assert client.post("/v1/activate", json={"event": "d"}).status_code == 204
    live.learn()
    assert live.status()["learned"] == 1
    assert client.get("/v1/events/d").json()["active"] is True
    is_problem(client.post("/v1/activate", json={"event": "nobody"}), 404, "unknown-event")


# ---- events


def test_an_event_with_its_rewards_and_why(client: httpx.Client, live: Live) -> None:
    decided(client, id="e")
    client.post("/v1/reward", json={"event": "e", "value": 1.0, "id": "click"})
    event = client.get("/v1/events/e").json()
    assert event["context"] == X and event["actions"] == live.event("e").actions
    assert [(one["id"], one["value"]) for one in event["rewards"]] == [("click", 1.0)]
    why = client.get("/v1/events/e/why").json()
    assert why == live.why("e").to_json()
    is_problem(client.get("/v1/events/nobody"), 404, "unknown-event")
    is_problem(client.get("/v1/events/nobody/why"), 404, "unknown-event")


def test_an_event_is_forgotten(client: httpx.Client, live: Live) -> None:
    decided(client, id="e")
    assert client.delete("/v1/events/e").status_code == 204
    assert live.event("e").erased
    is_problem(client.post("/v1/reward", json={"event": "e", "value": 1.0}), 404, "unknown-event")


# ---- the catalogue


def test_the_catalogue_by_pages_and_by_text(client: httpx.Client) -> None:
    seen, after = [], -1
    while after is not None:
        page = client.get("/v1/catalogue", params={"after": after, "limit": 7}).json()
        seen += [one["id"] for one in page["actions"]]
        after = page["next"]
    assert seen == SKUS and page["count"] == len(SKUS)
    found = client.get("/v1/catalogue", params={"search": "sku-1"}).json()["actions"]
    assert [one["id"] for one in found] == [sku for sku in SKUS if "SKU-1" in sku]
    assert client.get("/v1/catalogue/SKU-3").json() == {"row": 3, "id": "SKU-3", "retired": False, "capped": False}
    is_problem(client.get("/v1/catalogue/SKU-99"), 404, "unknown-action")


def test_actions_are_added_changed_and_retired(client: httpx.Client, live: Live) -> None:
    added = client.post("/v1/catalogue", json={"ids": ["new"], "weights": [[0.5, -1.0]]})
    assert added.status_code == 201 and added.json() == {"ids": ["new"]}
    assert decided(client, candidates=["new"])["action"] == "new"
    assert client.patch("/v1/catalogue/new", json={"retired": True}).json()["retired"] is True
    is_problem(client.post("/v1/decide", json={"context": X, "candidates": ["new"]}), 422, "unknown-action")
    assert client.patch("/v1/catalogue/new", json={"retired": True}).json()["retired"] is True  # again: as it is
    assert client.post("/v1/catalogue/reinstate", json={"actions": ["new"]}).status_code == 204
    assert client.patch("/v1/catalogue/new", json={"weights": [1.0, 1.0]}).status_code == 200
    assert client.post("/v1/catalogue/retire", json={"actions": ["SKU-0", "SKU-1"]}).status_code == 204
    assert live.action("SKU-1").retired
    is_problem(client.post("/v1/catalogue", json={"ids": ["new"], "weights": [[0.5, -1.0]]}), 409, "refused")
    is_problem(client.post("/v1/catalogue", json={}), 422, "invalid-input")
    is_problem(client.patch("/v1/catalogue/new", json={}), 422, "invalid-input")


def test_actions_that_are_numbers(tmp_path: Path) -> None:
    with (
        ma.live.open(tmp_path / "l.db", an_agent(ids=False), background=False) as live,
        httpx.Client(transport=in_process(create_app(live)), base_url="http://localhost") as client,
    ):
        assert client.get("/v1/catalogue/3").json()["id"] == 3
        is_problem(client.get("/v1/catalogue/three"), 404, "unknown-action")
        is_problem(client.get("/v1/catalogue/20"), 404, "unknown-action")
        assert client.post("/v1/decide", json={"context": X, "candidates": [7]}).json()["action"] == 7


# ---- arms


def test_arms_join_take_over_and_go(calling: Calling, live: Live, tmp_path: Path) -> None:
    an_agent(1).save(tmp_path / "agents" / "careful")
    client = calling(agents_folder=tmp_path / "agents")
    assert client.post("/v1/agents", json={"name": "careful", "folder": "careful"}).status_code == 201
    assert [one["name"] for one in client.get("/v1/agents").json()["agents"]] == ["agent", "careful"]
    assert client.post("/v1/agents/careful/promote").json()["shares"] == {"careful": 1.0}
    assert decided(client)["arm"] == "careful"
    assert client.post("/v1/agents/roll-back").json()["shares"] == {"agent": 1.0}
    shares = {"shares": {"agent": 0.5, "careful": 0.5}, "holdout": 0.1, "holdout_arm": "agent"}
    assert client.put("/v1/deployment", json=shares).json() == {**shares, "shadows": []}
    assert client.get("/v1/deployment").json()["holdout"] == 0.1
    client.put("/v1/deployment", json={"shares": {"agent": 1.0}})
    made = client.post("/v1/agents/careful/challenge", json={"alpha": 0.1})
    assert made.status_code == 201 and made.json()["challenges"][0]["name"] == "careful"
    is_problem(client.post("/v1/agents/nobody/promote"), 404, "unknown-agent")
    is_problem(client.delete("/v1/agents/careful"), 409, "refused")  # it looks on
    assert client.delete("/v1/agents/careful/challenge").status_code == 204
    client.put("/v1/deployment", json={"shares": {"agent": 1.0}})
    assert client.delete("/v1/agents/careful").status_code == 204
    assert sorted(live.arms) == ["agent"]


@pytest.mark.parametrize("folder", ["../agents/careful", "/etc", "..", ".hidden", "a/b", "careful\\x", "\0"])
def test_agents_are_loaded_from_their_folder_alone(calling: Calling, tmp_path: Path, folder: str) -> None:
    (tmp_path / "agents").mkdir()
    client = calling(agents_folder=tmp_path / "agents")
    is_problem(client.post("/v1/agents", json={"name": "b", "folder": folder}), 422, "invalid-input")


def test_a_link_out_of_the_folder_is_not_followed(calling: Calling, tmp_path: Path) -> None:
    an_agent(1).save(tmp_path / "elsewhere")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "link").symlink_to(tmp_path / "elsewhere")
    client = calling(agents_folder=tmp_path / "agents")
    is_problem(client.post("/v1/agents", json={"name": "b", "folder": "link"}), 404, "unknown-agent")
    is_problem(calling().post("/v1/agents", json={"name": "b", "folder": "link"}), 409, "refused")


# ---- the store


def test_settings_change_without_a_reset(client: httpx.Client, live: Live) -> None:
    decided(client, id="e")
    changed = client.patch("/v1/settings", json={"wait": 5.0, "default": 0.25})
    assert changed.json() == {"aggregate": "first", "default": 0.25, "wait": 5.0, "reward_range": [0.0, 1.0]}
    assert client.get("/v1/settings").json() == changed.json()
    assert live.event("e").id == "e"
    is_problem(client.patch("/v1/settings", json={}), 422, "invalid-input")
    is_problem(client.patch("/v1/settings", json={"default": 7.0}), 422, "invalid-input")


def test_status_report_and_compaction(client: httpx.Client, live: Live) -> None:
    decided(client)
    live.learn()
    assert client.get("/v1/status").json()["version"] == live.version
    assert client.get("/v1/report").json()["version"] == live.version
    planned = client.post("/v1/admin/compact", json={"keep": 0}).json()
    assert planned["dry_run"] is True and planned["version"] == live.version


def test_a_backup_is_a_store(calling: Calling, tmp_path: Path) -> None:
    client = calling(backups=tmp_path / "backups")
    decided(client, id="e")
    made = client.post("/v1/admin/backup")
    assert made.status_code == 201
    copy = tmp_path / "backups" / made.json()["file"]
    assert copy.stat().st_size == made.json()["bytes"]
    with ma.live.open(copy, background=False) as restored:
        assert restored.event("e").id == "e"
    is_problem(calling().post("/v1/admin/backup"), 409, "refused")


def test_health_readiness_and_figures(client: httpx.Client, live: Live) -> None:
    assert client.get("/healthz").json()["status"] == "ok"
    assert client.get("/readyz").json() == {"status": "ok", "reasons": []}
    decided(client)
    text = client.get("/metrics").text
    assert 'manyarms_requests_total{method="POST",route="/v1/decide",status="200"} 1.0' in text
    assert "manyarms_store_up 1.0" in text and "manyarms_waiting 1.0" in text


# ---- forms


def test_what_does_not_fit_is_told_without_repeating_it(client: httpx.Client) -> None:
    secret = "4929 1234"
    for body in (
        {"context": X, "contxt": secret},
        {"context": secret},
        {"context": X, "k": secret},
        {"context": [secret]},
    ):
        problem = is_problem(client.post("/v1/decide", json=body), 422, "invalid-input")
        assert secret not in str(problem)
        assert problem["errors"][0]["where"]


def test_bodies_that_are_not_json(client: httpx.Client) -> None:
    json_type = {"Content-Type": "application/json"}
    for path in ("/v1/decide", "/v1/catalogue"):
        is_problem(client.post(path, content=b"{", headers=json_type), 400, "not-json")
        is_problem(client.post(path, content=b"{}", headers={"Content-Type": "text/plain"}), 415, "not-json")
    is_problem(client.get("/v1/nothing"), 404)
    is_problem(client.get("/v1/decide"), 405)


def test_every_call_is_described(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()
    assert {"/v1/decide", "/v1/reward", "/v1/events/{id}/why", "/v1/edge/{agent}", "/metrics"} <= set(
        described["paths"]
    )
    assert "ProblemBody" in described["components"]["schemas"]
    decide = described["paths"]["/v1/decide"]["post"]
    assert {"200", "400", "401", "403", "409", "413", "415", "422", "429", "503"} <= set(decide["responses"])
    assert decide["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/Question")


def test_ids_may_hold_slashes(client: httpx.Client, live: Live) -> None:
    decided(client, id="session/7/first")
    assert client.get("/v1/events/session%2F7%2Ffirst").json()["id"] == "session/7/first"
    assert client.get("/v1/events/session/7/first").json()["id"] == "session/7/first"
    assert client.get("/v1/events/session%2F7%2Ffirst/why").json()["event"] == "session/7/first"
    live.add_actions(ids=["shoes/red"], weights=[[0.1, 0.2]])
    assert client.get("/v1/catalogue/shoes%2Fred").json()["id"] == "shoes/red"
    assert client.patch("/v1/catalogue/shoes%2Fred", json={"retired": True}).json()["retired"] is True
    assert client.get("/v1/catalogue/shoes%2Fred/statistics").status_code == 200
    assert client.delete("/v1/events/session%2F7%2Ffirst").status_code == 204
