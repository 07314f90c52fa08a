"""API keys: who may call the service, and what for.

A key is `ma_ID_SECRET`: a public id, and 32 random bytes in 43 characters. The file keeps the SHA-256 of the whole key and not
the key, so that whoever reads the file cannot call the service. A slow, salted hash is for passwords, which can be guessed; 256
random bits cannot, and a slow hash would only cost every call its time.

The file is written whole or not at all, by one writer at a time, and only its owner may read it. A service looks at it once a
second: keys that are added, rotated or revoked count from then on, with nothing to restart.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar

from manyarms._base import files
from manyarms._base.locks import only_writer
from manyarms._base.validate import describe, flag, number
from manyarms.errors import InvalidInput, StorageError

SCOPES = ("decide", "reward", "read", "admin", "metrics", "edge")
LOOK_EVERY = 1.0  # seconds between two looks at the file
LARGEST = 1 << 22  # bytes of a file of keys
FORMAT = "manyarms keys 1"
_TEXT = re.compile(r"ma_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@:-]{0,63}")
_NOBODY = bytes(32)

Result = TypeVar("Result")
Mark = tuple[int, int, int, int]
"""What tells one state of the file from another: its number, when it was written, its size, and who may read it."""


@dataclass(frozen=True)
class Key:
    """What is kept of a key: everything but the key. Times are seconds since 1970."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created: float
    expires: float | None = None
    revoked: float | None = None
    digest: bytes = field(default=_NOBODY, repr=False)

    def allows(self, scope: str) -> bool:
        """Whether the key is for calls of this scope."""
        return scope in self.scopes

    def state(self, now: float) -> str:
        """`active`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return "active" if self.expires is None or now < self.expires else "expired"


class Keys:
    """The keys of a file; threads may share it. `failure` says why the file as it is now cannot be used, if it cannot be.

    While it cannot be, the keys of before go on: a mistake in a file must not lock everybody out, nor let anybody in.
    """

    def __init__(self, path: Path | str, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(os.path.realpath(files.as_path("path", path)))  # what a link leads to is written, not the link
        self.failure: str | None = None
        if not callable(clock):
            raise InvalidInput("clock", describe(clock), "a function")
        self._clock = clock
        self._keys: dict[str, Key] = {}
        self._mark: Mark | None = None
        self._looked = time.monotonic()
        self._looking = threading.Lock()

    @classmethod
    def open(cls, path: Path | str, *, make: bool = False, clock: Callable[[], float] = time.time) -> Self:
        """The keys of a file. make: where there is none begin without a key; the file is made with the first."""
        make = flag("make", make)
        keys = cls(path, clock=clock)
        if not make or files.present(keys.path):
            keys._keys, keys._mark = _read(keys.path)
        return keys

    def __repr__(self) -> str:
        return f"Keys({str(self.path)!r}, {len(self._keys)} keys)"

    def __len__(self) -> int:
        return len(self._keys)

    # ---- asking

    def find(self, text: str) -> Key | None:
        """The key with this text, if there is one that has neither expired nor been revoked."""
        self._look()
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        key = self._keys.get(found[1]) if found else None
        # compared in any case, in a time that says nothing about what is kept; ids are public
        same = hmac.compare_digest(_digest(text if found else ""), key.digest if key else _NOBODY)
        return key if key is not None and same and key.state(self._clock()) == "active" else None

    def all(self) -> list[Key]:
        """All keys there ever were, oldest first."""
        self._look()
        return list(self._keys.values())

    def _look(self) -> None:
        """Read the file again where it has changed, at most once in `LOOK_EVERY` seconds."""
        if time.monotonic() - self._looked < LOOK_EVERY or not self._looking.acquire(blocking=False):
            return
        try:
            if self._mark is None or _mark(self.path.stat()) != self._mark:
                self._keys, self._mark = _read(self.path)
            self.failure = None
        except OSError as error:
            self._fail(f"{self.path}: cannot be read: {files.reason(error)}")
        except StorageError as error:
            self._fail(str(error))
        finally:
            self._looked = time.monotonic()
            self._looking.release()

    def _fail(self, why: str) -> None:
        self.failure, self._mark = f"{why}; the keys of before go on", None

    # ---- changing

    def add(self, name: str, scopes: Iterable[str], expires: float | None = None) -> str:
        """A new key's text, which is told here and never again. expires: seconds since 1970, or never."""
        name, wanted = _name(name), _scopes(scopes)
        now = self._clock()
        ends = None if expires is None else number("expires", expires)
        if ends is not None and ends <= now:
            raise InvalidInput("expires", f"{ends:g}", f"a time to come, in seconds since 1970: it is {now:.0f} now")

        def change(keys: dict[str, Key]) -> str:
            if any(key.name == name and key.state(now) == "active" for key in keys.values()):
                raise InvalidInput("name", repr(name), "a name without a key that is in use: rotate that, or revoke it")
            return _new(keys, name, wanted, now, ends)

        return self._change(change)

    def rotate(self, name: str, overlap: float = 0.0) -> str:
        """The text of a new key with the name and the scopes of the one there is, which ends `overlap` seconds from now.

        Where that one had a time to live, the new one has the same.
        """
        name = _name(name)
        overlap = number("overlap", overlap, least=0.0)

        def change(keys: dict[str, Key]) -> str:
            now = self._clock()
            old = [key for key in keys.values() if key.name == name and key.state(now) == "active"]
            if not old:
                raise InvalidInput("name", repr(name), f"the name of a key that is in use: {_listed(keys, now)}")
            last = max(old, key=lambda key: key.created)
            for key in old:
                ends = now + overlap if key.expires is None else min(key.expires, now + overlap)
                keys[key.id] = replace(key, expires=ends)
            lives = None if last.expires is None else now + (last.expires - last.created)
            return _new(keys, name, last.scopes, now, lives)

        return self._change(change)

    def revoke(self, which: str) -> list[Key]:
        """End all keys of a name, or the one with this id, now; which they were."""
        found = _TEXT.fullmatch(which) if isinstance(which, str) else None
        called = found[1] if found else which  # a key that got about, by its own text

        def change(keys: dict[str, Key]) -> list[Key]:
            now = self._clock()
            ended = [key for key in keys.values() if called in (key.id, key.name) and key.revoked is None]
            if not ended:
                raise InvalidInput("name", _hidden(called), f"the name or the id of a key: {_listed(keys, now)}")
            for key in ended:
                keys[key.id] = replace(key, revoked=now)
            return [keys[key.id] for key in ended]

        return self._change(change)

    def _change(self, change: Callable[[dict[str, Key]], Result]) -> Result:
        """Change what the file says now, which another process may have written, and write it."""
        with files.writing(self.path):
            files.make_folder(self.path.parent)
            with only_writer(self.path.parent):
                keys = _read(self.path)[0] if files.present(self.path) else {}
                result = change(keys)
                files.write_atomically(self.path, lambda stream: self._write(stream, keys), private=True)
                self._keys, self._mark = keys, _mark(self.path.stat())
                self.failure = None
        return result

    def _write(self, stream: BinaryIO, keys: dict[str, Key]) -> None:
        _keep_owner(stream, self.path)
        body = {"format": FORMAT, "keys": [_as_json(key) for key in keys.values()]}
        stream.write(json.dumps(body, indent=1).encode() + b"\n")


