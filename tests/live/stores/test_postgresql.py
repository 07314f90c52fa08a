"""PostgreSQL as a store: the contract, and what goes wrong with servers. A server of the tests' own is started."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from live.postgres import Server
from live.stores.contract import Contract, entries, entry
from manyarms.errors import InvalidInput, StorageError, StoreUnavailable
from manyarms.live.group_commit import GroupCommit
from manyarms.live.stores import postgresql as module
from manyarms.live.stores.database import Database, Transaction
from manyarms.live.stores.opening import open_database, prepare
from manyarms.live.stores.postgresql import PostgreSQL

pytestmark = pytest.mark.slow


class TestContract(Contract):
    @pytest.fixture
    def address(self, postgres: Server) -> str:
        return postgres.new_database()


@pytest.fixture
def address(postgres: Server) -> str:
    return postgres.new_database()


@pytest.fixture
def store(address: str) -> Iterator[PostgreSQL]:
    """A store with one entry."""
    with PostgreSQL(address, patience=2.0) as database:
        prepare(database)
        database.do(entry("first"))
        yield database


def as_before(database: Database, address: str) -> None:
    """The store works, and nothing of what was refused is in it."""
    assert database.do(entry("second")) == 2
    assert entries(database) == [(1, "first"), (2, "second")]
    with open_database(address) as other:
        assert entries(other) == [(1, "first"), (2, "second")]


def name_of(address: str) -> str:
    return address.rsplit("/", 1)[1]


# ---- durability


def test_commits_are_durable_whatever_the_servers_default(postgres: Server, address: str) -> None:
    postgres.execute(f"ALTER DATABASE {name_of(address)} SET synchronous_commit = off")
    with open_database(address) as database:
        assert database.do(lambda tx: tx.execute("SHOW synchronous_commit")) == [("on",)]
    postgres.execute(f"ALTER DATABASE {name_of(address)} SET synchronous_commit = remote_apply")
    with open_database(address) as database:
        assert database.do(lambda tx: tx.execute("SHOW synchronous_commit")) == [("remote_apply",)]


def test_a_server_that_does_not_wait_for_its_disk_is_refused(postgres: Server, address: str) -> None:
    postgres.restart("fsync=off")
    try:
        with pytest.raises(StoreUnavailable, match="fsync=off, and may lose what it says is kept"):
            open_database(address)
        PostgreSQL(address, require_fsync=False).close()
    finally:
        postgres.restart()
    open_database(address).close()


def test_what_was_replied_survives_a_server_that_is_killed(postgres: Server, store: PostgreSQL, address: str) -> None:
    group = GroupCommit(store)
    told: list[int] = []
    stop = threading.Event()

    def call() -> None:
        while not stop.is_set():
            try:
                told.append(group.submit(entry("")))
            except StoreUnavailable:
                stop.set()

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(told) < 50:
        stop.wait(0.01)
    postgres.stop(signal.SIGQUIT)  # every process of it ends at once
    for thread in threads:
        thread.join(60)
    assert stop.is_set()
    postgres.start()
    group.close()
    positions = [p for p, _ in entries(store)]
    assert set(told) <= set(positions) and positions == list(range(1, len(positions) + 1))


# ---- faults


def test_a_server_that_stops_and_comes_back(postgres: Server, store: PostgreSQL, address: str) -> None:
    assert entries(store) == [(1, "first")]
    postgres.stop()
    try:
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="the server cannot be reached"):
                store.do(entry("lost"))
            with pytest.raises(StoreUnavailable, match="the server cannot be reached"):
                entries(store)
    finally:
        postgres.start()
    as_before(store, address)


def test_a_server_that_restarts_between_calls_is_not_noticed(postgres: Server, store: PostgreSQL, address: str) -> None:
    assert entries(store) == [(1, "first")]
    postgres.restart()
    as_before(store, address)


def test_a_connection_that_ends_within_a_transaction(postgres: Server, store: PostgreSQL, address: str) -> None:
    def work(tx: Transaction) -> None:
        entry("lost")(tx)
        [(process,)] = tx.execute("SELECT pg_backend_pid()")
        postgres.execute(f"SELECT pg_terminate_backend({process}, 5000)")

    with pytest.raises(StoreUnavailable):
        store.write([entry("lost too"), work])
    as_before(store, address)


def test_a_connection_that_ends_under_a_reader(postgres: Server, store: PostgreSQL, address: str) -> None:
    with pytest.raises(StoreUnavailable), store.reading() as reader:
        [(process,)] = reader.execute("SELECT pg_backend_pid()")
        postgres.execute(f"SELECT pg_terminate_backend({process}, 5000)")
        reader.execute("SELECT 1")
    as_before(store, address)


def test_a_lock_that_another_holds_is_waited_for_and_then_refused(
    postgres: Server, store: PostgreSQL, address: str
) -> None:
    import psycopg

    with psycopg.connect(address) as other:
        other.execute("SELECT * FROM counter FOR UPDATE")
        with PostgreSQL(address, patience=0.1) as impatient:
            with pytest.raises(StoreUnavailable, match="locked by another process for too long"):
                impatient.do(entry("lost"))
            assert entries(impatient) == [(1, "first")]
    as_before(store, address)


def test_a_process_that_sleeps_within_a_transaction_does_not_stop_the_others(
    store: PostgreSQL, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends its transaction; here after a fifth of a second."""
    monkeypatch.setattr(module, "_FORGETFUL", 0.2)
    done: list[int] = []

    def sleep(tx: Transaction) -> None:
        entry("lost")(tx)
        done.append(store.do(entry("second")))  # waits for the sleeper's lock
        tx.execute("SELECT 1")

    with PostgreSQL(address) as sleeper, pytest.raises(StoreUnavailable, match=r"waited too long|connection is lost"):
        sleeper.do(sleep)
    assert done == [2]
    assert entries(store) == [(1, "first"), (2, "second")]


