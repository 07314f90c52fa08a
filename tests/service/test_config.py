"""Settings: read from a file and from options, and all that is wrong with them told at once."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from manyarms.service import Config, ConfigError, make_config, read_config
from manyarms.service.config import SETTINGS, is_loopback
from manyarms.service.options import Options

WRONG = """
[store]
adress = "shop.db"
[server]
host = "0.0.0.0"
port = 99999
tls_certificate = "cert.pem"
[rewards]
wait = "soon"
range = [1, 0]
default = "none"
[serve]
x = 1
[logs]
contexts = "yes"
[limits]
rate = -1
"""


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text(WRONG)
    with pytest.raises(ConfigError) as caught:
        read_config(file)
    told = "\n".join(caught.value.mistakes)
    for part in (
        "store.adress: no such setting; address is meant?",
        "server.port: expected a whole number from 0 to 65,535, got 99999",
        "rewards.wait: expected a time with its unit",
        "rewards.range: expected the smallest and the largest reward",
        "rewards.default: expected a number",
        "[serve]: no such section; server is meant?",
        "logs.contexts: expected true or false",
        "limits.rate: expected requests a second",
        "store: expected an address",
        "both or neither",
        "'0.0.0.0' can be reached by others, which needs API keys",
    ):
        assert part in told, part
    assert str(file) in str(caught.value)


def test_every_setting_is_one_of_the_config_and_the_other_way_round() -> None:
    assert {one.field for one in SETTINGS} == {one.name for one in fields(Config)}
    assert len({(one.section, one.name) for one in SETTINGS}) == len(SETTINGS)
    assert all(one.about for one in SETTINGS)


def test_paths_are_relative_to_the_file_and_options_take_its_place(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    file = tmp_path / "service.toml"
    file.write_text(
        '[store]\naddress = "shop.db"\n[agent]\nfolder = "agent"\n[rewards]\nwait = "1h"\n[server]\nport = 1234\n'
    )
    config = read_config(file, port=4321)
    assert config.store == str(tmp_path / "shop.db") and config.agent == tmp_path / "agent"
    assert config.wait == 3600.0 and config.port == 4321 and config.host == "127.0.0.1"
    assert make_config({"store": {"address": "postgresql://u@h/n"}}).store == "postgresql://u@h/n"


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        make_config({"store": {"address": ["postgresql://me:hidden@host/name"]}})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "is_one"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("[::1]", True), ("127.9.9.9", True), ("0.0.0.0", False),
     ("::", False), ("192.168.1.5", False), ("example.org", False), ("", False)],
)  # fmt: skip
def test_loopback(host: str, is_one: bool) -> None:
    assert is_loopback(host) is is_one


def test_no_public_address_without_keys(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs API keys"):
        make_config({}, {"store": "a.db", "host": "0.0.0.0"})
    (tmp_path / "keys.json").touch()
    config = make_config({}, {"store": "a.db", "host": "0.0.0.0", "keys": tmp_path / "keys.json"})
    assert config.host == "0.0.0.0"


def test_the_command_checks_and_names_every_mistake(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text(WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "manyarms", "serve", "--config", str(file), "--check"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "store.adress" in done.stderr and "server.port" in done.stderr
    file.write_text('[store]\naddress = "shop.db"\n')
    done = subprocess.run(
        [sys.executable, "-m", "manyarms", "serve", "--config", str(file), "--check"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and "fine" in done.stderr


def test_keyword_arguments_are_the_settings() -> None:
    """What an editor offers for `create_app` and `read_config` is what there is."""
    assert list(Options.__annotations__) == [one.name for one in fields(Config)]
