"""A part of an experiment: fewer runs or fewer worlds, which are those of the whole, and records that say so."""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from manyarms.errors import InvalidInput
from manyarms_thesis.catalogue import Experiment, catalogue, part_of, run
from manyarms_thesis.harness.claims import Measured, claim, gain
from manyarms_thesis.harness.experiments import _AllAtOnce
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.online import online_regret
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, items_of, variant_of
from manyarms_thesis.mets.agents import AGENTS
from manyarms_thesis.mets.common import mixed_effect_world


def cells(sizes: Any) -> list[Cell]:
    methods = {name: AGENTS[name] for name in ("meTS-Lin", "LinTS")}
    worlds = [Call(mixed_effect_world, {"actions": K, "effects": 2, "dim": 2}) for K in sizes["K"]]
    return [
        Cell(f"K={K}", {"K": K}, world, methods, sizes["rounds"], sizes["runs"], online_regret)
        for K, world in zip(sizes["K"], worlds, strict=True)
    ]


FULL: dict[str, Any] = {
    "rounds": 6_000,
    "runs": 3,
    "more_runs": 2,
    "K": [5, 9],
    "told": "two catalogues",
    "base": {"K": 5},
}
WHOLE = Experiment(
    "whole", "A whole experiment", "1", {"paper": FULL, "smoke": FULL | {"rounds": 10}, "bare": {"K": 3}}, cells,
    lambda results: [claim("meTS is better", "1", gain(results, results.panels[0], "meTS-Lin", "LinTS"))],
    lambda results, folder: [regret_curves(results, results.panels, folder, "regret", "Regret")],
    setting="{told}, {runs} runs of {rounds} rounds.", accuracy=("runs", "more_runs"),
)  # fmt: skip


def test_a_part_has_some_of_the_panels_and_says_so() -> None:
    made = part_of(WHOLE, "paper", runs=2, only={"K": ["9"]})
    assert made.sizes("paper") == FULL | {"runs": 2, "more_runs": 2, "told": "two catalogues (here in part: K 9)"}
    assert [cell.panel for cell in made.cells("paper")] == ["K=9"]
    assert made.fewer("paper") == {"K": ([9], [5, 9])} and made.smaller("paper") == {}
    assert made.setting_at("paper") == "two catalogues (here in part: K 9), 2 runs of 6,000 rounds."
    assert made.part == "--runs 2 --only K=9"
    assert made.sizes("smoke") is WHOLE.sizes("smoke") and WHOLE.part == ""
    assert part_of(WHOLE, "paper", runs=1).sizes("paper") == FULL | {"runs": 1, "more_runs": 1}
    assert part_of(WHOLE, "paper", runs=3).part == ""  # all of them


def test_whole_numbers_are_written_as_such() -> None:
    made = Experiment(**{**WHOLE.__dict__, "scales": {"paper": FULL | {"K": [5.0, 9.5]}}})
    assert part_of(made, "paper", only={"K": ["5"]}).fewer("paper") == {"K": ([5.0], [5.0, 9.5])}
    assert part_of(made, "paper", only={"K": ["9.5", "5.0"]}).fewer("paper") == {}
    named = Experiment(**{**made.__dict__, "setting": "K is {K}."})
    assert part_of(named, "paper", only={"K": ["5"]}).setting_at("paper") == "K is 5."


def with_a_variant(sizes: Any) -> list[Cell]:
    return [
        one
        for cell in cells(sizes)
        for one in (cell, variant_of(cell, "slow, and wide", methods={"LinTS": AGENTS["LinTS"]}))
    ]


