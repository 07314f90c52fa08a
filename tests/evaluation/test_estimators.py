"""Every estimator against its formula written out over all contexts and actions, to 1e-10."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manyarms.errors import InvalidInput
from manyarms.estimators import (
    DM,
    DR,
    IPS,
    MIPS,
    PC,
    SNIPS,
    SWITCH,
    Neighbours,
    OffCEM,
    SwitchDR,
    cIPS,
    cLPI,
    cluster_actions,
)
from manyarms.evaluation import evaluate, row_terms
from manyarms.logs.data import LoggedData
from manyarms.weights import ClipPropensities, ClipWeights, LogSmoothing, NoCorrection

LABELS = np.array([0, 1, 1, 2, 0, 2, 2])
FAMILY = {
    "ips": lambda p, q, r: p / q * r,
    "cips:0.2": lambda p, q, r: p / np.maximum(q, 0.2) * r,
    "ips-min:1.5": lambda p, q, r: np.minimum(p / q, 1.5) * r,
    "es:0.6": lambda p, q, r: p / q**0.6 * r,
    "es-beta:0.6": lambda p, q, r: (p / q) ** 0.6 * r,
    "ix:0.1": lambda p, q, r: p / (q + 0.1) * r,
    "harmonic:0.3": lambda p, q, r: (p / q) / (0.7 + 0.3 * p / q) * r,
    "shrinkage:4": lambda p, q, r: 4 * (p / q) / (4 + (p / q) ** 2) * r,
    "ls:0.5": lambda p, q, r: np.log(1 + 0.5 * p / q * r) / 0.5,
    "ls-linear:0.5": lambda p, q, r: p * np.log(1 + 0.5 * r / q) / 0.5,
}


@pytest.fixture(params=["policy", "support"])
def case(request, new_problem, rng):
    """A problem, a log that knows pi0 of all actions in one of two ways, and the contexts' indices."""
    problem = new_problem(3, contexts=6, never=request.param == "support")
    if request.param == "support":
        i, log = problem.with_support(300, rng)
    else:
        i, a, r = problem.draw(300, rng)
        log = problem.log_of(i, a, r, logging=problem.logging)
    return problem, log, i


def test_ips_family(case):
    problem, log, i = case
    found = evaluate(problem.policy, log, list(FAMILY), replicates=0)
    p, q = problem.pi[i, log.actions], problem.pi0[i, log.actions]
    for estimate, (name, formula) in zip(found.estimates, FAMILY.items(), strict=True):
        terms = formula(p, q, log.rewards)
        assert estimate.value == pytest.approx(terms.mean(), abs=1e-10), name
        assert estimate.standard_error == pytest.approx(terms.std(ddof=1) / np.sqrt(len(log)), abs=1e-10), name


def test_self_normalised(case):
    problem, log, i = case
    found = evaluate(problem.policy, log, ["snips", "sn-cips:0.2"], replicates=0)
    for estimate, q in zip(found.estimates, (problem.pi0, np.maximum(problem.pi0, 0.2)), strict=True):
        w = problem.pi[i, log.actions] / q[i, log.actions]
        value = (w * log.rewards).sum() / w.sum()
        error = np.sqrt((w**2 * (log.rewards - value) ** 2).sum() / (len(log) - 1) * len(log)) / w.sum()
        assert estimate.value == pytest.approx(value, abs=1e-10)
        assert estimate.standard_error == pytest.approx(error, abs=1e-10)
        assert estimate.effective_sample_size == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-10)
    assert found["snips"].interval_is_for.startswith("the policy's value")
    assert found["sn-cips"].interval_is_for.startswith("the estimator's mean")


def test_with_a_reward_model(case):
    problem, log, i = case
    model = problem.model
    hat = model.block(problem.contexts, np.arange(7))
    w_all = np.divide(problem.pi, problem.pi0, out=np.full(problem.pi.shape, np.inf), where=problem.pi0 > 0)
    w, q = w_all[i, log.actions], problem.pi0[i, log.actions]
    p, r, r_hat = problem.pi[i, log.actions], log.rewards, hat[i, log.actions]
    expected = (problem.pi * hat).sum(axis=1)[i]
    far = (problem.pi * hat * (w_all > 1.2)).sum(axis=1)[i]
    C = LABELS
    mass = np.stack([problem.pi[:, c == C].sum(axis=1) for c in range(3)], axis=1)
    mass0 = np.stack([problem.pi0[:, c == C].sum(axis=1) for c in range(3)], axis=1)
    w_c = mass[i, C[log.actions]] / mass0[i, C[log.actions]]
    truth = {
        DM(model): expected,
        DR(model): w * (r - r_hat) + expected,
        DR(model, 0.2): p / np.maximum(q, 0.2) * (r - r_hat) + expected,
        DR(model, correction=ClipWeights(1.3)): np.minimum(w, 1.3) * (r - r_hat) + expected,
        SWITCH(model, 1.2): w * r * (w <= 1.2) + far,
        SwitchDR(model, 1.2): w * (r - r_hat) * (w <= 1.2) + expected,
        MIPS(C): w_c * r,
        OffCEM(C, model): w_c * (r - r_hat) + expected,
    }
    for estimator, terms in truth.items():
        np.testing.assert_allclose(row_terms(problem.policy, log, estimator).values, terms, atol=1e-10)
    found = evaluate(problem.policy, log, list(truth), replicates=0)
    for estimate, terms in zip(found.estimates, truth.values(), strict=True):
        assert estimate.value == pytest.approx(terms.mean(), abs=1e-10)


