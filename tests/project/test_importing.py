"""What importing loads: nothing at first, then NumPy, SciPy's special functions and our own modules, and no more.

How long it takes is measured by benchmarks/importing.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LOADED = "import json, sys; {}; print(json.dumps(sorted(sys.modules)))"

# SciPy's large parts; which of the small ones scipy.special brings along depends on its release
SCIPY = {"cluster", "integrate", "interpolate", "io", "ndimage", "optimize", "signal", "sparse", "spatial", "stats"}
# parts of Python's own library that take a while, and belong to live stores, to the engine and to the service
PYTHON = {"asyncio", "http", "multiprocessing", "sqlite3", "ssl", "xml"}


def loaded_by(program: str) -> set[str]:
    """The modules that a fresh interpreter has loaded at the end of a program."""
    run = subprocess.run(
        [sys.executable, "-c", LOADED.format(program)], capture_output=True, text=True, check=True, timeout=600
    )
    return set(json.loads(run.stdout))


def test_importing_alone_loads_nothing_else() -> None:
    new = loaded_by("import manyarms") - loaded_by("import importlib, typing")
    assert new == {"manyarms"}


def test_the_first_agent_and_log_load_nothing_they_need_not() -> None:
    before = loaded_by("import numpy, scipy.special")
    after = loaded_by("import manyarms as ma; ma.LinTS, ma.open_log")
    packages = {name.partition(".")[0] for name in after - before}
    assert packages - sys.stdlib_module_names == {"manyarms"}
    assert not packages & PYTHON
    scipys = {name.split(".")[1] for name in after - before if name.startswith("scipy.")}
    assert not scipys & SCIPY
    assert not {"manyarms.cli", "manyarms.live", "manyarms.learning", "manyarms.worlds", "manyarms.checks"} & after


def test_evaluating_loads_nothing_it_need_not() -> None:
    before = loaded_by("import numpy, scipy.special, scipy.linalg")
    after = loaded_by("import manyarms as ma; ma.evaluate, ma.certify, ma.inspect, ma.SoftmaxPolicy, ma.DR")
    assert {name.partition(".")[0] for name in after - before} - sys.stdlib_module_names == {"manyarms"}
    assert not {name.split(".")[1] for name in after - before if name.startswith("scipy.")} & SCIPY


@pytest.mark.parametrize("package", ["edge", "client", "service"])
def test_what_serves_loads_its_extras_late(package: str) -> None:
    """`manyarms.edge` needs NumPy alone; the others load what they stand on when something is made of them."""
    found = {name.partition(".")[0] for name in loaded_by(f"import manyarms.{package}")}
    always = {name.partition(".")[0] for name in loaded_by("import numpy")}
    assert found - always - sys.stdlib_module_names == {"manyarms"}


BLOCKED = """
import sys

sys.modules.update(dict.fromkeys({packages!r}))  # None there: not installed
import manyarms as ma
try:
    {program}
except ma.errors.MissingExtra as error:
    print(error)
"""
SERVICE = ("fastapi", "starlette", "pydantic", "prometheus_client", "threadpoolctl", "orjson")
BUNDLE = "ma.edge.EdgePolicy(ma.edge.Header('a', 0, 'softmax', 1, 0, 1e11, bytes(16)), [[[1.0]]], [0])"


@pytest.mark.parametrize(
    ("packages", "program", "extra"),
    [
        *(((package,), "ma.service.create_app", "service") for package in SERVICE),
        (SERVICE, "ma.service.open_service", "service"),
        (("httpx",), "ma.client.Client('http://localhost')", "client"),
        (("httpx",), "ma.client.AsyncClient('http://localhost')", "client"),
        (("httpx",), "ma.client.in_process(len)", "client"),
        (("cryptography",), "ma.edge.SigningKey(bytes(32))", "service"),
        (("cryptography",), f"ma.edge.EdgePolicy.read({BUNDLE}.to_bytes(None), 64 * '0')", "client"),
    ],
)
def test_what_is_missing_is_named_with_its_extra(packages: tuple[str, ...], program: str, extra: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", BLOCKED.format(packages=packages, program=program)],
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert f"pip install 'manyarms[{extra}]'" in run.stdout
    assert any(package in run.stdout for package in packages)


def test_without_any_extra_an_edge_policy_decides_and_settings_are_read() -> None:
    packages = (*SERVICE, "httpx", "cryptography", "uvicorn", "scipy")
    program = f"print({BUNDLE}.decide([1.0]).action, ma.service.make_config({{}}, {{'store': 'shop.db'}}).store)"
    run = subprocess.run(
        [sys.executable, "-c", BLOCKED.format(packages=packages, program=program)],
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert run.stdout.split() == ["0", "shop.db"]


@pytest.mark.parametrize("package", ["uvicorn", "fastapi"])
def test_the_command_says_what_to_install(package: str, tmp_path: Path) -> None:
    words = ["manyarms", "serve", "--store", str(tmp_path / "s.db")]
    program = f"from manyarms.cli.app import main; sys.argv = {words}; main()"
    run = subprocess.run(
        [sys.executable, "-c", BLOCKED.format(packages=(package,), program=program)],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    told = " ".join((run.stdout + run.stderr).split())
    assert run.returncode != 0 and "manyarms[service]" in told and "Traceback" not in told
    assert not list(tmp_path.iterdir())


def test_the_version_is_known_when_it_is_asked_for() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import manyarms; print(manyarms.__version__); from manyarms import __version__"],
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert run.stdout.strip()
