"""Work is plain data: its key and its seeds depend on what is to be done and on nothing else."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from manyarms._base.seeds import seed_of
from manyarms.errors import InvalidInput
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Run, items_of, solve, solve_log


def world(*, seed: int = 0, **parameters: int) -> dict[str, int]:
    return {"seed": seed, **parameters}


def cell(rounds: int = 50, runs: int = 3, **parameters: int) -> Cell:
    methods = {"one": Call(dict), "two": Call(list)}
    return Cell("a panel", {"K": 8}, Call(world, parameters), methods, rounds, runs, solve)


def test_all_methods_of_a_run_meet_the_same_problem() -> None:
    items = items_of("e", [cell()], seed=0)
    seeds = {item.method: [item.run(number).problem_seed for number in range(3)] for item in items}
    assert seeds["one"] == seeds["two"]
    assert len(set(seeds["one"])) == 3
    own = {item.method: [item.run(number).method_seed for number in range(3)] for item in items}
    assert not set(own["one"]) & set(own["two"])


def test_other_seeds_cells_and_experiments_are_other_problems() -> None:
    (first, *_) = items_of("e", [cell()], seed=0)
    (other_seed, *_) = items_of("e", [cell()], seed=1)
    (other_cell, *_) = items_of("e", [cell(K=9)], seed=0)
    (other_name, *_) = items_of("f", [cell()], seed=0)
    assert len({item.run(0).problem_seed for item in (first, other_seed, other_cell, other_name)}) == 4


def test_a_key_changes_with_the_spec_and_the_version_only() -> None:
    item = items_of("e", [cell()], seed=0)[0]
    again = items_of("e", [cell()], seed=0)[0]
    assert item.key("1") == again.key("1") == pickle.loads(pickle.dumps(item)).key("1")
    longer = replace(item, cell=replace(item.cell, rounds=51))
    assert len({item.key("1"), item.key("2"), longer.key("1"), replace(item, seed=5).key("1")}) == 4


def test_seeds_do_not_move() -> None:
    """A changed derivation would silently change every published figure."""
    assert seed_of("world", "e", 0, ["p", {"K": 2}], 1) == 435374555005653864
    (item, *_) = items_of("e", [cell()], seed=0)
    assert item.run(1).problem_seed == 2911043759239561352


def test_seeds_and_keys_do_not_depend_on_where_functions_stand(tmp_path: Path) -> None:
    """The same functions in two modules of other names: the same seeds, whatever the module is called."""
    text = (
        "import json\nfrom manyarms_thesis.harness.spec import Call, Cell, items_of, solve\n"
        "def world(*, seed):\n    return seed\n"
        "def play(*, problem, steps, seed):\n    return {}\n"
        "def item():\n"
        "    cell = Cell('p', {'K': 1}, Call(world, {}), {'m': Call(play, {'a': 2})}, 5, 1, solve)\n"
        "    return items_of('e', [cell], 0)[0]\n"
    )
    found = []
    for name in ("here", "elsewhere"):
        (tmp_path / f"{name}.py").write_text(text)
        code = (
            f"import sys, json; sys.path.insert(0, {str(tmp_path)!r}); from {name} import item; made = item();"
            "print(json.dumps([made.run(0).problem_seed, made.run(0).method_seed, made.key('1')]))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]


def test_short_runs_travel_together_in_chunks_that_cover_every_run_once() -> None:
    many = cell(rounds=3_000, runs=8)
    items = [item for item in items_of("e", [many], seed=0) if item.method == "one"]
    assert sorted(run for item in items for run in item.runs) == list(range(8))
    assert {len(item.runs) for item in items} == {3, 2}
    assert cell(rounds=50_000).runs_per_item == 1


def test_calls_are_functions_with_parameters() -> None:
    assert Call(math.sqrt).function(9) == 3
    assert Call(dict, {"a": 1})(b=2) == {"a": 1, "b": 2}
    assert Call(dict, {"a": 1}).plain() == {"function": "dict", "parameters": {"a": 1}}


def play(*, problem: dict[str, int], seed: int, steps: int = 0) -> dict[str, int]:
    return {"of": problem["seed"], "rounds": problem.get("rounds", 0), "steps": steps, "seed": seed}


def test_the_usual_tasks() -> None:
    run = Run(Call(world), Call(play), rounds=7, problem_seed=3, method_seed=4)
    assert solve(run) == {"of": 3, "rounds": 0, "steps": 7, "seed": 4}
    assert solve_log(run) == {"of": 3, "rounds": 7, "steps": 0, "seed": 4}


def test_an_empty_cell_is_refused() -> None:
    with pytest.raises(InvalidInput, match="methods"):
        replace(cell(), methods={})
    with pytest.raises(InvalidInput, match="rounds"):
        cell(rounds=0)


def test_panels_in_which_one_parameter_varies() -> None:
    shapes = [(10, 2, "a"), (20, 2, "a"), (5, 2, "a"), (10, 3, "a"), (99, 9, "b")]
    cells = [replace(cell(), panel=f"{K}, {d}", parameters={"K": K, "d": d, "of": of}) for K, d, of in shapes]
    results = Results("e", "smoke", cells, {})
    assert results.varying(["K", "d"], of="a") == {"K": ["5, 2", "10, 2", "20, 2"], "d": ["10, 2", "10, 3"]}
    assert results.levels("K") == [5, 10, 20, 99]
