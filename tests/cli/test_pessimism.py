"""`manyarms learn --pessimism`: a policy with its certificate, which `manyarms certify` makes again; refusals with reasons."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import manyarms as ma
from manyarms.certificates import certify
from manyarms.certificates.prior import PolicyPrior
from manyarms.cli import app as cli
from manyarms.cli._learn_setup import HEURISTIC, Pessimism, pessimism_lines
from manyarms.logs import LoggedData, read_parquet, to_parquet
from manyarms.policies import GaussianPolicy, MixedLogitPolicy, SoftmaxPolicy
from manyarms.policies.encoders import Projection

K, D = 4, 3
TASTE = 3 * np.random.default_rng(1).standard_normal((K, D))
QUICK = ("--epochs", 2, "--batch", 256, "--learning-rate", 0.1, "--device", "cpu")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The policy that wrote the log, a softmax that was learned from other rows, and the rounds."""
    folder, rng = tmp_path_factory.mktemp("pessimism"), np.random.default_rng(0)
    X = rng.standard_normal((3000, D))
    logging = SoftmaxPolicy(TASTE / 6)
    actions = logging.sample(X, rng)
    rewards = (rng.random(len(X)) < np.where(actions == (X @ TASTE.T).argmax(1), 0.9, 0.1)).astype(float)
    log = LoggedData(X, actions, rewards, K, propensities=logging.probabilities_of(X, actions))
    first, rest = log.split(0.1, seed=0)
    found = {name: folder / name for name in ("old", "start", "turned")}
    logging.save(found["old"])
    SoftmaxPolicy(TASTE / 3).save(found["start"])
    SoftmaxPolicy(TASTE[:, ::-1] / 3, encoder=Projection(np.eye(D)[:, ::-1])).save(found["turned"])
    grouped = LoggedData(X, actions, rewards, K, propensities=log.propensities, groups=np.arange(len(X)) // 2)
    for name, part in (("first", first), ("rest", rest), ("whole", log), ("grouped", grouped)):
        found[name] = folder / f"{name}.parquet"
        to_parquet(part, found[name])
    return found


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "120"})


