"""The demonstration, small: it shows what it measured."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from manyarms import demo

SMALL = demo.Sizes(actions=300, effects=2, dim=3, rounds=60, runs=2)


def test_the_demo_shows_a_table_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PARTS", (demo.Part("small", partial(demo.large_catalogue, sizes=SMALL)),))
    console = Console(file=io.StringIO(), width=120)
    path = demo.run(tmp_path / "new" / "folder", seed=3, console=console)
    assert isinstance(console.file, io.StringIO)
    text, page = console.file.getvalue(), path.read_text()
    for agent in demo.AGENTS:
        assert agent in text
        assert agent in page
    assert "cumulative regret" in text
    assert "300 items, 60 rounds, 2 runs" in text
    assert "import manyarms as ma" in page
    assert "<svg" in page
    assert "src=" not in page


def test_a_run_does_not_depend_on_the_process() -> None:
    job = demo.Job("meTS", 0, 0, SMALL)
    first, second = demo.act(job), demo.act(job)
    np.testing.assert_array_equal(first.regret, second.regret)
    assert first.nbytes > 0


def test_the_code_on_the_page_runs() -> None:
    code = demo._code(demo.Sizes(actions=50, effects=2, dim=2, rounds=10))
    assert len(code.strip().splitlines()) == 10
    exec(compile(code, "page", "exec"), {"print": lambda value: None})
