"""`manyarms inspect` as a stranger meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from manyarms.cli import app as cli

HEADER = "age,device,item,click,propensity"


def rows(n: int = 60) -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [
        [str(rng.integers(20, 60)), str(rng.choice(["phone", "desk"])), str(rng.choice(["a", "b", "c"])),
         str(rng.integers(2)), f"{1 / 3:.6f}"]
        for _ in range(n)
    ]  # fmt: skip


def write(path: Path, cells: list[list[str]]) -> Path:
    path.write_text("\n".join([HEADER, *(",".join(row) for row in cells)]) + "\n")
    return path


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "100"})


def test_inspect_shows_what_is_there_and_what_to_do(tmp_path: Path) -> None:
    cells = rows()
    cells[7][4], cells[9][3] = "0", ""
    result = invoke("inspect", write(tmp_path / "log.csv", cells), "--out", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    for words in ("rounds", "problem", "line 9 (0.0)", "1 missing entry", "line 11", "->"):
        assert words in result.output
    assert (tmp_path / "page.html").is_file()
    assert invoke("inspect", tmp_path / "log.csv", "--out", tmp_path / "page.html", "--strict").exit_code == 1


def test_help_teaches() -> None:
    text = invoke("inspect", "--help").output
    for word in ("--action", "--context", "--strict", "propensity", "manyarms evaluate uniform LOG"):
        assert word in text
