"""Addresses: which database they name, and what is said of those that name none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from manyarms.errors import InvalidInput, MissingExtra, StoreUnavailable
from manyarms.live.stores.opening import open_database
from manyarms.live.stores.postgresql import PostgreSQL
from manyarms.live.stores.sqlite import SQLite


def test_a_path_is_an_sqlite_file(tmp_path: Path) -> None:
    for address in (tmp_path / "a.db", str(tmp_path / "b.db"), ":memory:"):
        with open_database(address) as database:
            assert isinstance(database, SQLite)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "b.db"]  # closed, the log is in the file


def test_postgresql_without_its_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for address in ("postgresql://somewhere/shop", "postgres://somewhere/shop"):
        with pytest.raises(MissingExtra, match=r"pip install 'manyarms\[postgresql\]'"):
            open_database(address)


def test_a_server_that_is_not_there_is_unavailable_and_the_password_is_not_said() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreUnavailable, match="the server cannot be reached") as caught:
        open_database("postgresql://me:Tr0ub4dor@127.0.0.1:1/shop")
    assert "postgresql://me@127.0.0.1:1/shop" in str(caught.value) and "Tr0ub4dor" not in str(caught.value)


def test_addresses_that_are_none() -> None:
    pytest.importorskip("psycopg")
    for wrong in ("postgresql://[h/x", "postgresql://u:Tr0ub4dor%zz@h/x", "postgresql://h/x?nothing=Tr0ub4dor"):
        with pytest.raises(InvalidInput, match="address: expected an address such as") as caught:
            open_database(wrong)
        assert "Tr0ub4dor" not in str(caught.value)
    for patience in (0.0, -1.0, float("inf"), "1"):
        with pytest.raises(InvalidInput, match="patience"):
            PostgreSQL("postgresql://h/x", patience=patience)  # type: ignore[arg-type]
