"""What a service is told when it starts: a file (TOML) or the options of `manyarms serve`, checked as a whole.

Every setting has one line in `SETTINGS`: its section and name in the file, how its value is read, what it is unless it is said.
All mistakes are told at once, so that a file is mended in one go.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Unpack

from manyarms._base.durations import seconds
from manyarms._base.files import as_path
from manyarms._base.tables import Shown, Table, text_of
from manyarms._base.validate import describe, instance
from manyarms.errors import ManyArmsError
from manyarms.service.options import Options

PORT = 8080


class ConfigError(ManyArmsError):
    """Settings of a service that cannot be used; `mistakes` has a sentence for each."""

    def __init__(self, mistakes: Iterable[str], source: str) -> None:
        self.mistakes = list(mistakes)
        number = len(self.mistakes)
        told = "".join(f"\n  - {mistake}" for mistake in self.mistakes)
        super().__init__(f"{source}: {number} mistake{'s' * (number != 1)}{told}")


class _Wrong(Exception):
    """What was expected in the place of a value."""


# ---- how values are read


def _text(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise _Wrong("a text")
    return value


def _path(value: object) -> Path:
    if isinstance(value, Path):
        return value
    try:
        return Path(_text(value)).expanduser()
    except RuntimeError:
        raise _Wrong("a path in the home of a user there is") from None


def _address(value: object) -> str:
    text = _text(value)
    return str(_path(text)) if text.startswith("~") else text


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("true or false")
    return value


def _number(least: float, most: float, what: str) -> Callable[[object], float]:
    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise _Wrong(what)
        return float(value)

    return read


any_number = _number(-1e100, 1e100, "a number")


def _whole(least: int, most: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise _Wrong(f"a whole number from {least:,} to {most:,}")
        return value

    return read


def _duration(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
        return float(value)
    found = seconds(value) if isinstance(value, str) else None
    if found is None:
        raise _Wrong('a time with its unit, such as "30d", "12h", "90min" or "600s", or a number of seconds')
    return found


def _one_of(*names: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise _Wrong("one of " + ", ".join(f'"{name}"' for name in names))
        return value

    return read


def _range(value: object) -> tuple[float, float]:
    ends = list(value) if isinstance(value, list | tuple) else []
    try:
        low, high = (any_number(end) for end in ends)
    except (ValueError, _Wrong):
        low = high = 0.0
    if not low < high:
        raise _Wrong("the smallest and the largest reward, such as [0, 1]")
    return low, high


def _hosts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
        raise _Wrong('a list of names, such as ["decide.example.org"]')
    return tuple(str(one).lower() for one in value)


@dataclass(frozen=True)
class Setting:
    """One setting: where it stands in the file, how it is read, and what it does."""

    section: str
    name: str
    field: str
    read: Callable[[object], Any]
    about: str


SETTINGS = (
    Setting("store", "address", "store", _address, "the path of an SQLite file, or postgresql://user@host/name"),
    Setting("agent", "folder", "agent", _path, "the saved agent or policy that decides first, where the store is new"),
    Setting("agent", "name", "agent_name", _text, "what that arm is called"),
    Setting("agent", "others", "agents_folder", _path, "the folder from which POST /v1/agents may load others"),
    Setting("rewards", "aggregate", "aggregate", _one_of("first", "sum", "max"), "how several rewards count"),
    Setting("rewards", "default", "default", any_number, "the reward of an event without one after the wait"),
    Setting("rewards", "wait", "wait", _duration, "how long an event waits for its reward"),
    Setting("rewards", "range", "reward_range", _range, "the smallest and the largest reward there can be"),
    Setting("server", "host", "host", _text, "the address to listen on"),
    Setting("server", "port", "port", _whole(0, 65_535), "the port; 0 for any that is free"),
    Setting("server", "names", "hosts", _hosts, "names by which browsers may call it, beside its address"),
    Setting("server", "tls_certificate", "tls_certificate", _path, "PEM file with the certificate and its chain"),
    Setting("server", "tls_key", "tls_key", _path, "PEM file with the certificate's private key"),
    Setting("server", "threads", "threads", _whole(1, 256), "threads that decide"),
    Setting("server", "shutdown", "shutdown", _duration, "how long requests that are under way may take at the end"),
    Setting("server", "dashboard", "dashboard", _flag, "whether / shows the dashboard"),
    Setting("keys", "file", "keys", _path, "the file of API keys, made by `manyarms keys add`"),
    Setting("limits", "body", "most_body", _whole(1_000, 1 << 30), "bytes of a request's body, at most"),
    Setting("limits", "rate", "rate", _number(0.0, 1e9, "requests a second, 0 for no limit"), "requests a second"),
    Setting("limits", "burst", "burst", _whole(1, 1_000_000), "requests at once, above the rate"),
    Setting("limits", "batch", "most_batch", _whole(1, 100_000), "decisions or rewards in one batch"),
    Setting("limits", "waiting", "most_waiting", _whole(1, 1_000_000), "requests that wait for a decision or a commit"),
    Setting(
        "limits", "gather", "gather", _number(0.0, 1.0, "seconds, up to 1"),
        "seconds that the first few writes wait for others, to share a commit",
    ),
    Setting("learning", "fold_every", "fold_every", _duration, "how often new rewards are learned"),
    Setting("learning", "snapshot_every", "snapshot_every", _whole(1, 1_000_000), "versions between two snapshots"),
    Setting("learning", "learner", "learner", _flag, "whether this process may learn for all"),
    Setting("learning", "propensities", "propensities", _flag, "whether missing propensities are computed behind it"),
    Setting(
        "learning", "propensity_share", "propensity_share", _number(0.001, 1.0, "a share of the time, up to 1"),
        "the part of the time that computing them may take",
    ),
    Setting("learning", "without_store", "without_store", _one_of("refuse", "decide"), "when the store is out of reach"),
    Setting("logs", "format", "log_format", _one_of("json", "text"), "of the service's own log, on stderr"),
    Setting("logs", "level", "log_level", _one_of("debug", "info", "warning", "error"), "what is logged"),
    Setting("logs", "requests", "log_requests", _flag, "a line for every request"),
    Setting("logs", "contexts", "log_contexts", _flag, "contexts in these lines: off unless you must"),
    Setting("retention", "keep", "keep", _duration, "older events are compacted, once a day"),
    Setting("retention", "every", "keep_every", _duration, "how often that is done"),
    Setting("backups", "folder", "backups", _path, "where POST /v1/admin/backup writes"),
    Setting("edge", "folder", "edge", _path, "where edge bundles and their signing key are kept; on with it"),
    Setting("edge", "every", "edge_every", _duration, "how old a bundle may be before a new one is made"),
    Setting("edge", "keep", "edge_keep", _duration, "how long decisions of a bundle may be uploaded"),
    Setting("edge", "draws", "edge_draws", _whole(1, 1_000), "posterior draws in a bundle of a Thompson agent"),
    Setting("edge", "epsilon", "edge_epsilon", _number(0.0, 1.0, "a probability"), "uniform play in such a bundle"),
    Setting("edge", "bytes", "edge_bytes", _whole(10_000, 1 << 32), "of a bundle, at most"),
    Setting("personalizer", "enabled", "personalizer", _flag, "Azure Personalizer's calls under /personalizer"),
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Config(Shown):
    """The settings of a service; `SETTINGS` says what each is."""

    store: str
    agent: Path | None = None
    agent_name: str = "agent"
    agents_folder: Path | None = None
    aggregate: str = "first"
    default: float | None = None
    wait: float = 600.0
    reward_range: tuple[float, float] | None = None
    host: str = "127.0.0.1"
    port: int = PORT
    hosts: tuple[str, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    threads: int = field(default_factory=lambda: max(2, min(4, os.cpu_count() or 2)))
    shutdown: float = 10.0
    dashboard: bool = True
    keys: Path | None = None
    most_body: int = 1 << 20
    rate: float = 0.0
    burst: int = 100
    most_batch: int = 1_000
    most_waiting: int = 4_096
    gather: float = 0.004
    fold_every: float = 1.0
    snapshot_every: int = 200
    learner: bool = True
    propensities: bool = True
    propensity_share: float = 0.1
    without_store: str = "refuse"
    log_format: str = "json"
    log_level: str = "info"
    log_requests: bool = True
    log_contexts: bool = False
    keep: float | None = None
    keep_every: float = 86_400.0
    backups: Path | None = None
    edge: Path | None = None
    edge_every: float = 60.0
    edge_keep: float = 30 * 86_400.0
    edge_draws: int = 16
    edge_epsilon: float = 0.05
    edge_bytes: int = 1 << 26
    personalizer: bool = False

    @property
    def tls(self) -> bool:
        """Whether it speaks HTTPS."""
        return self.tls_certificate is not None

    def _table(self) -> Table:
        told = {f"{one.section}.{one.name}": text_of(_plain(getattr(self, one.field))) for one in SETTINGS}
        told["store.address"] = store_shown(self.store)
        return Table(
            f"http{'s' * self.tls}://{self.host}:{self.port}, {store_shown(self.store)}", rows=list(told.items())
        )


def store_shown(address: str) -> str:
    """The address of a store without what may be secret in it: the kind of a database, the path of a file."""
    return f"{address.partition('://')[0]}://..." if "://" in address else address


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_config(path: str | Path, **options: Unpack[Options]) -> Config:
    """The settings of a file; options, by the names of `Config`, take the place of what it says."""
    source = as_path("path", path)
    try:
        with source.open("rb") as file:
            told = tomllib.load(file)
    except OSError as error:
        raise ConfigError([f"cannot be read: {error.strerror or error}"], str(source)) from None
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, of an integer of thousands of digits
        raise ConfigError([f"is not TOML: {error}"], str(source)) from None
    return make_config(told, options, str(source), source.parent)


def make_config(
    told: Mapping[str, object] | None = None,
    options: Mapping[str, object] | None = None,
    source: str = "the settings",
    folder: Path = Path("."),
) -> Config:
    """Settings by sections, as a file has them, and by the names of `Config`; all that is wrong with them, at once.

    folder: what the file's relative paths are relative to.
    """
    mistakes: list[str] = []
    told = {} if told is None else instance("told", told, Mapping, "settings by section")
    found = _of_sections(told, as_path("folder", folder), mistakes)
    known = {one.field: one for one in SETTINGS}
    for name, value in ({} if options is None else instance("options", options, Mapping, "settings by name")).items():
        if name not in known:
            mistakes.append(f"{name}: no such setting{_like(name, known)}")
        elif value is not None:
            _read(known[name], value, name.replace("_", "-"), found, mistakes)
    found.setdefault("store", None)
    if found["store"] is None:
        del found["store"]
        mistakes.append("store: expected an address ([store] address in the file, --store on the command line)")
    mistakes += _together({**_defaults(), **found})
    if mistakes:
        raise ConfigError(mistakes, source)
    return Config(**found)


def _of_sections(told: Mapping[str, object], folder: Path, mistakes: list[str]) -> dict[str, Any]:
    by_section: dict[str, dict[str, Setting]] = {}
    for one in SETTINGS:
        by_section.setdefault(one.section, {})[one.name] = one
    found: dict[str, Any] = {}
    for section, values in told.items():
        names = by_section.get(section)
        if names is None:
            mistakes.append(f"[{section}]: no such section{_like(section, by_section)}")
        elif not isinstance(values, dict):
            mistakes.append(f"{section}: expected a section, [{section}], got {describe(values)}")
        else:
            for name, value in values.items():
                if name not in names:
                    mistakes.append(f"{section}.{name}: no such setting{_like(name, names)}")
                else:
                    _read(names[name], value, f"{section}.{name}", found, mistakes)
    for one in SETTINGS:
        if isinstance(path := found.get(one.field), Path):
            found[one.field] = folder / path
    if isinstance(store := found.get("store"), str) and "://" not in store and store != ":memory:":
        found["store"] = str(folder / store)
    return found


def _like(name: object, known: Iterable[str]) -> str:
    close = get_close_matches(str(name), list(known), 1)
    return f"; {close[0]} is meant?" if close else f" (there are {', '.join(known)})"


def _read(one: Setting, value: object, place: str, found: dict[str, Any], mistakes: list[str]) -> None:
    try:
        found[one.field] = one.read(value)
    except _Wrong as expected:
        # an address may hold a password
        came = "something else" if one.field == "store" else describe(value)
        mistakes.append(f"{place}: expected {expected}, got {came} ({one.about})")


def _defaults() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in fields(Config):
        if one.default is not MISSING:
            found[one.name] = one.default
        elif one.default_factory is not MISSING:
            found[one.name] = one.default_factory()
    return found


def _together(found: Mapping[str, Any]) -> list[str]:
    """What is wrong with settings taken together."""
    wrong: list[str] = []
    if (found["tls_certificate"] is None) != (found["tls_key"] is None):
        wrong.append("server.tls_certificate, server.tls_key: expected both or neither")
    for name in ("tls_certificate", "tls_key", "agent", "agents_folder", "keys"):
        path = found[name]
        if path is not None and not os.path.exists(path):
            hint = ": `manyarms keys add` makes it" if name == "keys" else ""
            wrong.append(f"{_place(name)}: {str(path)!r} is not there{hint}")
    if not is_loopback(found["host"]) and found["keys"] is None:
        wrong.append(
            f"server.host: {found['host']!r} can be reached by others, which needs API keys: make them with `manyarms keys add` "
            "and name their file (keys.file)"
        )
    low_high, default = found["reward_range"], found["default"]
    if low_high is not None and default is not None and not low_high[0] <= default <= low_high[1]:
        wrong.append(f"rewards.default: expected a reward in the range, got {default:g}")
    return wrong


def _place(name: str) -> str:
    return next(f"{one.section}.{one.name}" for one in SETTINGS if one.field == name)


__all__ = ["PORT", "SETTINGS", "Config", "ConfigError", "Setting", "is_loopback", "make_config", "read_config"]