def test_methods_and_variants_are_chosen_like_columns() -> None:
    whole = Experiment(**{**WHOLE.__dict__, "build": with_a_variant})
    items = {item.key("1") for item in items_of("whole", whole.cells("paper"), 0)}

    def left(**only: list[str]) -> dict[str, list[str]]:
        made = part_of(whole, "paper", only=only)
        assert {item.key("1") for item in items_of("whole", made.cells("paper"), 0)} < items
        return {cell.panel: list(cell.methods) for cell in made.cells("paper")}

    both = ["meTS-Lin", "LinTS"]
    assert left(variant=["printed"]) == {"K=5": both, "K=9": both}
    # the command line has cut the name at its comma
    assert left(variant=["slow", "and wide"], K=["9"]) == {"K=9, slow, and wide": ["LinTS"]}
    assert left(panel=["K=9", "slow", "and wide", "K=5"]) == {"K=5": both, "K=9, slow, and wide": ["LinTS"]}
    assert left(method=["meTS-Lin"]) == {"K=5": ["meTS-Lin"], "K=9": ["meTS-Lin"]}  # panels without it are not there
    assert left(variant=["printed"], method=["LinTS"]) == {"K=5": ["LinTS"], "K=9": ["LinTS"]}
    made = part_of(whole, "paper", only={"method": ["LinTS"]})
    assert made.part == "--only method=LinTS" and made.fewer("paper") == {"method": (["LinTS"], both)}


def test_sizes_that_are_smaller_stay_smaller_in_a_part() -> None:
    made = part_of(WHOLE, "smoke", only={"K": ["9", "5"]})
    assert [cell.panel for cell in made.cells("smoke")] == ["K=5", "K=9"]  # in their own order
    assert made.smaller("smoke") == {"rounds": (10, 6_000)} and made.fewer("smoke") == {}


def test_a_part_of_a_part_remembers_the_whole() -> None:
    again = part_of(part_of(WHOLE, "paper", only={"K": ["5"]}), "paper", runs=1)
    assert again.fewer("paper") == {"K": ([5], [5, 9])} and again.part == "--only K=5 --runs 1"
    assert [(cell.panel, cell.runs) for cell in again.cells("paper")] == [("K=5", 1)]
    with pytest.raises(InvalidInput, match="some of 5, got '9'"):
        part_of(again, "paper", only={"K": ["9"]})


