"""What importing loads: nothing at first, then NumPy, SciPy's special functions and our own modules, and no more.

How long it takes is measured by benchmarks/importing.py.
"""

from __future__ import annotations

import json
import subprocess
import sys

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


def test_the_version_is_known_when_it_is_asked_for() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import manyarms; print(manyarms.__version__); from manyarms import __version__"],
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert run.stdout.strip()
