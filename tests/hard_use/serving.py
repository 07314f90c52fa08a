"""Correct arguments for what stands around a live store: backups and uploads, the edge, the client, the service.

No call leaves the process: the client's transport is a function that has a bundle, and answers everything else by status 404.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hard_use import hostile as h

ACTIONS, DIM = 12, 3  # as material.py has them
EVENT = "event 1"
NOT_CALLED = {
    r"^live\.Uploaded$": "its fields are checked by `Live.upload`, which is called with each of them",
    r"^service\.Config$": "made by `make_config`, which checks",
    r"^service\.(Service|open_service)$": "starts threads; tests/service has them",
    r"^service\.keys\.Key$|^edge\.EdgeDecision$": "made by the library alone",
    r"^client\.(\w+(Entry|Share|Parts|Progress)|Added\w+|Edge(Download|PublicKeys)|Service\w+)$": "answers of the service",
}


class Serving:
    """Small correct objects, each made once."""

    folder: Path
    public: dict[str, Any]
    x: np.ndarray
    store: str
    sure_agent: Any

    @cached_property
    def backup(self) -> str:
        path = str(self.folder / "backup.db")
        self.public["live.backup"](self.store, path)
        return path

    @cached_property
    def signing_key(self) -> Any:
        return self.public["edge.SigningKey"](bytes(range(32)))

    @cached_property
    def header(self) -> Any:
        return self.public["edge.Header"]("agent", 0, "softmax", DIM, 0.0, 1e11, bytes(range(16)))

    @cached_property
    def tables(self) -> np.ndarray:
        return np.random.default_rng(3).normal(size=(1, ACTIONS, DIM)).astype(np.float32)

    @cached_property
    def edge_policy(self) -> Any:
        return self.public["edge.EdgePolicy"](self.header, self.tables, list(range(ACTIONS)))

    @cached_property
    def at_the_edge(self) -> Any:
        """What the policy decides for a context and an id."""
        return self.edge_policy.decide(self.x, EVENT)

    @cached_property
    def bundle(self) -> bytes:
        return bytes(self.edge_policy.to_bytes(self.signing_key))

    @cached_property
    def client(self) -> Any:
        import httpx

        def answer(request: Any) -> Any:
            if request.url.path == "/v1/edge/agent":
                return httpx.Response(200, content=self.bundle, headers={"ETag": '"1"'})
            return httpx.Response(404)

        transport = httpx.MockTransport(answer)
        return self.public["client.Client"]("http://localhost", transport=transport, retries=0)

    @cached_property
    def edge_client(self) -> Any:
        return self.public["client.EdgeClient"](self.client, "agent", self.signing_key.public, background=False)

    @cached_property
    def live(self) -> Any:
        return self.public["live.open"](":memory:", self.sure_agent, background=False)

    @cached_property
    def config_file(self) -> str:
        path = self.folder / "service.toml"
        path.write_text('[store]\naddress = "shop.db"\n', encoding="utf-8")
        return str(path)

    @cached_property
    def keys_file(self) -> str:
        path = str(self.folder / "keys.json")
        self.public["service.keys.Keys"](path).add("shop", ["decide"])
        return path

    def keys(self) -> Any:
        """Of a file of their own: keys that are revoked are gone."""
        found = self.public["service.keys.Keys"](self.folder / f"{secrets.token_hex(8)}.json")
        found.add("shop", ["decide"])
        return found


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Of ASGI, that does nothing."""


# ---- hostile settings


def sections(rng: np.random.Generator, good: Any) -> list[h.Hostile]:
    """In place of the sections of a file of settings: one setting is hostile, a section is, or all of it."""
    one = _setting(rng)
    inside = [h.Hostile(bad.label, {**good, one.section: {one.name: bad.value}}) for bad in _values(rng)]
    other = [h.Hostile(f"section_{bad.label}", {**good, one.section: bad.value}) for bad in h.things(rng, good)]
    names = [h.Hostile(f"name_{bad.label}", {**good, _hashable(bad.value): {}}) for bad in h.texts(rng, good)]
    return [*inside, *other, *names, *h.things(rng, good)]


