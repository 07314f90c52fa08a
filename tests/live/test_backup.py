"""Backups: one state of a store that is in use, as a store; and stores that are made of them."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import manyarms as ma
from live.postgres import Server
from live.small_store import Clock, D, small_agent, small_live, traffic
from live.small_store import quick_disk as quick_disk
from manyarms.cli import app as cli
from manyarms.errors import InvalidInput, StorageError
from manyarms.live import Live, backup, copying, packing, replay, restore, snapshots
from manyarms.live.stores import opening, schema
from manyarms.live.stores.opening import open_database, open_existing

WITHIN = 60.0


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """A store that is open, with something in most of its tables."""
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent(), aggregate="sum") as found:
        ids = traffic(found, clock, 20)
        found.snapshot()
        found.erase(ids[4])
        found.add_arm("other", small_agent(2))
        clock.now += 100
        found.learn()
        yield found


def rows_of(database: Any) -> dict[str, list[Any]]:
    """Everything that a store has, by table."""
    with database.reading() as reader:
        tables = copying.layouts()
        return {table.name: [row for page in copying.pages(reader, table) for row in page] for table in tables}


def state_at(database: Any, version: int) -> bytes:
    return packing.pack_state(snapshots.state_of(database, version))


def test_every_table_of_the_schema_is_copied_and_has_a_key_to_go_by() -> None:
    made = {sql.split()[2] for sql in schema.TABLES if sql.startswith("CREATE TABLE")}
    tables = copying.layouts()
    assert {table.name for table in tables} == made
    assert all(table.key and set(table.key) <= set(table.columns) for table in tables)


def test_a_backup_is_the_store_and_a_restored_one_goes_on(live: Live, tmp_path: Path) -> None:
    made = backup(live.database, tmp_path / "b.db")
    before, state = rows_of(live.database), live.state_bytes()
    assert made.bytes == (tmp_path / "b.db").stat().st_size and made.version == live.version
    assert made.position == live.database.read("SELECT position FROM counter")[0][0]
    assert made.rows == {name: len(rows) for name, rows in before.items()}
    live.decide(np.ones(D), id="later")
    found = restore(tmp_path / "b.db", tmp_path / "r.db")
    assert (found.position, found.version, found.rows) == (made.position, made.version, made.rows)
    for path in (tmp_path / "b.db", tmp_path / "r.db"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with open_existing(path) as database:
            assert rows_of(database) == before
    verified = replay(tmp_path / "r.db")
    assert verified.ok, str(verified)
    with small_live(tmp_path / "r.db", Clock(2e6)) as other:
        assert other.state_bytes() == state
        other.reward(other.decide(np.ones(D), id="later").id, 1.0)
        assert other.learn() and other.version > made.version, "the lease can be had at once"
    verified = replay(tmp_path / "r.db")
    assert verified.ok, str(verified)


def test_a_restored_store_has_no_learner_and_its_tokens_do_not_fall(live: Live, tmp_path: Path) -> None:
    live.learn()
    [(holder, token)] = live.database.read("SELECT holder, token FROM leases")
    assert holder and token
    backup(live.database, tmp_path / "b.db")
    with sqlite3.connect(tmp_path / "s.db") as source, sqlite3.connect(tmp_path / "copy.db") as copy:
        source.backup(copy)  # what SQLite's own means give has the lease in it
    source.close()
    copy.close()
    for name in ("b.db", "copy.db"):
        restore(tmp_path / name, tmp_path / f"of-{name}")
        with open_existing(tmp_path / f"of-{name}") as database:
            assert database.read("SELECT holder, token, expires FROM leases") == [("", token, 0.0)]


def test_pages_have_all_rows_once_and_a_bounded_size(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows_of(live.database)
    monkeypatch.setattr(copying, "PAGE", 4_000)
    monkeypatch.setattr(copying, "FIRST", 1)
    assert rows_of(live.database) == whole
    with live.database.reading() as reader:
        [decisions] = [table for table in copying.layouts() if table.name == "decisions"]
        sizes = [len(page) for page in copying.pages(reader, decisions)]
    assert len(sizes) > 2 and max(sizes) <= 4_000 // 100


@contextmanager
def deciding(live: Live, threads: int = 4) -> Iterator[list[tuple[str, float]]]:
    """Events and rewards, as they are told, while threads decide and reward."""
    told: list[tuple[str, float]] = []
    stop, failures = threading.Event(), []

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        try:
            while not stop.is_set():
                made = live.decide(rng.normal(size=D), unit=f"u{rng.integers(9)}")
                reward = float(rng.normal())
                live.reward(made.id, reward)
                told.append((made.id, reward))
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield told
    finally:
        stop.set()
        for thread in running:
            thread.join(WITHIN)
    assert not failures


def in_use(address: Path | str, restored: list[Path | str], tmp_path: Path) -> None:
    """Backups while four threads decide and reward: what was told before each began is in it, and it goes on from there."""
    options: dict[str, Any] = {"fold_every": 0.02, "snapshot_every": 5, "default": 0.0, "wait": 0.2}
    with ma.live.open(address, small_agent(decision="epsilon-greedy"), **options) as live, deciding(live) as told:
        for number, target in enumerate(restored):
            wanted = len(told) + 50
            for _ in range(int(WITHIN / 0.01)):
                if len(told) >= wanted:
                    break
                threading.Event().wait(0.01)
            before = list(told)
            assert len(before) >= wanted
            made = backup(live.database, tmp_path / f"{number}.db")
            assert restore(tmp_path / f"{number}.db", target).position == made.position
            with open_existing(target) as database:
                sql = "SELECT d.id, r.value FROM rewards r JOIN decisions d ON d.position = r.decision"
                assert set(before) <= set(database.read(sql))
                assert state_at(database, made.version) == state_at(live.database, made.version)
            verified = replay(target)
            assert verified.ok, str(verified)
            with ma.live.open(target, background=False) as other:
                other.reward(other.decide(np.ones(D)).id, 1.0)
                other.learn()
                assert other.version > made.version
                assert packing.pack_state(snapshots.from_origin(other.database)) == other.state_bytes()
            verified = replay(target)
            assert verified.ok, str(verified)


def test_backups_of_a_store_in_use(tmp_path: Path) -> None:
    in_use(tmp_path / "s.db", [tmp_path / "r0.db", tmp_path / "r1.db"], tmp_path)


@pytest.mark.slow
def test_backups_of_a_store_in_use_on_postgresql(postgres: Server, tmp_path: Path) -> None:
    in_use(postgres.new_database(), [tmp_path / "r.db", postgres.new_database()], tmp_path)


@pytest.mark.slow
def test_a_store_moves_to_postgresql_and_back(live: Live, postgres: Server, tmp_path: Path) -> None:
    before, state = rows_of(live.database), live.state_bytes()
    backup(live.database, tmp_path / "b.db")
    content = (tmp_path / "b.db").read_bytes()
    address = postgres.new_database()
    assert restore(tmp_path / "b.db", address).rows == {name: len(rows) for name, rows in before.items()}
    assert (tmp_path / "b.db").read_bytes() == content
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("b.db-")]
    with open_existing(address) as database:
        assert rows_of(database) == before
    assert replay(address).ok
    with pytest.raises(StorageError, match="already"):
        restore(tmp_path / "b.db", address)
    backup(address, tmp_path / "back.db")
    restore(tmp_path / "back.db", tmp_path / "again.db")
    with small_live(tmp_path / "again.db", Clock(2e6)) as again:
        assert rows_of(again.database) == before and again.state_bytes() == state
    verified = replay(tmp_path / "again.db")
    assert verified.ok, str(verified)


@pytest.mark.slow
def test_what_breaks_a_restoration_off_leaves_an_empty_database(
    live: Live, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(live.database, tmp_path / "b.db")
    address = postgres.new_database()
    with monkeypatch.context() as patched:
        patched.setattr(copying, "check", raises(StorageError("no")))
        with pytest.raises(StorageError, match="no"):
            restore(tmp_path / "b.db", address)
    with pytest.raises(Killed):
        restore(tmp_path / "b.db", address, progress=kills_at("rewards"))
    with pytest.raises(StorageError, match="no live store"):
        open_existing(address)
    assert restore(tmp_path / "b.db", address).position
    assert replay(address).ok


class Killed(BaseException):
    """The process ends here."""


def raises(error: BaseException) -> Any:
    def instead(*_: object, **__: object) -> Any:
        raise error

    return instead


def kills_at(word: str) -> Any:
    def progress(done: int, total: int, words: str) -> None:
        if word in words:
            raise Killed

    return progress


@pytest.mark.parametrize("word", ["decisions", "rewards", "checking"])
def test_whatever_breaks_it_off_nothing_is_left(word: str, live: Live, tmp_path: Path) -> None:
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(Killed):
        backup(live.database, tmp_path / "b.db", progress=kills_at(word))
    assert sorted(os.listdir(tmp_path)) == before
    backup(live.database, tmp_path / "b.db")
    with pytest.raises(Killed):
        restore(tmp_path / "b.db", tmp_path / "r.db", progress=kills_at("checking"))
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "b.db"])


KILLED = """
import os, signal, sys
import manyarms as ma
def progress(done, total, words):
    if sys.argv[3] in words:
        os.kill(os.getpid(), signal.SIGKILL)
