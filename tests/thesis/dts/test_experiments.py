"""The experiments of the dTS chapter: sizes, worlds and agents, pre-training once, tiny runs from end to end, claims."""

from __future__ import annotations

import html
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput
from manyarms.priors.diffusion import DiffusionPrior
from manyarms.worlds import synthetic_chain
from manyarms_thesis.catalogue import Experiment, find
from manyarms_thesis.dts import pretrained as pretraining
from manyarms_thesis.dts.action_contexts import ACTION_CONTEXTS
from manyarms_thesis.dts.agents import dts, hierts_of_top, misspecify
from manyarms_thesis.dts.bound import bounded_world
from manyarms_thesis.dts.bound_claims import _scenarios_by_rates
from manyarms_thesis.dts.chains import CHAINS
from manyarms_thesis.dts.common import SCALED, diffusion_world
from manyarms_thesis.dts.misspecified import _comparable
from manyarms_thesis.dts.posterior import POSTERIOR
from manyarms_thesis.dts.posterior_claims import MARKS
from manyarms_thesis.dts.pretrained import pretrained, pretrained_dts, swiss_world
from manyarms_thesis.dts.rules import RULES
from manyarms_thesis.harness.claims import Claim, ratio
from manyarms_thesis.harness.experiments import _at_smaller_sizes
from manyarms_thesis.harness.online import ACTION_CONTEXTS as ACTION_CONTEXTS_VARIANT
from manyarms_thesis.harness.pages import experiment_page
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, solve
from tiny_dts import EXPERIMENTS, SIZES, TINY, played, tiny

ALL = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
# what the thesis does not speak of
OF_OURS = ("moments", "particles", "Jacobians", "linearises")


def test_all_have_tiny_sizes() -> None:
    assert {e.name for e in EXPERIMENTS} == set(SIZES)


@ALL
def test_a_tiny_run_from_end_to_end(experiment: Experiment, tmp_path: Path) -> None:
    results = played(experiment.name)
    for panel in results.panels:
        for agent in results.methods(panel):
            assert np.isfinite(results.values(panel, agent, "regret")).all()
    claims = tiny(experiment).judge(results)
    assert claims
    assert len({(made.statement, made.panel) for made in claims}) == len(claims)
    for made in claims:
        for part in filter(None, made.thesis_lines.split(", ")):
            first, last = part.split("-")[0], part.split("-")[-1]
            assert 1278 <= int(first) <= int(last) <= 4076
        assert np.isfinite(made.figure)
        if made.thesis_lines:  # of a world that it prints, and of what it speaks of
            assert not any(words in made.statement for words in OF_OURS)
            assert not made.panel.endswith((SCALED, ACTION_CONTEXTS_VARIANT))
    drawn = tiny(experiment).draw(results, tmp_path)
    assert len({one.path for one in drawn}) == len(drawn)
    for one in drawn:
        assert one.path.suffix == ".svg"
        assert one.path.with_suffix(".png").stat().st_size > 5_000
        assert one.caption.endswith(".")
    page = experiment_page(tiny(experiment), results, claims, drawn, {"scale": "smoke"})
    assert html.escape(experiment.title) in page
    results.write(tmp_path / "results.parquet")
    if experiment is ACTION_CONTEXTS:
        lines = (tmp_path / "table.md").read_text().splitlines()
        assert len(lines) == 2 + len(results.panels)
        assert all(line.count("|") == 6 for line in lines)
    if experiment is POSTERIOR:
        lines = (tmp_path / "table.md").read_text().splitlines()
        assert len(lines) == 2 + len(results.panels) * len(MARKS) * 4
        assert all(line.count("|") == 8 for line in lines)
    if experiment is RULES:
        lines = (tmp_path / "table.md").read_text().splitlines()
        printed = results.variant("")
        assert len(lines) == 2 + sum(len(printed.methods(panel)) for panel in printed.panels)
        assert sum("moments, 3 actions" in line for line in lines) == 1  # only where rounds are few


