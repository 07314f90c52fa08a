"""Processes on this machine that train together: `torch.distributed` over loopback, replaced as a whole when one of them dies."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

from manyarms.engine.base import WorkerDied
from manyarms.engine.local import end_with_parent, received, sent_once, tell_through
from manyarms.errors import MissingExtra

SECONDS_TO_DIE = 10.0  # that a process may take to say why it ended, or to be gone, after others have noticed
OF_A_CONNECTION = (RuntimeError, OSError)
"""How torch.distributed says that another process is gone; other errors are always a member's own."""
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"


def train(
    function: Callable[..., Any], workers: int, common: Any, failures: int, hear: Callable[[Any], None] | None
) -> Any:
    """`Engine.train` with processes of this machine."""
    with sent_once(common) as path:
        for left in range(failures, -1, -1):
            try:
                return _together(function, workers, path, hear)
            except WorkerDied:
                if not left:
                    raise
    raise AssertionError("unreachable")


def _together(
    function: Callable[..., Any], workers: int, common: str | None, hear: Callable[[Any], None] | None
) -> Any:
    """All members once; WorkerDied when one is gone without having said why."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="manyarms-") as room:
        members, ways = [], []
        for rank in range(workers):
            ours, theirs = context.Pipe(duplex=False)
            member = context.Process(
                target=_member,
                args=(function, rank, workers, os.path.join(room, "meeting"), common, theirs),
                daemon=True,
            )
            member.start()
            theirs.close()
            members.append(member)
            ways.append(ours)
        try:
            return _follow(members, ways, hear)
        finally:
            for member in members:
                if member.is_alive():
                    member.kill()
                member.join()


def _follow(members: list[Any], ways: list[Any], hear: Callable[[Any], None] | None) -> Any:
    """The first member's outcome, once all have ended.

    A member whose partner is gone has an error too, of its connection: the reason is what the partner says, or its death.
    """
    outcome: Any = None
    broken: BaseException | None = None  # an error that may be one of a connection
    until = 0.0  # when nothing better is expected
    open_ways = dict(enumerate(ways))
    silent = set(open_ways)  # those who have not said how they ended
    while open_ways and (broken is None or (silent and time.monotonic() < until)):
        rest = None if broken is None else max(0.0, until - time.monotonic())
        for found in connection.wait(list(open_ways.values()), rest):
            ready: Any = found
            rank = next(number for number, way in open_ways.items() if way is ready)
            try:
                kind, said = ready.recv()
            except (EOFError, OSError):
                del open_ways[rank]
                if rank in silent:
                    members[rank].join()
                    raise WorkerDied(
                        f"process {rank} of {len(members)} that were training together ended without an answer "
                        f"(exit code {members[rank].exitcode}; often: not enough memory)"
                    ) from broken
                continue
            if kind == "message":
                if hear is not None:
                    hear(said)
                continue
            silent.discard(rank)
            if kind == "error":
                if not isinstance(said, OF_A_CONNECTION):
                    raise said
                if broken is None:
                    broken, until = said, time.monotonic() + SECONDS_TO_DIE
            elif rank == 0:
                outcome = said
    if broken is not None:
        raise broken
    return outcome


class _Pipe:
    """Messages of a member on their way."""

    def __init__(self, way: Any) -> None:
        self._way = way

    def put(self, message: object) -> None:
        self._way.send(("message", message))


def _member(function: Callable[..., Any], rank: int, workers: int, meeting: str, common: str | None, way: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
    tell_through(_Pipe(way))
    try:
        outcome = _in_group(function, rank, workers, meeting, common)
        answer = "outcome", outcome if rank == 0 else None
    except BaseException as error:
        answer = "error", error
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # an error that cannot be sent as it is
            answer = "error", RuntimeError(f"{type(error).__name__}: {error}")
    way.send(answer)
    way.close()


def _in_group(function: Callable[..., Any], rank: int, workers: int, meeting: str, common: str | None) -> Any:
    try:
        import torch.distributed as together
    except ModuleNotFoundError as error:
        raise MissingExtra("torch", "torch", "training in several processes") from error
    os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)
    together.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=workers)
    try:
        return function() if common is None else function(received(common))
    finally:
        together.destroy_process_group()


__all__ = ["OF_A_CONNECTION", "train"]