ma.live.backup(sys.argv[1], sys.argv[2], progress=progress)
"""


@pytest.mark.parametrize("word", ["decisions", "checking"])
def test_a_killed_backup_leaves_nothing_under_the_name(word: str, live: Live, tmp_path: Path) -> None:
    target = tmp_path / "backups" / "b.db"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "s.db"), str(target), word]
    assert subprocess.run(command, check=False, timeout=600).returncode == -signal.SIGKILL
    assert not target.exists()
    assert backup(live.database, target).rows["decisions"] == 20
    assert replay(target).ok


def test_nothing_is_written_over(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "old-wal").write_text("of another store")
    backup(live.database, tmp_path / "b.db")
    for name in ("there", "folder", "nowhere", "old", "s.db", "b.db"):
        with pytest.raises(StorageError):
            backup(live.database, tmp_path / name)
        with pytest.raises(StorageError):
            restore(tmp_path / "b.db", tmp_path / name)
    for wrong in ("postgresql://127.0.0.1:1/x", ":memory:", "", None):
        with pytest.raises(InvalidInput):
            backup(live.database, wrong)  # type: ignore[arg-type]
    assert (tmp_path / "there").read_text() == "mine" and not (tmp_path / "gone").exists()

    real = copying.check  # somebody takes the name meanwhile

    def takes(*arguments: Any) -> None:
        (tmp_path / "new").write_text("mine")
        real(*arguments)

    monkeypatch.setattr(copying, "check", takes)
    with pytest.raises(StorageError, match="new"):
        backup(live.database, tmp_path / "new")
    assert (tmp_path / "new").read_text() == "mine"


def test_a_copy_that_is_not_what_it_should_be_is_refused(live: Live, tmp_path: Path) -> None:
    """Each table with a row less, positions beyond the end, a snapshot that was changed, bytes that were."""
    backup(live.database, tmp_path / "b.db")
    changes = {
        "DELETE FROM snapshots WHERE origin = 1": "origin",
        "UPDATE counter SET position = 3": "goes to position",
        "UPDATE snapshot_parts SET body = X'00'": "checksum",
        "DELETE FROM snapshot_parts": "checksum",
        "DELETE FROM meta": "not a store",
        "UPDATE meta SET body = '999' WHERE name = 'schema_version'": "version 999",
    }
    for number, (sql, words) in enumerate(changes.items()):
        spoilt = tmp_path / f"spoilt-{number}.db"
        shutil.copy(tmp_path / "b.db", spoilt)
        with sqlite3.connect(spoilt) as connection:
            connection.execute(sql)
        connection.close()
        with pytest.raises(StorageError, match=words) as refused:
            restore(spoilt, tmp_path / "r.db")
        assert spoilt.name in str(refused.value) and ".tmp" not in str(refused.value)
    with live.database.reading() as reader:
        tables = copying.layouts()
        found = copying.counts(reader, tables)
        with pytest.raises(StorageError, match="rewards has"):
            copying.check(reader, tables, found | {"rewards": found["rewards"] + 1}, "here")
    content = (tmp_path / "b.db").read_bytes()
    for name, spoil in {"cut": content[: len(content) // 2], "none": b"no store\n" * 200, "empty": b""}.items():
        (tmp_path / name).write_bytes(spoil)
        with pytest.raises(StorageError) as refused:
            restore(tmp_path / name, tmp_path / "r.db")
        assert name in str(refused.value)
    assert not (tmp_path / "r.db").exists()
    assert not [name for name in os.listdir(tmp_path) if ".tmp" in name]


def test_a_store_in_use_is_no_backup(live: Live, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="in use"):
        restore(tmp_path / "s.db", tmp_path / "r.db")
    with pytest.raises(StorageError, match="no backup"):
        restore(tmp_path / "none.db", tmp_path / "r.db")
    with pytest.raises(StorageError, match="no live store"):
        backup(tmp_path / "none.db", tmp_path / "b.db")
    open_database(tmp_path / "new.db").close()
    with pytest.raises(StorageError, match="no live store"):
        backup(tmp_path / "new.db", tmp_path / "b.db")
    assert sorted(os.listdir(tmp_path)) == ["new.db", "s.db", "s.db-shm", "s.db-wal"]


def old_store(path: Path) -> None:
    script = (Path(__file__).parent / "stores" / "version_0_4.sql").read_text(encoding="utf-8")
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()


def test_a_backup_of_an_older_version_becomes_a_store_of_today(tmp_path: Path) -> None:
    old_store(tmp_path / "old.db")
    content = (tmp_path / "old.db").read_bytes()
    restore(tmp_path / "old.db", tmp_path / "r.db")
    with open_existing(tmp_path / "r.db") as database, database.reading() as reader:
        assert opening._version(database, reader) == schema.VERSION
    assert (tmp_path / "old.db").read_bytes() == content


@pytest.mark.slow
def test_a_backup_of_an_older_version_goes_to_postgresql_by_way_of_a_file(postgres: Server, tmp_path: Path) -> None:
    old_store(tmp_path / "old.db")
    address = postgres.new_database()
    with pytest.raises(StorageError, match="brings it up to date"):
        restore(tmp_path / "old.db", address)
    restore(tmp_path / "old.db", tmp_path / "r.db")
    assert restore(tmp_path / "r.db", address).rows["decisions"]
    assert replay(address).ok


# ---- the commands


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "100"})


def test_the_commands_back_up_and_restore(live: Live, tmp_path: Path) -> None:
    done = invoke("backup", tmp_path / "s.db", tmp_path / "b.db")
    assert done.exit_code == 0 and "b.db" in done.output and f"version {live.version}" in done.output
    done = invoke("restore", tmp_path / "b.db", tmp_path / "r.db")
    assert done.exit_code == 0 and "restored" in done.output and "manyarms replay" in done.output
    assert invoke("replay", tmp_path / "r.db").exit_code == 0
    refused = invoke("restore", tmp_path / "b.db", tmp_path / "r.db")
    assert isinstance(refused.exception, StorageError) and "already" in str(refused.exception)
    assert isinstance(invoke("backup", tmp_path / "s.db", "postgresql://x/y").exception, InvalidInput)


@pytest.mark.parametrize("name", ["backup", "restore"])
def test_help_teaches(name: str) -> None:
    text = invoke(name, "--help").output
    for word in ("STORE", "postgresql://", f"manyarms {name} ", "Examples:", "replay"):
        assert word in text
