"""`manyarms certify` as a stranger meets it: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from manyarms.cli import app as cli
from manyarms.logs import to_parquet
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import GaussianPolicy

ACTIONS, DIM = 4, 3


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "100"})


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(one) for one in arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A logging policy, what was learned, the rounds of both parts."""
    folder, rng = tmp_path_factory.mktemp("certify"), np.random.default_rng(0)
    start, truth = rng.standard_normal((ACTIONS, DIM)), 2 * rng.standard_normal((ACTIONS, DIM))
    X = rng.standard_normal((3000, DIM))
    logging = SoftmaxPolicy(start)
    actions = logging.sample(X, rng)
    means = 1 / (1 + np.exp(-np.einsum("nd,nd->n", X, truth[actions])))
    rewards = (rng.random(len(X)) < means).astype(float)
    whole = LoggedData(X, actions, rewards, ACTIONS, propensities=logging.probabilities_of(X, actions))
    first, rest = whole.split(0.1, seed=1)
    found = {name: folder / name for name in ("logging", "learned", "fixed")}
    logging.save(found["logging"])
    GaussianPolicy(start + 0.5 * truth).save(found["learned"])
    SoftmaxPolicy(start + truth).save(found["fixed"])
    for name, part in (("first", first), ("rest", rest), ("whole", whole)):
        found[name] = folder / f"{name}.parquet"
        to_parquet(part, found[name])
    return found


def test_a_learned_policy(files: dict[str, Path], tmp_path: Path) -> None:
    result = invoke(
        "certify", files["learned"], files["rest"], "--prior", files["logging"], "--prior-log", files["first"],
        "--logging", files["logging"], "--delta", "0.1", "--out", tmp_path,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    for words in ("With probability at least 0.9", "divergence", "mean reward of the log", "improvement", "report:"):
        assert words in result.output
    saved = json.loads((tmp_path / "certificate.json").read_text())
    assert [one["bound"] for one in saved["candidates"]] == ["es", "ls"] and saved["kl"] > 0
    assert "What each term of the bounds costs" in (tmp_path / "report.html").read_text()


def test_a_fixed_policy_needs_propensities_only(files: dict[str, Path], tmp_path: Path) -> None:
    result = invoke(
        "certify", files["fixed"], files["rest"], "--bound", "ls,bernstein", "--lower-only", "--out", tmp_path
    )
    assert result.exit_code == 0, result.output
    saved = json.loads((tmp_path / "certificate.json").read_text())
    assert not saved["two_sided"] and saved["upper"] == 1.0
    assert any("fixed before these rows" in note for note in saved["notes"])


def test_refusals(files: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    learned = ("certify", files["learned"], files["whole"], "--out", tmp_path, "--prior", files["logging"])
    assert "shares rows" in refused(capsys, *learned, "--prior-log", files["first"])
    assert "all actions" in refused(capsys, *learned, "--bound", "es")
    assert "delta" in refused(capsys, *learned, "--delta", "1.5")
    assert "one of" in refused(capsys, *learned, "--bound", "best")
    assert "--prior" in refused(capsys, *learned[:5], "--prior-log", files["first"])
    assert "GaussianPolicy" in refused(capsys, "certify", files["fixed"], *learned[2:])
    assert not (tmp_path / "certificate.json").exists()
