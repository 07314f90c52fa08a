"""The program as a whole: its help at any width, how it ends, completion, what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from manyarms.cli import app
from manyarms.cli._help import WIDEST, laid_out
from manyarms.logs import inspection

GROUP: Any = typer.main.get_command(app.app)
WIDTHS = (60, 80, 120, 200)


def ended(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """How the program ends: its code, and what it printed."""
    with pytest.raises(SystemExit) as end:
        app.main([str(word) for word in words])
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def page(command: str, width: int = 80) -> str:
    """The help of a command, or of the program, as a terminal so wide shows it."""
    shown = GROUP if not command else GROUP.commands[command]
    context = typer.Context(shown, info_name=f"manyarms {command}".strip(), max_content_width=WIDEST)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        return str(context.get_help())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", ["", *sorted(GROUP.commands)])
def test_help_fits_any_width(command: str, width: int) -> None:
    text = page(command, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert all(ord(letter) < 0x2500 for letter in text)  # no boxes
    # nothing is broken letter by letter: a column of text keeps some words beside each other
    assert sum(len(line.split()) == 1 for line in lines) < len(lines) / 3
    if command:
        for one in GROUP.commands[command].params:
            if one.param_type_name == "option":
                assert f"  {min(one.opts, key=len)}" in text or f" {max(one.opts, key=len)}" in text


@pytest.mark.parametrize("command", ["evaluate", "compare", "choose", "tune", "learn", "certify", "decide", "inspect"])
def test_help_has_examples_and_says_what_is_written(command: str) -> None:
    text = page(command)
    assert f"  manyarms {command} " in text and "Examples:" in text
    assert f"Usage: manyarms {command} " in text


def test_commands_in_help_can_be_copied() -> None:
    text = "  manyarms learn log.csv --objective clpi --learning-rate 0.01 --context user_ --out somewhere"
    lines = laid_out(f"Examples:\n\n{text}", 50).splitlines()[2:]
    assert len(lines) > 1 and all(line.endswith(" \\") for line in lines[:-1]) and max(map(len, lines)) <= 50
    assert " ".join(line.rstrip("\\").strip() for line in lines) == text.strip()
    assert not any(
        line.rstrip(" \\").endswith(("--objective", "--learning-rate", "--context", "--out")) for line in lines
    )


def test_brackets_are_shown_as_they_are() -> None:
    assert laid_out("Needs the extra [torch] and [/bold].", 60) == "Needs the extra [torch] and [/bold]."
    for command in GROUP.commands:
        assert "[bold]" not in page(command) and "[/" not in page(command)
    assert "[torch]" in CliRunner().invoke(app.app, ["version"]).output


def test_version_and_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    import manyarms

    assert ended(capsys, "--version") == (0, f"manyarms {manyarms.__version__}\n", "")
    code, out, err = ended(capsys)
    assert code == 0 and out.startswith("Usage: manyarms") and not err


def test_completion_works_without_a_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setattr(app, "app", app.build())  # which shells there are is settled when it is built
    for shell in ("bash", "zsh", "fish"):
        code, out, err = ended(capsys, "--show-completion", shell)
        assert code == 0 and "_MANYARMS_COMPLETE" in out and not err
    code, _, err = ended(capsys, "--install-completion", "bash")
    assert code == 0 and not err and any(tmp_path.rglob("*manyarms*"))
    for name, value in (("_MANYARMS_COMPLETE", "complete_bash"), ("COMP_WORDS", "manyarms eva"), ("COMP_CWORD", "1")):
        monkeypatch.setenv(name, value)
    assert ended(capsys)[1].split() == ["evaluate"]


UNUSABLE = {
    "an option that there is not": (["evaluate", "--flor", "3"], "--flor"),
    "a command that there is not": (["evalute"], "'evalute'"),
    "nothing to work on": (["inspect"], "LOG"),
    "no number": (["evaluate", "uniform", "log.csv", "--level", "high"], "--level"),
    "too few words": (["compare", "uniform", "log.csv"], "2 policies"),
    "too many words": (["evaluate", "a", "b", "c"], "1 policy"),
}


@pytest.mark.parametrize("which", UNUSABLE)
def test_what_cannot_be_understood_is_one_line(which: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, told = UNUSABLE[which]
    code, _, said = ended(capsys, *words)
    assert code == 2 and said.count("\n") == 1 and told in said and said.startswith("manyarms: ")


def broken(error: BaseException) -> Any:
    def work(*_: Any, **__: Any) -> None:
        raise error

    return work


def ending(monkeypatch: pytest.MonkeyPatch, error: BaseException, tmp_path: Path, *more: str) -> int:
    (tmp_path / "log.csv").touch()
    monkeypatch.setattr(inspection, "inspect", broken(error))
    with pytest.raises(SystemExit) as end:
        app.main(["inspect", str(tmp_path / "log.csv"), "--out", str(tmp_path / "page.html"), *more])
    return int(end.value.code or 0)


def test_something_unexpected_is_one_line_and_the_rest_on_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = RuntimeError("first line [torch]\nsecond line")
    assert ending(monkeypatch, error, tmp_path) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "unexpected RuntimeError: first line [torch]" in said and "--traceback" in said
    assert ending(monkeypatch, error, tmp_path, "--traceback") == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err
    monkeypatch.setenv("MANYARMS_TRACEBACK", "1")
    assert ending(monkeypatch, error, tmp_path) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err
    monkeypatch.setenv("MANYARMS_TRACEBACK", "0")
    assert ending(monkeypatch, MemoryError(), tmp_path) == 1
    assert capsys.readouterr().err.startswith("manyarms: unexpected MemoryError (")


def test_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ending(monkeypatch, KeyboardInterrupt(), tmp_path) == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise there")
def test_a_reader_that_has_had_enough_hears_nothing_more() -> None:
    command = f"{sys.executable} -m manyarms learn --help | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Usage") and not done.stderr


def test_no_colour_where_none_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b" not in page("learn")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in ended(capsys, "inspect", tmp_path / "nothing.csv")[2]


WITHOUT = """
import sys
EXTRAS = {"torch", "pyarrow", "pandas", "polars", "sklearn", "matplotlib", "faiss", "psycopg", "narwhals", "skops",
          "fastapi", "starlette", "uvicorn", "httpx", "cryptography", "orjson", "prometheus_client", "threadpoolctl"}
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refuse())
from manyarms.cli import app
import typer
from typer.testing import CliRunner
for command in typer.main.get_command(app.app).commands:
    result = CliRunner().invoke(app.app, [command, "--help"])
    assert result.exit_code == 0, (command, result.output, result.exception)
print("all")
"""


def test_help_needs_no_extra() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "all", done.stderr
