"""Deciding at the edge: a verified policy in this process, refreshed now and then, and its decisions uploaded later."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, cast

import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Cell, Shown, Table
from manyarms.client.arguments import ActionId, RewardArguments, a_name, an_action, given
from manyarms.client.client import Client
from manyarms.client.errors import ServiceError, Unauthorised
from manyarms.client.problems import TRANSIENT
from manyarms.client.queue import DECISION, REWARD, UploadQueue, Waiting
from manyarms.edge import EdgeDecision, EdgePolicy
from manyarms.errors import InvalidInput, ManyArmsError

REMEMBERED = 100  # entries that the service refused, with its reasons
BATCH = 500  # entries of an upload
TOO_MUCH = frozenset({413, 422})  # of a whole upload: too large, or with an entry that no service takes


class EdgeClient(Shown):
    """Decides in this process by a policy that the service signed, and uploads what was decided. Threads may share it.

    client: of the service. agent: whose policy. public_key: that bundles are signed with, or several (`client.edge_key()`, asked
    once by a way that you trust); verify=None believes whoever sends a bundle. refresh: seconds after which a newer bundle is
    asked for, at the earliest. queue: a file for what waits to be uploaded, and for the last bundle; in memory, and gone with
    the process, unless said. most_waiting: entries it holds; more are refused (Overloaded). upload_every: seconds between
    uploads. background: whether a thread refreshes and uploads; `refresh()` and `upload()` do it by hand.

        with EdgeClient(client, "agent", public_key, queue="edge.db") as edge:
            d = edge.decide([0.2, 1.0])
            edge.reward(d.id, 1.0)
    """

    def __init__(
        self,
        client: Client,
        agent: str,
        public_key: str | bytes | Sequence[str | bytes] | None = None,
        *,
        verify: Literal["signature"] | None = "signature",
        refresh: float = 60.0,
        queue: str | Path | None = None,
        most_waiting: int = 100_000,
        upload_every: float = 5.0,
        background: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = validate.instance("client", client, Client, "a Client of the service")
        self._agent = a_name("agent", agent)
        if verify is not None and public_key is None:
            raise InvalidInput("public_key", None, "the key that bundles are signed with, or verify=None")
        self._public_key, self._verify = public_key, verify
        self._every = validate.positive("refresh", refresh)
        pause = validate.positive("upload_every", upload_every)
        if not callable(clock):
            raise InvalidInput("clock", validate.describe(clock), "a function")
        self._clock = clock
        self._asked = float("-inf")  # when a bundle was asked for
        self._etag: str | None = None
        self._policy: EdgePolicy | None = None
        self._refused: deque[ServiceError] = deque(maxlen=REMEMBERED)
        self._counts = {"uploaded": 0, "refused": 0}
        self._failures: dict[str, str] = {}
        self._refreshing, self._uploading = threading.Lock(), threading.Lock()
        self._queue = UploadQueue(queue, validate.count("most_waiting", most_waiting))
        try:
            self._begin()
        except BaseException:
            self._queue.close()
            raise
        self._stop, self._thread = threading.Event(), None
        if validate.flag("background", background):
            self._thread = threading.Thread(target=self._work, args=(pause,), name="manyarms-edge", daemon=True)
            self._thread.start()

    def _begin(self) -> None:
        """The bundle that was kept, if it still counts, and a newer one if there is one."""
        kept = self._queue.bundle(self._agent)
        if kept is not None:
            with suppress(ManyArmsError):  # expired, or signed by another key
                self._policy, self._etag = self._read(kept[1]), kept[0]
        try:
            self.refresh()
        except ServiceError as error:
            if self._policy is None or isinstance(error, Unauthorised):
                raise
            self._failures["refresh"] = str(error)

    # ---- every day

    @property
    def policy(self) -> EdgePolicy:
        """What decides now."""
        assert self._policy is not None
        return self._policy

    def decide(
        self,
        context: Mapping[str, object] | npt.ArrayLike,
        *,
        id: str | None = None,
        candidates: Sequence[ActionId] | None = None,
        exclude: Sequence[ActionId] | None = None,
    ) -> EdgeDecision:
        """Decide here; it is in the queue when this returns. The arguments are those of `manyarms.edge.EdgePolicy.decide`."""
        found = self.policy.decide(context, id, candidates, exclude)
        self._queue.put(DECISION, found.as_json())
        return found

    def reward(self, event: str, value: float = 1.0, *, action: ActionId | None = None, id: str = "") -> None:
        """The reward of an event, in the queue when this returns: uploaded after its decision."""
        self._queue.put(
            REWARD,
            given(
                event=a_name("event", event),
                value=validate.number("value", value),
                action=None if action is None else an_action("action", action),
                id=a_name("id", id, empty=True) or None,
            ),
        )

    # ---- the service

    def refresh(self) -> bool:
        """Ask for a newer policy, and decide by it from now on; whether there was one."""
        with self._refreshing:
            self._asked = self._clock()
            found = self._client.edge_bundle(self._agent, etag=self._etag)
            if found.data is None:
                return False
            self._policy = self._read(found.data)  # what cannot be verified changes nothing
            self._etag = found.etag
            self._queue.keep_bundle(self._agent, found.etag, found.data)
            return True

    def _read(self, data: bytes) -> EdgePolicy:
        return EdgePolicy.read(data, self._public_key, verify=self._verify)

    def upload(self) -> int:
        """Upload what waits, decisions before their rewards; how many entries have left the queue.

        What the service refuses for good leaves it, too, and is in `refused`; what it refuses for now stays, and so does
        everything where it is out of reach (Unreachable).
        """
        size = BATCH
        with self._uploading:
            before = sum(self._counts.values())
            while entries := self._queue.first(size):
                try:
                    done = self._sent(entries)
                except ServiceError as error:
                    if error.status not in TOO_MUCH:
                        raise
                    if size > 1:  # another try with fewer: one that cannot be sent must not stand in the way of all
                        size = (size + 1) // 2
                        continue
                    done = self._settled(entries, [error])
                self._queue.remove(done)
                if len(done) < len(entries):
                    break
            return sum(self._counts.values()) - before

    def _sent(self, entries: list[Waiting]) -> list[int]:
        """Upload entries, decisions first; the numbers of those that need not be sent again."""
        decisions = [entry for entry in entries if entry.kind == DECISION]
        done = self._settled(decisions, self._client.upload_decisions(self._agent, [entry.body for entry in decisions]))
        self._queue.remove(done)
        later = {entry.body["id"] for entry in decisions if entry.number not in done}
        rewards = [entry for entry in entries if entry.kind == REWARD and entry.body["event"] not in later]
        told = self._client.reward_many([cast(RewardArguments, entry.body) for entry in rewards])
        return [*done, *self._settled(rewards, told)]

    def _settled(self, entries: list[Waiting], errors: Sequence[ServiceError | None]) -> list[int]:
        """The numbers of entries that arrived, or were refused for good."""
        done = []
        for entry, error in zip(entries, errors, strict=True):
            if error is None:
                self._counts["uploaded"] += 1
            elif error.status in TRANSIENT:
                continue
            else:
                self._counts["refused"] += 1
                self._refused.append(error)
            done.append(entry.number)
        return done

    @property
    def waiting(self) -> int:
        """How many entries wait to be uploaded."""
        return len(self._queue)

    @property
    def refused(self) -> tuple[ServiceError, ...]:
        """Why the service refused entries for good: the last 100."""
        return tuple(self._refused)

    @property
    def failures(self) -> dict[str, str]:
        """What fails in the background now: `refresh`, `upload`, and why."""
        return dict(self._failures)

    # ---- behind

    def _work(self, pause: float) -> None:
        while not self._stop.wait(pause):
            self._tried("upload", self.upload)
            if self._clock() - self._asked >= self._every:
                self._tried("refresh", self.refresh)

    def _tried(self, name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # whatever it is, the thread goes on
            if name not in self._failures:
                logging.getLogger("manyarms.client").warning("edge: %s fails: %s", name, error)
            self._failures[name] = str(error)
        else:
            self._failures.pop(name, None)

    def close(self) -> None:
        """Stop; where there is a background, upload what waits once more. What cannot be uploaded stays in the queue's file."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._tried("upload", self.upload)
        self._queue.close()

    def __enter__(self) -> EdgeClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _table(self) -> Table:
        rows: list[tuple[str, Cell]] = [("waiting", self.waiting), *self._counts.items(), ("bundle", self.policy.id)]
        notes = [f"{name} fails: {why}" for name, why in self.failures.items()]
        return Table(f"edge client of {self._agent}, version {self.policy.header.version:,}", rows=rows, notes=notes)


__all__ = ["EdgeClient"]
