"""The demonstration, small: it shows what it measured."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from manyarms.cli.demo import catalogue, demo
from manyarms.cli.demo import learning as demo_learning
from manyarms.cli.demo import safe as demo_safe
from manyarms.worlds import CatalogueWorld

SMALL = catalogue.Sizes(actions=300, effects=2, dim=3, rounds=60, runs=2)


def test_the_demo_shows_a_table_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PARTS", (partial(catalogue.large_catalogue, sizes=SMALL),))
    console = Console(file=io.StringIO(), width=120)
    path = demo.run(tmp_path / "new" / "folder", seed=3, console=console)
    assert isinstance(console.file, io.StringIO)
    text, page = console.file.getvalue(), path.read_text()
    for agent in catalogue.AGENTS:
        assert agent in text
        assert agent in page
    assert "cumulative regret" in text
    assert "300 items, 60 rounds, 2 runs" in text
    assert "import manyarms as ma" in page
    assert "<svg" in page
    assert "src=" not in page


def test_a_run_does_not_depend_on_the_process() -> None:
    job = catalogue.Job("meTS", 0, 0, SMALL)
    first, second = catalogue.act(job), catalogue.act(job)
    np.testing.assert_array_equal(first.regret, second.regret)
    assert first.nbytes > 0


def test_the_code_on_the_page_runs() -> None:
    code = catalogue._code(catalogue.Sizes(actions=50, effects=2, dim=2, rounds=10))
    assert len(code.strip().splitlines()) == 10
    exec(compile(code, "page", "exec"), {"print": lambda value: None})


@pytest.mark.slow
def test_the_offline_part_shows_true_values_and_draws_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = demo_learning.Sizes(actions=400, dim=9, rounds=800, epochs=2, batch=200, test=30, watched=10)
    part = partial(demo_learning.offline_learning, sizes=sizes)
    monkeypatch.setattr(demo, "PARTS", (part,))
    console = Console(file=io.StringIO(), width=120)
    path = demo.run(tmp_path, seed=1, console=console)
    assert isinstance(console.file, io.StringIO)
    text, page = console.file.getvalue(), path.read_text()
    for words in ("logging policy", "ips", "clpi (tau=0.01)", "best item of all", "true value", "rows/s"):
        assert words in text
    assert (tmp_path / "figures" / "offline.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in page and "ma.learn(" in page and "src=" not in page


@pytest.mark.slow
def test_a_worker_learns_the_same_as_this_process() -> None:
    sizes = demo_learning.Sizes(actions=100, dim=9, rounds=300, epochs=1, batch=100, test=20, watched=5)
    world = CatalogueWorld(100, 9, test=20, seed=0)
    job = demo_learning.Job(world, world.log(300, seed=1), demo_learning.OBJECTIVES[1], 0, sizes)
    threads = torch.get_num_threads()
    first, second = demo_learning.act(job), demo_learning.act(job)
    torch.set_num_threads(threads)
    assert first.by_epoch == second.by_epoch and first.drawn == second.drawn
    assert len(first.by_epoch) == 2


SAFE = demo_safe.Sizes(
    rows=(120, 300), population=600, classes=3, dim=4, noise=0.8, eta0=0.3, epochs=1, least_visits=600
)


def test_the_last_part_shows_certificates_beside_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = partial(demo_safe.safe_to_ship, sizes=SAFE)
    monkeypatch.setattr(demo, "PARTS", (part,))
    console = Console(file=io.StringIO(), width=140)
    threads = torch.get_num_threads()
    path = demo.run(tmp_path, seed=1, console=console)
    torch.set_num_threads(threads)
    assert isinstance(console.file, io.StringIO)
    text, page = console.file.getvalue(), path.read_text()
    for words in (*demo_safe.METHODS, "certificate", "true value", "logging policy's true value", "certificates hold"):
        assert words in text
    assert (tmp_path / "figures" / "safe.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in page and "ma.PACBayes(" in page and "src=" not in page


def test_certificates_of_the_last_part_rest_on_rows_of_their_own() -> None:
    threads = torch.get_num_threads()
    lines = list(demo_safe.learned(demo_safe.world_of(SAFE, 0), SAFE, 0))
    torch.set_num_threads(threads)
    assert [(line.rows, line.name) for line in lines] == [(n, name) for n in SAFE.rows for name in demo_safe.METHODS]
    for line in lines:
        spent = round(demo_safe.PRIOR_SHARE * line.rows) if line.name == demo_safe.SPLIT else 0
        assert line.certificate.rows == line.rows - spent
        assert line.certificate.lower <= line.truth <= line.certificate.upper
    assert "6 of 6 certificates hold" in demo_safe.verdict(lines)


def test_the_code_of_the_last_part_runs() -> None:
    exec(compile(demo_safe._code(SAFE), "page", "exec"), {"print": lambda value: None})