def test_an_interrupt_within_a_transaction_keeps_nothing_of_it(store: PostgreSQL, address: str) -> None:
    def work(tx: Transaction) -> None:
        entry("lost")(tx)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.do(work)
    as_before(store, address)


def test_a_database_that_can_only_be_read(postgres: Server, store: PostgreSQL, address: str) -> None:
    def work(tx: Transaction) -> None:
        tx.execute("SET TRANSACTION READ ONLY")
        entry("lost")(tx)

    with pytest.raises(StoreUnavailable, match="it can only be read"):
        store.do(work)
    as_before(store, address)


def test_a_full_disk_of_the_servers(postgres: Server, store: PostgreSQL, address: str) -> None:
    """The server's own report of a full disk, raised by a function, since its disk is ours too."""

    def work(tx: Transaction) -> None:
        entry("lost")(tx)
        tx.execute("DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$")

    with pytest.raises(StoreUnavailable, match="the server's disk is full"):
        store.do(work)
    as_before(store, address)


def test_too_many_connections(postgres: Server, store: PostgreSQL, address: str) -> None:
    postgres.execute("CREATE ROLE narrow LOGIN CONNECTION LIMIT 1")
    with (
        PostgreSQL(address.replace("tester", "narrow")),
        pytest.raises(StoreUnavailable, match=r"server cannot be reached|too many connections"),
    ):
        PostgreSQL(address.replace("tester", "narrow"))


# ---- addresses


def test_the_password_is_nowhere(postgres: Server, address: str) -> None:
    secret = "Tr0ub4dor"
    with_secret = address.replace("tester@", f"tester:{secret}@")
    with PostgreSQL(with_secret) as database:
        assert secret not in repr(database) and "tester" in repr(database)
    for wrong in (
        with_secret.replace(name_of(address), "nowhere"),
        with_secret.replace("tester", "nobody"),
        with_secret.replace(str(postgres.port), "1"),
        f"postgresql://tester:{secret}@127.0.0.1:port/x",
        f"postgresql://tester:{secret}@127.0.0.1/x?nothing={secret}",
        f"postgresql://tester:{secret}%zz@127.0.0.1/x",
    ):
        with pytest.raises((StorageError, InvalidInput)) as caught:
            open_database(wrong)
        error: Any = caught.value
        while error is not None:
            assert secret not in str(error)
            error = error.__cause__


def test_addresses_that_lead_nowhere(postgres: Server, address: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"database .*nowhere.* does not exist"):
        open_database(address.replace(name_of(address), "nowhere"))
    for wrong in (None, 3, b"postgresql://x", "postgresql://[h/x"):
        with pytest.raises(InvalidInput, match="address"):
            PostgreSQL(wrong)  # type: ignore[arg-type]


def test_a_database_of_another_encoding_is_refused(postgres: Server) -> None:
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(StorageError, match="encoding is LATIN1, and must be UTF8"):
        open_database(postgres.address("latin"))


def test_other_tables_may_stand_beside_but_not_in_the_way(postgres: Server, address: str) -> None:
    postgres.execute("CREATE TABLE theirs (x INTEGER)", name_of(address))
    with open_database(address) as database:
        assert database.do(entry("a")) == 1
    other = postgres.new_database()
    postgres.execute("CREATE TABLE decisions (x INTEGER)", name_of(other))
    with pytest.raises(StorageError, match="not a store of live agents"):
        open_database(other)
    assert postgres.execute("SELECT count(*) FROM decisions", name_of(other)) == [(0,)]