def options(rng: np.random.Generator, good: Any) -> list[h.Hostile]:
    """In place of settings by name: one is hostile, or all of it."""
    one = _setting(rng)
    inside = [h.Hostile(f"{one.field}_{bad.label}", {one.field: bad.value}) for bad in _values(rng)]
    return [*inside, h.Hostile("unknown", {"bogus": 1}, True), h.Hostile("no text", {3: 1}), *h.things(rng, good)]


def _setting(rng: np.random.Generator) -> Any:
    from manyarms.service.config import SETTINGS

    return SETTINGS[int(rng.integers(len(SETTINGS)))]


def _values(rng: np.random.Generator) -> list[h.Hostile]:
    kinds = (h.numbers, h.texts, h.things, h.pairs, h.arrays)
    return [bad for kind in kinds for bad in kind(rng, None)]


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | bytes | None) else str(value)


# ---- ids, which may be texts


def _or_texts(kind: h.Kind) -> h.Kind:
    def listed(rng: np.random.Generator, good: Any) -> list[h.Hostile]:
        return [replace(bad, refuse=bad.refuse and bad.label != "text") for bad in kind(rng, good)]

    return listed


an_id, some_ids, other_ids = _or_texts(h.integers), _or_texts(h.ids), _or_texts(h.excluded)


# ---- uploads


def upload_one(
    live: Any,
    id: Any,
    context: Any,
    action: Any,
    propensity: Any,
    version: Any,
    bundle: Any,
    at: Any,
    greedy: Any,
    candidates: Any,
    exclude: Any,
) -> Any:
    """Upload one decision; what is told of it is raised where it is an error."""
    from manyarms.live import Uploaded

    event = secrets.token_hex(8) if id == EVENT else id  # a new one, so that nothing conflicts
    told = Uploaded(event, context, action, propensity, version, bundle, at, greedy, candidates, exclude)
    [found] = live.upload("agent", [told])
    if isinstance(found, Exception):
        raise found
    return found


def upload_arguments(material: Any) -> dict[str, tuple[Any, h.Kind]]:
    return {
        "id": (EVENT, h.texts), "context": (material.x, h.arrays), "action": (1, h.integers), "propensity": (0.5, h.numbers),
        "version": (0, h.integers), "bundle": ("b", h.texts), "at": (1.0, h.numbers), "greedy": (True, h.flags),
        "candidates": (None, h.ids), "exclude": (None, h.excluded),
    }  # fmt: skip


# ---- what is called, with what


Maker = Callable[[], Any]


def owners(material: Any) -> list[tuple[str, Maker]]:
    """Objects whose methods are called as well, where what they need is installed."""
    makers: dict[str, Maker] = {
        "edge.SigningKey": lambda: material.signing_key,
        "edge.EdgePolicy": lambda: material.edge_policy,
        "client.EdgeClient": lambda: material.edge_client,
        "service.keys.Keys": material.keys,
    }
    return [(name, maker) for name, maker in makers.items() if name in material.public]


