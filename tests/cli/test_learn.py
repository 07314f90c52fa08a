"""`manyarms learn` as a stranger meets it: a policy that can be used, a run that can be killed, refusals with reasons."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

import manyarms as ma
from manyarms.cli import app as cli
from manyarms.estimators import names
from manyarms.logs import LoggedData, read_parquet, to_parquet
from manyarms.policies import TwoStagePolicy
from manyarms.worlds import CatalogueWorld

WORLD = CatalogueWorld(60, 6, k0=12, segments=None, rank=4, click_rate=0.1, test=50, seed=0)
QUICK = ("--epochs", 3, "--batch", 64, "--learning-rate", 0.05, "--device", "cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, embeddings in all formats, and the policy that wrote the log."""
    here = tmp_path_factory.mktemp("learn")
    log = WORLD.log(rounds=600, seed=1)
    to_parquet(log, here / "rounds.parquet")
    WORLD.logging.save(here / "old")
    vectors = WORLD.embeddings
    np.save(here / "items.npy", vectors)
    backwards = np.arange(60)[::-1]
    ids = np.array([f"item {a}" for a in backwards])
    np.savez(here / "items.npz", embeddings=vectors[backwards], ids=ids)
    table = {"id": ids, "embedding": list(vectors[backwards])}
    pq.write_table(pa.table(table), here / "items.parquet")
    lines = ["item,click,propensity," + ",".join(f"x_{i}" for i in range(6))]
    for x, a, r, p in zip(log.contexts, log.actions, log.rewards, log.propensities, strict=True):
        lines.append(f"item {a},{r:g},{p!r}," + ",".join(repr(v) for v in x.tolist()))
    (here / "rounds.csv").write_text("\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n")
    return here


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "120"})


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(one) for one in arguments])
    assert ended.value.code == 2
    text = capsys.readouterr().err
    assert text.startswith("manyarms: ") and text.count("\n") == 1
    return text


