"""The command line and the file system: what cannot be written is said in one line before the work, whatever it is called."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from manyarms.cli import _learn_inputs, _policies, app, options
from manyarms.cli._text import plain, say
from manyarms.errors import InvalidInput
from manyarms.logs import LoggedData, inspection, open_log, read_log, to_csv
from manyarms.policies import UniformPolicy

AWKWARD = ["[red]x", "[/]", "a[bold]b", "\\", "x\\[y]", "[link=x]"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    data = LoggedData(rng.normal(size=(40, 2)), rng.integers(3, size=40), np.ones(40), 3, np.full(40, 1 / 3))
    to_csv(data, tmp_path / "log.csv")
    UniformPolicy(3).save(tmp_path / "policy")
    return tmp_path / "log.csv"


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as end:
        app.main([str(word) for word in words])
    return int(end.value.code or 0)


COMMANDS = {
    "inspect": ["inspect", "LOG"], "evaluate": ["evaluate", "POLICY", "LOG"], "certify": ["certify", "POLICY", "LOG"],
    "learn": ["learn", "LOG"], "reproduce": ["reproduce", "mets-synthetic", "--scale", "smoke"], "demo": ["demo"],
}  # fmt: skip


def words_of(command: str, log: Path) -> list[str]:
    names = {"LOG": str(log), "POLICY": str(log.parent / "policy")}
    return [names.get(word, word) for word in COMMANDS[command]]


@pytest.fixture
def nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts to work fails the test."""

    def work(*_: Any, **__: Any) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr(inspection, "inspect", work)
    monkeypatch.setattr(_policies.SavedPolicy, "load", work)
    monkeypatch.setattr(_learn_inputs.Inputs, "read", work)
    for name in ("manyarms_thesis.harness.runner._work", "manyarms.cli.demo.demo.PARTS"):
        module, _, attribute = name.rpartition(".")
        pytest.importorskip(module)
        monkeypatch.setattr(sys.modules[module], attribute, (work,) if attribute == "PARTS" else work)


