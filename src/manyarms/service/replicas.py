"""How many replicas of a service a cluster keeps, and which settings they can share. Nothing here needs Ray."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path

from manyarms.errors import InvalidInput
from manyarms.service.config import Config

MOST = 1_000
EXPECTED = f"a number of replicas, such as 2, or a range, such as 1:4; from 1 to {MOST:,}"


@dataclass(frozen=True)
class Replicas:
    """From `least` to `most` of them, as the load is; always the same number where both are equal."""

    least: int = 1
    most: int = 1

    @property
    def fixed(self) -> bool:
        """Whether their number does not follow the load."""
        return self.least == self.most


def read_replicas(text: str) -> Replicas:
    """`2`, or `1:4`."""
    found = re.fullmatch(r"(\d{1,6})(?::(\d{1,6}))?", text.strip(), re.ASCII)
    if found is None:
        raise InvalidInput("--replicas", repr(text), EXPECTED)
    least = int(found[1])
    most = least if found[2] is None else int(found[2])
    if not 1 <= least <= most <= MOST:
        raise InvalidInput("--replicas", repr(text), EXPECTED)
    return Replicas(least, most)


def is_shared(store: str) -> bool:
    """Whether processes on several machines can open a store."""
    return store.startswith(("postgresql://", "postgres://"))


def check_on_cluster(config: Config, replicas: Replicas, on: str) -> None:
    """Refuse, before anything is started, what cannot work there; by the name of the option."""
    if config.tls:
        raise InvalidInput(
            "server.tls_certificate",
            "a certificate",
            f"none with --on {on}: Ray Serve's proxy listens on machines that do not have its key; put a proxy before it",
        )
    if is_shared(config.store):
        return
    kind = "a store in memory" if config.store == ":memory:" else "an SQLite file"
    needed = "--store postgresql://user@host/name, which all replicas share"
    if replicas.most > 1:
        raise InvalidInput("--replicas", f"{replicas.most:,} of them on {kind}", f"one, or {needed}")
    if config.store == ":memory:" or on != "ray":
        # whatever replica takes the place of one that died may be elsewhere, and would begin with an empty store
        raise InvalidInput("--store", kind, f"with --on {on}: {needed}")


def for_replicas(config: Config) -> Config:
    """The same settings for a process in another folder: every path is absolute."""
    paths = {one.name: getattr(config, one.name) for one in fields(config)}
    told: dict[str, object] = {name: path.absolute() for name, path in paths.items() if isinstance(path, Path)}
    if "://" not in config.store and config.store != ":memory:":
        told["store"] = str(Path(config.store).absolute())
    return replace(config, **told)  # type: ignore[arg-type]


__all__ = ["Replicas", "check_on_cluster", "for_replicas", "is_shared", "read_replicas"]