def test_sizes_of_the_thesis() -> None:
    cells = find("dts-synthetic").cells("paper")
    printed = [cell for cell in cells if not cell.variant]
    assert len(printed) == 16
    assert {(cell.rounds, cell.runs) for cell in printed} == {(5_000, 50)}
    assert {(c.parameters["d"], c.parameters["L"]) for c in cells} == {(5, 2), (20, 4)}
    assert {cell.parameters["K"] for cell in cells} == {100, 10_000}
    each = [cell for cell in cells if cell.variant == ACTION_CONTEXTS_VARIANT]
    assert {(cell.parameters["K"], cell.runs) for cell in each} == {(100, 20)}  # dear: K d numbers a round
    for d, L, columns in ((5, 2, [5, 2]), (20, 4, [20, 10, 5, 2])):  # of W_l that are not zero (Section 4.4.1)
        matrices = synthetic_chain(3, d, L, seed=0).matrices
        assert matrices is not None and [int(np.any(W != 0, axis=0).sum()) for W in matrices] == columns
    scaling = find("dts-scaling").scales["paper"]
    assert [scaling[name] for name in "KdL"] == [[10, 100, 500, 1_000], [5, 10, 15, 20], [2, 4, 5, 6]]
    sizes = [cell.parameters["K"] for cell in find("dts-actions").cells("paper")]
    assert (min(sizes), max(sizes)) == (10, 50_000)
    roll = find("dts-swissroll").scales["paper"]
    assert (min(roll["n"]), max(roll["n"]), min(roll["L"]), max(roll["L"])) == (10, 50_000, 2, 100)


def test_the_agents_of_the_thesis() -> None:
    by_kind = {
        (cell.parameters["links"], cell.parameters["reward"]): set(cell.methods)
        for cell in find("dts-synthetic").cells("paper")
    }
    assert by_kind["linear", "linear"] == {"dTS-LL", "LinTS", "LinUCB", "HierTS", "HierTS-2"}
    assert by_kind["linear", "logistic"] == {"dTS-LN", "dTS-LL", "GLM-TS", "UCB-GLM"}
    assert by_kind["network", "linear"] == {"dTS-NL", "dTS-NL, jacobian", "dTS-NL, moments", "LinTS", "LinUCB"}
    moments = {"dTS-NN, moments", "dTS-NL, moments"}
    assert by_kind["network", "logistic"] == {"dTS-NN", "dTS-NL", "GLM-TS", "UCB-GLM", *moments}


def test_agents_know_what_they_are_said_to_know() -> None:
    world = diffusion_world(actions=6, dim=5, depth=2, links="network", scaled=True, reward="logistic", seed=3)
    right, wrong = (dts(world=world, rounds=9, seed=0, likelihood=law) for law in ("logistic", "linear"))
    assert (right.name, wrong.name) == ("dTS-NN", "dTS-NL")
    with pytest.raises(InvalidInput, match="linear"):
        hierts_of_top(world=world, rounds=9, seed=0)
    with pytest.raises(InvalidInput, match="likelihood"):
        dts(world=world, rounds=9, seed=0, likelihood="poisson")


@pytest.mark.parametrize("d", [5, 20])
def test_misspecified_priors_are_priors(d: int) -> None:
    world = diffusion_world(actions=3, dim=d, depth=2, links="linear", scaled=False, reward="linear", seed=1)
    true = world.prior()
    assert true.matrices is not None
    for v in (0.5, 1.5):
        wrong = misspecify(true, v, seed=5)
        assert wrong.matrices is not None
        shift = np.stack(wrong.matrices) - np.stack(true.matrices)
        assert shift.min() >= v
        assert shift.max() <= v + 0.5
        assert np.linalg.eigvalsh(wrong.covariances).min() > 0
        if d == 5:  # no eigenvalue had to be raised
            moved = wrong.covariances - true.covariances
            assert moved.min() >= v - 1e-12
            assert moved.max() <= v + 0.5 + 1e-12
    with pytest.raises(InvalidInput, match="linear"):
        misspecify(DiffusionPrior(3, 2, [np.tanh], [1.0, 1.0]), 0.5, seed=0)