# (the callable's last name and the parameter; a pattern in its annotation; a value; its kind), as in material.py
RULES: list[tuple[str, str, Callable[[Any], Any], h.Kind]] = [
    # live stores
    (
        "Live.activate.event|Live.submit_activation.event|Live.rewards.event|Live.submit_reward.event",
        "",
        lambda m: "decided",
        h.things,
    ),
    ("Live.submit_decision.unit|Live.submit_decision.id", "", lambda m: None, h.texts),
    ("Live.actions.search", "", lambda m: "", h.texts),
    ("Live.submit_reward.action", "", lambda m: None, h.integers),
    ("Live.submit_reward.id", "", lambda m: "", h.texts),
    ("Live.change_settings.wait", "", lambda m: 60.0, h.numbers),
    ("Live.change_settings.default", "", lambda m: 0.0, h.numbers),
    ("Live.change_settings.aggregate", "", lambda m: "first", h.words),
    ("Live.upload.arm", "", lambda m: "agent", h.texts),
    ("Live.upload.decisions", "", lambda m: [], h.things),
    ("live.backup.store", "", lambda m: m.store, h.paths),
    ("live.backup.path", "", lambda m: m.new_folder() + ".db", h.paths),
    ("live.restore.path", "", lambda m: m.backup, h.paths),
    ("live.restore.store", "", lambda m: m.new_folder() + ".db", h.paths),
    # the edge
    ("edge.Header.agent", "", lambda m: "agent", h.texts),
    ("edge.Header.version", "", lambda m: 0, h.integers),
    ("edge.Header.rule", "", lambda m: "softmax", h.words),
    ("edge.Header.created|edge.Header.expires", "", lambda m: 1e10, h.numbers),
    ("edge.Header.salt", "", lambda m: bytes(range(16)), h.things),
    ("edge.Header.features|edge.Header.encoder", "", lambda m: None, h.things),
    ("EdgePolicy.header", "", lambda m: m.header, h.things),
    ("EdgePolicy.tables", "", lambda m: m.tables, h.arrays),
    ("EdgePolicy.ids", "", lambda m: list(range(ACTIONS)), h.labels),
    ("EdgePolicy.read.data", "", lambda m: m.bundle, h.things),
    ("EdgePolicy.read.public_key", "", lambda m: m.signing_key.public, h.words),
    (
        "EdgePolicy.decide.context|EdgePolicy.check.context|EdgePolicy.law.context|EdgePolicy.vector.context",
        "",
        lambda m: m.x,
        h.arrays,
    ),
    ("EdgePolicy.decide.id|EdgePolicy.check.id", "", lambda m: EVENT, h.texts),
    ("EdgePolicy.check.action", "", lambda m: m.at_the_edge.action, h.integers),
    ("EdgePolicy.check.propensity", "", lambda m: m.at_the_edge.propensity, h.numbers),
    (
        "EdgePolicy.decide.candidates|EdgePolicy.check.candidates|EdgePolicy.law.candidates|EdgeClient.decide.candidates",
        "",
        lambda m: None,
        some_ids,
    ),
    (
        "EdgePolicy.decide.exclude|EdgePolicy.check.exclude|EdgePolicy.law.exclude|EdgeClient.decide.exclude",
        "",
        lambda m: None,
        other_ids,
    ),
    ("EdgePolicy.to_bytes.key", "", lambda m: m.signing_key, h.things),
    ("SigningKey.secret", "", lambda m: bytes(range(32)), h.things),
    ("SigningKey.sign.content", "", lambda m: b"content", h.things),
    # the client
    ("Client.url|AsyncClient.url", "", lambda m: "http://localhost", h.words),
    ("Client.key|AsyncClient.key", "", lambda m: "a-key", h.texts),
    ("EdgeClient.client", "", lambda m: m.client, h.things),
    ("EdgeClient.agent", "", lambda m: "agent", h.words),
    ("EdgeClient.public_key", "", lambda m: m.signing_key.public, h.words),
    ("EdgeClient.background", "", lambda m: False, h.flags),
    ("EdgeClient.decide.context", "", lambda m: m.x, h.arrays),
    ("EdgeClient.decide.id", "", lambda m: None, h.texts),
    ("EdgeClient.reward.event", "", lambda m: EVENT, h.texts),
    ("EdgeClient.reward.value", "", lambda m: 1.0, h.numbers),
    ("EdgeClient.reward.action", "", lambda m: None, an_id),
    ("EdgeClient.reward.id", "", lambda m: "", h.texts),
    ("in_process.app|in_process_async.app", "", lambda m: application, h.functions),
    # the service
    ("create_app.service", "", lambda m: m.live, h.things),
    ("make_config.told", "", lambda m: {"store": {"address": "shop.db"}}, sections),
    ("make_config.options", "", lambda m: {"port": 0}, options),
    ("make_config.source", "", lambda m: "the settings", h.texts),
    ("make_config.folder", "", lambda m: Path("."), h.things),
    ("read_config.path", "", lambda m: m.config_file, h.paths),
    ("Keys.path|Keys.open.path", "", lambda m: m.keys_file, h.paths),
    ("Keys.find.text|Keys.revoke.which", "", lambda m: "shop", h.texts),
    ("Keys.add.name", "", lambda m: "another", h.texts),
    ("Keys.add.scopes", "", lambda m: ["decide", "reward"], h.things),
    ("Keys.add.expires", "", lambda m: 1e10, h.numbers),
    ("Keys.rotate.name", "", lambda m: "shop", h.texts),
    ("Keys.rotate.overlap", "", lambda m: 0.0, h.numbers),
]
