"""The page of the decision service is true: its tables are what the code says, its commands work on a real server."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from manyarms.service.config import SETTINGS, Config, Setting
from manyarms.service.documents import ABOUT
from service.server import WITHIN, Answer, Server, environment
from service.test_security import NEEDS, OPEN

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "service.md"
TEXT = PAGE.read_text(encoding="utf-8")
ADDRESS = "localhost:8080"
UNNAMED = {"/", "/assets/{name}", "/openapi.json"}  # said in words


# ---- tables


def test_every_setting_is_in_the_table() -> None:
    rows = ["| setting | unless said | |", "| --- | --- | --- |", *(row_of(one) for one in SETTINGS)]
    assert "\n".join(rows) in TEXT, "the table of settings should be\n" + "\n".join(rows)


def row_of(one: Setting) -> str:
    """A setting as the page has it."""
    return f"| `[{one.section}] {one.name}` | {default_of(one)} | {one.about} |"


def default_of(one: Setting) -> str:
    """What holds without it, as a file would say it."""
    known = next(field for field in fields(Config) if field.name == one.field)
    if one.field == "threads":
        return "cores, 2 to 4"
    if known.default is MISSING:
        return "needed"
    if known.default is None or known.default == ():
        return "none"
    if one.read.__name__ == "_duration":
        return f'`"{duration(known.default)}"`'
    return f"`{json.dumps(known.default)}`"


def duration(seconds: float) -> str:
    """A time with its unit: days where it is whole days, seconds otherwise."""
    return f"{seconds / 86_400:g}d" if seconds % 86_400 == 0 else f"{seconds:g}s"


def test_every_call_is_in_the_table_with_its_scope() -> None:
    rows = re.findall(r"^\| `([A-Z]+) (/\S+)` \| (?:`(\w+)`|none) \|", TEXT, re.MULTILINE)
    listed = {(method, pattern(path)): scope for method, path, scope in rows}
    assert len(listed) == len(rows)
    told = {(method, pattern(path)): scope for method, path, scope in NEEDS}
    told |= {("GET", pattern(path)): "" for path in OPEN - UNNAMED}
    assert listed == told


def pattern(path: str) -> str:
    """With every name in it left out."""
    names = {"e", "SKU-1", "a", "agent"}
    return "/".join("*" if part.startswith("{") or part in names else part for part in path.split("/"))


def test_every_status_is_in_the_table() -> None:
    listed = {int(status) for status in re.findall(r"^\| (\d{3}) \|", TEXT, re.MULTILINE)}
    assert listed >= set(ABOUT)


# ---- commands


def steps() -> list[tuple[str, str]]:
    """What the page does, in order: ("python", code), or a command of a console with the answer that is shown."""
    found: list[tuple[str, str]] = []
    for language, code in re.findall(r"^```(python|console)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE):
        if language == "python":
            found.append(("python", code))
            continue
        for line in code.replace("\\\n", " ").splitlines():
            if line.startswith("$ ") or line == "^C":
                found.append((line.removeprefix("$ "), ""))
            else:
                command, shown = found[-1]
                found[-1] = command, f"{shown}\n{line}"
    return found


class Reader:
    """Somebody who does what the page says, one step after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: Server | None = None
        self.variables: dict[str, str] = {}

    def do(self, command: str, shown: str) -> None:
        """One step."""
        if command == "python":
            self.python(shown)
        elif command == "^C":
            self.stop()
        elif made := re.fullmatch(r"(\w+)=\$\((.*)\)", command):
            self.variables[made[1]] = self.manyarms(shlex.split(made[2]))
        elif command.startswith("manyarms serve "):
            self.serve(shlex.split(command)[2:])
        elif command.startswith("curl "):
            check(command, shown, self.curl(command))
        else:
            raise AssertionError(f"not a command that is known here: {command}")

    def python(self, code: str) -> None:
        subprocess.run([sys.executable, "-c", code], cwd=self.folder, env=environment(), check=True, timeout=WITHIN)

    def manyarms(self, words: list[str]) -> str:
        """What a command prints."""
        assert words[0] == "manyarms"
        command = [sys.executable, "-m", "manyarms", *words[1:]]
        done = subprocess.run(
            command, cwd=self.folder, env=environment(), check=True, timeout=WITHIN, capture_output=True, text=True
        )
        return done.stdout.strip()

    def serve(self, options: list[str]) -> None:
        """The options as they are, but for paths: they are those of the folder."""
        assert self.server is None, "a server runs already: ^C first"
        told = dict(zip(options[::2], options[1::2], strict=True))
        paths = {name: self.folder / told.pop(name) for name in ("--agent", "--store", "--keys") if name in told}
        self.server = Server(
            self.folder,
            paths["--store"],
            agent=paths.get("--agent", False),
            keys=paths.get("--keys"),
            options=[word for pair in told.items() for word in pair],
        ).start()

    def curl(self, command: str) -> Answer:
        """What curl would do."""
        method, address, body = "GET", "", None
        headers: dict[str, str] = {}
        arguments = iter(shlex.split(re.sub(r"\$(\w+)", lambda name: self.variables[name[1]], command))[1:])
        for word in arguments:
            if word == "-X":
                method = next(arguments)
            elif word == "--json":
                body = next(arguments).encode()
                method = "POST" if method == "GET" else method
                headers |= {"Content-Type": "application/json", "Accept": "application/json"}
            elif word == "-H":
                name, _, value = next(arguments).partition(": ")
                headers[name] = value
            elif word == "-w":
                assert next(arguments) == r"%{http_code}\n"
            elif word != "-s":
                assert not word.startswith("-"), f"{word}: not an option that is known here"
                address = word
        parts = urlsplit(f"http://{address}")
        assert parts.netloc == ADDRESS and self.server is not None
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return self.server.ask(method, path, body, headers)

    def stop(self) -> None:
        """Ctrl-C."""
        if self.server is not None:
            assert self.server.stop() == 0
            self.server = None


def check(command: str, shown: str, answer: Answer) -> None:
    """The answer has the form of the one that is shown; a problem is the same one."""
    if "%{http_code}" in command:
        assert not answer.content and str(answer.status) == shown.strip(), command
        return
    told, wanted = answer.json(), json.loads(" ".join(line.strip() for line in shown.splitlines()))
    assert form_of(told) == form_of(wanted), command
    if "type" in wanted:
        assert {**told, "instance": ""} == {**wanted, "instance": ""}, command
    else:
        assert answer.status == 200, command


def form_of(value: Any) -> Any:
    """The names that there are; of lists, those of the first (a page shows no more)."""
    if isinstance(value, dict):
        return {name: form_of(one) for name, one in value.items() if name != "details"}
    if isinstance(value, list):
        return [form_of(value[0])] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    """In order, on servers that the page itself starts and stops."""
    reader = Reader(tmp_path)
    try:
        for command, shown in steps():
            reader.do(command, shown)
    finally:
        reader.stop()
    assert reader.variables  # it was not passed over
