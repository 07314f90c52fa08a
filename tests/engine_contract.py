"""What every engine must do, said once: over workers of this machine (`engine/test_local.py`) and a cluster (`engine/on_ray`).

Functions that workers run stand here and not in a test, so that they can import them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from manyarms._base.typing import Array
from manyarms.engine import Engine, WorkerDied, tell
from manyarms.engine.local import THREAD_VARIABLES
from manyarms.errors import DataError, InvalidInput, ManyArmsError

WITHIN = 600.0  # seconds after which something hangs

# ---- what workers do


def double(number: int) -> int:
    return 2 * number


def scaled(number: int, factor: Array) -> float:
    return float(number * factor.sum())


def who(number: int) -> int:
    return os.getpid()


def variables(_: int) -> list[str | None]:
    return [os.environ.get(name) for name in (*THREAD_VARIABLES, "MANYARMS_DATA", "MANYARMS_CACHE")]


def talkative(number: int) -> int:
    for step in range(3):
        tell((number, step))
    return number


def broken(number: int, kind: str) -> int:
    if number != 1:
        return number
    if kind == "ours":
        raise InvalidInput("number", number, "another one")
    if kind == "data":
        raise DataError("log.parquet: is damaged")
    raise LookupError("no such number")


def dying(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def die_once(marker: str | Path) -> None:
    """End this process, the first time that any process is here."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def name_of(number: int) -> str:
    return str(number)


def late_first(number: int, folder: str) -> str:
    """The first piece ends after the third has."""
    if number == 0:
        _wait_for(Path(folder) / "third")
    if number == 2:
        (Path(folder) / "third").touch()
    return str(number)


def _wait_for(path: Path) -> None:
    end = time.monotonic() + WITHIN
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.02)


def bracketed(one: str, other: str) -> str:
    return f"({one} {other})"


def three_arrays(number: int, size: int) -> list[Array]:
    return [np.full(size, float(number + part)) for part in range(3)]


def added_in_place(one: Array, other: Array) -> Array:
    one += other
    return one


def ranks_added(value: float) -> tuple[int, float]:
    """The number of processes, and the sum of value * (rank + 1) over them."""
    import torch
    import torch.distributed as together

    tell(together.get_rank())
    total = torch.tensor([value * (together.get_rank() + 1)], dtype=torch.float64)
    together.all_reduce(total)
    return together.get_world_size(), float(total)


def wrong_in_one(_: str) -> None:
    """The second process has an error; the first waits for it."""
    import torch
    import torch.distributed as together

    if together.get_rank() == 1:
        raise DataError("log.parquet: is damaged")
    together.all_reduce(torch.zeros(1))


def dies_in_one(marker: str) -> float:
    """The second process dies, once; the first waits for it."""
    import torch.distributed as together

    if together.get_rank() == 1:
        die_once(marker)
    return ranks_added(1.0)[1]


# ---- what must be true


def map_gives_every_piece_its_outcome(engine: Engine, folder: Path) -> None:
    assert dict(engine.map(double, range(20))) == {n: 2 * n for n in range(20)}
    assert dict(engine.map(double, [])) == {}
    assert dict(engine.map(double, [7])) == {7: 14}  # the workers go on
    assert dict(engine.map(scaled, [1, 2], common=np.ones(3))) == {1: 3.0, 2: 6.0}
    assert dict(engine.map(scaled, [1, 2], common=np.ones(4))) == {1: 4.0, 2: 8.0}  # not what was common before
    assert list(engine.map(double, [3, 3])) == [(3, 6), (3, 6)]


def work_is_done_elsewhere(engine: Engine, folder: Path) -> None:
    assert engine.workers >= 1
    assert os.getpid() not in dict(engine.map(who, range(4))).values()


def the_order_of_pieces_alone_decides_the_tree(engine: Engine, folder: Path) -> None:
    for count, tree in ((1, "0"), (2, "(0 1)"), (5, "(((0 1) (2 3)) 4)"), (7, "(((0 1) (2 3)) ((4 5) 6))")):
        assert engine.reduce(name_of, range(count), bracketed) == tree
    assert engine.workers > 1
    assert engine.reduce(late_first, range(5), bracketed, common=str(folder)) == "(((0 1) (2 3)) 4)"


def parts_come_in_order_each_combined_over_all_pieces(engine: Engine, folder: Path) -> None:
    """With small arrays, and with such as are objects of their own somewhere, which nobody may change."""
    for size in (3, 50_000):
        parts = list(engine.reduce_parts(three_arrays, range(6), added_in_place, 3, common=size))
        assert [part.shape for part in parts] == [(size,)] * 3
        assert [set(part.tolist()) for part in parts] == [{15.0 + 6 * part} for part in range(3)]


def errors_are_those_of_the_worker(engine: Engine, folder: Path) -> None:
    with pytest.raises(InvalidInput, match="number: expected another one, got 1") as refusal:
        list(engine.map(broken, range(4), common="ours"))
    assert (refusal.value.argument, refusal.value.expected) == ("number", "another one")
    with pytest.raises(LookupError, match="no such number"):
        list(engine.map(broken, range(4), common="theirs"))
    with pytest.raises(DataError, match=r"^log\.parquet: is damaged$"):
        engine.reduce(broken, range(4), max, common="data")
    assert dict(engine.map(double, [2])) == {2: 4}  # and the workers go on


def processes_train_together(engine: Engine, folder: Path) -> None:
    pytest.importorskip("torch")
    assert engine.train(ranks_added, 2, common=2.0) == (2, 6.0)


def an_error_ends_all_that_train_together(engine: Engine, folder: Path) -> None:
    pytest.importorskip("torch")
    with pytest.raises(DataError, match=r"^log\.parquet: is damaged$"):
        engine.train(wrong_in_one, 2, common="")


def who_dies_in_training_is_replaced(engine: Engine, folder: Path) -> None:
    pytest.importorskip("torch")
    assert engine.train(dies_in_one, 2, common=str(folder / "died")) == 3.0
    assert (folder / "died").exists()


CHECKS: list[Callable[[Engine, Path], None]] = [
    map_gives_every_piece_its_outcome, work_is_done_elsewhere, the_order_of_pieces_alone_decides_the_tree,
    parts_come_in_order_each_combined_over_all_pieces, errors_are_those_of_the_worker, processes_train_together,
    an_error_ends_all_that_train_together, who_dies_in_training_is_replaced,
]  # fmt: skip


def messages_are_heard(engine: Engine, heard: list[object]) -> None:
    """heard: what an engine that was opened with `hear` has told."""
    assert dict(engine.map(talkative, range(6))) == {n: n for n in range(6)}
    assert len(heard) == 18
    for number in range(6):
        assert [step for n, step in heard if n == number] == [0, 1, 2]  # type: ignore[misc]


def a_worker_that_always_dies_is_named(engine: Engine) -> None:
    """A death is one of our errors; an engine of its own, which need not go on."""
    with pytest.raises(WorkerDied, match="not enough memory") as death:
        list(engine.map(dying, [0]))
    assert isinstance(death.value, ManyArmsError)