def test_comparable_by_hand() -> None:
    """The error is that of all that the figure is made of, a tenth of the baseline's regret too."""
    final = {"dTS-LL, v=1.5": [98.0, 190.0, 299.0], "HierTS": [100.0, 200.0, 300.0]}
    cell = Cell("p", {}, Call(dict), {name: Call(dict) for name in final}, 10, 3, solve)
    rows = {
        ("p", name, run): {"regret": np.array([x])} for name, values in final.items() for run, x in enumerate(values)
    }
    made = _comparable(Results("e", "smoke", [cell], rows), "p")
    room = np.array([10.0 - 2.0, 20.0 - 10.0, 30.0 - 1.0])
    assert made.figure == pytest.approx(room.mean())
    assert made.standard_error == pytest.approx(room.std(ddof=1) / np.sqrt(3))


def test_bounded_worlds_fulfil_the_assumptions() -> None:
    prior = bounded_world(actions=4, dim=4, variances=[0.5, 1.0, 2.0], active=[4, 2], noise=1.0, seed=0).prior()
    assert prior.matrices is not None
    for W, columns in zip(prior.matrices, (4, 2), strict=True):
        assert np.linalg.norm(W, 2) == pytest.approx(1.0)
        assert int(np.any(W != 0, axis=0).sum()) == columns
    np.testing.assert_array_equal(prior.covariances[:, 0, 0], [0.5, 1.0, 2.0])


@pytest.mark.parametrize("rule", ["moments", "particles"])
def test_scores_of_own_contexts_are_one_draw(rule: str) -> None:
    """Each action's score has its own posterior's mean and variance in its own context, played or not."""
    rng = np.random.default_rng(0)
    prior = DiffusionPrior(4, 2, [np.tanh], [0.3, 1.0], shared=False)
    agent = ma.dTS(prior, approximation=rule, seed=0)
    agent.observe(rng.uniform(-1, 1, (6, 2)), [0, 0, 2, 2, 2, 0], rng.standard_normal(6))
    Z = rng.uniform(-1, 1, (4, 2))
    draws = agent.belief.draw_listed(np.broadcast_to(Z, (3_000, 4, 2)), np.arange(4), rng)
    mean, covariance = agent.belief.action_posterior(np.arange(4))
    variance = np.einsum("ad,ade,ae->a", Z, covariance, Z)
    assert (np.abs(draws.mean(axis=0) - np.einsum("ad,ad->a", Z, mean)) < 6 * np.sqrt(variance / 3_000)).all()
    assert (np.abs(draws.var(axis=0) / variance - 1) < 6 * np.sqrt(3 / 3_000)).all()


# ---- pre-training once


def test_a_prior_is_trained_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(pretraining.CACHE, str(tmp_path))
    pretraining._pretrained.cache_clear()
    first = pretrained("swiss-roll", size=12, depth=3, seed=1, **TINY)
    other = pretrained("swiss-roll", size=12, depth=3, seed=2, **TINY)
    assert not np.array_equal(first.mean, other.mean)
    pretraining._pretrained.cache_clear()  # as in another process

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(pretraining, "pretrain", refuse)
    again = pretrained("swiss-roll", size=12, depth=3, seed=1, **TINY)
    np.testing.assert_array_equal(again.sample(5), first.sample(5))
    with pytest.raises(InvalidInput, match="data"):
        pretrained("penguins", size=12)


def test_a_damaged_cache_is_trained_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(pretraining.CACHE, str(tmp_path))
    pretraining._pretrained.cache_clear()
    first = pretrained("normal", size=12, depth=2, **TINY)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:20])
    pretraining._pretrained.cache_clear()
    again = pretrained("normal", size=12, depth=2, **TINY)
    np.testing.assert_array_equal(again.sample(5), first.sample(5))


