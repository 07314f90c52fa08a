"""The runner: the same results on any number of workers, finished work is not lost, errors in one line."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from rich.console import Console

from manyarms import __version__
from manyarms.errors import InvalidInput, ManyArmsError
from manyarms_thesis.catalogue import Experiment, Outcome, run
from manyarms_thesis.harness.claims import claim, gain
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.online import online_regret
from manyarms_thesis.harness.spec import Call, Cell
from manyarms_thesis.harness.work import versions_here, versions_of
from manyarms_thesis.mets.agents import AGENTS, mets
from manyarms_thesis.mets.common import mixed_effect_world

TIMES = ["milliseconds_a_round", "run_seconds"]


def cells(sizes: Any) -> list[Cell]:
    return [
        Cell(
            f"K={K}",
            {"K": K},
            Call(mixed_effect_world, {"actions": K, "effects": 2, "dim": 2}),
            {name: AGENTS[name] for name in ("meTS-Lin", "LinTS")},
            sizes["rounds"],
            sizes["runs"],
            online_regret,
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
    assert {"experiment", "scale", "panel", "method", "run", "round", "regret", "K", "final_regret", *TIMES} <= set(
        rows
    )
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


def test_pieces_of_several_machines_are_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record's versions are those of the runs themselves, whichever process put them together."""
    assert versions_of(['{"Python": "3.11.7"}', '{"Python": "3.12.3", "GPU": "H"}']) == {
        "Python": "3.11.7 and 3.12.3",
        "GPU": "H",
    }
    do(tmp_path / "out", workers_wanted=1)
    elsewhere = {"Python": "3.12.3", "numpy": "2.3.0", "torch": "2.11.0", "GPU": "one of the other machine"}
    monkeypatch.setattr("manyarms_thesis.harness.runner.versions_here", lambda: elsewhere)
    outcome, _ = do(tmp_path / "out", kept=tmp_path / "kept")  # nothing is left to do
    assert outcome.reused == 4
    about = json.loads((tmp_path / "kept" / "tiny.json").read_text())
    assert about["versions"] == {"manyarms": __version__, **versions_here()}


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
            replace(cells({"rounds": 5, "runs": 1})[0], panel="p", methods={"x": Call(mets, {"likelihood": "odd"})})
        ],
        claims=lambda results: [],
        figures=lambda results, folder: [],
    )
    with pytest.raises(ManyArmsError, match=r"broken, p, x: likelihood: expected 'linear' or 'logistic', got 'odd'"):
        run(broken, "smoke", tmp_path, workers_wanted=1, console=quiet())


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="scale: expected one of smoke, quick, paper, got 'huge'"):
        run(TINY, "huge", tmp_path)
    with pytest.raises(InvalidInput, match="workers"):
        run(TINY, "quick", tmp_path, workers_wanted=0)
    with pytest.raises(InvalidInput, match="seed"):
        run(TINY, "quick", tmp_path, seed=-1)


# Three pieces of work: the first ends at once, the others say that they have begun and wait for what never comes.
WAITING = """
import os, time
from pathlib import Path
from manyarms_thesis.harness.experiments import Chapter
from manyarms_thesis.harness.spec import Call, Cell, solve

def problem(*, seed):
    return seed

def method(*, problem, steps, seed, name):
    folder = Path(os.environ["SIGNS"])
    (folder / f"begun-{name}").touch()
    while name != "first" and not (folder / "never").exists():
        time.sleep(0.05)
    return {"regret": [1.0]}

Chapter("waiting", 99).experiment(
    "waiting", order=1, title="Waits", thesis_lines="1", scales={"smoke": {}}, question="Does it wait?", setting="It waits.",
    build=lambda sizes: [
        Cell(name, {}, Call(problem), {"m": Call(method, {"name": name})}, 1, 1, solve) for name in ("first", "a", "b")
    ],
    claims=lambda results: [], figures=lambda results, folder: [],
)
"""


def wait_until(done: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 300) -> None:
    """Wait for a sign of a process, however slow the machine is; no sign of a process that has ended is an error."""
    deadline = time.monotonic() + seconds
    while not done():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
@pytest.mark.parametrize("on", ["local", pytest.param("ray", marks=pytest.mark.slow)])
def test_an_interruption_keeps_finished_work_and_leaves_no_worker(tmp_path: Path, on: str) -> None:
    pytest.importorskip("ray" if on == "ray" else "manyarms")
    (tmp_path / "waiting.py").write_text(WAITING)
    out = tmp_path / "out"
    command = (
        f"import waiting; from manyarms.cli.app import main; main({['reproduce', 'waiting', '--scale', 'smoke']!r} + "
    )
    command += f"['--workers', '3', '--on', {on!r}, '--out', {str(out)!r}])"
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-c", command],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SIGNS": str(tmp_path), "PYTHONPATH": paths},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_until(lambda: all((tmp_path / f"begun-{name}").exists() for name in ("a", "b")), process)
    wait_until(lambda: bool(list(out.glob("parts/*.npz"))), process)
    process.send_signal(signal.SIGINT)
    # the pipe closes only when every worker that inherited it is gone, and two of them wait for ever
    _, text = process.communicate(timeout=300)
    assert process.returncode == 130, text
    assert "of 3 pieces of work" in text and "run the same command again to go on from there" in text
    assert "Traceback" not in text
    (part,) = out.glob("parts/*.npz")
    with np.load(part, allow_pickle=False) as stored:
        assert stored["0/regret"].tolist() == [1.0]
