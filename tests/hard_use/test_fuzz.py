"""Hostile calls: nothing new is found in a few hundred, everything public is covered, and the fuzzer sees what it should."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hard_use import fuzz, hostile, public
from hard_use.material import Argument, Material
from hard_use.targets import Target, Targets, context_of, targets
from manyarms.errors import InvalidInput

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of time and memory are Linux's")
TESTS = Path(__file__).resolve().parents[1]
MOST_KNOWN = 297  # set it down when lines go


def test_nothing_new_and_everything_covered() -> None:
    """Two calls of everything public; `make fuzz` makes thousands. What is known already stands in known.txt."""
    run = subprocess.run(
        [sys.executable, "-m", "hard_use.fuzz", "--each", "2"], cwd=TESTS, capture_output=True, text=True, timeout=1800
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


def test_known_faults_become_fewer() -> None:
    listed = fuzz.known()
    assert len(listed) <= MOST_KNOWN, "a new fault is mended, not listed"
    assert listed == sorted(set(listed)), "sorted, each once"
    kinds = {"exception", "memory", "hang", "accepted", "nan", "differs", "changed", "poisoned"}
    assert {line.split()[0] for line in listed} <= kinds
    assert fuzz.is_known("accepted f(x) nan", ["accepted * nan"]) and not fuzz.is_known("nan f(x=nan)", ["accepted *"])
    assert fuzz.is_known("hang a.f().g(x=two, y=nan)", ["hang a.f().g(y=nan)"])
    assert not fuzz.is_known("hang a.f().g(x=two, y=nan)", ["hang a.f().g(y=inf)"])


def accepts(x: np.ndarray) -> float:
    return 0.0


def raises_wrongly(x: np.ndarray) -> float:
    return {"a": 1.0}[str(x)]


def hangs(x: np.ndarray) -> None:
    time.sleep(1000)


def gives_nan(x: np.ndarray) -> float:
    return math.nan


def depends_on_the_form(x: Any) -> float:
    if type(x) is not np.ndarray or x.dtype != np.float64 or x.shape != (3,) or not (np.abs(x) < 1e200).all():
        raise InvalidInput("x", x, "three numbers")
    return float(x.flags.c_contiguous)


def refuses(x: Any) -> float:
    raise InvalidInput("x", 0, "nothing at all")


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (accepts, {"accepted"}), (raises_wrongly, {"exception"}), (hangs, {"hang"}), (gives_nan, {"accepted", "nan"}),
        (depends_on_the_form, {"differs"}), (refuses, set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_the_fuzzer_sees(function: Callable[[Any], Any], wanted: set[str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(fuzz, "targets", lambda material: Targets())
    fuzzer = fuzz.Fuzzer(Material(tmp_path), 0, 0.05 if function is hangs else 600.0)
    target = Target(function.__name__, function, {"x": Argument(np.arange(3.0), hostile.arrays)})
    for _ in range(3 if function is hangs else 200):
        fuzzer.one(target)
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
    for _ in range(30):
        fuzzer.one(target)
    assert "changed" in {violation.kind for violation in fuzzer.violations.values()}


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
