"""API keys: who is let in, what is kept, and that the key itself is nowhere."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from manyarms.cli import app as cli
from manyarms.errors import InvalidInput, StorageError
from manyarms.service import keys as module
from manyarms.service.keys import SCOPES, Key, Keys


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is looked at with every question."""
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def found(keys: Keys, text: str) -> Key:
    key = keys.find(text)
    assert key is not None
    return key


def test_a_key_is_found_by_its_text_and_by_nothing_else(file: Path) -> None:
    keys = Keys.open(file, make=True)
    text = keys.add("web", ["reward", "decide"])
    assert re.fullmatch(r"ma_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", text) and "web" not in text
    for known in (keys, Keys.open(file)):
        key = found(known, text)
        assert key.name == "web" and key.scopes == ("decide", "reward") and key.expires is None
        assert key.allows("decide") and not key.allows("admin")
        head, other = text[:-43], "A" if text[-1] != "A" else "B"
        for wrong in (
            "",
            text[:-1],
            text + "x",
            text[:-1] + other,
            text.upper(),
            head + "x" * 43,
            f" {text}",
            "é" * 63,
        ):
            assert known.find(wrong) is None
        nonsense: list[Any] = [None, b"x", 3, text.encode()]
        assert [known.find(wrong) for wrong in nonsense] == [None] * 4


