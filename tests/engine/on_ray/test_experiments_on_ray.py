"""Experiments of the thesis on a real Ray runtime: the numbers of this machine's workers to the last bit, whoever dies."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from rich.console import Console

from deaths import deadly_world
from manyarms.engine import Engine
from manyarms.errors import ManyArmsError
from manyarms.worlds.datasets import write_made_up_movielens
from manyarms_thesis.catalogue import Experiment, Outcome, run
from manyarms_thesis.harness.online import online_regret
from manyarms_thesis.harness.spec import Call, Cell
from manyarms_thesis.mets.agents import AGENTS, mets

TIMES = ["milliseconds_a_round", "run_seconds"]


def deadly(marker: Path) -> Experiment:
    """Of one world, in which the first process that makes it dies."""

    def cells(sizes: Any) -> list[Cell]:
        world = Call(deadly_world, {"actions": 5, "effects": 2, "dim": 2, "marker": str(marker)})
        methods = {name: AGENTS[name] for name in ("meTS-Lin", "LinTS")}
        return [Cell("K=5", {"K": 5}, world, methods, sizes["rounds"], 2, online_regret)]

    return Experiment(
        name="deadly", title="A worker dies", thesis_lines="1", scales={"smoke": {"rounds": 20}, "paper": {"rounds": 60}},
        build=cells, claims=lambda results: [], figures=lambda results, folder: [],
    )  # fmt: skip


def do(experiment: Experiment, folder: Path, scale: str = "smoke", **options: Any) -> tuple[Outcome, str]:
    console = Console(file=io.StringIO(), width=200)
    outcome = run(experiment, scale, folder, console=console, workers_wanted=2, **options)
    assert isinstance(console.file, io.StringIO)
    return outcome, console.file.getvalue()


def numbers(folder: Path) -> Any:
    return parquet.read_table(folder / "results.parquet").drop_columns(TIMES)


def test_an_experiment_is_the_same_anywhere(
    ray_engine: Engine, command: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that reads the data set that this process's environment names."""
    data = write_made_up_movielens(tmp_path / "data" / "ml-1m", users=60, movies=40)
    monkeypatch.setenv("MANYARMS_DATA", str(data.parent))
    monkeypatch.delenv("MANYARMS_CACHE", raising=False)
    for out, on in (("there", "ray"), ("here", "local")):
        command("reproduce", "mets-movielens", "--scale", "smoke", "--on", on, "--out", tmp_path / out)
    here, there = tmp_path / "here", tmp_path / "there"
    assert numbers(there).num_rows > 100 and numbers(there).equals(numbers(here))
    assert (there / "claims.json").read_text() == (here / "claims.json").read_text()


def test_a_worker_that_dies_leaves_no_trace(ray_engine: Engine, tmp_path: Path) -> None:
    marker = tmp_path / "died"
    outcome, text = do(deadly(marker), tmp_path / "there", on=ray_engine)
    assert marker.exists() and outcome.reused == 0 and "rounds to run on 2 workers" in text
    do(deadly(marker), tmp_path / "here")  # nobody dies any more
    assert numbers(tmp_path / "there").equals(numbers(tmp_path / "here"))
    again, text = do(deadly(marker), tmp_path / "here", on="ray")  # what was done here is not done again there
    assert again.reused == 2 and "2 already done; 0 rounds to run on ray" in text
    part = next((tmp_path / "there" / "parts").iterdir())
    part.unlink()
    again, _ = do(deadly(marker), tmp_path / "there", on="ray")
    assert again.reused == 1 and numbers(tmp_path / "there").equals(numbers(tmp_path / "here"))


def test_there_is_a_forecast(ray_engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "died").touch()
    _, text = do(deadly(tmp_path / "died"), tmp_path / "out", "paper", on=ray_engine)
    assert text.index("forecast: about") < text.index("100 %")


def test_an_error_arrives_as_one_line_and_nothing_is_written(ray_engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "died").touch()
    whole = deadly(tmp_path / "died")
    broken = replace(
        whole, build=lambda sizes: [replace(whole.build(sizes)[0], methods={"x": Call(mets, {"likelihood": "odd"})})]
    )
    with pytest.raises(
        ManyArmsError, match=r"^deadly, K=5, x: likelihood: expected 'linear' or 'logistic', got 'odd'$"
    ):
        do(broken, tmp_path / "out", on=ray_engine)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []
