"""Edge bundles of a live store: made when somebody asks and the state has moved on, and kept, so that uploads can be checked.

A folder has the signing key and a file for every bundle that was handed out, named by its id, written whole or not at all.
Whoever uploads a decision names its bundle; it is read from there, by this process or one that was started since. After `keep`
seconds a bundle is deleted, and its decisions are refused.

All bundles that are kept together shall fit into `room`: where they are large, new ones are made less often than every `every`
seconds, rather than old ones deleted before their time.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from manyarms._base import files, validate
from manyarms.edge import EdgePolicy
from manyarms.errors import InvalidInput, LiveError, StorageError
from manyarms.live import Live
from manyarms.logs.actions import ActionId
from manyarms.service.edge_keys import EdgeKeys
from manyarms.service.edge_policies import EdgeForm, checked_form, edge_policy

SUFFIX = ".edge"
ROOM = 16 << 30  # bytes
IN_MEMORY = 4  # policies that uploads were checked with
_ID = re.compile(r"[0-9a-f]{32}")


class NotKept(LiveError):
    """A bundle that is not kept, or not any more: what it has decided cannot be checked."""


@dataclass(frozen=True)
class Bundle:
    """What a client is sent. version: of the state that it was made from; made: when, on the clock of seconds since 1970."""

    id: str
    data: bytes
    version: int
    made: float
    expires: float


class EdgeBundles:
    """The bundles of a store. Threads may share it, and processes the folder."""

    def __init__(
        self,
        live: Live,
        folder: Path,
        *,
        every: float = 60.0,
        keep: float = 30 * 86_400.0,
        form: EdgeForm | None = None,
        actions: Mapping[str, Sequence[ActionId]] | None = None,
        room: int = ROOM,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """every: seconds between two bundles of an arm, at least. keep: how long decisions of a bundle can be uploaded.

        actions: of an arm by its name, the only ones that go into its bundles.
        """
        self._live, self._folder, self._clock = live, files.as_path("folder", folder), clock
        self._every, self._keep = validate.not_negative("every", every), validate.positive("keep", keep)
        self._form = checked_form(form or EdgeForm())
        if self._form.lifetime > self._keep:
            came = f"{self._form.lifetime:g} s"
            raise InvalidInput("lifetime", came, f"at most {self._keep:g} s, for which bundles are kept")
        self._actions = dict(actions or {})
        self._room = validate.count("room", room)
        self.keys = EdgeKeys(self._folder)
        self._newest: dict[str, Bundle] = {}
        self._making: dict[str, threading.Lock] = {}
        self._policies: OrderedDict[str, EdgePolicy] = OrderedDict()
        self._lock = threading.Lock()

    # ---- handing out

    def current(self, arm: str) -> Bundle:
        """The newest bundle of an arm, made now where none will do. While one is made, others get the one before."""
        if arm not in self._live.arms:
            raise InvalidInput("arm", arm, f"an arm of this store: {', '.join(self._live.arms)}")
        if (found := self.ready(arm)) is not None:
            return found
        with self._lock:
            making = self._making.setdefault(arm, threading.Lock())
            before = self._newest.get(arm)
        usable = before is not None and before.expires > self._clock()
        if not making.acquire(blocking=not usable):
            assert before is not None
            return before
        try:
            return self.ready(arm) or self._make(arm)
        finally:
            making.release()

    def ready(self, arm: str) -> Bundle | None:
        """The newest bundle of an arm, where it will do; at once."""
        found, now = self._newest.get(arm), self._clock()
        if found is None or now > found.expires - self._form.lifetime / 2:
            return None
        # so long that all which are made while they are kept fit into the room
        every = max(self._every, self._keep * len(found.data) * max(1, len(self._newest)) / self._room)
        return found if self._live.version == found.version or now - found.made < every else None

    def _make(self, arm: str) -> Bundle:
        now = self._clock()
        policy = edge_policy(self._live.view, arm, self._form, now, self._actions.get(arm))
        made = Bundle(
            policy.id, policy.to_bytes(self.keys.current()), policy.header.version, now, policy.header.expires
        )
        # before anybody can decide by it; what was learned is nobody else's business on this machine
        files.write_atomically(self._path(made.id), lambda stream: stream.write(made.data), private=True)
        self._newest[arm] = made
        self.prune()
        return made

    @property
    def every(self) -> float:
        """Seconds that a client may wait before it asks again."""
        return self._every

    # ---- checking

    def policy(self, bundle: str) -> EdgePolicy:
        """The policy of a bundle that was handed out; NotKept where it is not here, or not any more."""
        with self._lock:
            if bundle in self._policies:
                self._policies.move_to_end(bundle)
                return self._policies[bundle]
        if not isinstance(bundle, str) or _ID.fullmatch(bundle) is None:
            raise InvalidInput("bundle", validate.describe(bundle), "the id of a bundle, 32 hexadecimal digits")
        path = self._path(bundle)
        try:
            with files.open_regular(path) as stream:
                data = stream.read()
        except (FileNotFoundError, NotADirectoryError):
            raise NotKept(f"the bundle {bundle} is not kept (any more): its decisions cannot be checked") from None
        except OSError as error:
            raise StorageError(f"{path}: cannot be read: {files.reason(error)}") from error
        found = EdgePolicy.read(data, verify=None, expired=True)  # our own: its id is that of its content
        if found.id != bundle:
            raise StorageError(f"{path}: damaged: its content is that of another bundle")
        with self._lock:
            self._policies[bundle] = found
            while len(self._policies) > IN_MEMORY:
                self._policies.popitem(last=False)
        return found

    # ---- keeping

    def prune(self) -> int:
        """Delete bundles whose time is over, and what was left half written; how many."""
        gone = 0
        with suppress(OSError):  # a folder that cannot be listed keeps what it has
            for path in list(self._path("").parent.iterdir()):
                if path.suffix in (SUFFIX, ".tmp") and self._clock() - path.stat().st_mtime > self._keep:
                    path.unlink(missing_ok=True)
                    gone += 1
                    with self._lock:
                        self._policies.pop(path.stem, None)
        return gone

    def _path(self, bundle: str) -> Path:
        return self._folder / "bundles" / f"{bundle}{SUFFIX}"


__all__ = ["Bundle", "EdgeBundles", "NotKept"]