def test_only_a_hash_is_kept_and_the_key_is_told_nowhere_else(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    keys = Keys.open(file, make=True)
    text = keys.add("web", SCOPES)
    secret = text[-43:]
    told = [file.read_text(), repr(keys), repr(keys.all()), repr(found(keys, text)), caplog.text, str(vars(keys))]
    wrong: list[Callable[[], Any]] = [lambda: keys.add(text, ["read"]), lambda: keys.add("x", [text])]
    wrong += [lambda: keys.rotate(text), lambda: keys.revoke(f"{text}x"), lambda: keys.revoke(f"ma_{secret}")]
    for call in wrong:
        with pytest.raises(InvalidInput) as refused:
            call()
        told.append(str(refused.value))
    assert not [words for words in told if secret in words]
    [key] = json.loads(file.read_text())["keys"]
    assert set(key) == {"id", "name", "sha256", "scopes", "created", "expires", "revoked"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_expired_and_revoked_keys_are_not_let_in(file: Path) -> None:
    clock = Clock()
    keys = Keys.open(file, make=True, clock=clock)
    brief, lasting, leaked = (
        keys.add(name, ["read"], end) for name, end in (("a", clock.now + 10), ("b", None), ("c", None))
    )
    assert keys.find(brief) and keys.find(lasting)
    clock.now += 10
    assert keys.find(brief) is None and keys.find(lasting)
    [gone] = keys.revoke("b")
    assert gone.revoked == clock.now and keys.find(lasting) is None
    assert [key.name for key in keys.revoke(leaked)] == ["c"], "by its own text, too"
    assert keys.find(leaked) is None
    assert [key.state(clock.now) for key in keys.all()] == ["expired", "revoked", "revoked"]
    assert keys.find(keys.add("a", ["read"])), "the name is free again"


def test_rotation_keeps_name_and_scopes_and_the_old_key_for_the_overlap(file: Path) -> None:
    clock = Clock()
    keys = Keys.open(file, make=True, clock=clock)
    first = keys.add("web", ["decide"], clock.now + 1000)
    clock.now += 400
    second = keys.rotate("web", 60.0)
    assert second != first and found(keys, second).scopes == found(keys, first).scopes == ("decide",)
    assert found(keys, first).expires == clock.now + 60 and found(keys, second).expires == clock.now + 1000
    clock.now += 60
    assert keys.find(first) is None and keys.find(second)
    third = keys.rotate("web")
    assert keys.find(second) is None and keys.find(third)
    assert len(keys.revoke("web")) == 3 and keys.find(third) is None


def test_a_service_that_runs_takes_up_what_another_process_changes(file: Path) -> None:
    keys = Keys.open(file, make=True)
    first = keys.add("web", ["decide"])
    other = Keys.open(file)
    second = other.rotate("web")
    assert keys.find(second) and keys.find(first) is None
    other.revoke("web")
    assert keys.find(second) is None


def test_the_file_is_looked_at_once_a_second(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY", 3600.0)
    keys = Keys.open(file, make=True)
    keys.add("web", ["decide"])
    text = Keys.open(file).rotate("web")
    assert keys.find(text) is None, "not yet"
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)
    assert keys.find(text)


def spoil(file: Path, how: str) -> None:
    body = json.loads(file.read_text())
    if how == "removed":
        file.unlink()
    elif how == "open to others":
        file.chmod(0o640)
    elif how == "cut":
        file.write_bytes(file.read_bytes()[:-20])
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "of another kind":
        file.write_text("[1, 2]")
    elif how == "with an unknown scope":
        body["keys"][0]["scopes"] = ["all"]
        file.write_text(json.dumps(body))
    elif how == "with a time that is none":
        body["keys"][0]["expires"] = float("nan")
        file.write_text(json.dumps(body))
    elif how == "with an id twice":
        body["keys"] *= 2
        file.write_text(json.dumps(body))
    else:
        file.write_text("[" * 100_000)


SPOILT = (
    "removed", "open to others", "cut", "empty", "of another kind", "with an unknown scope", "with a time that is none",
    "with an id twice", "deep",
)  # fmt: skip


@pytest.mark.parametrize("how", SPOILT)
def test_a_damaged_file_leaves_the_keys_of_before_and_is_told(how: str, file: Path) -> None:
    keys = Keys.open(file, make=True)
    text = keys.add("web", ["decide"])
    whole = file.read_bytes()
    spoil(file, how)
    assert keys.find(text) and keys.find(text[:-1] + "!") is None
    assert keys.failure is not None and str(file) in keys.failure
    with pytest.raises(StorageError) as refused:
        Keys.open(file)
    assert str(file) in str(refused.value) and "\n" not in str(refused.value)
    if how != "removed":
        with pytest.raises(StorageError):
            keys.add("other", ["read"])
    file.write_bytes(whole)
    file.chmod(0o600)
    assert keys.find(text) and keys.failure is None


def test_a_file_that_others_may_read_is_refused_with_what_to_do(file: Path) -> None:
    Keys.open(file, make=True).add("web", ["decide"])
    for mode in (0o604, 0o640, 0o660, 0o602, 0o644):
        file.chmod(mode)
        with pytest.raises(StorageError, match="chmod 600"):
            Keys.open(file)


def test_what_a_link_leads_to_is_read_and_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    text = Keys.open(tmp_path / "link", make=True).add("web", ["decide"])
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").is_file()
    assert Keys.open(tmp_path / "link").find(text)


@pytest.mark.parametrize(
    ("name", "scopes", "expires"),
    [
        ("", ["read"], None), ("a\nb", ["read"], None), ("x" * 65, ["read"], None), (None, ["read"], None),
        ("web", [], None), ("web", ["write"], None), ("web", ["read"], 10.0), ("web", ["read"], float("nan")),
        ("taken", ["read"], None),
    ],
)  # fmt: skip
def test_nonsense_is_refused_and_changes_nothing(name: Any, scopes: Any, expires: Any, file: Path) -> None:
    keys = Keys.open(file, make=True)
    keys.add("taken", ["read"])
    before = file.read_bytes()
    with pytest.raises(InvalidInput):
        keys.add(name, scopes, expires)
    for wrong in (lambda: keys.rotate("nobody"), lambda: keys.rotate("taken", -1.0), lambda: keys.revoke("nobody")):
        with pytest.raises(InvalidInput):
            wrong()
    assert file.read_bytes() == before and len(keys) == 1


def test_two_writers_do_not_lose_each_others_keys(file: Path) -> None:
    """Threads with a `Keys` each, as processes have, while one reads: every key that was told is there at the end."""
    Keys.open(file, make=True).add("first", ["read"])
    told: list[tuple[str, str]] = []
    problems: list[str] = []
    done = threading.Event()

    def writes(writer: int) -> None:
        keys = Keys.open(file)
        for number in range(10):
            name = f"{writer}-{number}"
            told.append((name, keys.add(name, ["read"])))

    def reads() -> None:
        keys = Keys.open(file)
        while not done.is_set():
            for name, text in list(told):
                if (key := keys.find(text)) is None or key.name != name:
                    problems.append(name)
            if keys.failure:
                problems.append(keys.failure)

    reader = threading.Thread(target=reads)
    writers = [threading.Thread(target=writes, args=(number,)) for number in range(4)]
    reader.start()
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join(60)
    done.set()
    reader.join(60)
    assert not problems
    last = Keys.open(file)
    assert len(last) == 41 and all(found(last, text).name == name for name, text in told)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_what_root_writes_belongs_to_the_services_user(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    os.chown(folder, 1234, 1235)
    keys = Keys.open(folder / "keys.json", make=True)
    keys.add("web", ["decide"])
    assert (keys.path.stat().st_uid, keys.path.stat().st_gid) == (1234, 1235)
    os.chown(keys.path, 1236, 1237)
    keys.rotate("web")
    assert (keys.path.stat().st_uid, keys.path.stat().st_gid) == (1236, 1237)


# ---- the command


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main([str(word) for word in words])
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def test_ids_can_be_copied_from_a_terminal_of_80_columns(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name, scopes in {"web": "decide,reward", "ops": ",".join(SCOPES)}.items():
        run(capsys, "keys", "add", file, "--name", name, "--scopes", scopes, "--expires", "90d")
    _, out, _ = run(capsys, "keys", "list", file)
    assert all(key.id in out for key in Keys.open(file).all())


def test_the_command_prints_the_key_alone_and_once(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "keys", "add", file, "--name", "web", "--scopes", "decide, reward", "--expires", "90d")
    first = out.strip()
    assert code == 0 and out == f"{first}\n" and "web" in err and first not in err
    key = found(Keys.open(file), first)
    assert key.scopes == ("decide", "reward") and key.expires is not None
    assert 89 * 86_400 < key.expires - time.time() <= 90 * 86_400
    code, out, err = run(capsys, "keys", "rotate", file, "--name", "web", "--overlap", "1d")
    second = out.strip()
    assert code == 0 and Keys.open(file).find(second) and Keys.open(file).find(first) and second not in err
    code, out, err = run(capsys, "keys", "list", file)
    assert code == 0 and not err and "2 keys, 2 in use" in out and key.id in out and first[-43:] not in out
    code, out, err = run(capsys, "keys", "revoke", file, "--name", key.id)
    assert (code, out) == (0, "") and key.id in err
    assert Keys.open(file).find(second) and Keys.open(file).find(first) is None


WRONG = {
    "a verb that there is not": ["show", "FILE"],
    "no name": ["add", "FILE", "--scopes", "read"],
    "no scopes": ["add", "FILE", "--name", "web"],
    "no such scope": ["add", "FILE", "--name", "web", "--scopes", "write"],
    "no time": ["add", "FILE", "--name", "web", "--scopes", "read", "--expires", "soon"],
    "scopes for another verb": ["rotate", "FILE", "--name", "web", "--scopes", "read"],
    "no file": ["list", "FILE"],
    "no file to rotate in": ["rotate", "FILE", "--name", "web"],
}


@pytest.mark.parametrize("which", WRONG)
def test_mistakes_are_one_line(which: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "keys", *(str(file) if word == "FILE" else word for word in WRONG[which]))
    assert code == 2 and not out and err.startswith("manyarms: ") and err.count("\n") == 1
    assert not file.exists()


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "keys", "--help")
    assert code == 0 and all(word in out for word in ("manyarms keys add", "rotate", "revoke", *SCOPES))


def test_nothing_but_python_is_needed() -> None:
    program = "import sys; before = set(sys.modules); import manyarms.service.keys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600)
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert not tops & {"fastapi", "starlette", "pydantic", "uvicorn", "httpx", "typer"}
