"""benchmarks/offline.py at tiny sizes: it runs, ends with its figures by name, and compares like with like."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from manyarms.beliefs import Linear
from manyarms.rewards.bayesian import sdm

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PROMISED = {
    "sdm_seconds", "sdm_peak_gb", "loop_over_sdm", "ips_over_logsoftmax", "ips_peak_gb", "obp_over_ours_ips_1e4",
}  # fmt: skip


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, found as it is when it is run: beside its own modules."""
    pytest.importorskip("pyarrow")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    return importlib.import_module("offline")


def tiny(offline: ModuleType) -> object:
    return offline.Sizes(
        rows=3_000, actions=40, dim=3, latent=2, masked=5, policy_rows=300, policy_actions=30, policy_dim=4, turn_rows=64,
        obp_rows=50, obp_actions=12, turns=2, tries=1,
    )  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="limits and peaks of memory are read as Linux gives them")
def test_ends_with_one_line_of_json(
    offline: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(offline, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "obp", None)
    monkeypatch.setitem(sys.modules, "obp.ope", None)
    offline.main([], tiny(offline))
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(figures) >= PROMISED and set(offline.OURS) <= set(figures)
    assert figures["obp_over_ours_ips_1e4"] is None and figures["obp_agreement"] is None
    assert figures["stream_rows"] == 6_000 and 0 < figures["sdm_peak_gb"] < 2
    assert 0 <= figures["stream_peak_mb"] <= figures["stream_limit_mb"]
    offline.main(["--list"])
    assert "agreement" in capsys.readouterr().out


def test_the_loop_computes_what_sdm_computes(offline: ModuleType) -> None:
    sizes = tiny(offline)
    log, prior = offline.rounds_of(sizes), offline.latent_prior(sizes)
    P, h = offline.masked_loop(log, prior, range(40))
    mean, covariance = sdm(log, prior, Linear(1.0)).latent()
    inverse = np.linalg.inv(prior.covariance)
    np.testing.assert_allclose(np.linalg.inv(inverse + P), covariance, atol=1e-10)
    np.testing.assert_allclose(np.linalg.solve(inverse + P, inverse @ prior.mean + h), mean, atol=1e-9)


def test_the_bare_log_softmax_is_the_policys(offline: ModuleType) -> None:
    policy, log = offline.policy_log(70, tiny(offline))
    bare = offline.bare_log_softmax(policy.actions, log.contexts, log.actions, rows=16, block=7)
    np.testing.assert_allclose(np.exp(bare), policy.probabilities_of(log.contexts, log.actions), rtol=1e-5)
    dense = offline.dense_policy(policy, log.contexts)
    np.testing.assert_allclose(dense[np.arange(70), log.actions, 0], np.exp(bare), rtol=1e-4)


def test_sizes_are_those_that_the_goals_speak_of(offline: ModuleType) -> None:
    sizes = offline.Sizes()
    assert (sizes.rows, sizes.actions, sizes.dim, sizes.latent) == (1_000_000, 100_000, 10, 10)
    assert (sizes.policy_rows, sizes.policy_actions, sizes.policy_dim) == (100_000, 100_000, 32)
    assert sizes.obp_actions == 10_000
    from _report import verdict

    assert verdict("sdm_seconds", 3.0).endswith(", met") and verdict("sdm_seconds", 5.0).endswith("MISSED")
    assert verdict("obp_agreement", None).endswith("not measured") and verdict("loop_seconds", 1.0) == ""
