"""`manyarms drift` as a stranger meets it: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import manyarms as ma
from manyarms.cli import app as cli
from manyarms.cli._standardised import Standardised

HEADER = "when,item,reward,age"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two items whose rewards change places every five days; a row an hour, in no order."""
    rng = np.random.default_rng(0)
    n = 600
    item, age = rng.integers(2, size=n), rng.standard_normal(n)
    hours = np.arange(n)
    reward = 2.0 * (item == (hours // 120) % 2) + 0.1 * age + 0.3 * rng.standard_normal(n)
    when = np.datetime64("2026-03-01T00", "h") + hours
    lines = [f"{when[i]}:00:00,{'ab'[item[i]]},{reward[i]:.4f},{age[i]:.4f}" for i in rng.permutation(n)]
    path = tmp_path_factory.mktemp("drift") / "log.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "100"})


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(one) for one in arguments])
    assert ended.value.code == 2
    text = capsys.readouterr().err
    assert text.startswith("manyarms: ") and text.count("\n") == 1
    return text


NAMED = ("--timestamp", "when", "--context", "age", "--noise", "0.3", "--spread", "1")


def test_it_finds_drift_and_says_what_to_do(log: Path, tmp_path: Path) -> None:
    result = invoke("drift", log, *NAMED, "--out", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "rewards drift with a half-life of about" in said and "<- best" in said and "noise 0.3" in said
    told = re.findall(r"drift=(ma\.Drift\(half_life=\d+(?:\.\d+)?, clock='time'\))", said)
    assert len(told) == 2 and told[0] == told[1] and "next: ma.HierTS(prior, likelihood, drift=" in said
    drift = eval(told[0], {"ma": ma})  # the line can be used as it stands
    assert isinstance(drift, ma.Drift) and 6 * 3600 <= float(drift.half_life) <= 20 * 86_400
    page = (tmp_path / "page.html").read_text()
    assert "<svg" in page and "log.csv" in page and "half_life=" in page


def test_rounds_and_half_lives_of_ones_own(log: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "page.html")
    rounds = invoke("drift", log, *NAMED, "--clock", "rounds", "--half-lives", "30,120,10000", *out)
    assert rounds.exit_code == 0 and "clock='rounds'" in rounds.output and "10,000 rounds" in rounds.output
    times = invoke("drift", log, *NAMED, "--half-lives", "12h, 5d,60d", "--rows", "500", *out)
    assert times.exit_code == 0 and "12 h" in times.output and "60 days" in times.output
    assert "500 rows in the order of their timestamps" in " ".join(times.output.split())
    untimed = invoke("drift", log, "--timestamp", "none", *NAMED[2:], "--half-lives", "120", *out)
    assert untimed.exit_code == 0 and "that they have in the log" in untimed.output


def test_noise_and_spread_are_fitted_unless_given(log: Path, tmp_path: Path) -> None:
    result = invoke("drift", log, *NAMED[:4], "--half-lives", "1d,5d", "--out", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    found = re.search(r"model: noise ([\d.]+), actions within ([\d.]+)", result.output)
    assert found is not None and 0.2 < float(found[1]) < 0.6


def test_clicks(log: Path, tmp_path: Path) -> None:
    lines = log.read_text().splitlines()
    clicks = [re.sub(r",(-?[\d.]+),", lambda m: f",{int(float(m[1]) > 1)},", line, count=1) for line in lines[1:]]
    (tmp_path / "clicks.csv").write_text("\n".join([HEADER, *clicks]) + "\n")
    result = invoke(
        "drift", tmp_path / "clicks.csv", *NAMED[:4], "--likelihood", "logistic", "--spread", "2", "--half-lives", "1d,50d",
        "--out", tmp_path / "page.html",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "noise" not in result.output.partition("model:")[2] and "rewards drift" in result.output


WRONG = {
    ("--half-lives", "soon"): "'soon'",
    ("--half-lives", "-5"): "--half-lives",
    ("--half-lives", ","): "--half-lives",
    ("--half-lives", "inf"): "--half-lives",
    ("--clock", "days"): "--clock",
    ("--clock", "rounds", "--half-lives", "1d"): "--half-lives",
    ("--timestamp", "none", "--clock", "time"): "--clock",
    ("--likelihood", "luck"): "--likelihood",
    ("--likelihood", "logistic", "--noise", "1"): "--noise",
    ("--noise", "1"): "--noise, --spread",
    ("--noise", "0", "--spread", "1"): "--noise",
    ("--rows", "1"): "--rows",
    ("--timestamp", "nowhere"): "--timestamp",
    ("--reward", "nowhere"): "--reward",
}


@pytest.mark.parametrize("wrong", WRONG, ids=" ".join)
def test_a_wrong_value_is_told_by_its_flag_and_nothing_is_written(
    wrong: tuple[str, ...], log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    said = refused(capsys, "drift", log, "--context", "age", "--out", out, *wrong)
    assert WRONG[wrong] in said and "half_lives" not in said
    assert not out.exists()


def test_contexts_are_brought_to_one_scale() -> None:
    """A 1 in front; what never varies is left out, flags stay, numbers get mean 0 and deviation 1, however large they are."""
    rng = np.random.default_rng(0)
    flag, age = rng.integers(2, size=200).astype(float), 1e9 + 5 * rng.standard_normal(200)
    X = np.column_stack([np.full(200, 7.0), flag, age])
    log = Standardised(ma.LoggedData(X, rng.integers(3, size=200), rng.standard_normal(200), 3))
    found = np.concatenate([part.contexts for part in log.chunks(64)])
    assert log.dim == 3 and log.action_count == 3 and found.shape == (200, 3)
    np.testing.assert_array_equal(found[:, :2], np.column_stack([np.ones(200), flag]))
    np.testing.assert_allclose(found[:, 2], (age - age.mean()) / age.std(), atol=1e-6)


def test_the_log_is_not_written_over(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = log.read_bytes()
    assert "--out" in refused(capsys, "drift", log, "--out", log)
    assert log.read_bytes() == before


def test_help_teaches() -> None:
    text = " ".join(invoke("drift", "--help").output.split())
    for words in (
        "--half-lives",
        "--clock",
        "manyarms drift log.csv",
        "two standard errors",
        "Propensities are not needed",
    ):
        assert words in text
    assert "Whether rewards drift" in " ".join(invoke("--help").output.split())
