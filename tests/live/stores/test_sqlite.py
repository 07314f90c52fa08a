"""SQLite as a store: the contract, its file, and what goes wrong with files."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.stores.contract import Contract, entries, entry
from manyarms.errors import InvalidInput, StorageError, StoreUnavailable
from manyarms.live.stores import sqlite as module
from manyarms.live.stores.database import Database, Transaction
from manyarms.live.stores.opening import open_database, prepare
from manyarms.live.stores.sqlite import SQLite


class TestContract(Contract):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return str(tmp_path / "a store? 100%#.db")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "live.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLite]:
    """A store with one entry."""
    with SQLite(path, patience=0.05) as database:
        prepare(database)
        database.do(entry("first"))
        yield database


def unavailable(database: Database, why: str) -> None:
    """The next write is refused, for this reason."""
    with pytest.raises(StoreUnavailable, match=why):
        database.write([entry("lost"), entry("lost too")])


def as_before(database: Database, path: Path) -> None:
    """The store works again, and nothing of what was refused is in it."""
    assert database.do(entry("second")) == 2
    assert entries(database) == [(1, "first"), (2, "second")]
    with open_database(path) as other:
        assert entries(other) == [(1, "first"), (2, "second")]
        assert other.read("PRAGMA integrity_check") == [("ok",)]


# ---- the file


def test_only_the_owner_may_read_the_files(store: SQLite, path: Path) -> None:
    assert {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()} == {
        "live.db": 0o600, "live.db-wal": 0o600, "live.db-shm": 0o600,
    }  # fmt: skip


def test_what_makes_a_commit_durable_is_in_force(store: SQLite) -> None:
    assert store._writer is not None
    pragmas = {name: store._writer.execute(f"PRAGMA {name}").fetchall() for name in ("synchronous", "journal_mode")}
    assert pragmas == {"synchronous": [(2,)], "journal_mode": [("wal",)]}


def test_a_link_leads_to_the_file(store: SQLite, path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    with open_database(link) as other:
        assert other.do(entry("second")) == 2
    assert entries(store) == [(1, "first"), (2, "second")]
    assert not link.with_name("link.db-wal").exists()


def test_files_that_are_not_ours_are_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"not a database, but a text of some length" * 100)
    with pytest.raises(StorageError, match="not an SQLite database"):
        open_database(path)
    assert path.read_bytes() == b"not a database, but a text of some length" * 100
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    content = path.read_bytes()
    with pytest.raises(StorageError, match="not a store of live agents"):
        open_database(path)
    assert path.read_bytes() == content
    with pytest.raises(StorageError, match="not a file"):
        open_database(path.parent)
    with pytest.raises(StoreUnavailable, match="cannot be made: No such file or directory"):
        open_database(path.parent / "nowhere" / "live.db")
    for wrong in ("", "a\0b", 3, None, b"bytes"):
        with pytest.raises(InvalidInput, match="path"):
            open_database(wrong)  # type: ignore[arg-type]


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with open_database(path) as database:
        assert database.do(entry("a")) == 1


def test_a_store_in_memory_leaves_nothing_behind() -> None:
    database = open_database(":memory:")
    assert isinstance(database, SQLite)
    assert database.do(entry("a")) == 1
    folder = database.path.parent
    assert folder.is_dir()
    database.close()
    assert not folder.exists()


def test_more_readers_than_there_may_be_wait_for_each_other(store: SQLite) -> None:
    store._readers.most = 2
    with store.reading() as one, store.reading() as two:
        assert one.execute("SELECT 1") == two.execute("SELECT 1")
        with pytest.raises(StoreUnavailable, match=r"2 others have been reading for 0\.05 s"):
            store.read("SELECT 1")
    assert store.read("SELECT 1") == [(1,)]


def test_a_child_that_is_forked_is_refused_and_does_its_parent_no_harm(path: Path) -> None:
    script = f"""
import os
from manyarms.errors import StorageError
from manyarms.live.stores.opening import open_database
database = open_database({str(path)!r})
child = os.fork()
if child == 0:
    try:
        database.do(lambda tx: tx.place())
    except StorageError:
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert database.do(lambda tx: tx.place()[0]) == 1
database.close()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, env=_environment(), timeout=120)


# ---- faults


def test_a_full_database(store: SQLite, path: Path) -> None:
    assert store._writer is not None
    store._writer.execute("PRAGMA max_page_count=1")  # never below what there is
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        store.write([entry("lost"), entry("x" * 100_000)])
    assert entries(store) == [(1, "first")]
    store._writer.execute(f"PRAGMA max_page_count={2**30}")
    as_before(store, path)


