"""Estimated propensities: against the truth, against formulas, and refused where a log cannot support them."""

from __future__ import annotations

import numpy as np
import pytest

from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms.logs import LoggedData, action_frequencies, estimate_propensities, multinomial, open_log, to_parquet
from manyarms.logs.calibration import Reliability, calibration
from manyarms.logs.multinomial import fit_multinomial
from manyarms.logs.propensity_models import fit_nearest


def drawn(rng: np.random.Generator, P: Array) -> Ints:
    return (P.cumsum(axis=1) < rng.random((len(P), 1))).sum(axis=1)


def softmax_log(rows: int = 4000, seed: int = 0, actions: int = 4) -> tuple[LoggedData, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    P = np.exp(X @ rng.normal(size=(2, actions)))
    P /= P.sum(axis=1, keepdims=True)
    a = drawn(rng, P)
    return LoggedData(X, a, rng.random(rows), actions, groups=np.arange(rows) % 50), P[np.arange(rows), a]


def test_frequencies_are_counts(rng: np.random.Generator) -> None:
    groups = rng.integers(3, size=200)
    log = LoggedData(np.ones((200, 1)), rng.integers(5, size=200), rng.random(200), 6, groups=groups)
    for smoothing in (0.0, 2.5):
        table = action_frequencies(log, "groups", smoothing=smoothing)
        for g in range(3):
            for a in range(6):
                n, k = (groups == g).sum(), ((groups == g) & (log.actions == a)).sum()
                assert table.probabilities[g, a] == pytest.approx((k + smoothing / 6) / (n + smoothing), abs=1e-15)
        np.testing.assert_allclose(table.probabilities.sum(axis=1), 1)
        np.testing.assert_array_equal(table.rows, np.bincount(groups))
    unseen = table.probabilities_of(np.array([2, 5]), np.array([9, 9]))
    np.testing.assert_array_equal(unseen, table.overall[[2, 5]])
    together = action_frequencies(log)
    np.testing.assert_allclose(together.probabilities_of(log.actions), np.bincount(log.actions)[log.actions] / 200)
    np.testing.assert_allclose(together.every(log.contexts).sum(axis=1), 1)


def test_frequencies_of_a_file_are_those_of_the_log(tmp_path: pytest.TempPathFactory) -> None:
    pytest.importorskip("pyarrow")
    log, _ = softmax_log(300)
    path = str(tmp_path) + "/log.parquet"
    to_parquet(log, path, rows_per_group=64)
    streamed = action_frequencies(open_log(path), "groups")
    whole = action_frequencies(log, "groups")
    np.testing.assert_array_equal(streamed.probabilities, whole.probabilities)
    np.testing.assert_array_equal(streamed.labels, whole.labels)


def test_unweighted_frequencies_give_each_action_its_rows_back(rng: np.random.Generator) -> None:
    """With p = share of the action, the weights 1/p of an action's rows sum to n: snIPS is then the plain mean."""
    log = LoggedData(np.ones((500, 1)), rng.integers(7, size=500), rng.random(500), 7)
    estimated = estimate_propensities(log).log
    assert estimated.propensities is not None
    np.testing.assert_allclose(np.bincount(log.actions, weights=1 / estimated.propensities), 500)
    assert estimated.propensities_are_estimates
    assert any(note.startswith("propensities are estimates from frequencies") for note in estimated.notes)
    assert not log.propensities_are_estimates


def test_the_multinomial_model_finds_a_softmax_policy() -> None:
    log, truth = softmax_log(6000)
    found = estimate_propensities(log, "multinomial", folds=3)
    assert found.log.propensities is not None
    assert np.abs(found.log.propensities - truth).mean() < 0.02
    assert np.abs(found.log.propensities - truth).max() < 0.1
    c = found.calibration
    assert c.better_than_constant
    assert c.log_loss == pytest.approx(float(-np.log(truth).mean()), abs=0.01)
    assert c.expected_calibration_error < 0.05
    assert abs(c.mean_weight - 1) < 5 * c.mean_weight_error + 0.02
    for row in c.table():
        assert row["lower"] <= row["claimed"] <= row["upper"]
    np.testing.assert_allclose(found.model.every(log.contexts[:50]).sum(axis=1), 1)


def test_the_multinomial_fit_is_a_stationary_point(rng: np.random.Generator) -> None:
    X, a = rng.normal(3, 2, size=(400, 3)), rng.integers(4, size=400) * 2
    model = fit_multinomial(X, a, 8, ridge=2.0)
    P = model.every(X)
    np.testing.assert_array_equal(P[:, 1::2], 0)  # never seen
    np.testing.assert_allclose(model.own(X, a), P[np.arange(400), a])
    hits = np.zeros((400, 8))
    hits[np.arange(400), a] = 1
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    gradient = Z.T @ (P - hits)[:, ::2] + 2.0 * model.weights[:-1]
    assert np.abs(gradient).max() / 400 < 1e-5
    np.testing.assert_allclose(P.sum(axis=0), hits.sum(axis=0), atol=400 * 1e-5)  # the intercepts are not penalised


def test_nearest_rows_by_hand() -> None:
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    log = LoggedData(X, np.array([0, 0, 1, 2, 1, 2]), np.zeros(6), 3)
    found = estimate_propensities(log, "nearest", neighbours=2, smoothing=1.0)
    shares = np.array([2, 2, 2]) / 6
    hits = np.array([1, 1, 0, 1, 0, 1])  # of the two nearest others, how many play the same
    assert found.log.propensities is not None
    np.testing.assert_allclose(found.log.propensities, (hits + shares[log.actions]) / 3)
    np.testing.assert_allclose(found.model.every(X, None, np.arange(6)).sum(axis=1), 1)
    with pytest.raises(InvalidInput, match="none that plays action 1 of row 2"):
        estimate_propensities(log, "nearest", neighbours=2, smoothing=0.0)


def test_nearest_supports_of_another_log(rng: np.random.Generator) -> None:
    """Where the reference has supports, their probabilities are averaged instead of actions counted."""
    X = rng.normal(size=(300, 2))
    support = np.argsort(rng.random((300, 5)), axis=1)[:, :2]
    chance = np.tile([0.75, 0.25], (300, 1))
    reference = LoggedData(X, support[:, 0], np.zeros(300), 5, support=support, support_probabilities=chance)
    log = LoggedData(rng.normal(size=(40, 2)), rng.integers(5, size=40), np.zeros(40), 5)
    found = estimate_propensities(log, "nearest", reference=reference, neighbours=60, smoothing=0.5)
    model = fit_nearest(reference, 60, 0.5, leave_out_self=False)
    dense = np.zeros((300, 5))
    np.put_along_axis(dense, support, chance, axis=1)
    shares = np.bincount(reference.actions, minlength=5) / 300
    Z, Y = ((x - X.mean(axis=0)) / X.std(axis=0) for x in (X, log.contexts))
    near = np.argsort(((Y[:, None] - Z[None]) ** 2).sum(axis=-1), axis=1)[:, :60]
    wanted = (dense[near].sum(axis=1) + 0.5 * shares) / 60.5
    np.testing.assert_allclose(model.every(log.contexts), wanted)
    np.testing.assert_allclose(found.log.propensities, wanted[np.arange(40), log.actions])


def test_rows_with_the_same_context_do_not_count_themselves(rng: np.random.Generator) -> None:
    log = LoggedData(np.ones((50, 1)), rng.integers(3, size=50), np.zeros(50), 3)
    model = fit_nearest(log, 10, 1.0, leave_out_self=True)
    near = model.nearest(log.contexts, np.arange(50))
    assert near.shape == (50, 10)
    assert not (near == np.arange(50)[:, None]).any()


def test_calibration_of_the_truth_and_of_a_lie(rng: np.random.Generator) -> None:
    rows, K = 20_000, 5
    P = rng.dirichlet(np.ones(K), size=rows)
    a = drawn(rng, P)
    constant = np.full(rows, 1 / K)

    def check(Q: Array):  # type: ignore[no-untyped-def]
        bins = Reliability()
        bins.see(a, lambda start, stop: Q[start:stop], K)
        return calibration(Q[np.arange(rows), a], constant, K, bins)

    true = check(P)
    assert true.rows_in_table == rows and true.pairs.sum() == rows * K
    assert true.expected_calibration_error < 0.03
    error = np.sqrt(true.claimed * (1 - true.claimed) / true.pairs)
    assert (np.abs(true.observed - true.claimed) < 5 * error + 1e-3).all()
    assert true.log_loss == pytest.approx(float(-(P * np.log(P)).sum(axis=1).mean()), abs=0.02)
    assert true.constant_log_loss == pytest.approx(np.log(K))
    # the mean of 1/(K p) over draws from p is 1, though its variance is infinite here: only the flat case is sharp
    assert check(np.full((rows, K), 1 / K)).mean_weight == pytest.approx(1)
    sharpened = P**3 / (P**3).sum(axis=1, keepdims=True)
    lie = check(sharpened)
    assert lie.expected_calibration_error > 0.2
    assert lie.log_loss > true.log_loss
    assert any("reliability table" in sentence for sentence in lie.sentences())
    softened = P**0.5 / (P**0.5).sum(axis=1, keepdims=True)
    assert any("the mean weight is not 1" in sentence for sentence in check(softened).sentences())


def test_a_log_that_cannot_support_it_is_refused_with_the_reason(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 2))
    r = rng.random(60)
    with pytest.raises(InvalidInput, match="60 rows that all play action 3"):
        estimate_propensities(LoggedData(X, np.full(60, 3), r, 5))
    groups = np.arange(60) % 3
    with pytest.raises(InvalidInput, match="one and the same action in each of the 3 groups"):
        estimate_propensities(LoggedData(X, groups * 2, r, 5, groups=groups), by="groups")
    decided = LoggedData(np.eye(2)[groups % 2] * 50, groups % 2, r, 2)
    for method in ("multinomial", "nearest"):
        with pytest.raises(InvalidInput, match="actions that follow from the context"):
            estimate_propensities(decided, method, ridge=1e-3, neighbours=15, smoothing=0.01)  # type: ignore[arg-type]
    mixed = LoggedData(X, rng.integers(4, size=60), r, 5, propensities=np.full(60, 0.25))
    with pytest.raises(InvalidInput, match="replace=True"):
        estimate_propensities(mixed)
    assert estimate_propensities(mixed, replace=True).log.propensities_are_estimates
    with pytest.raises(InvalidInput, match="groups"):
        estimate_propensities(mixed, by="groups", replace=True)
    with pytest.raises(InvalidInput, match="method"):
        estimate_propensities(mixed, "guess", replace=True)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="neighbours"):
        estimate_propensities(mixed, "nearest", neighbours=60, replace=True)
    with pytest.raises(InvalidInput, match="by"):
        estimate_propensities(mixed, by=np.zeros(59), replace=True)