@pytest.mark.parametrize(
    ("scale", "asked", "says"),
    [
        ("paper", {"runs": 4}, "at most 3"),
        ("paper", {"runs": 0}, "at least 1"),
        ("bare", {"runs": 1}, "sets its runs by panel"),
        ("large", {"runs": 1}, "one of paper, smoke, bare"),
        ("paper", {"only": {"k": ["5"]}}, "one of K, variant, panel, method, got 'k'"),
        ("paper", {"only": {"base": ["5"]}}, "one of K, variant, panel, method, got"),
        ("paper", {"only": {"method": ["LinUCB"]}}, "some of meTS-Lin, LinTS, got 'LinUCB' for method"),
        ("paper", {"only": {"variant": ["scaled"]}}, "some of printed, got 'scaled'"),
        ("paper", {"only": {"K": ["7", "5"]}}, "some of 5, 9, got '7'"),
        ("paper", {"only": {"K": []}}, "no value"),
    ],
)
def test_what_is_not_there_is_refused(scale: str, asked: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        part_of(WHOLE, scale, **asked)


def test_the_runs_of_a_part_are_runs_of_the_whole_and_the_whole_goes_on_from_them(tmp_path: Path) -> None:
    quiet = Console(file=io.StringIO())
    small = {name: dict(sizes) | {"rounds": 60} for name, sizes in WHOLE.scales.items()}
    whole = Experiment(**{**WHOLE.__dict__, "scales": small})
    half = part_of(whole, "paper", only={"K": ["9"]})
    part = run(half, "paper", tmp_path / "out", workers_wanted=1, kept=tmp_path, console=quiet)
    record = json.loads((tmp_path / "whole.part.json").read_text(encoding="utf-8"))
    assert record["command"] == "manyarms reproduce whole --scale paper --only K=9"
    assert shlex.split(record["command"])[-1] == "K=9" and record["fewer_than_the_thesis"] == {"K": [[9], [5, 9]]}
    done = run(whole, "paper", tmp_path / "out", workers_wanted=1, console=quiet)
    assert done.reused == 2  # one piece of work for each method
    fewer = run(part_of(whole, "paper", runs=2), "paper", tmp_path / "fewer", workers_wanted=1, console=quiet)
    for at in range(2):
        for method in ("meTS-Lin", "LinTS"):
            regret = done.results.runs["K=9", method, at]["regret"]
            assert np.array_equal(regret, fewer.results.runs["K=9", method, at]["regret"])
            assert np.array_equal(regret, part.results.runs["K=9", method, at]["regret"])


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_panel_of_a_part_is_one_of_the_whole(name: str) -> None:
    """For each column that tells panels apart, and each of its values: same world, methods and seeds; the setting can be told."""
    experiment = catalogue()[name]
    cells = experiment.cells("smoke")
    whole = {item.key("1") for item in items_of(name, cells, 0)}
    columns = {column for cell in cells for column in cell.parameters}
    for column in sorted(columns):
        there = list(dict.fromkeys(str(cell.parameters[column]) for cell in cells if column in cell.parameters))
        for value in there:
            made = part_of(experiment, "smoke", only={column: [value]})
            keys = {item.key("1") for item in items_of(name, made.cells("smoke"), 0)}
            assert keys and keys <= whole and made.part
            assert "{" not in made.setting_at("smoke")
            if len(there) > 1:
                assert column in made.fewer("smoke")


def failing(results: Any) -> Any:
    yield claim("meTS is better", "1", gain(results, results.panels[0], "meTS-Lin", "LinTS"))
    yield claim("and better with nine", "1", gain(results, "K=9", "meTS-Lin", "LinTS"))


def test_a_part_judges_what_it_can_and_loses_no_work(tmp_path: Path) -> None:
    quiet = Console(file=io.StringIO())
    small = {name: dict(sizes) | {"rounds": 30} for name, sizes in WHOLE.scales.items()}
    whole = Experiment(
        **{**WHOLE.__dict__, "scales": small, "claims": _AllAtOnce(failing), "figures": lambda results, folder: 1 / 0}
    )
    done = run(part_of(whole, "paper", only={"K": ["5"]}), "paper", tmp_path / "out", workers_wanted=1, console=quiet)
    assert [one.statement for one in done.claims] == ["meTS is better"]
    assert "Statements that need the others are left out" in (tmp_path / "out" / "report.html").read_text()
    with pytest.raises(ZeroDivisionError):  # of the whole nothing may be missing
        run(whole, "paper", tmp_path / "whole", workers_wanted=1, console=quiet)


def test_some_worlds_refute_only_what_is_said_of_one_of_them_and_fewer_runs_may_refute() -> None:
    def against(results: Any) -> Any:
        for panel in ("", "K=9"):
            yield claim("larger", "1", Measured(-1.0, 0.1, 9), parts=[Measured(-1.0, 0.1, 9)], panel=panel)
        yield replace(claim("each larger", "1", Measured(-1.0, 0.1, 9)), of_each=True)

    def verdicts(experiment: Experiment, scale: str = "paper") -> list[str]:
        return [one.verdict for one in experiment.judge(Results("whole", scale, experiment.cells(scale), {}))]

    whole = Experiment(**{**WHOLE.__dict__, "claims": against})
    assert verdicts(whole) == ["refuted", "refuted", "refuted"]
    assert verdicts(part_of(whole, "paper", runs=2)) == ["refuted", "refuted", "refuted"]
    assert verdicts(part_of(whole, "paper", only={"K": ["9"]})) == ["undecided", "refuted", "refuted"]
    few = part_of(whole, "paper", only={"K": ["9"], "method": ["LinTS"]})
    assert verdicts(few) == ["undecided", "undecided", "refuted"]
    assert set(verdicts(part_of(whole, "smoke", only={"K": ["9"]}), "smoke")) == {"undecided"}
    varied = Experiment(**{**whole.__dict__, "build": with_a_variant})
    assert set(verdicts(part_of(varied, "paper", only={"variant": ["printed"]}))) == {"refuted"}
