"""Several writers in one folder take turns: it can be read at any time, and the save that ends last stays."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from manyarms._base import locks
from manyarms._base.storage import read, save
from manyarms.errors import StorageError

fcntl = pytest.importorskip("fcntl", reason="Windows has no such locks")
WRITERS, SAVES = 4, 8


def state(writer: int, number: int) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """A save that tells who made it, in the spec and in the arrays; every third one has the same arrays, whoever makes it."""
    value = -1 if number % 3 == 0 else 100 * writer + number
    return {"writer": writer, "number": number}, {"values": np.full(2000, value)}


def consistent(folder: Path) -> None:
    spec, arrays = read(folder, "thing")
    np.testing.assert_array_equal(arrays["values"], state(spec["writer"], spec["number"])[1]["values"])


def forked(work: Callable[[], object]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def code_of(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_processes_that_save_into_one_folder_leave_it_readable(tmp_path: Path) -> None:
    save(tmp_path, "thing", *state(0, 0))

    def write(writer: int) -> None:
        for number in range(SAVES):
            save(tmp_path, "thing", *state(writer, number))
            consistent(tmp_path)  # somebody's save, complete

    writers = [forked(lambda writer=writer: write(writer)) for writer in range(WRITERS)]
    for _ in range(30):
        consistent(tmp_path)
    assert [code_of(pid) for pid in writers] == [0] * WRITERS
    assert read(tmp_path, "thing")[0]["number"] == SAVES - 1  # the last save of one of them
    assert len(list(tmp_path.iterdir())) == 2


def test_threads_that_save_into_one_folder_leave_it_readable(tmp_path: Path) -> None:
    failures: list[Exception] = []

    def write(writer: int) -> None:
        try:
            for number in range(SAVES):
                save(tmp_path, "thing", *state(writer, number))
                consistent(tmp_path)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(list(tmp_path.iterdir())) == 2


def test_writers_that_are_killed_leave_no_lock(tmp_path: Path) -> None:
    save(tmp_path, "thing", *state(0, 0))
    for _ in range(5):
        told, tell = os.pipe()

        def write(tell: int = tell) -> None:
            number = 0
            while True:
                number += 1
                save(tmp_path, "thing", *state(9, number))
                os.write(tell, b".")

        pid = forked(write)
        os.close(tell)
        os.read(told, 1)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(told)
        consistent(tmp_path)
    save(tmp_path, "thing", *state(1, 1))
    assert read(tmp_path, "thing")[0] == state(1, 1)[0]
    assert len(list(tmp_path.iterdir())) == 2  # and what they had begun is cleared up


def test_a_writer_that_does_not_get_its_turn_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, "thing", *state(0, 0))
    monkeypatch.setattr(locks, "PATIENCE", 0.0)
    with (
        locks.only_writer(tmp_path) as alone,
        pytest.raises(StorageError, match="another process has been writing there"),
    ):
        assert alone
        save(tmp_path, "thing", *state(1, 1))
    consistent(tmp_path)
    save(tmp_path, "thing", *state(1, 1))  # the lock went with its owner
    assert read(tmp_path, "thing")[0] == state(1, 1)[0]


def test_without_locks_only_the_replaced_arrays_and_what_is_old_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "no locks on this file system")

    save(tmp_path, "thing", *state(0, 1))
    replaced = next(tmp_path.glob("*.npz")).name
    others = [tmp_path / "arrays-0123456789abcdef.npz", tmp_path / ".arrays.npz.0123456789abcdef.tmp"]
    old = tmp_path / "arrays-fedcba9876543210.npz"
    for path in (*others, old):
        path.write_bytes(b"of another writer")
    os.utime(old, (0, 0))
    monkeypatch.setattr(fcntl, "flock", none)
    save(tmp_path, "thing", *state(0, 2))
    consistent(tmp_path)
    assert all(path.exists() for path in others)
    assert not old.exists() and not (tmp_path / replaced).exists()
    monkeypatch.undo()
    save(tmp_path, "thing", *state(0, 4))  # with a lock they are known to be left over
    assert len(list(tmp_path.iterdir())) == 2
