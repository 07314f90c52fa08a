"""Nothing is replied before the disk has confirmed it: shown by a trace of what a process asks of the system.

A kill does not show that: what a killed process has written is in the system's memory, and survives it. So a child writes to a
store and replies on its standard output, while every write and every fsync of it is recorded, by strace or by a small library
that stands before the C library's. The same check must find fault with a store that has `synchronous=OFF`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from manyarms.live.stores import sqlite as module
from manyarms.live.stores.sqlite import SQLite

REPLIES = 10
CHILD = """
import os, sys
from manyarms.live.group_commit import GroupCommit
from manyarms.live.stores.opening import prepare
from manyarms.live.stores.sqlite import SQLite
SQLite.synchronous = sys.argv[2]
def work(tx):
    position, at = tx.place()
    tx.execute("INSERT INTO operations VALUES (?, ?, 'test', '')", (position, at))
    return position
database = SQLite(sys.argv[1])
prepare(database)
group = GroupCommit(database)
for i in range(int(sys.argv[3])):
    os.write(1, b"reply %d\\n" % (group.submit(work) if i % 2 else database.do(work)))
group.close()
database.close()
"""

# writes lines such as those of `strace -y`: pwrite64(4</folder/live.db-wal>
RECORDER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void record(const char *name, int fd) {
    static int trace = -1;
    char link[64], path[1024], line[1200];
    if (trace < 0) trace = atoi(getenv("TRACE_FD"));
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = 0;
    syscall(SYS_write, trace, line, snprintf(line, sizeof line, "%s(%d<%s>\n", name, fd, path));
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name); record(#name, fd)
ssize_t write(int fd, const void *b, size_t n) { REAL(write); return real(fd, b, n); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { REAL(pwrite); return real(fd, b, n, o); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) { REAL(pwrite64); return real(fd, b, n, o); }
int fsync(int fd) { REAL(fsync); return real(fd); }
int fdatasync(int fd) { REAL(fdatasync); return real(fd); }
"""


def recorders() -> list[str]:
    """What can record here: a compiler that has its headers, a strace that may trace."""
    tried = {"cc": ["cc", "-E", "-x", "c", "-"], "strace": ["strace", "-q", "-o", "/dev/null", "true"]}

    def works(command: list[str]) -> bool:
        done = subprocess.run(command, input=b"#include <dlfcn.h>\n", capture_output=True, timeout=60)
        return done.returncode == 0

    return [name for name, command in tried.items() if shutil.which(name) and works(command)]


def trace(recorder: str, folder: Path, synchronous: str) -> list[tuple[str, str]]:
    """What the child asked of the system: calls, and the files they were for."""
    store, replies, log = folder / "live.db", folder / "replies", folder / "trace"
    command = [sys.executable, "-c", CHILD, str(store), synchronous, str(REPLIES)]
    environment = {**os.environ, "PYTHONPATH": str(Path(module.__file__).parents[3])}
    with log.open("wb") as to, replies.open("wb") as out:
        if recorder == "cc":
            (folder / "recorder.c").write_text(RECORDER)
            library = folder / "recorder.so"
            build = ["cc", "-shared", "-fPIC", "-o", str(library), str(folder / "recorder.c"), "-ldl"]
            subprocess.run(build, check=True, timeout=120, capture_output=True)
            environment |= {"LD_PRELOAD": str(library), "TRACE_FD": str(to.fileno())}
        else:
            calls = "trace=write,pwrite64,fsync,fdatasync"
            command = ["strace", "-f", "-y", "-q", "-s", "1", "-e", calls, "-o", f"/dev/fd/{to.fileno()}", *command]
        subprocess.run(command, check=True, timeout=120, env=environment, stdout=out, pass_fds=(to.fileno(),))
    assert replies.read_text() == "".join(f"reply {i + 1}\n" for i in range(REPLIES))
    found = re.findall(r"\b(write|pwrite|pwrite64|fsync|fdatasync)\(\d+<([^>]*)>", log.read_text(errors="replace"))
    return [(call, Path(path).name) for call, path in found]


def unconfirmed(calls: list[tuple[str, str]]) -> list[int]:
    """The replies that came while the log held what the disk had not confirmed, or without anything new in it."""
    wrong, replies, written, confirmed = [], 0, False, False
    for call, name in calls:
        if name == "live.db-wal":
            if "write" in call:
                written, confirmed = True, False
            else:
                confirmed = written
        elif name == "replies":
            replies += 1
            if not confirmed:
                wrong.append(replies)
            written = confirmed = False
    assert replies == REPLIES
    return wrong


def test_fsync_precedes_every_reply_and_its_absence_is_found(tmp_path: Path) -> None:
    recorder = recorders()[:1]
    if not recorder:  # what SQLite itself says of the connection that writes: the slow test below wants to see it
        with SQLite(tmp_path / "live.db") as database:
            assert database._writer is not None
            assert database._writer.execute("PRAGMA synchronous").fetchall() == [(2,)]
            assert database._writer.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
        return
    check(recorder[0], tmp_path)


@pytest.mark.slow
def test_fsync_precedes_every_reply_by_every_recorder(tmp_path: Path) -> None:
    if not recorders():
        pytest.fail("neither a C compiler nor strace is here to record what a process asks of the system")
    for recorder in recorders():
        check(recorder, tmp_path / recorder)


def check(recorder: str, folder: Path) -> None:
    for synchronous in ("FULL", "OFF"):
        (folder / synchronous).mkdir(parents=True)
    assert unconfirmed(trace(recorder, folder / "FULL", "FULL")) == []
    planted = unconfirmed(trace(recorder, folder / "OFF", "OFF"))
    assert planted == list(range(1, REPLIES + 1))
