"""Stores of older versions: brought up to date in one transaction, or left as they were."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from live.postgres import Server
from live.stores.contract import entry
from manyarms.live.stores import opening, schema
from manyarms.live.stores.database import Database, Reader, Row, Transaction
from manyarms.live.stores.opening import open_database, prepare
from manyarms.live.stores.sqlite import SQLite

OLD = {n: (Path(__file__).parent / f"version_{n}.sql").read_text(encoding="utf-8") for n in (1, 2)}
TABLES = sorted(opening._NAMES)


def raw(address: str) -> Database:
    """The database at an address, its tables as they are."""
    return opening._database(address, lambda: 0.0)


def make_old(database: Database, version: int = 1) -> None:
    def work(tx: Transaction) -> None:
        for sql in OLD[version].partition("\n")[2].split(";\n")[:-1]:
            tx.execute(sql)

    database.making(work)


def content(database: Database, reader: Reader) -> dict[str, list[Row]]:
    """Every row of every table that there is."""
    there = [table for table in TABLES if table in database.tables(reader)]
    return {table: sorted(reader.execute(f"SELECT * FROM {table}"), key=repr) for table in there}


def everything(database: Database) -> dict[str, list[Row]]:
    with database.reading() as reader:
        return content(database, reader)


def columns(database: Database) -> dict[str, list[str]]:
    """The columns of the tables, by the statements that name them one by one."""
    if isinstance(database, SQLite):
        return {t: sorted(row[1] for row in database.read(f"PRAGMA table_info({t})")) for t in TABLES}
    sql = "SELECT column_name::text FROM information_schema.columns WHERE table_name = ? AND table_schema = 'public'"
    return {t: sorted(name for (name,) in database.read(sql, (t,))) for t in TABLES}


def _open_and_die(address: str) -> None:
    """Migrate, and end without a word in the middle of it."""
    last = schema.MIGRATIONS[1][-1]

    class Dies(SQLite):
        def making(self, work: object) -> object:
            def until_the_last(tx: Transaction) -> None:
                execute = tx.execute

                def dying(sql: str, parameters: object = ()) -> list[Row]:
                    rows = execute(sql, parameters)  # type: ignore[arg-type]
                    if sql == last:
                        os._exit(9)
                    return rows

                tx.execute = dying  # type: ignore[method-assign]
                work(tx)  # type: ignore[operator]

            return super().making(until_the_last)

    prepare(Dies(address))


class Migrations:
    """A subclass gives `address`, the place of a store that is not there yet, and `fresh`, another one."""

    def test_version_1_becomes_what_a_new_store_is(self, address: str, fresh: str) -> None:
        with raw(address) as database:
            make_old(database)
            before = everything(database)
        with open_database(address) as database, open_database(fresh) as new:
            after = everything(database)
            assert columns(database) == columns(new)
            assert after.pop("meta") == [("schema_version", "4"), ("settings", "{}")]
            assert before.pop("meta") == [("schema_version", "1"), ("settings", "{}")]
            assert after.pop("decisions") == [(*row, 1) for row in before.pop("decisions")]
            assert after.pop("units") == after.pop("activations") == []
            assert after == before
            assert database.do(entry("next")) == 5
            [(at,)] = database.read("SELECT at FROM operations WHERE position = 5")
            assert at > 1700000003.0
        with open_database(address) as database:  # once is enough
            assert len(everything(database)["decisions"]) == 2

    def test_version_2_becomes_what_a_new_store_is(self, address: str, fresh: str) -> None:
        with raw(address) as database:
            make_old(database, 2)
            before = everything(database)
        with open_database(address) as database, open_database(fresh) as new:
            after = everything(database)
            assert columns(database) == columns(new)
            assert after.pop("meta") == [("schema_version", "4"), ("settings", "{}")]
            assert before.pop("meta") == [("schema_version", "2"), ("settings", "{}")]
            assert after.pop("activations") == []
            assert after == before and len(after["decisions"]) == 2

    def test_an_interrupted_migration_leaves_the_old_store_whole(
        self, address: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with raw(address) as database:
            make_old(database)
            before, named = everything(database), columns(database)
            with monkeypatch.context() as patch:
                failing = (*schema.MIGRATIONS[1], "INSERT INTO meta VALUES ('half', 'done')", "THIS IS NO STATEMENT")
                patch.setattr(schema, "MIGRATIONS", {**schema.MIGRATIONS, 1: failing})
                with pytest.raises(ValueError, match="refuses a statement"):
                    prepare(database)
            assert (everything(database), columns(database)) == (before, named)
            prepare(database)
            assert everything(database)["meta"][0] == ("schema_version", "4")

    def test_several_versions_are_one_step(self, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with raw(address) as database:
            make_old(database)
            later = {**schema.MIGRATIONS, 4: ("INSERT INTO meta VALUES ('from', '4')",)}
            monkeypatch.setattr(schema, "MIGRATIONS", later)
            monkeypatch.setattr(schema, "VERSION", 5)
            prepare(database)
            assert everything(database)["meta"] == [("from", "4"), ("schema_version", "5"), ("settings", "{}")]


class TestSQLite(Migrations):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return str(tmp_path / "old.db")

    @pytest.fixture
    def fresh(self, tmp_path: Path) -> str:
        return str(tmp_path / "new.db")

    def test_a_migration_that_is_killed_leaves_the_old_store_whole(self, address: str) -> None:
        with raw(address) as database:
            make_old(database)
            before, named = everything(database), columns(database)
        process = multiprocessing.get_context("spawn").Process(target=_open_and_die, args=(address,))
        process.start()
        process.join(60)
        assert process.exitcode == 9
        with raw(address) as database:
            assert (everything(database), columns(database)) == (before, named)
        with open_database(address) as database:
            assert everything(database)["meta"][0] == ("schema_version", "4")


@pytest.mark.slow
class TestPostgreSQL(Migrations):
    @pytest.fixture
    def address(self, postgres: Server) -> str:
        return postgres.new_database()

    @pytest.fixture
    def fresh(self, postgres: Server) -> str:
        return postgres.new_database()


def test_every_version_has_its_way_to_today() -> None:
    assert sorted(schema.MIGRATIONS) == list(range(1, schema.VERSION))
