"""Decisions at the edge: bundles of every kind of arm, uploads that are checked and counted once, and what a log has of them."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from scipy import stats

import manyarms as ma
from live.making import from_origin
from live.settled import seen
from live.small_store import Clock, quick_disk, small_live
from manyarms.agents import Agent
from manyarms.agents.decisions import Decision, Ensemble, EpsilonGreedy, EpsilonMixed, Greedy, Thompson
from manyarms.beliefs import belief_of
from manyarms.client import in_process
from manyarms.edge import EdgePolicy
from manyarms.errors import Conflict, InvalidInput, LiveError, StorageError, StoreUnavailable, UnknownAction
from manyarms.live import Live, Uploaded
from manyarms.live.challenge import PROMOTED, Challenge
from manyarms.service.app import create_app
from manyarms.service.edge_bundles import EdgeBundles, NotKept
from manyarms.service.edge_policies import EdgeForm, edge_policy

__all__ = ["quick_disk"]

D, K = 3, 6
X = np.array([0.7, -1.1, 0.4])
REFUSED = 1e-6  # a statistical test refuses at this probability: no seed decides
SIX = 6.0  # standard errors


def an_agent(decision: Decision | None = None, seed: int = 0, ids: bool = False) -> Agent:
    """An agent that has learned a little, of some actions."""
    rng = np.random.default_rng(seed)
    prior = ma.MixedEffectPrior(rng.normal(size=(K, 2)), np.zeros((2, D)), np.eye(2 * D), np.eye(D))
    catalogue = [f"item {row}" for row in range(K)] if ids else None
    agent = Agent(belief_of(prior, ma.Linear()), decision or Thompson(), seed, catalogue=catalogue)
    names = (lambda rows: [f"item {row}" for row in rows]) if ids else (lambda rows: rows)
    agent.observe(rng.normal(size=(12, D)), names(rng.integers(4, size=12)), rng.normal(size=12))
    return agent


@pytest.fixture
def live() -> Iterator[Live]:
    with small_live(":memory:", Clock(), an_agent(EpsilonGreedy(0.3), ids=True), reward_range=(-9.0, 9.0)) as found:
        yield found


@pytest.fixture
def client(live: Live, tmp_path: Path) -> Iterator[httpx.Client]:
    with within(create_app(live, edge=tmp_path / "edge", edge_every=0.0)) as found:
        yield found


def within(app: Any) -> httpx.Client:
    """A client of an application in this process."""
    return httpx.Client(transport=in_process(app), base_url="http://localhost")


def fetched(client: httpx.Client, agent: str = "agent") -> EdgePolicy:
    """What a client decides with."""
    answer = client.get(f"/v1/edge/{agent}")
    assert answer.status_code == 200, answer.text
    return EdgePolicy.read(answer.content, client.get("/v1/edge/key").json()["public_key"])


def newer(client: httpx.Client, bundle: str) -> EdgePolicy:
    """The next bundle after one: they are made some tenths of a second apart, so that all of a month find room."""
    for _ in range(6000):
        if client.get("/v1/edge/agent", headers={"If-None-Match": f'"{bundle}"'}).status_code == 200:
            return fetched(client)
        time.sleep(0.01)
    raise AssertionError("no newer bundle")


def sent(client: httpx.Client, *decisions: dict[str, Any], agent: str = "agent") -> list[dict[str, Any]]:
    answer = client.post(f"/v1/edge/{agent}/decisions", json={"decisions": list(decisions)})
    assert answer.status_code == 200, answer.text
    told: list[dict[str, Any]] = answer.json()["decisions"]
    return told


# ---- bundles


@pytest.mark.parametrize(
    ("decision", "rule", "epsilon", "draws"),
    [
        (Greedy(), "epsilon-greedy", 0.0, 1),
        (EpsilonGreedy(0.3), "epsilon-greedy", 0.3, 1),
        (EpsilonMixed(Greedy(), 0.2), "epsilon-greedy", 0.2, 1),
        (Thompson(), "ensemble", 0.05, 16),
        (Ensemble(draws=5, epsilon=0.4), "ensemble", 0.4, 5),
    ],
)
def test_every_kind_of_agent_becomes_its_rule(decision: Decision, rule: str, epsilon: float, draws: int) -> None:
    with small_live(":memory:", Clock(), an_agent(decision)) as live:
        live.retire([1, 5])
        policy = edge_policy(live._learner.view, "agent", EdgeForm(), 1e9)
        told = policy.header
        assert (told.rule, told.epsilon, len(policy._tables), told.version) == (rule, epsilon, draws, live.version)
        assert list(policy.ids) == [0, 2, 3, 4]
        if rule == "epsilon-greedy":  # as the agent would: its own propensities, with filters
            for candidates in (None, [0, 3, 4]):
                law = policy.law(X, candidates=candidates)
                for action, chance in law.items():
                    told_by_agent = live._learner.view.arms["agent"].snapshot.propensity(
                        X, action, candidates=candidates
                    )  # type: ignore[attr-defined]
                    assert chance == pytest.approx(told_by_agent.value)


def test_an_ensemble_of_many_bundles_is_thompson_sampling() -> None:
    """The law of one bundle is that given its draws; over bundles, with epsilon 0, it is the law of the agent."""
    agent, number = an_agent(Thompson()), 400
    with small_live(":memory:", Clock(), agent) as live:
        view = live._learner.view
        total = np.zeros(K)
        for _ in range(number):
            law = edge_policy(view, "agent", EdgeForm(draws=4, epsilon=0.0), 1e9).law(X)
            total += list(law.values())
        made = agent.decide(np.tile(X, (20_000, 1)), rng=0)
        expected = np.bincount(made, minlength=K) / len(made)
        error = np.sqrt(expected * (1 - expected) * (1 / number + 1 / len(made))) + 1e-3
        assert (np.abs(total / number - expected) < SIX * error).all()


@pytest.mark.parametrize("projected", [False, True])
def test_a_softmax_policy_keeps_its_law(projected: bool) -> None:
    rng = np.random.default_rng(0)
    if projected:
        encoder = ma.policies.Projection(rng.normal(size=(D, 2)))
        policy = ma.policies.SoftmaxPolicy(rng.normal(size=(K, 2)), temperature=0.7, encoder=encoder)
    else:
        policy = ma.policies.SoftmaxPolicy(rng.normal(size=(K, D)), temperature=0.7)
    with small_live(":memory:", Clock(), policy) as live:
        live.retire([2])
        edge = edge_policy(live._learner.view, "agent", EdgeForm(), 1e9)
        for asked in ({}, {"candidates": [0, 5, 1]}, {"exclude": [0, 4]}):
            law = edge.law(X, **asked)
            offered = {"exclude": [2, *asked.get("exclude", [])], "candidates": asked.get("candidates")}
            for action, chance in law.items():
                assert chance == pytest.approx(policy.propensity(X, action, **offered), rel=1e-5)


@pytest.mark.parametrize(
    ("arm", "reason"),
    [
        (an_agent(ma.agents.UCB()), "decides by ucb"),
        (an_agent(EpsilonMixed(ma.agents.UCB(), 0.1)), "decides by epsilon-mixed"),
        (an_agent(ma.agents.Uniform()), "decides by uniform"),
        (ma.policies.FixedPolicy([0.5, 0.5]), "a SoftmaxPolicy"),
    ],
)
def test_what_cannot_go_to_the_edge_is_refused(arm: Any, reason: str) -> None:
    with small_live(":memory:", Clock(), arm) as live, pytest.raises(InvalidInput, match=reason):
        edge_policy(live._learner.view, "agent", EdgeForm(), 1e9)


def test_a_bundle_that_is_too_large_says_how_to_make_it_smaller() -> None:
    with small_live(":memory:", Clock(), an_agent(Thompson())) as live:
        view = live._learner.view
        with pytest.raises(
            InvalidInput,
            match=r"fewer draws, fewer actions \(actions=\).* 1,152 bytes: 16 x 6 actions",
        ):
            edge_policy(view, "agent", EdgeForm(most_bytes=1000), 1e9)
        small = edge_policy(view, "agent", EdgeForm(most_bytes=400), 1e9, actions=[4, 2])
        assert list(small.ids) == [2, 4]
        with pytest.raises(InvalidInput, match="not retired"):
            edge_policy(view, "agent", EdgeForm(), 1e9, actions=[])
        with pytest.raises(InvalidInput, match="an arm of this store: agent"):
            edge_policy(view, "other", EdgeForm(), 1e9)


def test_rows_are_encoded_as_the_store_encodes_them() -> None:
    rows = {"age": [20.0, 30.0, 41.5], "town": ["Ulm", "Bonn", "Ulm"]}
    encoder = ma.logs.Encoding().fit(rows, list(rows))
    prior = ma.ActionPrior(3, np.zeros(encoder.dim), np.eye(encoder.dim))
    agent = ma.LinTS(prior, seed=0, catalogue=["a", "b", "c"], encoder=encoder)
    with small_live(":memory:", Clock(), agent) as live:
        policy = edge_policy(live._learner.view, "agent", EdgeForm(), 1e9)
        assert policy.header.features == tuple(encoder.names)
        row = {"age": 33, "town": "Bonn"}
        assert policy.vector(row).tolist() == encoder.row(row).tolist()


# ---- kept in a folder


def test_a_bundle_is_made_when_the_state_has_moved_on_and_not_more_often_than_asked(live: Live, tmp_path: Path) -> None:
    clock = Clock(1e9)
    bundles = EdgeBundles(live, tmp_path, every=60.0, clock=clock)
    first = bundles.current("agent")
    clock.now += 100.0
    assert bundles.current("agent").id == first.id  # nothing was learned
    live.reward(live.decide(X).id, 1.0)
    live.learn()
    second = bundles.current("agent")
    assert second.id != first.id and second.version == live.version
    live.reward(live.decide(X).id, 1.0)
    live.learn()
    clock.now += 59.0
    assert bundles.current("agent").id == second.id  # too soon
    clock.now += 2.0
    assert bundles.current("agent").version == live.version
    last = bundles.current("agent")
    clock.now += 0.6 * 86_400
    assert bundles.current("agent").id != last.id  # it would expire soon
    again = EdgeBundles(live, tmp_path, clock=clock)  # after a restart
    assert again.policy(first.id).id == first.id
    with pytest.raises(NotKept):
        again.policy("0" * 32)
    for wrong in ("", "../signing-key", "A" * 32, "0" * 31, 7):
        with pytest.raises(InvalidInput, match="bundle"):
            again.policy(wrong)  # type: ignore[arg-type]


def test_bundles_are_deleted_when_their_time_is_over(live: Live, tmp_path: Path) -> None:
    clock = Clock(1e9)
    bundles = EdgeBundles(live, tmp_path, keep=2 * 86_400.0, clock=clock)
    made = bundles.current("agent")
    path = tmp_path / "bundles" / f"{made.id}.edge"
    os.utime(path, (clock.now, clock.now))
    bundles.policy(made.id)
    clock.now += 86_400.0
    assert bundles.prune() == 0
    clock.now += 86_401.0
    assert bundles.prune() == 1 and not path.exists()
    with pytest.raises(NotKept):
        bundles.policy(made.id)
    with pytest.raises(InvalidInput, match="lifetime"):
        EdgeBundles(live, tmp_path, keep=60.0)


def test_large_bundles_are_made_less_often_rather_than_kept_too_short(live: Live, tmp_path: Path) -> None:
    clock = Clock(1e9)
    bundles = EdgeBundles(live, tmp_path, every=0.0, keep=100_000.0, room=100_000, clock=clock)
    first = bundles.current("agent")
    live.decide(X)
    live.learn()
    clock.now += 0.9 * len(first.data)  # a byte of room for each second of keeping
    assert bundles.current("agent").id == first.id
    clock.now += 0.2 * len(first.data)
    assert bundles.current("agent").id != first.id


def test_a_damaged_bundle_is_never_used(live: Live, tmp_path: Path) -> None:
    bundles = EdgeBundles(live, tmp_path)
    made = bundles.current("agent")
    path = tmp_path / "bundles" / f"{made.id}.edge"
    path.write_bytes(made.data[:100] + b"x" + made.data[101:])
    with pytest.raises(StorageError):
        bundles.policy(made.id)
    live.add_arm("other", an_agent(Greedy()))
    path.write_bytes(bundles.current("other").data)
    with pytest.raises(StorageError, match="another bundle"):
        bundles.policy(made.id)


def test_the_key_is_made_once_and_kept_from_others(live: Live, tmp_path: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(EdgeBundles(live, tmp_path).keys.current().public))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1
    path = tmp_path / "signing-key.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    keys = EdgeBundles(live, tmp_path).keys
    new = keys.rotate()
    assert keys.public() == (new, [found[0]]) and new != found[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with pytest.raises(StorageError, match="chmod 600"):
        keys.current()
    path.chmod(0o600)
    path.write_text('{"secret": "00"}')
    with pytest.raises(StorageError, match="damaged"):
        keys.current()


# ---- over HTTP


def test_a_client_downloads_decides_uploads_and_rewards(client: httpx.Client, live: Live) -> None:
    policy = fetched(client)
    made = [policy.decide(X, f"e{number}", candidates=["item 1", "item 2", "item 5"]) for number in range(5)]
    told = sent(client, *(one.as_json() for one in made))
    for one, answer in zip(made, told, strict=True):
        expected = {"id": one.id, "action": one.action, "propensity": one.propensity, "bundle": policy.id}
        assert answer == {"status": 200, **expected, "arm": "agent", "version": policy.header.version}
    assert client.post("/v1/reward", json={"event": "e3", "value": 0.5}).status_code == 204
    record = live.event("e3")
    assert (record.arm, record.version, record.propensity_kind) == ("agent", policy.header.version, "exact")
    assert record.propensity == record.arm_propensity == record.inclusion == made[3].propensity
    assert record.details["edge"] == policy.id and record.details["decided_at"] == made[3].at
    assert record.details["greedy"] is made[3].greedy
    before = live.status()["learned"]
    live.learn()
    assert live.status()["learned"] == before + 1


def test_the_same_bundle_is_not_sent_again(client: httpx.Client, live: Live) -> None:
    first = client.get("/v1/edge/agent")
    assert first.headers["content-type"] == "application/vnd.manyarms.edge"
    assert first.headers["cache-control"] == "private, max-age=0"
    tag = first.headers["etag"]
    assert tag == f'"{EdgePolicy.read(first.content, verify=None).id}"'
    for asked in (tag, f'W/{tag}, "other"', "*"):
        again = client.get("/v1/edge/agent", headers={"If-None-Match": asked})
        assert again.status_code == 304 and again.headers["etag"] == tag and not again.content
    live.decide(X)
    live.learn()
    assert newer(client, tag.strip('"')).header.version == live.version


def test_uploaded_twice_it_is_stored_once(client: httpx.Client, live: Live) -> None:
    made = [fetched(client).decide(X, f"e{number}") for number in range(3)]
    bodies = [one.as_json() for one in made]
    first = sent(client, *bodies)
    assert sent(client, *bodies, bodies[0]) == [*first, first[0]]
    assert live.database.read("SELECT COUNT(*) FROM decisions") == [(3,)]


def test_an_id_that_was_used_for_something_else_is_a_conflict(client: httpx.Client, live: Live) -> None:
    policy = fetched(client)
    live.decide(X, id="ours")
    sent(client, policy.decide(X, "theirs").as_json())
    live.decide(X)
    live.learn()
    other = newer(client, policy.id)
    asked = [
        policy.decide(X, "ours"), policy.decide(2 * X, "theirs"), other.decide(X, "theirs"),
        policy.decide(X, "theirs", exclude=["item 0"]), policy.decide(X, "new"),
    ]  # fmt: skip
    told = sent(client, *(one.as_json() for one in asked))
    assert [one["status"] for one in told] == [409, 409, 409, 409, 200]
    assert "by another bundle" in told[2]["detail"]
    with pytest.raises(Conflict):
        live.decide(3 * X, id="theirs")
    assert live.decide(X, id="theirs").action == policy.decide(X, "theirs").action  # the same question: the same answer


def test_what_the_bundle_would_not_decide_is_refused(client: httpx.Client, live: Live) -> None:
    policy = fetched(client)
    good = policy.decide(X, "e").as_json()
    other = next(one for one in policy.ids if one != good["action"])
    wrong: list[dict[str, Any]] = [
        {"action": other}, {"propensity": 0.5 * float(good["propensity"])}, {"propensity": 2.0}, {"action": "nobody"},  # type: ignore[arg-type]
        {"context": [1.0]}, {"context": {"age": 3}}, {"candidates": ["nobody"]}, {"candidates": []}, {"id": ""},
        {"exclude": [good["action"]]}, {"more": 1}, {"id": None}, {"at": "now"}, {"bundle": "../x"}, {"context": "x"},
    ]  # fmt: skip
    told = sent(client, *({**good, **change} for change in wrong), good)
    assert [one["status"] for one in told] == [422] * len(wrong) + [200]
    assert all(one["detail"] for one in told[:-1])
    gone = sent(client, {**good, "id": "f", "bundle": "0" * 32})[0]
    assert gone["status"] == 410 and "not kept" in gone["detail"]
    live.add_arm("second", an_agent(Greedy(), ids=True))
    foreign = sent(client, policy.decide(X, "g").as_json(), agent="second")[0]
    assert foreign["status"] == 422 and "one of 'second'" in foreign["detail"]
    for body in ({}, {"decisions": []}, {"decisions": [1]}, {"decisions": {}}):
        assert client.post("/v1/edge/agent/decisions", json=body).status_code == 422
    many = client.post("/v1/edge/agent/decisions", json={"decisions": [{}] * 1001})
    assert many.status_code == 422 and "at most 1,000" in many.json()["detail"]


def test_unknown_arms_and_services_without_bundles_are_refused(client: httpx.Client, live: Live) -> None:
    assert client.get("/v1/edge/nobody").status_code == 404
    with within(create_app(live)) as other:
        for answer in (other.get("/v1/edge/agent"), other.get("/v1/edge/key")):
            assert answer.status_code == 409 and "edge.folder" in answer.json()["detail"]


def test_decisions_count_though_the_arm_or_the_action_is_gone_since(client: httpx.Client, live: Live) -> None:
    live.add_arm("short", an_agent(EpsilonGreedy(1.0), ids=True))
    policy = fetched(client, "short")
    made = policy.decide(X, "e")
    live.retire([made.action])
    live.remove_arm("short")
    assert sent(client, made.as_json(), agent="short")[0]["status"] == 200
    live.reward("e", 1.0)
    live.learn()
    assert live.status()["learned"] == 1
    assert client.get("/v1/edge/short").status_code == 404


def test_bundles_of_the_key_before_are_still_read(live: Live, tmp_path: Path) -> None:
    bundles = EdgeBundles(live, tmp_path / "edge")
    old = bundles.keys.current().public
    app = create_app(live, edge=tmp_path / "edge")
    with within(app) as client:
        data = client.get("/v1/edge/agent").content
        bundles.keys.rotate()
        told = client.get("/v1/edge/key").json()
        assert told["previous"] == [old] and told["algorithm"] == "Ed25519"
        policy = EdgePolicy.read(data, [told["public_key"], *told["previous"]])
        assert sent(client, policy.decide(X).as_json())[0]["status"] == 200


# ---- what the store makes of them


def uploaded(live: Live, policy: EdgePolicy, events: list[str], **asked: Any) -> list[Any]:
    """Decide and upload, in process."""
    made = [policy.decide(X, event, **asked) for event in events]
    return live.upload("agent", [
        Uploaded(one.id, one.context, one.action, one.propensity, one.version, one.bundle, one.at, one.greedy,
                 one.candidates, one.exclude)
        for one in made
    ])  # fmt: skip


def a_policy(live: Live) -> EdgePolicy:
    return edge_policy(live._learner.view, "agent", EdgeForm(lifetime=1e9), 1.5e9)


def test_wrong_uploads_are_refused_one_by_one(live: Live) -> None:
    good: dict[str, Any] = {
        "id": "e", "context": X, "action": "item 1", "propensity": 0.5, "version": 0, "bundle": "b",
    }  # fmt: skip
    changes: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"id": ""}, InvalidInput), ({"propensity": 0.0}, InvalidInput), ({"propensity": float("nan")}, InvalidInput),
        ({"version": 99}, InvalidInput), ({"version": -1}, InvalidInput), ({"action": "nobody"}, UnknownAction),
        ({"context": [1.0]}, InvalidInput), ({"exclude": ["item 1"]}, InvalidInput), ({"bundle": ""}, InvalidInput),
        ({"candidates": ["item 2"]}, InvalidInput), ({"at": "x"}, InvalidInput), ({"greedy": 1}, InvalidInput),
    ]  # fmt: skip
    told = live.upload("agent", [Uploaded(**{**good, **change}) for change, _ in changes] + [Uploaded(**good)])
    for (_, kind), one in zip(changes, told, strict=False):
        assert isinstance(one, kind)
    assert told[-1].id == "e" and told[-1].action == "item 1"  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match="arm"):
        live.upload("baseline", [])
    with pytest.raises(InvalidInput, match="Uploaded"):
        live.upload("agent", [good])  # type: ignore[list-item]
    live.erase("e")
    assert isinstance(live.upload("agent", [Uploaded(**good)])[0], LiveError)  # an id that was erased stays erased


def test_many_are_written_in_parts_and_each_once(live: Live) -> None:
    events = [f"e{number}" for number in range(350)]
    policy = a_policy(live)
    first = uploaded(live, policy, events)
    again = uploaded(live, policy, [*events, "one more"])
    assert again[:-1] == first
    assert live.database.read("SELECT COUNT(*) FROM decisions") == [(351,)]


def test_a_store_that_breaks_in_the_moment_of_the_commit_has_it_once(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the commit and the answer: nobody knows, and sending it again is right."""
    policy, database = a_policy(live), live.database
    write = database.write

    def commits_and_breaks(work: Any) -> Any:
        write(work)
        raise StoreUnavailable("the connection broke in the moment of the commit")

    monkeypatch.setattr(database, "write", commits_and_breaks)
    with pytest.raises(StoreUnavailable):
        uploaded(live, policy, ["a", "b"])
    monkeypatch.undo()
    told = uploaded(live, policy, ["a", "b", "c"])
    assert [one.id for one in told] == ["a", "b", "c"]
    assert live.database.read("SELECT id FROM decisions ORDER BY position") == [("a",), ("b",), ("c",)]


