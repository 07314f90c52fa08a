"""Hostile calls: nothing new is found in a few hundred, everything public is covered, and the fuzzer sees what it should."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from hard_use import fuzz, hostile, public
from hard_use.material import Argument, Material
from hard_use.targets import Target, Targets, context_of, targets
from manyarms.errors import InvalidInput

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of time and memory are Linux's")
TESTS = Path(__file__).resolve().parents[1]


def test_nothing_new_and_everything_covered() -> None:
    """Two calls of everything public; `make fuzz` makes thousands."""
    run = subprocess.run(
        # a slow machine may take longer than the five seconds that `make fuzz` allows
        [sys.executable, "-m", "hard_use.fuzz", "--each", "2", "--seconds", "60"],
        cwd=TESTS, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


def accepts(x: np.ndarray) -> float:
    return 0.0


def raises_wrongly(x: np.ndarray) -> float:
    return {"a": 1.0}[str(x)]


def hangs(x: np.ndarray) -> None:
    while True:
        pass


def gives_nan(x: np.ndarray) -> float:
    return math.nan


def depends_on_the_form(x: Any) -> float:
    if type(x) is not np.ndarray or x.dtype != np.float64 or x.shape != (3,) or not (np.abs(x) < 1e200).all():
        raise InvalidInput("x", x, "three numbers")
    return float(x.flags.c_contiguous)


def refuses(x: Any) -> float:
    raise InvalidInput("x", 0, "nothing at all")


def only_floats(x: Any) -> np.ndarray:
    if type(x) is not np.ndarray or x.dtype != np.float64 or x.shape != (3,) or not (np.abs(x) < 1e200).all():
        raise InvalidInput("x", x, "three numbers")
    return x


def writes_into_it(x: Any) -> float:
    if (x := only_floats(x)).flags.writeable:
        x += 1.0
    return 0.0


class Keeps:
    """An object that holds the caller's own array."""

    def __init__(self, x: Any) -> None:
        self.x = only_floats(x)


Keeps.__module__ = "manyarms.pretended"


class Copies(Keeps):
    """One that does not."""

    def __init__(self, x: Any) -> None:
        super().__init__(x)
        self.x = self.x.copy()


Copies.__module__ = "manyarms.pretended"


def useless_prior(x: Any) -> ma.ActionPrior:
    """Refuses what it should, and gives a prior that no agent can use."""
    prior = ma.ActionPrior(3, np.zeros(3), np.eye(3))
    object.__setattr__(prior, "covariance", -np.eye(3) * only_floats(x).size)
    return prior


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (accepts, {"accepted"}), (raises_wrongly, {"exception"}), (hangs, {"hang"}), (gives_nan, {"accepted", "nan"}),
        (depends_on_the_form, {"differs"}), (refuses, set()), (writes_into_it, {"written"}), (Keeps, {"aliased"}),
        (Copies, set()), (useless_prior, {"poisoned"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_the_fuzzer_sees(function: Callable[[Any], Any], wanted: set[str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(fuzz, "targets", lambda material: Targets())
    fuzzer = fuzz.Fuzzer(Material(tmp_path), 0, 0.05 if function is hangs else 600.0)
    target = Target(function.__name__, function, {"x": Argument(np.arange(3.0), hostile.arrays)})
    for stream in range(3 if function is hangs else 200):
        fuzzer.one(target, stream)
    assert {violation.kind for violation in fuzzer.violations.values()} == wanted


def test_an_agent_that_changes_when_it_refuses_is_seen(tmp_path: Path) -> None:
    material = Material(tmp_path)

    def observe(agent: Any, x: Any, action: int, reward: float) -> None:
        agent.observe(context_of(agent), action, 1.0)
        raise InvalidInput("x", 0, "something else")

    fuzzer = fuzz.Fuzzer(material, 0, 600.0)
    arguments = {"x": Argument(np.zeros(3), hostile.arrays), "action": Argument(1, hostile.labels)}
    arguments["reward"] = Argument(1.0, hostile.flags)
    maker = lambda: material.make("meTS", material.mixed, seed=1)  # noqa: E731
    target = Target("meTS().observe", observe, arguments, maker=maker, stateful=True, changes=True)
    for stream in range(30):
        fuzzer.one(target, stream)
    assert "changed" in {violation.kind for violation in fuzzer.violations.values()}


def fuzzer_of(functions: list[Callable[[Any], Any]], folder: Path, monkeypatch: Any) -> fuzz.Fuzzer:
    """One that calls these alone, with an array."""
    argument = Argument(np.arange(3.0), hostile.arrays)
    calls = [Target(function.__name__, function, {"x": argument}) for function in functions]
    monkeypatch.setattr(fuzz, "targets", lambda material: Targets(calls))
    return fuzz.Fuzzer(Material(folder), 0, 600.0)


def test_a_violation_names_a_command_that_makes_the_call_again(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    fuzzer = fuzzer_of([raises_wrongly], tmp_path, monkeypatch)
    fuzzer.run(50)
    (first, *_) = fuzzer.violations.values()
    found = re.fullmatch(r"python -m hard_use.fuzz --again '(\w+)' (\d+)", first.again)
    assert found
    other = fuzzer_of([raises_wrongly], tmp_path, monkeypatch)
    other.again(found[1], int(found[2]))
    assert first in other.violations.values() and "raises_wrongly" in capsys.readouterr().err


def test_workers_make_the_calls_of_one(tmp_path: Path, monkeypatch: Any) -> None:
    """Every call has a number of its own, so that it does not matter who makes it."""

    def report(*parts: tuple[int, int]) -> dict[str, Any]:
        reports = []
        for part in parts:
            fuzzer = fuzzer_of([accepts, depends_on_the_form, Keeps], tmp_path, monkeypatch)
            fuzzer.run(300, *part)
            reports.append(fuzzer.report())
        return fuzz.merged(reports)

    alone, three = report((0, 1)), report((0, 3), (1, 3), (2, 3))
    assert alone["counts"] == three["counts"] and alone["times"] == three["times"] and alone["times"]


def test_a_parameter_that_no_rule_knows_is_not_covered(tmp_path: Path) -> None:
    material = Material(tmp_path)

    def newcomer(actions: int, zyzzyva: float) -> None:
        """Has a parameter that nothing here has seen."""

    newcomer.__module__ = "manyarms.agents"
    material.public["newcomer"] = newcomer
    assert targets(material).uncovered["newcomer"] == "zyzzyva: float"


def test_what_is_public_is_found_once_under_its_shortest_name() -> None:
    found = public.everything()
    assert "LinTS" in found and "Agent" in found
    assert len({id(value) for value in found.values()}) == len(found)
    assert "Certificate" in public.results(found) and "Agent" not in public.results(found)