def test_a_log_becomes_a_policy_with_a_report(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "policy"
    result = invoke("learn", folder / "rounds.parquet", "--actions", folder / "items.npy", "--out", out, *QUICK)
    assert result.exit_code == 0, result.output
    for words in ("objective", "held out", "rows/s", "left", "logging policy", "difference", "report:"):
        assert words in result.output
    told = json.loads((out / "learning.json").read_text())
    assert [epoch["epoch"] for epoch in told["history"]] == [1, 2, 3]
    assert told["history"][-1]["objective"] > told["history"][0]["objective"]  # concave, and small steps: it rises
    assert told["rows"] == {"learned from": 540, "watched": 60, "judged": 60}
    page = (out / "report.html").read_text()
    for words in ("objective by epoch", "validation by epoch", "importance weights", "their intervals", "overlap"):
        assert words in page
    assert "<svg" in page and "src=" not in page
    assert not (out / "checkpoint").exists()
    judged = invoke("evaluate", out, folder / "rounds.parquet", "--estimators", "snips", "--out", tmp_path / "judged")
    assert judged.exit_code == 0, judged.output


KILLED = """
import os, signal, sys
import torch
from manyarms.cli import app as cli
from manyarms.learning.checkpoints import Checkpoints

torch.set_num_threads(int(sys.argv[1]))
calls = 0

def every_fourth(self, trainable, state):
    global calls
    calls += 1
    if calls % 4 == 0:
        self.save(trainable, state)
    if calls == 15:
        os.kill(os.getpid(), signal.SIGKILL)

Checkpoints.maybe_save = every_fourth
cli.main(sys.argv[2:])
"""


@pytest.mark.parametrize("more", [(), ("--parametrisation", "light", "--patience", 2, "--schedule", "cosine")])
def test_killed_and_resumed_is_as_if_never_stopped(folder: Path, tmp_path: Path, more: tuple[Any, ...]) -> None:
    """Killed by signal 9 in the middle of an epoch, between two checkpoints; the same command then ends bit-identical."""

    whole, broken = tmp_path / "whole", tmp_path / "broken"

    def words(out: Path) -> list[str]:
        given = ["learn", folder / "rounds.parquet", "--actions", folder / "items.npy", "--out", out, *QUICK, *more]
        return [str(word) for word in given]

    assert invoke(*words(whole)).exit_code == 0
    command = [sys.executable, "-c", KILLED, str(torch.get_num_threads()), *words(broken)]
    assert subprocess.run(command, capture_output=True, timeout=600).returncode == -signal.SIGKILL
    assert (broken / "checkpoint").is_dir() and not (broken / "manifest.json").exists()
    assert invoke(*words(broken)).exit_code == 0
    files = [sorted(path.name for path in one.glob("arrays-*.npz")) for one in (whole, broken)]
    assert files[0] == files[1] and len(files[0]) == 1
    assert (whole / files[0][0]).read_bytes() == (broken / files[0][0]).read_bytes()
    told = [json.loads((one / "learning.json").read_text()) for one in (whole, broken)]
    for name in ("objective", "validation", "learning_rate"):
        assert [e[name] for e in told[0]["history"]] == [e[name] for e in told[1]["history"]]
    assert told[0]["evaluation"] == told[1]["evaluation"]


WITHOUT_TORCH = """
import json, sys
sys.modules["torch"] = None      # an import of it now fails
import numpy as np
import manyarms as ma
policy = ma.load(sys.argv[1])
x = np.linspace(-1, 1, policy.dim)
print(json.dumps([policy.decide(x, k=3, exclude=[0]).tolist(), int(policy.sample(x[None], 0)[0])]))
"""


@pytest.mark.parametrize(
    "more", [(), ("--parametrisation", "light"), ("--support", "logging", "--logging", "old", "--objective", "ips")]
)
def test_it_decides_where_torch_cannot_be_imported(folder: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    words = [folder / word if word == "old" else word for word in more]
    result = invoke(
        "learn", folder / "rounds.parquet", "--actions", folder / "items.npy", "--out", tmp_path, *QUICK, *words
    )
    assert result.exit_code == 0, result.output
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path)], capture_output=True, text=True, check=True, timeout=600
    )
    policy = ma.load(tmp_path)
    x = np.linspace(-1, 1, 6)
    chosen = policy.decide(x, k=3, exclude=[0])
    assert json.loads(answer.stdout) == [np.asarray(chosen).tolist(), int(policy.sample(x[None], 0)[0])]


@pytest.mark.parametrize("objective", [*names(learnable=True), "harmonic:0.1", "potec"])
def test_every_objective_learns_from_the_command_line(objective: str, folder: Path, tmp_path: Path) -> None:
    result = invoke(
        "learn", folder / "rounds.parquet", "--objective", objective, "--actions", folder / "items.npy", "--out", tmp_path,
        "--clusters", 5, "--neighbours", 3, "--epochs", 1, "--batch", 200, "--device", "cpu", "--logging", folder / "old",
    )  # fmt: skip
    assert result.exit_code == 0, (result.output, result.exception)
    policy = ma.load(tmp_path)
    assert policy.action_count == 60
    assert isinstance(policy, TwoStagePolicy) == (objective == "potec")


@pytest.mark.parametrize("items", ["items.npz", "items.parquet"])
def test_ids_bring_embeddings_to_their_actions(items: str, folder: Path, tmp_path: Path) -> None:
    """The file lists the actions backwards; learned by their ids they are what plain rows give, the order turned round."""
    plain, named = tmp_path / "plain", tmp_path / "named"
    options = (*QUICK, "--validation", 0)
    assert (
        invoke(
            "learn", folder / "rounds.parquet", "--actions", folder / "items.npy", "--out", plain, *options
        ).exit_code
        == 0
    )
    result = invoke("learn", folder / "rounds.csv", "--actions", folder / items, "--out", named, *options)
    assert result.exit_code == 0, result.output
    catalogue = ma.load(named).schema.catalogue
    assert catalogue[0] == "item 59" and len(catalogue) == 60
    x = read_parquet(folder / "rounds.parquet").contexts[:5]
    one, other = ma.load(plain).decide(x, k=4), ma.load(named).decide(x, k=4)
    assert other.tolist() == [[f"item {a}" for a in row] for row in np.asarray(one)]