def test_a_disk_that_refuses_to_let_a_file_grow(store: SQLite, path: Path) -> None:
    """A write of the log fails in the middle of a transaction."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = path.with_name("live.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5_000, before[1]))
    try:
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="disk"):
                store.write([entry("lost"), entry("x" * 100_000)])
        assert entries(store) == [(1, "first")]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    as_before(store, path)


def test_a_store_that_can_only_be_read(store: SQLite, path: Path) -> None:
    assert store._writer is not None
    store._writer.execute("PRAGMA query_only=ON")
    unavailable(store, "it can only be read")
    as_before(store, path)


def test_a_file_that_its_user_may_not_write(store: SQLite) -> None:
    """Root may write everything, so that a child without that right tries it."""
    store.close()
    script = """
import os, sys
from manyarms.errors import StoreUnavailable
from manyarms.live.stores.opening import open_database
path = sys.argv[1] + "/live.db"
if os.getuid() == 0:
    os.chown(sys.argv[1], 65534, 65534)
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
open_database(path).close()
os.chmod(path, 0o400); os.chmod(sys.argv[1], 0o500)
try:
    open_database(path).do(lambda tx: tx.place())
except StoreUnavailable as error:
    print(error)
os.chmod(sys.argv[1], 0o700); os.chmod(path, 0o600)
with open_database(path) as database:
    print(database.do(lambda tx: tx.place()[0]))
"""
    folder = tempfile.mkdtemp(dir="/tmp")
    try:
        command = [sys.executable, "-c", script, folder]
        done = subprocess.run(command, env=_environment(), timeout=120, capture_output=True, text=True)
        said, position = (*done.stdout.splitlines(), "", "")[:2]
        assert ("only be read" in said or "cannot be opened" in said) and position == "1", done.stderr
    finally:
        shutil.rmtree(folder)


def test_a_store_that_another_process_has_locked(store: SQLite, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    unavailable(store, r"locked by another process for 0\.05 s")
    assert entries(store) == [(1, "first")]  # readers do not wait
    other.execute("ROLLBACK")
    other.close()
    as_before(store, path)


def test_a_file_that_is_gone_and_comes_back(store: SQLite, path: Path) -> None:
    away = path.with_name("away.db")
    path.rename(away)
    for _ in range(2):
        unavailable(store, r"live\.db: the file is gone")
        with pytest.raises(StoreUnavailable, match="gone"):
            store.read("SELECT 1")
    away.rename(path)
    as_before(store, path)


def test_a_file_that_is_replaced_is_not_written(store: SQLite, path: Path) -> None:
    away, copy = path.with_name("away.db"), path.with_name("copy.db")
    backup = sqlite3.connect(copy)
    with sqlite3.connect(path) as source:
        source.backup(backup)
    source.close()
    backup.close()
    path.rename(away)
    copy.rename(path)
    content = path.read_bytes()
    unavailable(store, "another file than the one that was opened")
    with pytest.raises(StoreUnavailable, match="another file"):
        store.read("SELECT 1")
    assert path.read_bytes() == content
    away.rename(path)
    as_before(store, path)


@pytest.mark.parametrize("first", ["write", "read"])
@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_log_that_is_deleted_is_noticed_and_nothing_is_lost(
    store: SQLite, path: Path, suffix: str, first: str
) -> None:
    entries(store)
    Path(f"{path}{suffix}").unlink()
    if first == "write":
        unavailable(store, f"live.db{suffix}: deleted or replaced while the store was open")
    else:
        with pytest.raises(StoreUnavailable, match="deleted or replaced"):
            entries(store)
    as_before(store, path)


def test_a_log_that_is_deleted_under_a_reader(store: SQLite, path: Path) -> None:
    with store.reading() as reader:
        assert reader.execute("SELECT count(*) FROM operations") == [(1,)]
        Path(f"{path}-wal").unlink()
        unavailable(store, "deleted or replaced")
        unavailable(store, "somebody still reads the log that was there before")
        assert reader.execute("SELECT count(*) FROM operations") == [(1,)]
    as_before(store, path)


def test_a_file_that_vanishes_within_a_transaction(store: SQLite, path: Path) -> None:
    away = path.with_name("away.db")

    def work(tx: Transaction) -> None:
        entry("nobody is told of it")(tx)
        path.rename(away)

    with pytest.raises(StoreUnavailable, match="gone"):
        store.write([work])
    away.rename(path)
    assert store.do(entry("third")) == 3  # it stands, as it may where a commit fails late


def test_a_damaged_file_says_so(store: SQLite, path: Path) -> None:
    store.do(entry("x" * 50_000))
    store.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xaa" * (path.stat().st_size - 4096))
    with pytest.raises(StorageError, match="damaged"):
        open_database(path)
    with path.open("r+b") as file:
        file.write(b"garbage!" * 512)
    with pytest.raises(StorageError, match="not an SQLite database, or its first page is damaged"):
        open_database(path)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(module.__file__).parents[3])}
