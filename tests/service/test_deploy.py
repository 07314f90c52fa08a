"""The examples of deployment are true: settings that the service accepts, commands that exist, a unit that systemd reads."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer

from live.small_store import small_agent
from manyarms.cli import app as cli
from manyarms.service.config import SETTINGS, Config, is_loopback, read_config
from manyarms.service.keys import Keys

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "deploy"
PROGRAM = "/opt/manyarms/bin/manyarms"
COMMANDS: Any = typer.main.get_command(cli.app)


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine's folders, with what the settings name in them."""
    etc, state = tmp_path / "etc", tmp_path / "state"
    (etc / "agents").mkdir(parents=True)
    small_agent().save(etc / "agent")
    for name in ("tls.crt", "tls.key"):
        (etc / name).write_text("")
    Keys.open(state / "keys.json", make=True).add("web", ["decide", "reward"])
    return tmp_path


def on(machine: Path, text: str) -> Path:
    """The settings, of this machine."""
    path = machine / "etc" / "service.toml"
    path.write_text(
        text.replace("/etc/manyarms", str(machine / "etc")).replace("/var/lib/manyarms", str(machine / "state"))
    )
    return path


def with_everything(text: str) -> str:
    """The settings with those that are not made."""
    return re.sub(r"^# (?=[a-z_]+ = )", "", text, flags=re.MULTILINE)


def test_the_settings_are_accepted(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = on(machine, text_of("service.toml"))
    config = read_config(path)
    assert config.keep == 90 * 86_400 and config.keys == machine / "state" / "keys.json" and is_loopback(config.host)
    with pytest.raises(SystemExit) as end:
        cli.main(["serve", "--config", str(path), "--check"])
    assert end.value.code == 0, capsys.readouterr().err
    read_config(on(machine, with_everything(text_of("service.toml"))))


def test_every_setting_is_there_and_said_to_be_what_it_is(machine: Path) -> None:
    """What stands behind a `#` holds without it: the file as it is, and with these lines, says the same."""
    every = tomllib.loads(with_everything(text_of("service.toml")))
    assert {(section, name) for section, values in every.items() for name in values} == {
        (one.section, one.name) for one in SETTINGS
    }
    plain = read_config(on(machine, text_of("service.toml")))
    full = read_config(on(machine, with_everything(text_of("service.toml"))))
    # as many threads as cores; and where nothing holds unless it is said, the line is an example
    examples = {"threads"} | {one.field for one in SETTINGS if getattr(plain, one.field) in (None, ())}
    for one in SETTINGS:
        if one.field not in examples:
            assert getattr(full, one.field) == getattr(plain, one.field), f"{one.section}.{one.name}"
    assert isinstance(full, Config) and full.tls


def options_of(words: list[str]) -> None:
    """A command of the program with options that it has."""
    command = COMMANDS.commands[words[0]]
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known, words


def test_the_units_commands_exist() -> None:
    commands = re.findall(rf"^ExecStart(?:Pre)?={PROGRAM} (.*)$", text_of("manyarms.service"), re.MULTILINE)
    assert len(commands) == 2
    for line in commands:
        options_of(shlex.split(line))


def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd is not installed")
    unit = tmp_path / "manyarms.service"
    unit.write_text(text_of("manyarms.service").replace(PROGRAM, sys.executable))
    done = subprocess.run([verify, "verify", str(unit)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and unit.name not in done.stderr, done.stderr


def test_the_containers_command_exists_and_its_files_do() -> None:
    text = text_of("Containerfile")
    [entry] = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    [command] = re.findall(r"^CMD (.*)$", text, re.MULTILINE)
    assert json.loads(entry) == ["manyarms"]
    options_of(json.loads(command))
    for copied in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        for name in copied.split():
            assert (FOLDER.parents[1] / name).exists()
    assert re.search(r"^USER manyarms$", text, re.MULTILINE)
    extras = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [wanted] = re.findall(r"'\.\[([\w,]+)\]'", text)
    assert set(wanted.split(",")) <= set(extras)


@pytest.fixture(params=[200, 503])
def ready(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """A server that is ready or not: its port, and what it answers to /readyz."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(request.param if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, request.param
        server.shutdown()
        thread.join()


def test_the_health_check_tells_ready_from_not_ready(ready: tuple[int, int]) -> None:
    port, status = ready
    [command] = re.findall(r"^HEALTHCHECK .*\\\n +CMD (.*)$", text_of("Containerfile"), re.MULTILINE)
    words = json.loads(command.replace(":8080", f":{port}"))
    assert words[0] == "python"
    done = subprocess.run([sys.executable, *words[1:]], capture_output=True, timeout=600)
    assert (done.returncode == 0) == (status == 200)


def test_the_commands_of_the_page_exist() -> None:
    lines = re.findall(r"(?:bin/manyarms|manyarms manyarms) ((?:keys|backup|serve) [^`\n]*)", text_of("README.md"))
    assert len(lines) >= 3
    for line in lines:
        options_of(shlex.split(line, comments=True))
    for name in re.findall(r"\]\(([^)\s:]+)\)", text_of("README.md")):
        assert (FOLDER / name).exists()
