"""Finding a cluster: one that runs already, and what is said where there is none, or where its software is another."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from manyarms.engine import Engine, opened
from manyarms.engine import cluster as module
from manyarms.engine.local import THREAD_VARIABLES
from manyarms.errors import ClusterError

WITHIN = 600.0  # seconds after which something hangs
PATHS = os.pathsep.join(path for path in sys.path if path)

# What a process finds that is connected to nothing before: it says so in JSON
WORK = """
import json, sys
import numpy as np
import engine_contract as contract
import manyarms as ma
from manyarms.engine import opened
from manyarms.errors import InvalidInput
from manyarms.logs import LoggedData, shards
from manyarms.priors import HierarchicalPrior

shards.ROWS_EACH = 100
rng = np.random.default_rng(0)
X = rng.standard_normal((1000, 3))
log = LoggedData(X, rng.integers(0, 20, 1000), X[:, 0], 20)
prior = HierarchicalPrior(20, np.zeros(3), np.eye(3), np.eye(3))
heard, refused = [], None
with opened(sys.argv[1], hear=heard.append) as engine:
    variables = dict(engine.map(contract.variables, [0]))[0]
    error = np.abs(ma.sdm(log, prior, on=engine).parameters - ma.sdm(log, prior).parameters).max()
    contract.messages_are_heard(engine, heard)
    try:
        list(engine.map(contract.broken, range(3), common="ours"))
    except InvalidInput as refusal:
        refused = str(refusal)
    print(json.dumps([engine.workers, variables, error, refused]))
"""


def alone(code: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Some Python in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "MANYARMS_CACHE")}
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        timeout=WITHIN,
        env={**kept, "PYTHONPATH": PATHS, **variables},
        check=False,
    )


@dataclass(frozen=True)
class Head:
    """Where a cluster is, for members and for clients; and the variables with which it lets anybody in."""

    members: str
    clients: str
    variables: dict[str, str]


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    """A cluster of one worker that somebody else has started, in an environment of its own."""
    pytest.importorskip("ray")
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        port, clients = one.getsockname()[1], other.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MANYARMS_", "RAY_"))}
    # a token of this cluster's own, whatever the user has at home
    let_in = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    theirs = {**kept, **let_in, **dict.fromkeys(THREAD_VARIABLES, "2"), "MANYARMS_DATA": "/theirs", "PYTHONPATH": PATHS}
    with (
        tempfile.TemporaryDirectory(
            prefix="ray-", ignore_cleanup_errors=True
        ) as folder,  # a short name: sockets are in it
        tempfile.TemporaryFile("w+") as log,
    ):
        process = subprocess.Popen(
            [
                sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=1",
                "--node-ip-address=127.0.0.1", f"--port={port}", f"--ray-client-server-port={clients}",
                "--include-dashboard=false", "--disable-usage-stats", f"--temp-dir={folder}",
            ],
            env=theirs, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            end = time.monotonic() + WITHIN
            while not answers(clients):
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    pytest.fail(log.read())
                time.sleep(0.1)
            yield Head(f"127.0.0.1:{port}", f"ray://127.0.0.1:{clients}", let_in)
        finally:
            process.terminate()
            process.wait(WITHIN)


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("way", ["as a client", "by RAY_ADDRESS"])
def test_a_cluster_that_runs_already(head: Head, way: str) -> None:
    """It inherits nothing: who works there has one thread and the folders of the process that they work for."""
    variables = {**head.variables, "OMP_NUM_THREADS": "3", "MANYARMS_DATA": "/ours"}
    if way == "as a client":
        found = alone(WORK, head.clients, **variables)
    else:
        found = alone(WORK, "ray", RAY_ADDRESS=head.members, **variables)
    assert found.returncode == 0, found.stderr
    workers, seen, error, refused = json.loads(found.stdout.splitlines()[-1])
    assert workers == 1
    assert seen == ["1"] * len(THREAD_VARIABLES) + ["/ours", ""]
    assert error < 1e-9
    assert refused == "number: expected another one, got 1"


def test_a_runtime_that_another_process_has_for_itself_is_left_alone(ray_engine: Engine) -> None:
    code = "from manyarms.engine import opened\nwith opened('ray', workers=1) as engine: print(engine.workers)"
    found = alone(code)
    assert found.returncode == 0, found.stderr
    assert found.stdout.split()[-1] == "1" != str(ray_engine.workers)


@pytest.mark.parametrize("way", ["as a client", "by RAY_ADDRESS"])
def test_no_cluster_at_the_address(way: str) -> None:
    pytest.importorskip("ray")
    code = "import sys\nfrom manyarms.engine import opened\nwith opened(sys.argv[1]): pass"
    if way == "as a client":
        found = alone(code, "ray://127.0.0.1:1")
    else:
        found = alone(code, "ray", RAY_ADDRESS="127.0.0.1:1")
    assert found.returncode == 1
    last = found.stderr.strip().splitlines()[-1]
    address = "ray://127.0.0.1:1" if way == "as a client" else "127.0.0.1:1"
    assert last.startswith(f"manyarms.errors.ClusterError: {address}: no Ray cluster answers there")


def test_the_command_names_the_address_and_writes_nothing(tmp_path: Any) -> None:
    pytest.importorskip("ray")
    code = "import sys\nfrom manyarms.cli.app import main\nmain(sys.argv[1:])"
    words = [
        "reproduce",
        "mets-synthetic",
        "--scale",
        "smoke",
        "--on",
        "ray://127.0.0.1:1",
        "--out",
        str(tmp_path / "out"),
    ]
    found = alone(code, *words)
    assert found.returncode not in (0, 1) and "Traceback" not in found.stderr
    assert "manyarms: ray://127.0.0.1:1: no Ray cluster answers there" in found.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_other_software_there_is_refused(ray_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, here = module.software(), os.getpid()

    def software() -> dict[str, str]:
        return ours if os.getpid() == here else {**ours, "numpy": "1.0"}

    monkeypatch.setattr(module, "software", software)
    expected = (
        rf"^ray: its machine [\d.]+ has numpy 1\.0, and this process {re.escape(ours['numpy'])}; both need the same$"
    )
    with pytest.raises(ClusterError, match=expected), opened("ray"):
        pass

    def failing() -> dict[str, str]:
        if os.getpid() != here:
            raise ModuleNotFoundError("No module named 'manyarms'")
        return ours

    monkeypatch.setattr(module, "software", failing)
    with (
        pytest.raises(ClusterError, match=r"^ray: its machine [\d.]+ cannot run manyarms .*install manyarms"),
        opened("ray"),
    ):
        pass