def test_policy_convolution(case):
    problem, log, i = case
    distance = cdist(problem.embeddings, problem.embeddings)
    radius = float(np.median(distance))
    nearest = [np.argsort(row, kind="stable")[:3] for row in distance]
    balls = [np.flatnonzero(row < radius) for row in distance]
    for estimator, lists in ((PC(problem.embeddings, k=3), nearest), (PC(problem.embeddings, radius=radius), balls)):
        mass = np.stack([problem.pi[:, near].sum(axis=1) for near in lists], axis=1)
        mass0 = np.stack([problem.pi0[:, near].sum(axis=1) for near in lists], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            terms = (mass / mass0)[i, log.actions] * log.rewards
        np.testing.assert_allclose(row_terms(problem.policy, log, estimator).values, terms, atol=1e-10)


def test_special_cases_agree(case):
    problem, log, _ = case
    ips = row_terms(problem.policy, log, IPS()).values
    alone = [MIPS(np.arange(7)), PC(problem.embeddings, k=1), PC(problem.embeddings, radius=1e-9)]
    for estimator in [*alone, SWITCH(problem.model, 1e9)]:
        terms = row_terms(problem.policy, log, estimator).values
        if estimator.name == "switch":  # the model only speaks for what is never played
            far = problem.pi[:, problem.pi0[0] == 0].sum()
            assert (far == 0 and np.allclose(terms, ips, atol=1e-10)) or (far > 0 and terms.mean() > ips.mean())
        else:
            np.testing.assert_allclose(terms, ips, atol=1e-10)
    for estimator in (MIPS(np.zeros(7, dtype=int)), PC(problem.embeddings, k=7)):
        np.testing.assert_allclose(row_terms(problem.policy, log, estimator).values, log.rewards, atol=1e-10)


def test_chunks_make_no_difference(case):
    problem, log, _ = case
    some = [
        "ips",
        "snips",
        "ls",
        DR(problem.model),
        SWITCH(problem.model, 2.0),
        MIPS(LABELS),
        PC(problem.embeddings, k=2),
    ]
    whole = evaluate(problem.policy, log, some)
    parts = evaluate(problem.policy, log, some, chunk=17)
    for one, other in zip(whole.estimates, parts.estimates, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-12)
        assert one.standard_error == pytest.approx(other.standard_error, abs=1e-12)
        assert one.effective_sample_size == pytest.approx(other.effective_sample_size)
        for left, right in zip(one.intervals, other.intervals, strict=True):
            assert (left.low, left.high) == (pytest.approx(right.low, abs=1e-9), pytest.approx(right.high, abs=1e-9))


def test_rewards_of_any_range_are_moved_for_log_smoothing(problem, rng):
    i, a, r = problem.draw(200, rng)
    log = problem.log_of(i, a, 10 * r - 4)
    w = problem.pi[i, a] / problem.pi0[i, a]
    with pytest.raises(InvalidInput, match=r"reward_range"):
        evaluate(problem.policy, log, ["ls:0.1"])
    found = evaluate(problem.policy, log, ["ls:0.1"], reward_range=(-4, 6))["ls"]
    assert found.value == pytest.approx(-4 + 10 * np.mean(np.log1p(0.1 * w * r) / 0.1), abs=1e-10)
    assert "moved" in found.note
    with pytest.raises(InvalidInput, match="rewards"):
        evaluate(problem.policy, log, ["ls:0.1"], reward_range=(-4, 5))
    default = evaluate(problem.policy, log)
    assert "ls" not in [one.name for one in default.estimates]
    assert any("reward_range" in note for note in default.notes)


def test_a_log_that_cannot_serve_is_refused_with_the_reason(problem, rng):
    i, a, r = problem.draw(50, rng)
    only_logged = problem.log_of(i, a, r)
    for estimator in (
        MIPS(LABELS),
        OffCEM(LABELS, problem.model),
        PC(problem.embeddings, k=2),
        SWITCH(problem.model, 2.0),
    ):
        with pytest.raises(InvalidInput, match="all actions"):
            row_terms(problem.policy, only_logged, estimator)
    with pytest.raises(InvalidInput, match="all actions"):
        evaluate(problem.policy, only_logged, ["cips"], bias=True)
    bare = LoggedData(problem.contexts[i], a, r, 7)
    with pytest.raises(InvalidInput, match="propensities"):
        evaluate(problem.policy, bare)
    assert evaluate(problem.policy, bare, model=problem.model).estimates[0].name == "dm"
    order = np.argsort(-problem.pi0, axis=1)[:, :3]
    cut = problem.log_of(i, a, r, support=order[i], support_probabilities=np.take_along_axis(problem.pi0, order, 1)[i])
    with pytest.raises(InvalidInput, match="row 0"):
        row_terms(problem.policy, cut, MIPS(LABELS))
    for estimator, what in (
        (MIPS(LABELS[:4]), "labels"),
        (PC(problem.embeddings[:4], k=2), "embeddings"),
    ):
        with pytest.raises(InvalidInput, match=what):
            row_terms(problem.policy, only_logged, estimator)


def test_propensities_can_come_from_the_logging_policy(problem, rng):
    i, a, r = problem.draw(60, rng)
    log = LoggedData(problem.contexts[i], a, r, 7, logging=problem.logging)
    known = problem.log_of(i, a, r)
    np.testing.assert_allclose(
        row_terms(problem.policy, log, IPS()).values, row_terms(problem.policy, known, IPS()).values, atol=1e-12
    )


def test_bias_terms_can_be_left_out(problem, rng):
    log = problem.log(80, rng, logging=problem.logging)
    clipped = IPS(ClipPropensities(0.1))
    assert row_terms(problem.policy, log, clipped, bias=False).high is None
    assert row_terms(problem.policy, log, clipped).high is not None
    assert clipped.span((0.0, 1.0), 0.01) == (0.0, 10.0)


def test_names_and_labels(problem, rng):
    assert IPS("cips").resolved(10_000).label == "cips (tau=0.01)"
    assert SNIPS().name == "snips" and SNIPS("cips").resolved(10_000).label == "sn-cips (tau=0.01)"
    assert IPS(NoCorrection()).label == "ips"
    assert DR(problem.model, 0.1).label == "dr, cips (tau=0.1)"
    for bad in (
        lambda: IPS("nothing"),
        lambda: SNIPS(LogSmoothing(0.1)),
        lambda: DR(problem.model, correction=LogSmoothing(0.1)),
    ):
        with pytest.raises(InvalidInput):
            bad()
    with pytest.raises(InvalidInput, match="estimators"):
        evaluate(problem.policy, problem.log(9, rng), ["cips:a lot"])
    with pytest.raises(InvalidInput, match="log"):
        evaluate(problem.policy, "rounds.csv")


def test_objectives_are_the_estimators(problem, rng):
    """What `learn` climbs is what `evaluate` averages; what is no estimator is refused by name."""
    log = problem.log(200, rng, logging=problem.logging)
    found = evaluate(problem.policy, log, [IPS(), cIPS(0.1), "cips:0.1"])
    assert found.estimates[1].value == found.estimates[2].value and found["ips"].unbiased
    for one in (cLPI(0.1), "clpi", "bpr"):
        with pytest.raises(InvalidInput, match=r"(clpi|bpr), an objective and not an estimator of a value"):
            evaluate(problem.policy, log, [one])


# ---- neighbours ----------------------------------------------------------------------------------------------------------


def test_neighbours_with_copies_and_ties(rng, monkeypatch):
    from manyarms.estimators import neighbours

    monkeypatch.setattr(neighbours, "DISTANCES", 64)  # several blocks
    points = rng.integers(0, 3, (40, 2)).astype(float) + 1e3  # many copies, far from the origin
    distance = cdist(points, points)
    for k in (1, 3, 40):
        for action, near in Neighbours(points, k=k).lists(np.arange(40)):
            keyed = sorted(range(40), key=lambda j: (distance[action, j] if j != action else -1, j))
            assert near.tolist() == sorted(keyed[:k])
    for radius in (0.5, 1.0, np.sqrt(2), 5.0):
        for action, near in Neighbours(points, radius=radius).lists(np.arange(40)):
            assert near.tolist() == np.flatnonzero(distance[action] < radius).tolist()


def test_neighbourhoods_are_asked_for_one_way():
    for given in ({}, {"k": 1, "radius": 1.0}, {"k": 9}, {"radius": 0.0}):
        with pytest.raises(InvalidInput):
            Neighbours(np.eye(3), **given)


def test_clusters_are_learned(problem, rng):
    centres = 10.0 * np.eye(3)
    truth = np.arange(30) % 3
    labels = cluster_actions(centres[truth] + 0.1 * rng.standard_normal((30, 3)), 3, seed=1)
    assert len(np.unique(labels)) == 3
    assert all(len(np.unique(labels[truth == c])) == 1 for c in range(3))
    assert MIPS.learned(problem.embeddings, 3).label == "mips (clusters=3)"
    with pytest.raises(InvalidInput, match="clusters"):
        cluster_actions(np.eye(3), 4)