# ---- the file


def _read(path: Path) -> tuple[dict[str, Key], Mark]:
    """The keys of a file that is whole and private, and the mark of it."""
    try:
        with files.open_regular(path, follow=True) as stream:
            found = os.fstat(stream.fileno())
            content = stream.read(LARGEST + 1)
    except FileNotFoundError:
        raise StorageError(f"{path}: there is no file of keys: `manyarms keys add` makes one") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {files.reason(error)}") from error
    if os.name != "nt" and found.st_mode & 0o077:
        raise StorageError(
            f"{path}: others than its owner may read or write this file of keys (mode {found.st_mode & 0o777:04o}): chmod 600 it"
        )
    try:
        if len(content) > LARGEST:
            raise ValueError(f"more than {LARGEST:,} bytes")
        body = json.loads(content)
        if body["format"] != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        listed = [_from_json(one) for one in body["keys"]]
        keys = {key.id: key for key in listed}
        if len(keys) != len(listed):
            raise ValueError("an id comes twice")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # only what is wrong, in our words or by its kind: nothing of what the file says
        why = str(error) if type(error) is ValueError else type(error).__name__
        raise StorageError(f"{path}: this is not a file of keys, or it is damaged ({why})") from None
    return keys, _mark(found)


def _mark(found: os.stat_result) -> Mark:
    return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode


def _as_json(key: Key) -> dict[str, Any]:
    told = {name: getattr(key, name) for name in ("id", "name", "scopes", "created", "expires", "revoked")}
    return told | {"sha256": key.digest.hex()}


def _from_json(told: dict[str, Any]) -> Key:
    times = told["created"], told["expires"], told["revoked"]
    for when in times:
        if when is not None and not (type(when) in (int, float) and math.isfinite(when)):
            raise ValueError("a time is none")
    if times[0] is None or not set(told["scopes"]) <= set(SCOPES) or not _NAME.fullmatch(told["name"]):
        raise ValueError("a time, a scope or a name is none")
    digest = bytes.fromhex(told["sha256"])
    if len(digest) != 32 or not re.fullmatch(r"[0-9a-f]{16}", told["id"]):
        raise ValueError("a hash or an id is none")
    return Key(told["id"], told["name"], tuple(told["scopes"]), *times, digest=digest)


def _keep_owner(stream: BinaryIO, path: Path) -> None:
    """What root writes goes to the owner of the file or, of a new one, of the folder: a service that is not root reads it."""
    if getattr(os, "geteuid", lambda: 1)() == 0:
        owner = path.stat() if path.exists() else path.parent.stat()
        with suppress(PermissionError):  # root of a container that may not: it is its own then
            os.fchown(stream.fileno(), owner.st_uid, owner.st_gid)


# ---- one key


def _new(keys: dict[str, Key], name: str, scopes: tuple[str, ...], now: float, expires: float | None) -> str:
    id = secrets.token_hex(8)
    while id in keys:
        id = secrets.token_hex(8)
    text = f"ma_{id}_{secrets.token_urlsafe(32)}"
    keys[id] = Key(id, name, scopes, now, expires, digest=_digest(text))
    return text


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _hidden(value: object) -> str:
    """A wrong value for an error message; what might be a key is not shown."""
    return "something that begins as a key does" if str(value).lstrip().startswith("ma_") else describe(value)


def _name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith("ma_"):
        expected = "a name of at most 64 letters, digits, spaces and any of ._@:- that does not begin as a key does"
        raise InvalidInput("name", _hidden(name), expected)
    return name


def _scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    wanted = [scopes] if isinstance(scopes, str) or not isinstance(scopes, Iterable) else list(scopes)
    wrong = [one for one in wanted if not isinstance(one, str) or one not in SCOPES]
    if wrong or not wanted:
        raise InvalidInput("scopes", _hidden(wrong[0]) if wrong else "none", f"some of {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in wanted)


def _listed(keys: dict[str, Key], now: float) -> str:
    names = sorted({key.name for key in keys.values() if key.state(now) == "active"})
    return ", ".join(names) if names else "there is none"


__all__ = ["SCOPES", "Key", "Keys"]