def test_the_multinomial_model_takes_thousands_of_actions(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares from common to met once, in single precision and blocks: still the minimum, by its gradient and from below."""
    rows, K, ridge = 1200, 1500, 1.0
    X = rng.normal(size=(rows, 3))
    scores = 0.5 * X @ rng.normal(size=(3, K)) + 1.5 * rng.normal(size=K)
    a = drawn(rng, np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True))
    monkeypatch.setattr(multinomial, "CELLS", 100_000)
    monkeypatch.setattr(multinomial, "SMALL", 100_000)
    model = fit_multinomial(X, a, K, ridge)
    assert len(model.seen) > 200 and rows * len(model.seen) > multinomial.CELLS

    def loss(found: multinomial.MultinomialModel) -> float:
        return float(-np.log(found.own(X, a)).mean() + ridge / (2 * rows) * (found.weights[:-1] ** 2).sum())

    monkeypatch.setattr(multinomial, "SMALL", np.inf)
    best = fit_multinomial(X, a, K, ridge)
    assert loss(best) <= loss(model) + 1e-9 and loss(model) < loss(best) + 1e-4
    shares = np.bincount(a, minlength=K) / rows
    assert loss(best) < float(-np.log(shares[a]).mean())
    np.testing.assert_allclose(model.own(X, a), model.every(X)[np.arange(rows), a])
    assert (model.own(X, np.full(rows, np.flatnonzero(shares == 0)[0])) == 0).all()


def test_the_calibration_error_is_a_probability() -> None:
    for claims, played, expected in (([1.0, 0.0], 1, 1.0), ([1.0, 0.0], 0, 0.0), ([0.65, 0.35], 0, 0.35)):
        bins = Reliability()
        bins.see(np.full(10, played), lambda start, stop, q=claims: np.tile(q, (stop - start, 1)), 2)  # type: ignore[misc]
        assert bins.error() == pytest.approx(expected)


def test_a_context_that_says_nothing_is_told(rng: np.random.Generator) -> None:
    log = LoggedData(rng.normal(size=(400, 8)), rng.integers(6, size=400), rng.random(400), 6)
    found = estimate_propensities(log, "multinomial", ridge=0.1, folds=3)
    assert not found.calibration.better_than_constant
    assert "the context adds nothing here" in found.log.notes[-1]


def test_many_actions_are_checked_on_some_rows(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    from manyarms.logs import propensities

    monkeypatch.setattr(propensities, "MOST_PAIRS", 50_000)
    log = LoggedData(np.ones((2000, 1)), rng.integers(100, size=2000), rng.random(2000), 100)
    found = estimate_propensities(log, smoothing=1.0)
    assert found.calibration.rows == 2000
    assert found.calibration.rows_in_table == 500