def test_the_state_is_a_function_of_the_log_and_replay_counts_them(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "store.db"
    with small_live(path, clock, an_agent(EpsilonGreedy(0.3)), reward_range=(-9.0, 9.0)) as live:
        rng = np.random.default_rng(0)
        for number in range(30):
            clock.now += 30.0
            live.decide(rng.normal(size=D), id=f"ours {number}")
            uploaded(live, a_policy(live), [f"edge {number}"], exclude=[int(rng.integers(K))])
            for event in (f"ours {number}", f"edge {number}"):
                if rng.random() < 0.5:
                    live.reward(event, float(rng.normal()))
            live.learn()
        live.snapshot()
        assert live.status()["learned"] > 40
        assert from_origin(live) == live.state_bytes()
    found = ma.live.replay(path)
    assert found.ok, str(found)
    assert (found.decisions, found.elsewhere) == (30, 30)
    assert "30 made at the edge" in str(found)


def test_late_uploads_wait_for_their_reward_from_then_on(tmp_path: Path) -> None:
    clock = Clock()
    with small_live(":memory:", clock, an_agent(EpsilonGreedy(0.3)), wait=60.0, default=0.0) as live:
        policy = a_policy(live)
        made = policy.decide(X, "e")
        clock.now += 10_000.0
        live.upload("agent", [Uploaded("e", X, made.action, made.propensity, 0, policy.id, at=clock.now - 9_000.0)])
        live.learn()
        clock.now += 59.0
        live.learn()
        assert live.status()["settled"] == 0
        clock.now += 2.0
        live.learn()
        assert live.status()["settled"] == 1


def test_they_have_no_part_in_shares_and_lift_and_are_checked_by_their_propensities() -> None:
    clock = Clock()
    with small_live(":memory:", clock, an_agent(EpsilonGreedy(0.3)), reward_range=(0.0, 1.0), wait=1.0) as live:
        live.add_arm("other", an_agent(EpsilonGreedy(0.5), seed=1))
        live.deploy({"agent": 0.5, "other": 0.5}, holdout=0.1, holdout_arm="other")
        before = live._learner.view.frozen["watch"]
        uploaded(live, a_policy(live), [f"e{number}" for number in range(200)])
        clock.now += 10.0
        live.learn()
        watch = live._learner.view.frozen["watch"]
        assert watch["events"] == 200 and not any(watch["skipped"].values())
        ratio, lift = watch["routing"][2], watch["holdout"][3]
        assert "agent" in watch["values"] and "agent" in watch["checks"]
        assert (ratio, lift) == (before["routing"][2], before["holdout"][3])
        assert not live.report().body.get("alarms")


def test_the_exported_log_is_unbiased_and_names_the_bundles(tmp_path: Path) -> None:
    """A tiny world, half of it decided at the edge: the value of another policy is estimated by inverse propensities."""
    rng, clock, path = np.random.default_rng(0), Clock(), tmp_path / "store.db"
    means = np.linspace(0.1, 0.8, K)
    with small_live(path, clock, an_agent(EpsilonGreedy(0.5)), wait=1.0, reward_range=(0.0, 1.0)) as live:
        policy = a_policy(live)
        for number in range(1500):
            if number % 2:
                made: Any = uploaded(live, policy, [str(number)])[0]
            else:
                made = live.decide(X, id=str(number))
            if rng.random() < means[made.action]:
                live.reward(made.id, 1.0)
        clock.now += 10.0
    ma.live.export(path, tmp_path / "log.parquet")
    import pyarrow.parquet as parquet

    table = parquet.read_table(tmp_path / "log.parquet")
    edge = table.column("edge").to_pylist()
    assert sum(one is not None for one in edge) == 750 and set(edge) == {None, policy.id}
    assert set(table.column("propensity_kind").to_pylist()) == {"exact"}
    log = ma.open_log(tmp_path / "log.parquet")
    weights = 1 / K / np.array(table.column("propensity").to_pylist())
    terms = weights * np.array(table.column("reward").to_pylist())
    for some in (np.array([one is not None for one in edge]), np.array([one is None for one in edge])):
        error = terms[some].std() / np.sqrt(some.sum())
        assert abs(terms[some].mean() - means.mean()) < SIX * error
    assert ma.evaluate(ma.policies.UniformPolicy(K), log)["ips"].value == pytest.approx(terms.mean())


def test_a_log_without_edge_decisions_has_no_such_column(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "store.db"
    with small_live(path, clock, an_agent(EpsilonGreedy(0.5)), wait=1.0) as live:
        live.decide(X)
        clock.now += 10.0
    ma.live.export(path, tmp_path / "log.parquet")
    import pyarrow.parquet as parquet

    assert "edge" not in parquet.read_table(tmp_path / "log.parquet").column_names


def test_stated_propensities_are_the_law_of_what_comes(live: Live) -> None:
    policy = a_policy(live)
    law = policy.law(X)
    made = [policy.decide(X, str(number)).action for number in range(3000)]
    counts = np.array([made.count(one) for one in law])
    assert stats.chisquare(counts, np.array(list(law.values())) * len(made)).pvalue > REFUSED


def test_the_guard_of_a_challenge_looks_at_the_services_own_events() -> None:
    challenge = Challenge("new", 0.05, 0.0, 0.02, 1e4, True, state=PROMOTED)
    assert challenge.concerns(seen(0.5, 0.5, None, arm="new"))
    assert not challenge.concerns(seen(0.5, 0.5, None, arm="new", edge=True, routed=False))