def test_the_cache_has_a_usual_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(pretraining.CACHE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert pretraining.cache_folder() == tmp_path / "manyarms"


def test_runs_take_turns_with_the_pretrainings() -> None:
    world = swiss_world(actions=4, noise=1.0, seed=0)
    prior = {"data": "swiss-roll", "size": 12, "depth": 2, **TINY}

    def chain(preparation: int) -> Any:
        told = {"world": world, "rounds": 3, "seed": 0, "prior": prior}
        return pretrained_dts(**told, preparations=2, preparation=preparation).belief.chain.prior

    np.testing.assert_array_equal(chain(4).covariances, chain(6).covariances)
    assert not np.array_equal(chain(4).covariances, chain(7).covariances)


# ---- claims


def made_up(experiment: Experiment, ours: float, theirs: float) -> Results:
    """Regrets of about `ours` a round for agents called dTS and `theirs` for everybody else."""
    cells = tiny(experiment).cells("smoke")
    rng = np.random.default_rng(0)
    rows = {}
    for cell in cells:
        for agent in cell.methods:
            for run in range(cell.runs):
                rounds = np.arange(1, cell.rounds + 1)
                level = (ours if agent.startswith("dTS") else theirs) + 0.001 * rng.standard_normal()
                rows[cell.panel, agent, run] = {"round": rounds, "regret": level * np.sqrt(rounds)}
    return Results(experiment.name, "smoke", cells, rows)


@pytest.mark.parametrize(
    "name",
    ["dts-synthetic", "dts-actions", "dts-action-contexts", "dts-misspecified", "dts-swissroll", "dts-movielens"],
)
def test_claims_follow_the_regret(name: str) -> None:
    experiment = find(name)
    words = ("outperforms", "lower regret than", "remains superior")
    for ours, theirs, expected in ((1.0, 2.0, "held"), (2.0, 1.0, "refuted")):
        claims = experiment.claims(made_up(experiment, ours, theirs))
        of_dts = [made for made in claims if made.thesis_lines and "dTS" in made.statement]
        better = [made for made in of_dts if any(word in made.statement for word in words)]
        assert better
        assert all(made.verdict == expected for made in better if "by a factor" not in made.statement or ours < theirs)


def test_the_ratio_of_regrets() -> None:
    results = made_up(find("dts-swissroll"), ours=1.0, theirs=3.0)
    found = ratio(results, results.panels[0], "dTS", "LinTS")
    assert found.mean == pytest.approx(3.0, rel=0.01)
    assert 0 < found.standard_error < 0.01


def test_made_up_ratings_are_called_made_up() -> None:
    claims = CHAINS.claims(played(CHAINS.name).variant(""))
    for made in claims:
        assert made.statement.startswith("[made-up ratings") == made.panel.startswith("MovieLens")
    assert "NOT MOVIELENS" in CHAINS.warnings()[0]


@pytest.mark.parametrize(("theirs", "expected"), [(1.0, "held"), (2.0, "refuted")])
def test_hierts_2_is_comparable_to_dts_where_regrets_are_near_each_other(theirs: float, expected: str) -> None:
    claims = find("dts-synthetic").claims(made_up(find("dts-synthetic"), 1.0, theirs))
    found = [made for made in claims if made.statement == "dTS-LL and HierTS-2 have comparable regret"]
    assert found
    assert {made.verdict for made in found} == {expected}
    assert not any(made.thesis_lines for made in found)


def test_what_formulas_refute_is_refuted_in_worlds_of_any_size() -> None:
    by_rates = list(_scenarios_by_rates())
    assert [made.verdict for made in by_rates] == ["refuted", "held", "held", "held"]
    for made in by_rates:
        assert _at_smaller_sizes(made) == made == Claim.of_plain(made.plain())
    measured = replace(by_rates[0], of_formulas=False)
    assert _at_smaller_sizes(measured).verdict == "undecided"
    assert "of_formulas" not in measured.plain()
