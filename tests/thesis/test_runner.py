"""The runner: the same results on any number of workers, finished work kept, errors in one line."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from rich.console import Console

from manyarms.errors import InvalidInput, ManyArmsError
from manyarms_thesis.catalogue import Experiment, Outcome, run
from manyarms_thesis.harness.claims import claim, gain
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.spec import Call, Cell
from manyarms_thesis.mets.builders import HERE, agent_call, chosen

TIMES = ["milliseconds_a_round"]


def cells(sizes: Any) -> list[Cell]:
    return [
        Cell(
            f"K={K}",
            {"K": K},
            Call(f"{HERE}:mixed_effect_world", {"actions": K, "effects": 2, "dim": 2}),
            chosen("meTS-Lin", "LinTS"),
            sizes["rounds"],
            sizes["runs"],
        )
        for K in (5, 9)
    ]


TINY = Experiment(
    name="tiny",
    title="A tiny experiment",
    thesis_lines="1",
    scales={
        "smoke": {"rounds": 4_000, "runs": 3},
        "quick": {"rounds": 20, "runs": 3},
        "paper": {"rounds": 60, "runs": 2},
    },
    build=cells,
    claims=lambda results: [claim("meTS is better", "1", gain(results, "K=9", "meTS-Lin", "LinTS"), panel="K=9")],
    figures=lambda results, folder: [regret_curves(results, results.panels, folder, "regret", "Regret")],
    remarks=["tiny"],
)


def quiet() -> Console:
    return Console(file=io.StringIO(), width=200)


def do(folder: Path, scale: str = "quick", **options: Any) -> tuple[Outcome, str]:
    console = quiet()
    outcome = run(TINY, scale, folder, console=console, **options)
    assert isinstance(console.file, io.StringIO)
    return outcome, console.file.getvalue()


def table(folder: Path, *, times: bool = False) -> dict[str, list[Any]]:
    stored = parquet.read_table(folder / "results.parquet")
    return (stored if times else stored.drop_columns(TIMES)).to_pydict()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    do(folder, workers_wanted=2)
    return folder


def test_the_number_of_workers_does_not_matter(finished: Path, tmp_path: Path) -> None:
    do(tmp_path, workers_wanted=1)
    assert table(tmp_path) == table(finished)
    assert (tmp_path / "claims.json").read_text() == (finished / "claims.json").read_text()


def test_another_seed_is_another_result(finished: Path, tmp_path: Path) -> None:
    do(tmp_path, workers_wanted=2, seed=1)
    assert table(tmp_path)["regret"] != table(finished)["regret"]


def test_what_comes_out(finished: Path) -> None:
    rows = table(finished, times=True)
    assert {"experiment", "scale", "panel", "agent", "run", "round", "regret", "K", "final_regret", *TIMES} <= set(rows)
    assert len(rows["run"]) == 2 * 2 * 3 * 20
    claims = json.loads((finished / "claims.json").read_text())
    assert set(claims) == {"claims"}
    assert set(claims["claims"][0]) >= {"statement", "thesis_lines", "figure", "standard_error", "holds"}
    assert (finished / "figures/regret.svg").exists()
    assert (finished / "figures/regret.png").exists()
    page = (finished / "report.html").read_text()
    assert "meTS is better" in page
    assert "<svg" in page
    assert "http-equiv" not in page
    assert "src=" not in page
    assert str(finished) not in page


def test_finished_work_is_not_done_again(finished: Path) -> None:
    before = table(finished, times=True)
    stamps = {path.name: path.stat().st_mtime_ns for path in (finished / "parts").iterdir()}
    outcome, text = do(finished, workers_wanted=2)
    assert outcome.reused == 4
    assert "4 already done; 0 rounds" in text
    assert {path.name: path.stat().st_mtime_ns for path in (finished / "parts").iterdir()} == stamps
    # the times were measured once: equal to the last digit only because nothing ran
    assert table(finished, times=True) == before


def test_lost_and_damaged_parts_are_done_again_with_the_same_outcome(finished: Path) -> None:
    before = table(finished)
    first, second, *_ = sorted((finished / "parts").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:100])
    outcome, _ = do(finished, workers_wanted=2)
    assert outcome.reused == 2
    assert table(finished) == before


def test_force_does_everything_again(finished: Path) -> None:
    before = table(finished)
    outcome, _ = do(finished, workers_wanted=2, force=True)
    assert outcome.reused == 0
    assert table(finished) == before


def test_paper_prints_a_forecast_first(tmp_path: Path) -> None:
    _, text = do(tmp_path, "paper", workers_wanted=1)
    assert text.index("forecast: about") < text.index("100 %")


def test_an_error_in_a_worker_arrives_as_one_clear_line(tmp_path: Path) -> None:
    broken = Experiment(
        name="broken",
        title="Broken",
        thesis_lines="1",
        scales={"smoke": {}},
        build=lambda sizes: [
            Cell("p", {}, cells({"rounds": 5, "runs": 1})[0].world, {"x": agent_call("nonsense")}, 5, 1)
        ],
        claims=lambda results: [],
        figures=lambda results, folder: [],
    )
    with pytest.raises(ManyArmsError, match=r"broken, p, x: kind: expected one of meTS.*got 'nonsense'"):
        run(broken, "smoke", tmp_path, workers_wanted=1, console=quiet())


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="scale: expected one of smoke, quick, paper, got 'huge'"):
        run(TINY, "huge", tmp_path)
    with pytest.raises(InvalidInput, match="workers"):
        run(TINY, "quick", tmp_path, workers_wanted=0)
    with pytest.raises(InvalidInput, match="seed"):
        run(TINY, "quick", tmp_path, seed=-1)


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_an_interruption_keeps_finished_work_and_leaves_no_worker(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "manyarms.cli.app", "reproduce", "mets-actions", "--scale", "quick", "--out"]
    process = subprocess.Popen(
        [*command, str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 40
    while process.poll() is None and not list(tmp_path.glob("parts/*.npz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    # the pipe closes only when every worker that inherited it is gone
    _, text = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "run the same command again to go on from there" in text
    assert "Traceback" not in text
    kept = list(tmp_path.glob("parts/*.npz"))
    assert kept
    with np.load(kept[0], allow_pickle=False) as part:
        assert any(name.endswith("/regret") for name in part.files)