def test_a_policy_comes_with_its_certificate(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "policy"
    result = invoke(
        "learn", files["rest"], "--pessimism", "es-bound", "--logging", files["old"], "--prior", files["start"],
        "--prior-log", files["first"], "--delta", 0.1, "--out", out, *QUICK,
    )  # fmt: skip
    assert result.exit_code == 0, (result.output, result.exception)
    saved = json.loads((out / "certificate.json").read_text())
    assert saved["rows"] == len(read_parquet(files["rest"]))  # all rows: a certificate needs none held out
    assert saved["delta"] == 0.1 and saved["lower"] > saved["logged"] and saved["improvement"]["certified"]
    assert [one["bound"] for one in saved["candidates"]] == ["es", "ls"]
    assert not any("nothing was said" in note for note in saved["notes"])
    words = (saved["claim"], saved["improvement"]["words"], "divergence", "variance", "confidence")
    page = html.unescape((out / "report.html").read_text())
    for said in words:
        assert said in result.output and said in page
    assert "No rows were held out" not in page and "What each term of the bounds costs" in page
    assert json.loads((out / "learning.json").read_text())["certificate"]["lower"] == saved["lower"]
    # the truth is known
    X = np.random.default_rng(5).standard_normal((4000, D))
    truth = float(np.mean(0.1 + 0.8 * ma.load(out).probabilities_of(X, (X @ TASTE.T).argmax(1))))
    assert saved["lower"] <= truth <= saved["upper"]
    # the same certificate from the folder that was written
    again = invoke(
        "certify", out, files["rest"], "--prior", out / "prior", "--prior-log", files["first"], "--logging",
        files["old"], "--delta", 0.1, "--out", tmp_path / "again",
    )  # fmt: skip
    assert again.exit_code == 0, again.output
    repeated = json.loads((tmp_path / "again" / "certificate.json").read_text())
    assert (repeated["lower"], repeated["upper"]) == pytest.approx((saved["lower"], saved["upper"]), abs=1e-12)
    later = invoke("certify", out, files["first"], "--out", tmp_path / "later")  # other rows: a fixed policy
    assert later.exit_code == 0, later.output


@pytest.mark.parametrize("kind", [kind for kind in pessimism_lines() if Pessimism(kind).certifies])
def test_every_kind_declares_its_bounds(kind: str, files: dict[str, Path], tmp_path: Path) -> None:
    logging = ("--logging", files["old"]) if Pessimism(kind).needs_logging else ()
    result = invoke("learn", files["rest"], "--pessimism", kind, "--out", tmp_path, *logging, *QUICK)
    assert result.exit_code == 0, (result.output, result.exception)
    saved = json.loads((tmp_path / "certificate.json").read_text())
    declared = tuple(dict.fromkeys(("es" if kind == HEURISTIC else kind, "ls")))
    assert tuple(one["bound"] for one in saved["candidates"]) == declared
    prior = ma.load(tmp_path / "prior")
    assert isinstance(prior, GaussianPolicy) and not np.any(prior.actions) and prior.sigma == 1.0
    assert saved["kl"] == pytest.approx(ma.load(tmp_path).kl(0.0, 1.0), rel=1e-6)


def test_the_heuristic_of_the_authors_has_no_certificate_and_says_so(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not even one that lies there from before; `certify` makes one of the policy, and refuses the heuristic by its name."""
    out = tmp_path / "policy"
    learning = ("learn", files["rest"], "--logging", files["old"], "--out", out, *QUICK)
    assert invoke(*learning, "--pessimism", "es").exit_code == 0 and (out / "certificate.json").exists()
    result = invoke(*learning, "--pessimism", "es-authors", "--alpha", 0.9)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "there is no certificate" in result.output and "es-authors on es (alpha=0.9)" in result.output
    assert not (out / "certificate.json").exists()
    told = json.loads((out / "learning.json").read_text())
    assert told["certificate"] is None and any("no bound" in note for note in told["notes"])
    assert "there is no certificate" in html.unescape((out / "report.html").read_text())
    certifying = (
        "certify",
        out,
        files["rest"],
        "--prior",
        out / "prior",
        "--logging",
        files["old"],
        "--out",
        tmp_path / "c",
    )
    made = invoke(*certifying)
    assert made.exit_code == 0, (made.output, made.exception)
    with pytest.raises(SystemExit) as ended:
        cli.main([str(one) for one in (*certifying, "--bound", "es-authors")])
    assert ended.value.code == 2 and "'es-authors'" in capsys.readouterr().err


def test_any_registered_bound_can_be_learned_by(files: dict[str, Path], tmp_path: Path) -> None:
    result = invoke("learn", files["rest"], "--pessimism", "ix-tail", "--out", tmp_path, *QUICK)
    assert result.exit_code == 0, (result.output, result.exception)
    saved = json.loads((tmp_path / "certificate.json").read_text())
    assert [one["bound"] for one in saved["candidates"]] == ["ix-tail", "ls"]


def test_a_parameter_that_is_given_is_the_whole_grid(files: dict[str, Path], tmp_path: Path) -> None:
    options = ("--pessimism", "es-bound", "--alpha", 0.9, "--logging", files["old"], "--out", tmp_path)
    assert invoke("learn", files["rest"], *options, *QUICK).exit_code == 0
    assert json.loads((tmp_path / "certificate.json").read_text())["grid"]["alphas"] == [0.9]


def test_a_mixed_logit_policy_and_an_encoder_that_stays(files: dict[str, Path], tmp_path: Path) -> None:
    """The prior's encoder is kept as it is: what it learned from the log would cost nothing in the bound, and must not be."""
    result = invoke(
        "learn", files["rest"], "--pessimism", "ls", "--family", "mixed-logit", "--prior", files["turned"], "--out",
        tmp_path, *QUICK,
    )  # fmt: skip
    assert result.exit_code == 0, (result.output, result.exception)
    policy, prior = ma.load(tmp_path), ma.load(tmp_path / "prior")
    assert isinstance(policy, MixedLogitPolicy) and isinstance(policy.encoder, Projection)
    np.testing.assert_array_equal(policy.encoder.encode(np.eye(D)), np.eye(D)[:, ::-1])
    saved = json.loads((tmp_path / "certificate.json").read_text())
    made = certify(policy, read_parquet(files["rest"]), prior=PolicyPrior.of(prior), delta=0.05, bound="ls")
    assert saved["lower"] == pytest.approx(made.lower, abs=1e-12) and "simulation" in saved["terms"]


def test_an_encoding_that_the_rows_suggested_is_told(files: dict[str, Path], tmp_path: Path) -> None:
    """Categories of the log itself are no part of what the divergence measures; those saved with a prior came before."""
    log = read_parquet(files["rest"])
    assert log.propensities is not None
    rows = zip(log.contexts[:, 0], log.actions.tolist(), log.rewards, log.propensities.tolist(), strict=True)
    lines = [f"{'ab'[int(x > 0)]},{a},{r:g},{p!r}" for x, a, r, p in rows]
    (tmp_path / "rounds.csv").write_text("\n".join(["place,action,reward,propensity", *lines[:1000]]) + "\n")
    (tmp_path / "later.csv").write_text("\n".join(["place,action,reward,propensity", *lines[1000:]]) + "\n")
    context = ("--context", "place", "--pessimism", "ls", *QUICK)

    def notes(log: str, out: str, *more: Any) -> str:
        result = invoke("learn", tmp_path / log, "--out", tmp_path / out, *context, *more)
        assert result.exit_code == 0, (result.output, result.exception)
        return " ".join(json.loads((tmp_path / out / "certificate.json").read_text())["notes"])

    assert "categories, means and scales of these rows" in notes("rounds.csv", "first")
    assert "of these rows; the" not in notes("later.csv", "second", "--prior", tmp_path / "first")


def test_rows_can_be_held_out_as_well(files: dict[str, Path], tmp_path: Path) -> None:
    result = invoke(
        "learn", files["rest"], "--pessimism", "ls", "--validation", 0.2, "--patience", 1, "--out", tmp_path, *QUICK
    )
    assert result.exit_code == 0, (result.output, result.exception)
    told = json.loads((tmp_path / "learning.json").read_text())
    assert told["certificate"]["rows"] == told["rows"]["learned from"] == 2160 and told["evaluation"] is not None


@pytest.mark.parametrize("kind", ["es", "sakhi-2", HEURISTIC])
def test_a_file_that_lists_pi0_needs_no_logging_policy(kind: str, files: dict[str, Path], tmp_path: Path) -> None:
    """The same policy, and the same certificate, as with the policy that wrote the file."""
    log = read_parquet(files["rest"])
    every = np.tile(np.arange(K), (len(log), 1))
    listed = ma.load(files["old"]).probabilities_of_many(log.contexts, every)
    to_parquet(replace(log, support=every, support_probabilities=listed), tmp_path / "listed.parquet")
    found = []
    for name, where in (
        ("told", (files["rest"], "--logging", files["old"])),
        ("listed", (tmp_path / "listed.parquet",)),
    ):
        result = invoke("learn", *where, "--pessimism", kind, "--out", tmp_path / name, *QUICK)
        assert result.exit_code == 0, (result.output, result.exception)
        found.append(json.loads((tmp_path / name / "certificate.json").read_text()))
    told, ours = found
    assert [one["bound"] for one in ours["candidates"]] == [one["bound"] for one in told["candidates"]]
    assert ours["lower"] == pytest.approx(told["lower"], abs=1e-4)  # single precision in another order
    np.testing.assert_allclose(ma.load(tmp_path / "listed").actions, ma.load(tmp_path / "told").actions, atol=1e-3)


def test_refusals_come_before_learning(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    def told(*more: Any, log: str = "rest") -> str:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(one) for one in ("learn", files[log], "--out", out, "--device", "cpu", *more)])
        assert ended.value.code == 2 and not out.exists()
        text = capsys.readouterr().err
        assert text.startswith("manyarms: ") and text.count("\n") == 1
        return text

    for kind in (
        name for name in pessimism_lines() if Pessimism(name).needs_logging
    ):  # pi0 of all actions is not in the file
        assert "--logging" in (text := told("--pessimism", kind)) and "ls, london, sakhi-1 do not need it" in text
    shared = ("--prior", files["start"], "--prior-log", files["first"])
    assert "shares rows" in told("--pessimism", "ls", *shared, log="whole")
    assert "--prior as well" in told("--pessimism", "ls", "--prior-log", files["first"])
    assert "delta" in told("--pessimism", "ls", "--delta", 1.0)
    assert "one of" in told("--pessimism", "boldness")
    assert "one of" in told("--pessimism", "ls", "--family", "softmax")
    assert "--smoothing" in told("--pessimism", "ls", "--tau", 0.1)
    assert "tau" in told("--pessimism", "london", "--tau", 0.0)
    assert "alpha" in told("--pessimism", "es-bound", "--alpha", 1.5, "--logging", files["old"])
    assert "groups" in told("--pessimism", "ls", log="grouped")
    assert "--objective" in told("--pessimism", "ls", "--objective", "ips")
    assert "--support" in told("--pessimism", "ls", "--support", "logging")
    assert "--pessimism" in told("--prior", files["start"])
    SoftmaxPolicy(np.zeros((K, D + 1))).save(tmp_path / "longer")
    assert "--prior" in told("--pessimism", "ls", "--prior", tmp_path / "longer")


def test_help_lists_every_kind_and_what_it_is() -> None:
    text = invoke("learn", "--help").output
    for word in (*pessimism_lines(), "--prior-log", "--delta", "--family", "certificate.json"):
        assert word in text
