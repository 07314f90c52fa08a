"""Hard clipping on the example of one favourite action: estimates are those of the corrections, and what they expect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from manyarms_thesis.catalogue import run
from manyarms_thesis.es.clipping import CLIPPING, CORRECTIONS, biased, estimates, logged_rounds, value_all


@pytest.mark.parametrize("name", ["IPS", "IPS-min", "IPS-max", "ES-α=0.9", "ES-β=0.9"])
def test_estimates_of_single_actions_are_the_estimators(name: str) -> None:
    log = logged_rounds(rounds=3_000, seed=1)
    correction = CORRECTIONS[name]
    pi0 = log.propensities[log.actions - 1]
    found = estimates(log, correction)
    for a in (1, 37, 50, 100):
        pi = (log.actions == a).astype(float)
        assert found[a - 1] == pytest.approx(float(correction.terms(pi, pi0, log.rewards).mean()), abs=1e-14)


def test_what_the_example_expects() -> None:
    """Means over logs: r(a) for IPS, r(a) pi0(a)^(1 - alpha) for ES, 0.05 of r(a) under clipping."""
    logs = [logged_rounds(rounds=50_000, seed=seed) for seed in range(60)]
    truth, pi0 = logs[0].means, logs[0].propensities
    assert truth[0] == pytest.approx(0.1) and truth[99] == pytest.approx(0.001) and pi0.sum() == pytest.approx(1)
    for name, factor in (("IPS", 1 + 0 * pi0), ("ES-α=0.9", pi0**0.1), ("IPS-max", np.minimum(pi0 / 0.01, 1.0))):
        values = np.array([estimates(log, CORRECTIONS[name]) for log in logs])
        error = values.std(axis=0) / np.sqrt(len(logs)) + 1e-12
        z = (values.mean(axis=0) - truth * factor) / error
        assert np.abs(z).max() < 5 and np.abs(z).mean() < 1.2


def test_clipping_runs_from_start_to_end(tmp_path: Path) -> None:
    assert {cell.rounds for cell in CLIPPING.cells("paper")} == {50_000}
    log = logged_rounds(rounds=500, seed=1)
    assert len(np.asarray(value_all(problem=log, seed=1, correction="IPS")["estimate"])) == 100
    outcome = run(CLIPPING, "smoke", tmp_path, workers_wanted=1)
    assert (tmp_path / "report.html").exists() and (tmp_path / "results.parquet").exists()
    assert len(outcome.claims) == 6
    assert [made.holds for made in outcome.claims[:2]] == [True, True]
    # what a correction gains over action 50 is the value of the action that it chose
    results = outcome.results
    (panel,) = results.panels
    chosen = results.final(panel, "IPS", "chosen").astype(int)
    gained = [made for made in outcome.claims if made.statement.startswith("IPS does not converge")]
    assert gained[0].figure == pytest.approx(float(np.mean(0.001 * (50 - chosen))))
    assert set(results.final(panel, "IPS-min", "chosen")) == {50}


def test_a_high_bias_is_that_of_the_other_clipping() -> None:
    truth, noise = np.array([0.04, 0.06]), 0.001 * np.random.default_rng(0).standard_normal((3, 20, 2))
    estimated = {"IPS": truth + noise[0], "IPS-min": 0.1 * truth + noise[1], "IPS-max": 0.1 * truth + noise[2]}
    assert biased(estimated, truth, "p").verdict == "held"
    assert (
        biased({**estimated, "IPS-max": 0.4 * truth + noise[2]}, truth, "p").verdict == "held in part"
    )  # high, and another
    assert biased({**estimated, "IPS-max": estimated["IPS"]}, truth, "p").verdict == "refuted"