def test_stopping_early_keeps_the_best_and_judges_on_other_rows(folder: Path, tmp_path: Path) -> None:
    result = invoke(
        "learn", folder / "rounds.parquet", "--out", tmp_path, "--epochs", 40, "--batch", 64, "--learning-rate", 0.5,
        "--patience", 1, "--validation", 0.3, "--device", "cpu",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    told = json.loads((tmp_path / "learning.json").read_text())
    values = [epoch["validation"] for epoch in told["history"]]
    assert told["kept_epoch"] == 1 + int(np.argmax(values)) == len(values) - 1 < 40
    assert told["rows"] == {"learned from": 420, "watched": 90, "judged": 90}
    assert "stopped early" in result.output


def test_more_epochs_go_on_from_a_kept_checkpoint(folder: Path, tmp_path: Path) -> None:
    def run(out: Path, epochs: int) -> bytes:
        result = invoke(
            "learn", folder / "rounds.parquet", "--out", out, "--epochs", epochs, "--device", "cpu", "--keep-checkpoint",
            "--schedule", "constant",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        return next(out.glob("arrays-*.npz")).read_bytes()

    run(tmp_path / "two", 2)
    assert run(tmp_path / "two", 4) == run(tmp_path / "four", 4)


def test_bad_input_is_named_and_nothing_is_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    def told(*more: Any, log: Path = folder / "rounds.parquet") -> str:
        text = refused(capsys, "learn", log, "--out", out, "--device", "cpu", *more)
        assert not out.exists()
        return text

    log = read_parquet(folder / "rounds.parquet")
    bare = LoggedData(log.contexts, log.actions, log.rewards, 60)
    to_parquet(bare, tmp_path / "bare.parquet")
    assert "propensities" in told(log=tmp_path / "bare.parquet")
    assert "propensities" in told("--objective", "lpi", "--validation", 0.1, log=tmp_path / "bare.parquet")
    negative = LoggedData(log.contexts, log.actions, log.rewards - 0.5, 60, propensities=log.propensities)
    to_parquet(negative, tmp_path / "negative.parquet")
    assert "with_unit_rewards" in told(log=tmp_path / "negative.parquet")
    assert "tau" in told("--tau", 1.5)
    assert "overflow" in told("--objective", "regkl", "--beta", 0.05)
    assert "alpha" in told("--alpha", 0.5)  # not a parameter of clpi
    assert "one of" in told("--objective", "clips")
    assert "one of" in told("--schedule", "steep")
    assert "--patience" in told("--patience", 2, "--validation", 0)
    assert "--validation" in told("--validation", 1.0)
    np.save(tmp_path / "few.npy", WORLD.embeddings[:59])
    assert "59 rows" in (text := told("--actions", tmp_path / "few.npy")) and "60 actions" in text
    np.save(tmp_path / "long.npy", np.ones((60, 9)))
    bounded = ("--pessimism", "ls", "--actions", tmp_path / "long.npy")  # a prior's mean cannot be projected
    assert "the contexts' length, 6" in told(*bounded)
    np.save(tmp_path / "flat.npy", np.ones(60))
    assert "shape (60,)" in told("--actions", tmp_path / "flat.npy")
    np.save(tmp_path / "hole.npy", np.where(np.arange(360).reshape(60, 6) == 7, np.nan, 1.0))
    assert "--actions" in told("--actions", tmp_path / "hole.npy")
    (tmp_path / "junk.npy").write_bytes(b"junk")
    assert "no readable NumPy file" in told("--actions", tmp_path / "junk.npy")
    assert "no such file" in told("--actions", tmp_path / "absent.npy")
    assert "ids beside the vectors" in told("--actions", folder / "items.npy", log=folder / "rounds.csv")
    assert "--actions" in told("--parametrisation", "light")
    assert "--actions" in told("--objective", "mips", "--logging", folder / "old")
    assert "--logging" in told("--support", "logging")
    strange = CatalogueWorld(60, 6, k0=3, segments=None, rank=4, seed=5)
    strange.logging.save(tmp_path / "strange")
    plain = LoggedData(log.contexts, log.actions, log.rewards, 60, propensities=log.propensities)
    to_parquet(plain, tmp_path / "plain.parquet")
    text = told("--support", "logging", "--logging", tmp_path / "strange", log=tmp_path / "plain.parquet")
    assert "misses action" in text


def test_a_loss_that_is_no_number_keeps_the_last_good_state(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = refused(
        capsys, "learn", folder / "rounds.parquet", "--out", tmp_path, "--device", "cpu", "--optimiser", "sgd",
        "--learning-rate", 1e30, "--l2", 1.0, "--checkpoint-seconds", 0,
    )  # fmt: skip
    assert "finite" in text and "smaller learning rate" in text and str(tmp_path / "checkpoint") in text
    assert (tmp_path / "checkpoint" / "manifest.json").is_file() and not (tmp_path / "manifest.json").exists()


def test_another_run_in_the_same_folder_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("learn", folder / "rounds.parquet", "--out", tmp_path, *QUICK)
    assert invoke(*words, "--keep-checkpoint").exit_code == 0
    assert "another log, policy, objective or setting" in refused(capsys, *words, "--tau", 0.5)


def test_help_lists_every_objective() -> None:
    text = invoke("learn", "--help").output
    words = ("potec", "--tau", "--actions", "--parametrisation", "--support", "--patience", "checkpoint")
    for word in (*names(learnable=True), *words):
        assert word in text


def test_negatives_come_from_where_they_are_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the supports that the file lists, or from the policy that wrote it; another policy than with uniform ones."""
    found = {}
    for source, more in (("uniform", ()), ("logging", ("--logging", folder / "old"))):
        out = tmp_path / source
        words = ("--objective", "bpr", "--negatives", 2, "--negatives-from", source, "--out", out, *more, *QUICK)
        result = invoke("learn", folder / "rounds.parquet", *words)
        assert result.exit_code == 0, (result.output, result.exception)
        assert "count=2" in (objective := json.loads((out / "learning.json").read_text())["objective"])
        assert ("against the logging policy" in objective) == (source == "logging")
        found[source] = ma.load(out).actions
    assert np.abs(found["uniform"] - found["logging"]).max() > 0.01
    learn = ("learn", folder / "rounds.csv", "--action", "item", "--reward", "click", "--out", tmp_path / "no")
    assert "--negatives-from" in refused(capsys, *learn, "--negatives-from", "logging")  # clpi has none
    assert "--negatives" in refused(capsys, *learn, "--pessimism", "ls", "--negatives", 2)
    bpr = (*learn, "--objective", "bpr", "--context", "x_", "--propensity", "propensity")
    assert "uniform, logging" in refused(capsys, *bpr, "--negatives-from", "popular")
    assert "logged actions only" in refused(capsys, *bpr, "--negatives-from", "logging")


def test_several_processes_learn_the_same_policy(folder: Path, tmp_path: Path) -> None:
    """To the rounding of sums in another order; nothing of the processes is left behind."""
    words = ("learn", folder / "rounds.parquet", "--objective", "ips", "--optimiser", "sgd", *QUICK)
    for out, more in (("one", ()), ("two", ("--workers", 2))):
        result = invoke(*words, "--out", tmp_path / out, *more)
        assert result.exit_code == 0, result.output
    one, two = (ma.load(tmp_path / out) for out in ("one", "two"))
    np.testing.assert_allclose(two.actions, one.actions, rtol=0, atol=1e-5)
    assert not (tmp_path / "two" / "checkpoint").exists()


def test_what_several_processes_cannot_learn_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("learn", folder / "rounds.parquet", "--out", tmp_path / "out")
    assert "--workers: " in refused(capsys, *words, "--pessimism", "es", "--logging", folder / "old", "--workers", 2)
    assert "workers: expected at most 60" in refused(capsys, *words, "--workers", 61)
    assert "on: expected" in refused(capsys, *words, "--on", "spark")
