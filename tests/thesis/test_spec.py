"""Work is plain data: its key and its seeds depend on what is to be done and on nothing else."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from manyarms.errors import InvalidInput
from manyarms_thesis.harness.spec import Call, Cell, items_of, resolve, seed_of


def cell(rounds: int = 50, runs: int = 3, **world: int) -> Cell:
    return Cell("a panel", {"K": 8}, Call("w:f", world), {"one": Call("a:f"), "two": Call("a:g")}, rounds, runs)


def test_all_agents_of_a_run_meet_the_same_world() -> None:
    items = items_of("e", [cell()], seed=0)
    seeds = {item.agent: [item.world_seed(run) for run in range(3)] for item in items}
    assert seeds["one"] == seeds["two"]
    assert len(set(seeds["one"])) == 3
    own = {item.agent: [item.agent_seed(run) for run in range(3)] for item in items}
    assert not set(own["one"]) & set(own["two"])


def test_other_seeds_cells_and_experiments_are_other_worlds() -> None:
    (first, *_) = items_of("e", [cell()], seed=0)
    (other_seed, *_) = items_of("e", [cell()], seed=1)
    (other_cell, *_) = items_of("e", [cell(K=9)], seed=0)
    (other_name, *_) = items_of("f", [cell()], seed=0)
    assert len({item.world_seed(0) for item in (first, other_seed, other_cell, other_name)}) == 4


def test_a_key_changes_with_the_spec_and_the_version_only() -> None:
    item = items_of("e", [cell()], seed=0)[0]
    again = items_of("e", [cell()], seed=0)[0]
    assert item.key("1") == again.key("1") == pickle.loads(pickle.dumps(item)).key("1")
    longer = replace(item, cell=replace(item.cell, rounds=51))
    assert len({item.key("1"), item.key("2"), longer.key("1"), replace(item, seed=5).key("1")}) == 4


def test_seeds_do_not_move() -> None:
    """A changed derivation would silently change every published figure."""
    assert seed_of("world", "e", 0, ["p", {"K": 2}], 1) == 435374555005653864


def test_short_runs_travel_together_in_chunks_that_cover_every_run_once() -> None:
    many = cell(rounds=3_000, runs=8)
    items = [item for item in items_of("e", [many], seed=0) if item.agent == "one"]
    assert sorted(run for item in items for run in item.runs) == list(range(8))
    assert {len(item.runs) for item in items} == {3, 2}
    assert cell(rounds=50_000).runs_per_item == 1


def test_calls_name_functions() -> None:
    assert resolve("math:sqrt")(9) == 3
    assert Call("builtins:dict", {"a": 1})(b=2) == {"a": 1, "b": 2}
    for wrong in ("math:nothing", "no.such.module:f", "math:pi"):
        with pytest.raises(InvalidInput, match="target"):
            resolve(wrong)


def test_an_empty_cell_is_refused() -> None:
    with pytest.raises(InvalidInput, match="agents"):
        Cell("p", {}, Call("w:f"), {}, 10, 1)
    with pytest.raises(InvalidInput, match="rounds"):
        cell(rounds=0)
