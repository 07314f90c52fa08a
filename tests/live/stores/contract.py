"""What every database must do, whichever it is: the tests of SQLite and of PostgreSQL both run these."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from manyarms.errors import Conflict, StorageError
from manyarms.live.stores import schema
from manyarms.live.stores.database import Database, Transaction, Work
from manyarms.live.stores.opening import open_database

Opener = Callable[[], Database]


def entry(body: str) -> Work:
    """Work that writes one operation, and returns its position."""

    def work(tx: Transaction) -> int:
        position, at = tx.place()
        tx.execute(
            "INSERT INTO operations (position, at, kind, body) VALUES (?, ?, ?, ?)", (position, at, "test", body)
        )
        return position

    return work


def entries(database: Database) -> list[tuple[int, str]]:
    """Positions and bodies of all operations."""
    return [(p, b) for p, b in database.read("SELECT position, body FROM operations ORDER BY position")]


def refuse(tx: Transaction) -> None:
    """Work that takes a position and then refuses."""
    tx.place()
    raise Conflict("used before")


def _write_from_a_process(address: str, name: str, batches: int) -> None:
    with open_database(address) as database:
        for i in range(batches):
            database.write([entry(f"{name} {i} {j}") for j in range(3)])


class Contract:
    """A subclass gives `address`, the place of a store that is not there yet; its `clock` is time.time unless told otherwise."""

    @pytest.fixture
    def database(self, address: str) -> Iterator[Database]:
        with open_database(address) as database:
            yield database

    def test_work_returns_what_it_returns_and_is_there_afterwards(self, database: Database, address: str) -> None:
        assert database.write([entry("a"), entry("b")]) == [1, 2]
        assert database.write([]) == []
        assert database.do(entry("c")) == 3
        with open_database(address) as other:
            assert entries(other) == [(1, "a"), (2, "b"), (3, "c")]
            assert other.do(entry("d")) == 4
        assert database.read("SELECT position FROM counter") == [(4,)]

    def test_values_come_back_as_they_were(self, database: Database) -> None:
        values = [
            2**63 - 1,
            -(2**63),
            0.1,
            5e-324,
            1.7976931348623157e308,
            "é%s?☃",
            b"\0\xff",
            None,
            "",
            b"",
            -0.5,
            True,
        ]
        columns = [
            "INTEGER",
            "INTEGER",
            "REAL",
            "REAL",
            "REAL",
            "TEXT",
            "BYTES",
            "TEXT",
            "TEXT",
            "BYTES",
            "REAL",
            "INTEGER",
        ]

        def work(tx: Transaction) -> None:
            tx.execute(f"CREATE TABLE kept ({', '.join(f'c{i} {name}' for i, name in enumerate(columns))})")
            tx.execute(f"INSERT INTO kept VALUES ({', '.join('?' * len(values))})", values)

        database.do(work)
        [row] = database.read("SELECT * FROM kept")
        assert [repr(bytes(v) if isinstance(v, memoryview) else v) for v in row] == [repr(v) for v in values[:-1]] + [
            "1"
        ]
        assert database.read("SELECT 1 FROM kept WHERE c5 = ? AND c6 = ? AND 7 % 4 = 3", ("é%s?☃", b"\0\xff")) == [(1,)]

    def test_how_many_rows_changed(self, database: Database) -> None:
        seen = []

        def work(tx: Transaction) -> None:
            for sql in (
                "INSERT INTO leases VALUES ('a', 'me', 1, 0.0), ('b', 'me', 1, 0.0)",
                "UPDATE leases SET token = 2",
                "UPDATE leases SET token = 3 WHERE name = 'z'",
                "DELETE FROM leases WHERE name = 'a'",
            ):
                tx.execute(sql)
                seen.append(tx.changed)
            seen.append(tx.execute("SELECT name, token FROM leases"))

        database.do(work)
        assert seen == [2, 2, 0, 1, [("b", 2)]]

    def test_a_refusal_is_a_result_and_leaves_no_gap(self, database: Database) -> None:
        first, second, third = database.write([entry("a"), refuse, entry("b")])
        assert (first, third) == (1, 2) and isinstance(second, Conflict)
        with pytest.raises(Conflict, match="used before"):
            database.do(refuse)
        assert database.do(entry("c")) == 3
        assert entries(database) == [(1, "a"), (2, "b"), (3, "c")]

    def test_an_error_takes_everything_back(self, database: Database) -> None:
        def broken(tx: Transaction) -> None:
            entry("half")(tx)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            database.write([entry("a"), broken])
        assert entries(database) == []
        assert database.do(entry("b")) == 1

    def test_a_refusal_after_a_change_keeps_nothing_of_it(self, database: Database) -> None:
        def late(tx: Transaction) -> None:
            entry("half")(tx)
            raise Conflict("too late")

        with pytest.raises(Conflict, match="too late"):
            database.do(late)
        with pytest.raises(RuntimeError, match="after it had changed something: too late"):
            database.write([entry("a"), late])
        assert entries(database) == []
        assert database.do(entry("b")) == 1

    @pytest.mark.parametrize(
        ("sql", "parameters"),
        [
            ("INSERT INTO operations VALUES (1, 0.0, 'again', '')", ()),
            ("INSERT INTO operations VALUES (2, 0.0, ?, '')", (None,)),
            ("INSERT INTO operations VALUES (?, 0.0, 'x', '')", (2**63,)),
            ("INSERT INTO operations VALUES (2, 0.0, ?, '')", ("\ud800",)),
            ("INSERT INTO operations VALUES (2, 0.0, ?, '')", (object(),)),
            ("INSERT INTO operations VALUES (2, 0.0, ?, '')", ()),
            ("INSERT INTO nowhere VALUES (1)", ()),
        ],
    )  # fmt: skip
    def test_what_the_database_refuses_is_a_storage_error(self, database: Database, sql: str, parameters: Any) -> None:
        database.do(entry("a"))
        with pytest.raises(StorageError) as caught:
            database.write([entry("b"), lambda tx: tx.execute(sql, parameters)])
        assert type(caught.value) is StorageError
        assert entries(database) == [(1, "a")]
        assert database.do(entry("c")) == 2

    def test_a_reading_sees_one_state(self, database: Database) -> None:
        database.do(entry("a"))
        with database.reading() as reader:
            before = reader.execute("SELECT count(*) FROM operations")
            database.do(entry("b"))
            assert reader.execute("SELECT count(*) FROM operations") == before == [(1,)]
            assert database.read("SELECT count(*) FROM operations") == [(2,)]
        with pytest.raises(StorageError), database.reading() as reader:
            reader.execute("SELECT nothing FROM nowhere")
        with pytest.raises(ZeroDivisionError), database.reading() as reader:
            raise ZeroDivisionError
        assert database.read("SELECT count(*) FROM operations") == [(2,)]

    def test_readers_do_not_write(self, database: Database) -> None:
        with pytest.raises(StorageError), database.reading() as reader:
            reader.execute("DELETE FROM counter")
        assert database.do(entry("a")) == 1

    def test_times_do_not_fall_when_the_clock_does(self, database: Database) -> None:
        times = iter([100.0, 50.0, 120.0, 119.0])
        database._clock = lambda: next(times)  # type: ignore[attr-defined]
        assert database.write([lambda tx: tx.place(), lambda tx: tx.place()]) == [(1, 100.0), (2, 100.0)]
        assert database.write([lambda tx: tx.place(), lambda tx: tx.place()]) == [(3, 120.0), (4, 120.0)]

    def test_positions_of_many_threads_have_no_gaps_and_follow_the_commits(self, database: Database) -> None:
        order: list[list[int]] = []
        replied: list[int] = []

        def write(k: int) -> None:
            for i in range(20):
                batch: list[int] = []
                before = max(replied, default=0)

                def note(tx: Transaction, batch: list[int] = batch, k: int = k, i: int = i) -> int:
                    batch.append(entry(f"{k} {i}")(tx))
                    order.append(batch)  # within the transaction, of which there is one at a time
                    return batch[-1]

                database.write([note, refuse, entry(f"{k} {i} second")])
                assert batch[0] > before  # what has replied before this began has an earlier position
                replied.append(batch[0])

        threads = [threading.Thread(target=write, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [p for p, _ in entries(database)] == list(range(1, 8 * 20 * 2 + 1))
        assert [batch[0] for batch in order] == list(range(1, 8 * 20 * 2 + 1, 2))

    def test_positions_of_two_processes_have_no_gaps(self, database: Database, address: str) -> None:
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=_write_from_a_process, args=(address, name, 20)) for name in "xy"]
        for process in processes:
            process.start()
        seen = 0
        while any(process.is_alive() for process in processes):  # whoever reads sees whole transactions, in order
            positions = [p for p, _ in entries(database)]
            assert (
                positions == list(range(1, len(positions) + 1)) and len(positions) % 3 == 0 and len(positions) >= seen
            )
            seen = len(positions)
            processes[0].join(0.01)
        assert [process.exitcode for process in processes] == [0, 0]
        found = entries(database)
        assert [p for p, _ in found] == list(range(1, 121))
        for name in "xy":
            assert [b for _, b in found if b[0] == name] == [f"{name} {i} {j}" for i in range(20) for j in range(3)]
        times = [at for (at,) in database.read("SELECT at FROM operations ORDER BY position")]
        assert times == sorted(times)

    def test_stores_that_are_made_at_the_same_time_are_made_once(self, address: str) -> None:
        opened: list[Database] = []
        errors: list[Exception] = []
        start = threading.Barrier(4)

        def make() -> None:
            start.wait()
            try:
                opened.append(open_database(address))
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert sorted(database.do(entry("")) for database in opened) == [1, 2, 3, 4]
        for database in opened:
            database.close()

    def test_what_is_closed_is_refused(self, database: Database) -> None:
        database.close()
        database.close()
        with pytest.raises(StorageError, match="closed"):
            database.do(entry("a"))
        with pytest.raises(StorageError, match="closed"):
            database.read("SELECT 1")

    def test_a_forked_process_cannot_use_its_parents_connections(self, database: Database) -> None:
        process, database._process = database._process, -1
        try:
            for call in (lambda: database.do(entry("a")), lambda: database.read("SELECT 1"), database.close):
                with pytest.raises(StorageError, match="open the store again after the fork"):
                    call()
        finally:
            database._process = process
        assert database.do(entry("a")) == 1

    def test_the_wrong_tables_are_refused_and_left_alone(self, database: Database, address: str) -> None:
        with suppress(StorageError):
            database.do(lambda tx: tx.execute("DELETE FROM meta"))
        with pytest.raises(StorageError, match="not a store of live agents"):
            open_database(address)
        for body in (str(schema.VERSION + 1), "0", "later"):
            database.do(lambda tx: tx.execute("DELETE FROM meta"))
            database.do(lambda tx, body=body: tx.execute("INSERT INTO meta VALUES ('schema_version', ?)", (body,)))
            with pytest.raises(
                StorageError, match=f"of version {body}, and this release reads versions 1 to {schema.VERSION}"
            ):
                open_database(address)
