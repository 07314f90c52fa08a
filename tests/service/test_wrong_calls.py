"""Wrong arguments in Python of what makes a service, and what its settings and keys show of themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms.service import ConfigError, create_app, make_config, open_service, read_config
from manyarms.service.keys import Keys

STORE = {"store": {"address": "shop.db"}}
SECRET = "hunter2"


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("service", lambda: create_app("live")),
        ("config", lambda: open_service({"store": "shop.db"})),
        ("told", lambda: make_config("store")),
        ("options", lambda: make_config(STORE, "port")),
        ("folder", lambda: make_config(STORE, folder=3)),
        ("path", lambda: read_config("a\0b")),
        ("clock", lambda: Keys("keys.json", clock=3)),
        ("make", lambda: Keys.open("keys.json", make=np.array([True, False]))),
        ("scopes", lambda: Keys("keys.json").add("shop", np.zeros((2, 2)))),
        ("scopes", lambda: Keys("keys.json").add("shop", 3)),
    ],
)
def test_what_is_wrong_is_named(
    argument: str, call: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as found:
        call()
    assert found.value.argument == argument and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("told", "options", "place"),
    [
        ({"rewards": {"range": [0, float("nan")]}}, {}, "rewards.range"),
        ({"rewards": {"range": [0, float("inf")]}}, {}, "rewards.range"),
        ({"rewards": {"range": [0, 10**400]}}, {}, "rewards.range"),
        ({"rewards": {"range": [0, 1, 2]}}, {}, "rewards.range"),
        ({"rewards": {"aggregate": np.array(["first", "sum"])}}, {}, "rewards.aggregate"),
        ({"agent": {"folder": "x" * 100_000}}, {}, "agent.folder"),
        ({"agent": {"folder": "~nobody-of-this-name/agent"}}, {}, "agent.folder"),
        ({"store": {"address": "~nobody-of-this-name/shop.db"}}, {}, "store.address"),
        ({3: {}}, {}, "[3]"),
        ({}, {"prot": 80}, "prot: no such setting; port is meant?"),
    ],
)
def test_what_is_wrong_with_settings_is_a_mistake(told: Any, options: Any, place: str) -> None:
    with pytest.raises(ConfigError) as found:
        make_config({**STORE, **told}, options)
    assert [mistake for mistake in found.value.mistakes if place in mistake]


@pytest.mark.parametrize(
    "text", [b"port = " + 5000 * b"9", b"a = " + 10_000 * b"[", b"\xff", b"port = ", b"a = '\x00'"], ids=range(5)
)
def test_a_file_that_is_no_toml_is_said_to_be_none(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match="is not TOML"):
        read_config(path)


def test_no_form_of_the_settings_shows_a_password() -> None:
    address = f"postgresql://shop:{SECRET}@db.example.org/shop?password={SECRET}"
    config = make_config({}, {"store": address})
    assert config.store == address
    for text in (repr(config), str(config), config._repr_html_()):
        assert SECRET not in text and "postgresql://" in text


def test_no_form_of_keys_shows_one(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    key = keys.add("shop", ["decide"])
    [kept] = keys.all()
    secret, digest = key.removeprefix(f"ma_{kept.id}_"), kept.digest
    for text in (repr(keys), str(keys), repr(kept), str(kept)):
        assert secret not in text and digest.hex() not in text and repr(digest) not in text