@pytest.mark.usefixtures("nothing_is_done")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("where", ["file", "file/inside", "x" * 300, "loop/x"])
def test_an_out_that_cannot_be_written_is_refused_before_the_work(
    command: str, where: str, log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if command == "learn":
        pytest.importorskip("torch")
    (log.parent / "file").mkdir() if command == "inspect" and where == "file" else (log.parent / "file").touch()
    (log.parent / "loop").symlink_to(log.parent / "loop")
    out = log.parent / where
    assert run(*words_of(command, log), "--out", out) == app.ERROR
    said = capfd.readouterr().err
    assert str(out) in said and "cannot be written" in said
    assert said.count("\n") == 1 and "Traceback" not in said


@pytest.mark.usefixtures("nothing_is_done")
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "inspect"])
def test_a_folder_where_the_report_should_be(command: str, log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if command == "learn":
        pytest.importorskip("torch")
    (log.parent / "out" / "report.html").mkdir(parents=True)
    assert run(*words_of(command, log), "--out", log.parent / "out") == app.ERROR
    assert "there is a folder 'report.html' in its place" in capfd.readouterr().err


@pytest.mark.usefixtures("nothing_is_done")
@pytest.mark.parametrize(
    ("command", "option", "place"),
    [
        ("inspect", "LOG", "log.csv"), ("evaluate", "LOG", "log.csv"), ("evaluate", "POLICY", "policy"),
        ("evaluate", "--model", "agent"), ("certify", "POLICY", "policy"), ("certify", "LOG", "log.csv"),
        ("certify", "--prior", "agent"), ("certify", "--logging", "agent"), ("learn", "LOG", "log.csv"),
        ("learn", "--logging", "policy"), ("learn", "--model", "agent"), ("learn", "--actions", "agent"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("by", ["its name", "a link", "another way"])
def test_an_out_that_is_an_input_is_refused_and_left_alone(
    command: str, option: str, place: str, by: str, log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if command == "learn":
        pytest.importorskip("torch")
    (log.parent / "agent").mkdir()
    before = {path: path.read_bytes() for path in log.parent.rglob("*") if path.is_file()}
    given = log.parent / place
    out = {"its name": given, "a link": log.parent / "link", "another way": log.parent / "policy" / ".." / place}[by]
    (log.parent / "link").symlink_to(given)
    more = [option, given] if option.startswith("--") else []
    assert run(*words_of(command, log), *more, "--out", out) == app.ERROR
    said = capfd.readouterr().err
    assert f"--out: expected another path, or {option} would be written over" in said and said.count("\n") == 1
    (log.parent / "link").unlink()
    assert before == {path: path.read_bytes() for path in log.parent.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("nothing_is_done")
def test_a_log_with_the_name_of_a_result_is_not_written_over(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (log.parent / "evaluation.json").write_text("{}")
    command = ("evaluate", "uniform", log.parent / "evaluation.json", "--out", log.parent)
    assert run(*command) == app.ERROR
    assert "which is LOG" in capfd.readouterr().err


@pytest.mark.usefixtures("nothing_is_done")
@pytest.mark.parametrize("command", ["inspect", "evaluate", "certify", "learn"])
def test_a_file_of_no_known_format_is_refused_as_it_was_given(
    command: str, log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if command == "learn":
        pytest.importorskip("torch")
    other = log.rename(log.with_suffix(".txt"))
    assert run(*words_of(command, other), "--out", log.parent / "out") == app.ERROR
    assert "LOG: expected a file that ends in" in capfd.readouterr().err
    for call in (open_log, read_log):
        with pytest.raises(InvalidInput, match=r"^path: expected a file that ends in"):
            call(other)


def test_a_page_is_written_over_pages_alone(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notes = log.parent / "notes.txt"
    notes.write_text("dear diary")
    assert run("inspect", log, "--out", notes) == app.ERROR
    said = capfd.readouterr().err
    assert "--out: expected a path of its own for the page, such as one that ends in .html" in said
    with pytest.raises(InvalidInput, match="path: expected a path of its own"):
        inspection.write_page(inspection.inspect(log), notes)
    assert notes.read_text() == "dear diary"
    (log.parent / "old.html").write_text("anything")
    (log.parent / "empty").touch()
    for name in ("old.html", "empty", "new.txt", "new.txt"):  # the last one is a page of ours by then
        assert run("inspect", log, "--out", log.parent / name) == 0
        assert (log.parent / name).read_text().startswith("<!doctype html>")


@pytest.mark.usefixtures("nothing_is_done")
def test_a_device_that_is_none(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    for device in ("bogus", "meta", "cuda:99", ""):
        assert run("learn", log, "--out", log.parent / "out", "--device", device) == app.ERROR
        assert "--device: expected a device of PyTorch" in capfd.readouterr().err
    assert not (log.parent / "out").exists()


@pytest.mark.parametrize("name", AWKWARD)
def test_names_are_shown_as_they_are(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", tmp_path / f"{name}.csv") == app.ERROR
    assert f"{name}.csv: no such file" in capfd.readouterr().err
    options.say(options.facts(name, {name: name}))
    assert capfd.readouterr().out.count(name) == 3
    assert plain(name).plain == name


@pytest.mark.skipif(os.name == "nt", reason="such names cannot be there")
def test_names_that_are_no_text_and_names_that_steer_a_terminal(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = log.parent / "a\x1b[31mb\udc80\x07\r.html"
    app.app(["inspect", str(log), "--out", str(out)], standalone_mode=False)
    said = capfd.readouterr().out
    assert out.exists()
    assert "a\\x1b[31mb\\udc80\\x07\\r.html" in said and "\x1b" not in said


def test_lines_are_kept(capfd: pytest.CaptureFixture[str]) -> None:
    say(Console(width=20), "one\ntwo " + "x" * 50)
    assert capfd.readouterr().out == "one\ntwo " + "x" * 50 + "\n"
