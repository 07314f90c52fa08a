"""What the clients of `service.killing` do until they are told to stop, while their server is killed and started again.

Each client is a thread with a connection of its own. It keeps a journal: an entry before a request, saying what is asked for, and
an entry after it, saying what was told. A request that is not answered is sent again, with the same ids, now or later, or never.
Contexts and rewards follow from the ids alone (`live.tortured`), so that whoever checks can say what should be in the store.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from live.tortured import ACTIONS, DEFAULT, OTHERS, REWARD_IDS, WAIT, context_of, is_deferred, value_of, weights_of
from manyarms.client import Backoff, Client, RemoteUnknownEvent, ServiceError
from service.server import Answer, ask, connect

PROBLEM = "application/problem+json"
PATIENCE = 60.0  # seconds for an answer: a server that was killed breaks the connection at once
TIRED = 0.05  # seconds between two tries to connect
KEY_HEADERS = (("Authorization", "Bearer "), ("X-API-Key", ""), ("Ocp-Apim-Subscription-Key", ""))
Question = dict[str, Any]


@dataclass
class Shared:
    """What all clients of a round know."""

    address: Callable[[random.Random], str]
    """Of a server that may be there."""
    key: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    events: list[tuple[str, list[Any]]] = field(default_factory=list)
    """What was told to anybody: ids and actions."""
    deferred: list[str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    """Events that somebody may have erased."""
    answered: int = 0
    """About how many requests."""


class Gone(Exception):
    """No answer came: it may have been done, or not."""


class OneClient:
    """One client, in one thread."""

    def __init__(self, name: str, seed: int, shared: Shared) -> None:
        self.name, self.shared = name, shared
        self.journal: list[tuple[Any, ...]] = []
        self._rng = random.Random(seed)
        self._connection: http.client.HTTPConnection | None = None
        self._number = 0
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    # ---- its life

    def _run(self) -> None:
        try:
            while not self.shared.stop.is_set():
                with suppress(Gone):
                    self._one_call()
        except BaseException as error:
            self.note("broken", f"the client itself: {type(error).__name__}: {error}")
            raise
        finally:
            self._drop()

    def note(self, *words: Any) -> None:
        """An entry of the journal."""
        self.journal.append(words)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, method: str, path: str, body: object = None) -> Answer:
        """One request, sent once."""
        headers = {}
        if self.shared.key is not None:
            name, before = self._rng.choice(KEY_HEADERS)
            headers[name] = before + self.shared.key
        if self._connection is None or self._rng.random() < 0.05:
            self._drop()
            self._connection = connect(self.shared.address(self._rng), PATIENCE)
        try:
            answer = ask(self._connection, method, path, body, headers)
        except TimeoutError:
            self._drop()
            self.note("broken", f"{method} {path}: no answer within {PATIENCE:g} s, and the connection is still there")
            raise Gone from None
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            if isinstance(error, ConnectionRefusedError):
                self.shared.stop.wait(TIRED)
            self.note("unanswered", type(error).__name__)
            raise Gone from None
        self.shared.answered += 1
        self._look_at(method, path, answer)
        return answer

    def _look_at(self, method: str, path: str, answer: Answer) -> None:
        """Every answer has an id; one that refuses is a problem, and is not a failure of the server's."""
        where = f"{method} {path}"
        if "x-request-id" not in answer.headers:
            self.note("broken", f"{where}: no X-Request-Id")
        if answer.status >= 400:
            told = answer.json() if answer.headers.get("content-type", "").startswith(PROBLEM) else {}
            if told.get("status") != answer.status or not {"type", "title", "detail"} <= set(told):
                self.note("broken", f"{where}: {answer.status} is no problem: {answer.content[:300]!r}")
            self.note("refused", answer.status, f"{where.split('?')[0].partition('/v1')[2][:20]} {told.get('type')}")
            if answer.status == 503 and "retry-after" not in answer.headers:
                self.note("broken", f"{where}: 503 without Retry-After")
        if answer.status >= 500 and answer.status != 503:
            self.note("broken", f"{where}: {answer.status} {answer.content[:300]!r}")

    def _ask_until_told(self, method: str, path: str, body: object = None) -> Answer:
        """One request that may be sent twice, sent until it is answered, or given up now and then."""
        while True:
            with suppress(Gone):
                answer = self._ask(method, path, body)
                if answer.status != 503:
                    return answer
                self.shared.stop.wait(TIRED)
            if self.shared.stop.is_set() or self._rng.random() < 0.1:
                raise Gone

    def _one_call(self) -> None:
        kinds: list[tuple[int, Callable[[], None]]] = [
            (30, self._decide), (8, self._decide_without_id), (8, self._decide_many), (8, self._decide_by_client),
            (14, self._reward), (5, self._reward_many), (8, self._activate), (8, self._read), (3, self._read_pages),
            (3, self._operate), (1, self._erase),
        ]  # fmt: skip
        [call] = self._rng.choices([call for _, call in kinds], [weight for weight, _ in kinds])
        call()

    # ---- decisions

    def _new(self) -> str:
        self._number += 1
        return f"{self.name}-{self._number}"

    def _question(self, event: str, *, with_id: bool = True) -> Question:
        asked: Question = {"context": context_of(event).tolist(), "deferred": is_deferred(event)}
        if self._rng.random() < 0.3:
            asked["k"] = 2
        if self._rng.random() < 0.3:
            asked["unit"] = f"unit-{self._rng.randrange(50)}"
        if with_id:
            asked["id"] = event
        return asked

    def _decide(self) -> None:
        event = self._new()
        asked = self._question(event)
        for _ in range(self._rng.choice([1, 1, 1, 2])):  # now and then the same question again
            self.note("asking", event, asked)
            answer = self._ask_until_told("POST", "/v1/decide", asked)
            if answer.status in (404, 409) and event in self.shared.gone:
                return
            if self._expect(answer, 200):
                self._told(event, answer.json())
        if asked["deferred"] and self._rng.random() < 0.5:
            self._activate(event)
        if self._rng.random() < 0.4 and answer.status == 200:
            self._give(event, self._rng.choice(answer.json()["actions"]))

    def _decide_without_id(self) -> None:
        """Asked once: a second time would be another event."""
        tag = self._new()
        asked = self._question(tag, with_id=False)
        self.note("asking", tag, asked)
        answer = self._ask("POST", "/v1/decide", asked)
        if self._expect(answer, 200):
            self._told(tag, answer.json())

    def _decide_many(self) -> None:
        events = [self._new() for _ in range(self._rng.randint(1, 5))]
        questions = [self._question(event) for event in events]
        for event, asked in zip(events, questions, strict=True):
            self.note("asking", event, asked)
        answer = self._ask_until_told("POST", "/v1/decide/batch", {"decisions": questions})
        if self._expect(answer, 200):
            for event, told in zip(events, answer.json()["decisions"], strict=True):
                if told["status"] == 200:
                    self._told(event, told)
                elif told["status"] != 503:
                    self.note("broken", f"one of a batch: {told}")

    def _decide_by_client(self) -> None:
        """The client of the package, with its retries."""
        event = self._new()
        asked = self._question(event)
        self.note("asking", event, asked)
        patient = Backoff(first=0.01, longest=0.1, longest_asked=0.1)
        address = self.shared.address(self._rng)
        with Client(address, self.shared.key, timeout=PATIENCE, retries=40, backoff=patient) as client:
            try:
                told = client.decide(
                    asked["context"], k=asked.get("k"), unit=asked.get("unit"), id=event, deferred=asked["deferred"]
                )
            except ServiceError as error:
                self._failed(error)
                return
            self.shared.answered += 1
            answer = {
                name: getattr(told, name)
                for name in ("id", "propensity", "propensity_kind", "arm", "version", "active", "logged")
            }
            self._told(event, {**answer, "actions": list(told.actions), "action": told.action})
            action, reward = self._rng.choice(told.actions), self._rng.choice(REWARD_IDS)
            value = value_of(event, int(action), reward)
            self.note("rewarding", event, action, reward, value)
            try:
                client.reward(event, value, action=action, id=reward)
            except RemoteUnknownEvent:
                self._missing(event)
            except ServiceError as error:
                self._failed(error)
            else:
                self.note("rewarded", event, action, reward, value)

    def _failed(self, error: ServiceError) -> None:
        """The service may be out of reach for longer than the client tries; nothing else may go wrong."""
        kind = "unanswered" if error.status in (None, 503) else "broken"
        self.note(kind, f"{type(error).__name__}: {error}")

    def _told(self, event: str, answer: dict[str, Any]) -> None:
        self.note("told", event, answer)
        if not answer["logged"]:
            self.note("broken", f"{event} was not logged")
        self.shared.events.append((answer["id"], answer["actions"]))
        if not answer["active"]:
            self.shared.deferred.append(answer["id"])

    def _expect(self, answer: Answer, *statuses: int) -> bool:
        """Whether it was done. The store may be out of reach; nothing else may go wrong."""
        if answer.status in statuses:
            return True
        if answer.status != 503:
            self.note("broken", f"expected {statuses}, got {answer.status}: {answer.content[:300]!r}")
        return False

    # ---- what comes of them

    def _somebodys(self) -> tuple[str, list[Any]] | None:
        known = self.shared.events[-self._rng.choice([5, 50, 500]) :]
        return self._rng.choice(known) if known else None

    def _missing(self, event: str) -> None:
        if event not in self.shared.gone:
            self.note("broken", f"{event} is not known any more, and nobody has erased it")

    def _reward(self) -> None:
        """Of an event of anybody's, perhaps for the second time, perhaps after its default."""
        if found := self._somebodys():
            self._give(found[0], self._rng.choice(found[1]))

    def _give(self, event: str, action: Any) -> None:
        reward = self._rng.choice(REWARD_IDS)
        value = value_of(event, int(action), reward)
        self.note("rewarding", event, action, reward, value)
        body = {"event": event, "value": value, "action": action, "id": reward}
        answer = self._ask_until_told("POST", "/v1/reward", body)
        if answer.status == 404:
            self._missing(event)
        elif self._expect(answer, 204):
            self.note("rewarded", event, action, reward, value)

    def _reward_many(self) -> None:
        rewards = []
        for event, actions in filter(None, (self._somebodys() for _ in range(self._rng.randint(1, 5)))):
            action, reward = self._rng.choice(actions), self._rng.choice(REWARD_IDS)
            rewards.append((event, action, reward, value_of(event, int(action), reward)))
        if not rewards:
            return
        for words in rewards:
            self.note("rewarding", *words)
        body = [{"event": e, "value": v, "action": a, "id": i} for e, a, i, v in rewards]
        answer = self._ask_until_told("POST", "/v1/reward/batch", {"rewards": body})
        if self._expect(answer, 200):
            for words, told in zip(rewards, answer.json()["rewards"], strict=True):
                if told["status"] == 204:
                    self.note("rewarded", *words)
                elif told["status"] == 404:
                    self._missing(words[0])
                elif told["status"] != 503:
                    self.note("broken", f"one of a batch: {told}")

    def _activate(self, event: str | None = None) -> None:
        """An event, or one of anybody's: perhaps for the second time, perhaps too late."""
        if event is None:
            if not self.shared.deferred:
                return
            event = self._rng.choice(self.shared.deferred[-20:])
        self.note("activating", event)
        answer = self._ask_until_told("POST", "/v1/activate", {"event": event})
        if answer.status == 404:
            self._missing(event)
        elif answer.status != 409 and self._expect(answer, 204):  # 409: its waiting time is over
            self.note("activated", event)

    def _erase(self) -> None:
        if found := self._somebodys():
            self.shared.gone.add(found[0])
            self.note("erasing", found[0])
            answer = self._ask("DELETE", f"/v1/events/{found[0]}")
            if answer.status != 404 and self._expect(answer, 204):
                self.note("erased", found[0])

    # ---- reading, and the catalogue

    def _read(self) -> None:
        """What was told is there, and the same."""
        if not (found := self._somebodys()):
            return
        event, actions = found
        answer = self._ask("GET", f"/v1/events/{event}")
        if answer.status == 404:
            self._missing(event)
        elif self._expect(answer, 200):
            told = answer.json()
            if not told["erased"] and told["actions"] != actions:
                self.note("broken", f"{event}: told {actions}, read {told['actions']}")

    def _read_pages(self) -> None:
        pages = ("/v1/events?limit=20", "/v1/catalogue?limit=5", "/v1/status", "/v1/report", "/metrics", "/v1/agents")
        self._expect(
            self._ask("GET", self._rng.choice([*pages, "/v1/dashboard", "/v1/deployment", "/openapi.json"])), 200
        )

    def _operate(self) -> None:
        which = self._rng.randrange(ACTIONS // 2)  # the others always remain
        other = OTHERS[which % 2]
        kind, told, method, path, body = self._rng.choice([
            ("add_actions", weights_of(which), "POST", "/v1/catalogue", {"weights": weights_of(which)}),
            ("retire", [which], "POST", "/v1/catalogue/retire", {"actions": [which]}),
            ("reinstate", [which], "POST", "/v1/catalogue/reinstate", {"actions": [which]}),
            ("add_arm", other, "POST", "/v1/agents", {"name": other, "folder": other}),
            ("deploy", {"agent": 0.5, other: 0.5}, "PUT", "/v1/deployment", {"shares": {"agent": 0.5, other: 0.5}}),
            ("roll_back", None, "POST", "/v1/agents/roll-back", None),
            ("change_settings", DEFAULT + which / 8, "PATCH", "/v1/settings",
             {"default": DEFAULT + which / 8, "wait": WAIT * (1 + which % 3) / 2}),
        ])  # fmt: skip
        self.note("operating", kind, told)
        answer = self._ask(method, path, body)
        # 409: as things are, which the log may say all the same; 422: an arm that is there, or is not
        if answer.status not in (409, 422) and self._expect(answer, 200, 201, 204):
            self.note("operated", kind, told)


def shown(journal: list[tuple[Any, ...]]) -> str:
    """A journal as lines of JSON."""
    return "".join(json.dumps(entry, default=str) + "\n" for entry in journal)
