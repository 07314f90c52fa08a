"""sDM is the frame's belief folded over a log: against brute force, in any chunks and order, and as decisions and agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyarms as ma
from manyarms import checks
from manyarms._base.typing import Array, Ints
from manyarms.agents.decisions import Greedy, Pessimistic
from manyarms.beliefs import belief_of
from manyarms.beliefs.sums import Sums
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.logs.data import LoggedData
from manyarms.priors.latent import LatentPrior
from manyarms.rewards.bayesian import (
    BeliefModel,
    dm_bayes,
    dm_frequentist,
    learned_structure,
    pessimism_width,
    sdm,
    warm_start,
)
from manyarms.rewards.linear import DirectFrequentist, LinearModel
from manyarms.worlds.latent import Latent
from manyarms.worlds.logged import log_from, skewed_policy

seeds = st.integers(0, 2**31 - 1)


def spd(rng: np.random.Generator, *shape: int) -> Array:
    half = rng.standard_normal(shape)
    return half @ np.swapaxes(half, -1, -2) + 0.3 * np.eye(shape[-1])


def latent_prior(rng: np.random.Generator, K: int, d: int, p: int, *, shared: bool = True) -> LatentPrior:
    own = spd(rng, d, d) if shared else spd(rng, K, d, d)
    return LatentPrior(rng.standard_normal((K, d, p)), rng.standard_normal(p), spd(rng, p, p), own)


def random_log(rng: np.random.Generator, n: int, K: int, d: int, *, binary: bool = False) -> LoggedData:
    rewards = rng.integers(2, size=n).astype(float) if binary else rng.standard_normal(n)
    return LoggedData(rng.uniform(-1, 1, (n, d)), rng.integers(K, size=n), rewards, K)


def posteriors(log: LoggedData, prior: LatentPrior, noise: float) -> tuple[Array, Array, Array, Array]:
    """The thesis's closed form, written with plain inverses (Section 6.3.2): latent and marginal posteriors."""
    K, d, _ = prior.matrices.shape
    own = np.broadcast_to(prior.action_covariance, (K, d, d))
    P, h = np.linalg.inv(prior.covariance), np.linalg.inv(prior.covariance) @ prior.mean
    tilde, B = np.empty((K, d, d)), np.zeros((K, d))
    for a in range(K):
        mine = log.actions == a
        X, r = log.contexts[mine], log.rewards[mine]
        tilde[a] = np.linalg.inv(np.linalg.inv(own[a]) + X.T @ X / noise**2)
        B[a] = r @ X / noise**2
        inverse, W = np.linalg.inv(own[a]), prior.matrices[a]
        P = P + W.T @ (inverse - inverse @ tilde[a] @ inverse) @ W
        h = h + W.T @ inverse @ tilde[a] @ B[a]
    spread = np.linalg.inv(P)
    mean = spread @ h
    means, covariances = np.empty((K, d)), np.empty((K, d, d))
    for a in range(K):
        inverse, W = np.linalg.inv(own[a]), prior.matrices[a]
        means[a] = tilde[a] @ (inverse @ W @ mean + B[a])
        pulled = tilde[a] @ inverse @ W
        covariances[a] = tilde[a] + pulled @ spread @ pulled.T
    return mean, spread, means, covariances


def joint(log: LoggedData, prior: LatentPrior, noise: float) -> tuple[Array, Array]:
    """Mean and covariance of (psi, theta_1, ..., theta_K) given the log, from the joint Gaussian in full."""
    K, d, p = prior.matrices.shape
    up = np.vstack([np.eye(p), prior.matrices.reshape(K * d, p)])
    mean, covariance = up @ prior.mean, up @ prior.covariance @ up.T
    own = np.broadcast_to(prior.action_covariance, (K, d, d))
    for a in range(K):
        at = slice(p + a * d, p + (a + 1) * d)
        covariance[at, at] += own[a]
    H = np.zeros((len(log), len(mean)))
    for i, (x, a) in enumerate(zip(log.contexts, log.actions, strict=True)):
        H[i, p + a * d : p + (a + 1) * d] = x
    gain = np.linalg.solve(H @ covariance @ H.T + noise**2 * np.eye(len(log)), H @ covariance).T
    return mean + gain @ (log.rewards - H @ mean), covariance - gain @ H @ covariance


# ---- exact posteriors -------------------------------------------------------------------------------------------------


@given(seed=seeds, p=st.integers(1, 6), shared=st.booleans(), n=st.integers(1, 60))
def test_posteriors_are_those_of_the_joint_gaussian_and_of_the_printed_formulas(
    seed: int, p: int, shared: bool, n: int
) -> None:
    rng = np.random.default_rng(seed)
    K, d, noise = 5, 3, 0.7
    prior, log = latent_prior(rng, K, d, p, shared=shared), random_log(rng, n, K, d)
    model = sdm(log, prior, ma.Linear(noise))
    mean, covariance = joint(log, prior, noise)
    printed = posteriors(log, prior, noise)
    latent = model.latent()
    for ours, theirs, formula in (
        (latent[0], mean[:p], printed[0]),
        (latent[1], covariance[:p, :p], printed[1]),
        (model.posterior()[0].ravel(), mean[p:], printed[2].ravel()),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(ours, formula, rtol=1e-8, atol=1e-8)
    for a in range(K):
        at = slice(p + a * d, p + (a + 1) * d)
        np.testing.assert_allclose(model.posterior([a])[1][0], covariance[at, at], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(model.posterior([a])[1][0], printed[3][a], rtol=1e-8, atol=1e-8)


@given(seed=seeds)
def test_the_conditional_posterior_given_the_latent_vector(seed: int) -> None:
    """theta_a | psi, log ~ N(S (Sigma^-1 W psi + B), S) (thesis, Section 6.3): the leaves, given a root."""
    rng = np.random.default_rng(seed)
    K, d, p, noise = 4, 3, 2, 0.5
    prior, log = latent_prior(rng, K, d, p), random_log(rng, 25, K, d)
    model = sdm(log, prior, ma.Linear(noise))
    psi, x = rng.standard_normal(p), rng.standard_normal(d)
    offer = model.belief.catalogue.offer()
    mean, variance = model.belief.played_scores(x[None], psi[None], offer)
    inverse = np.linalg.inv(prior.action_covariance)
    for score, v, a in zip(mean[0], variance[0], offer.ids_of_slots().tolist(), strict=True):
        mine = log.actions == a
        X, r = log.contexts[mine], log.rewards[mine]
        S = np.linalg.inv(inverse + X.T @ X / noise**2)
        assert score == pytest.approx(x @ S @ (inverse @ prior.matrices[a] @ psi + r @ X / noise**2), abs=1e-8)
        assert v == pytest.approx(x @ S @ x, abs=1e-8)


@pytest.mark.parametrize("shared", [True, False])
def test_the_suite_of_checks(shared: bool) -> None:
    prior = latent_prior(np.random.default_rng(0), 6, 3, 2, shared=shared)
    checks.check_belief(lambda: belief_of(prior, ma.Linear(0.5)))
    checks.check_agent(lambda seed: ma.Agent(belief_of(prior, ma.Linear(0.5)), ma.Thompson(), seed))


def in_chunks(log: LoggedData, cuts: list[int], order: Ints) -> Iterator[tuple[Array, Ints, Array]]:
    for part in np.split(order, cuts):
        if len(part):
            yield log.contexts[part], log.actions[part], log.rewards[part]


@given(seed=seeds, cuts=st.lists(st.integers(0, 50), max_size=4), known=st.booleans())
def test_any_chunks_any_order_and_one_by_one_give_the_same_belief(seed: int, cuts: list[int], known: bool) -> None:
    rng = np.random.default_rng(seed)
    prior = latent_prior(rng, 6, 3, 2, shared=False)
    log = random_log(rng, 50, 6, 3)
    used = prior.marginal() if known else prior
    whole, chunked, online = (belief_of(used, ma.Linear(0.6)) for _ in range(3))
    whole.fold([(log.contexts, log.actions, log.rewards)])
    chunked.fold(in_chunks(log, sorted(cuts), rng.permutation(50)))
    for x, a, r in zip(log.contexts, log.actions, log.rewards, strict=True):
        online.observe(x[None], np.array([a]), np.array([r]))
    ids = np.arange(6)
    for other in (chunked, online):
        for ours, theirs in zip(whole.action_posterior(ids), other.action_posterior(ids), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(whole.root.mean(), other.root.mean(), rtol=1e-10, atol=1e-10)
        assert whole.leaves.counts.rows.sum() == other.leaves.counts.rows.sum() == 50


def test_folding_goes_on_from_what_a_belief_knows(rng: np.random.Generator) -> None:
    prior, log = latent_prior(rng, 5, 3, 2), random_log(rng, 40, 5, 3)
    first, second = log.rows(slice(0, 15)), log.rows(slice(15, 40))
    twice = sdm(first, prior)
    before = twice.parameters.copy()
    twice.fold(second)
    once = sdm(log, prior)
    assert np.abs(twice.parameters - before).max() > 1e-3  # the tables are made anew
    np.testing.assert_allclose(twice.parameters, once.parameters, atol=1e-11)


@pytest.mark.parametrize("kind", ["single", "one-hot", "distinct"])
def test_a_fold_of_many_new_actions_leaves_the_same_state_as_rows_do(kind: str, rng: np.random.Generator) -> None:
    """Starting many actions in one step must leave the catalogue and its units as playing them one by one does."""
    K, d = 12, 2
    tables = {"single": np.ones((K, 1)), "one-hot": np.eye(3)[np.arange(K) % 3], "distinct": rng.normal(size=(K, 3))}
    weights = tables[kind]
    prior = ma.MixedEffectPrior.isotropic(weights, d)
    log = random_log(rng, 30, K - 3, d)
    log = LoggedData(log.contexts, log.actions, log.rewards, K)
    folded, rows = belief_of(prior, ma.Linear()), belief_of(prior, ma.Linear())
    folded.fold([(log.contexts, log.actions, log.rewards)])
    for a in np.unique(log.actions):  # the order in which a fold meets them
        for i in np.flatnonzero(log.actions == a):
            rows.observe(log.contexts[i : i + 1], log.actions[i : i + 1], log.rewards[i : i + 1])
    # a root takes rows into its factor, a square root that may be turned, and keeps what came as sums beside it
    np.testing.assert_allclose(folded.root.mean(), rows.root.mean(), rtol=1e-9, atol=1e-9)
    covariances = [belief.root.factor() @ belief.root.factor().T for belief in (folded, rows)]
    np.testing.assert_allclose(*covariances, rtol=1e-9)
    for name, array in rows.arrays().items():
        if name.startswith("root."):
            continue
        np.testing.assert_allclose(folded.arrays()[name], array, rtol=1e-9, atol=1e-9, err_msg=name)
    ours, theirs = folded.catalogue.units, rows.catalogue.units
    for unit, count in enumerate(theirs.counts.tolist()):
        assert [ours.member(unit, i) for i in range(count)] == [theirs.member(unit, i) for i in range(count)]
    np.testing.assert_array_equal(ours.counts, theirs.counts)
    agents = [ma.Agent(belief, Greedy(), 3) for belief in (folded, rows)]
    X = rng.uniform(-1, 1, (40, d))
    np.testing.assert_array_equal(agents[0].decide(X), agents[1].decide(X))


def test_logistic_folds_to_the_solvers_tolerance(rng: np.random.Generator) -> None:
    prior, log = latent_prior(rng, 4, 2, 2), random_log(rng, 80, 4, 2, binary=True)
    whole = sdm(log, prior, ma.Logistic())
    chunked = belief_of(prior, ma.Logistic())
    chunked.fold(in_chunks(log, [10, 11, 60], rng.permutation(80)))
    online = ma.Agent(belief_of(prior, ma.Logistic()), ma.Greedy(), 0)
    for x, a, r in zip(log.contexts, log.actions, log.rewards, strict=True):
        online.observe(x, int(a), float(r))
    for other in (chunked, online.belief):
        np.testing.assert_allclose(whole.posterior()[0], other.action_posterior(np.arange(4))[0], atol=1e-4)
    assert whole.predict(log.contexts, log.actions).min() > 0
    assert whole.bounds == (0.0, 1.0) and sdm(log, prior).bounds is None


def test_beliefs_with_their_own_way_of_learning_fold_chunk_by_chunk(rng: np.random.Generator) -> None:
    chain = ma.DiffusionPrior(6, 2, [0.5 * np.eye(2)], [1.0, 1.0], shared=False)
    log = random_log(rng, 40, 6, 2)
    folded, observed = belief_of(chain, ma.Linear()), belief_of(chain, ma.Linear())
    folded.fold(in_chunks(log, [20], np.arange(40)))
    observed.observe(log.contexts, log.actions, log.rewards)
    offer = folded.catalogue.offer()
    ours, _ = folded.played_moments(log.contexts[:3], offer, spread=False)
    theirs, _ = observed.played_moments(log.contexts[:3], observed.catalogue.offer(), spread=False)
    np.testing.assert_allclose(np.sort(ours), np.sort(theirs), atol=1e-10)


def test_an_error_on_the_way_leaves_a_linear_belief_unchanged(rng: np.random.Generator) -> None:
    belief = belief_of(latent_prior(rng, 4, 2, 2), ma.Linear())
    before = {name: array.copy() for name, array in belief.arrays().items()}
    log = random_log(rng, 10, 4, 2)

    def broken() -> Iterator[tuple[Array, Ints, Array]]:
        yield log.contexts, log.actions, log.rewards
        raise InvalidInput("column 'x'", "a hole at row 7", "numbers")

    with pytest.raises(InvalidInput):
        belief.fold(broken())
    after = belief.arrays()
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("n", [30, 5_000])
def test_sums_by_action(n: int, rng: np.random.Generator) -> None:
    """Both ways of summing, few rows and many, with actions that come up late."""
    X, A, r = rng.standard_normal((n, 3)), rng.integers(50, size=n), rng.standard_normal(n)
    A[: n // 2] += 20
    sums = Sums(3)
    sums.add(X[: n // 2], A[: n // 2], r[: n // 2])
    sums.add(X[n // 2 :], A[n // 2 :], r[n // 2 :])
    assert sorted(sums.ids.tolist()) == np.unique(A).tolist()
    for a, G, B, count in zip(sums.ids, sums.packing.unpack(sums.G), sums.B, sums.counts, strict=True):
        mine = a == A
        np.testing.assert_allclose(G, X[mine].T @ X[mine], atol=1e-10)
        np.testing.assert_allclose(B, r[mine] @ X[mine], atol=1e-10)
        assert count == mine.sum()


# ---- models and decisions ---------------------------------------------------------------------------------------------


def test_dm_freq_is_a_ridge_regression_for_every_action(rng: np.random.Generator) -> None:
    log = LoggedData(rng.standard_normal((200, 4)), rng.integers(8, size=200), rng.standard_normal(200), 10)
    model = DirectFrequentist(0.3).fit(log)
    for a in range(10):
        X, r = log.contexts[log.actions == a], log.rewards[log.actions == a]
        np.testing.assert_allclose(model.parameters[a], np.linalg.solve(X.T @ X + 0.3 * np.eye(4), X.T @ r), atol=1e-10)
    assert not model.parameters[8:].any()
    np.testing.assert_array_equal(dm_frequentist(log, 0.3).parameters, model.parameters)


def test_predictions_blocks_and_decisions_agree(rng: np.random.Generator) -> None:
    theta = rng.standard_normal((3_000, 3))
    model, X = LinearModel(theta), rng.standard_normal((300, 3))
    scores = X @ theta.T
    np.testing.assert_allclose(model.block(X, np.array([5, 2_999])), scores[:, [5, 2_999]])
    A = rng.integers(3_000, size=300)
    np.testing.assert_allclose(model.predict(X, A), scores[np.arange(300), A])
    np.testing.assert_array_equal(model.decide(X), scores.argmax(axis=1))
    np.testing.assert_array_equal(model.decide(X, 3), np.argsort(-scores, axis=1)[:, :3])
    assert model.decide(X[0]) == scores[0].argmax()
    np.testing.assert_array_equal(model.decide(X[0], 2), np.argsort(-scores[0])[:2])
    policy = model.greedy_policy()
    np.testing.assert_array_equal(policy.probabilities_of(X, scores.argmax(axis=1)), 1.0)


@pytest.mark.parametrize("width", [0.0, 0.5, 5.0])
def test_bulk_decisions_are_those_of_the_agents(width: float, rng: np.random.Generator) -> None:
    prior = latent_prior(rng, 30, 3, 2)
    log = LoggedData(rng.uniform(-1, 1, (60, 3)), rng.integers(20, size=60), rng.standard_normal(60), 30)
    model, X = sdm(log, prior), rng.uniform(-1, 1, (50, 3))
    agent = model.agent(Pessimistic(width) if width else Greedy(), seed=0)
    np.testing.assert_array_equal(model.decide(X, width=width), agent.decide(X))
    np.testing.assert_array_equal(model.decide(X, 4, width=width), agent.decide(X, k=4))
    assert model.decide(X[0], width=width) == agent.decide(X[0])
    mean, variance = model.moments(X, np.arange(30))
    means, covariances = model.posterior()
    np.testing.assert_allclose(mean, X @ means.T, atol=1e-12)
    np.testing.assert_allclose(variance, np.einsum("nd,kde,ne->nk", X, covariances, X), atol=1e-12)
    rows = model.moments_of(X, log.actions[:50])
    np.testing.assert_allclose(rows[0], mean[np.arange(50), log.actions[:50]], atol=1e-12)
    np.testing.assert_allclose(rows[1], variance[np.arange(50), log.actions[:50]], atol=1e-12)


def test_pessimism_has_the_width_of_the_thesis(rng: np.random.Generator) -> None:
    assert pessimism_width(10, 0.1) == pytest.approx(np.sqrt(10 + 2 * np.sqrt(10 * np.log(10)) + 2 * np.log(10)))
    model = sdm(random_log(rng, 20, 4, 3), latent_prior(rng, 4, 3, 2))
    decision = model.pessimistic(0.1).decision
    assert isinstance(decision, Pessimistic) and decision.options()["width"] == pytest.approx(pessimism_width(3, 0.1))
    assert isinstance(model.greedy().decision, Greedy)
    # with probability 1 - delta the whole parameter lies in the ball: chi-square with d degrees of freedom
    draws = np.linalg.norm(rng.standard_normal((20_000, 3)), axis=1)
    assert (draws <= pessimism_width(3, 0.1)).mean() >= 0.9
    for delta in (0.0, -1.0, 1.5):
        with pytest.raises(InvalidInput):
            pessimism_width(3, delta)


def test_dm_bayes_forgets_correlations_and_nothing_else(rng: np.random.Generator) -> None:
    prior, log = latent_prior(rng, 6, 3, 2), random_log(rng, 40, 4, 3)
    log = LoggedData(log.contexts, log.actions, log.rewards, 6)
    marginal = prior.marginal()
    W = prior.matrices
    np.testing.assert_allclose(marginal.mean, W @ prior.mean)
    np.testing.assert_allclose(
        marginal.covariance, prior.action_covariance + W @ prior.covariance @ np.swapaxes(W, 1, 2), atol=1e-12
    )
    model = dm_bayes(log, prior, ma.Linear(0.5))
    mean, covariance = model.posterior()
    for a in range(6):
        X, r = log.contexts[log.actions == a], log.rewards[log.actions == a]
        inverse = np.linalg.inv(marginal.covariance[a])
        S = np.linalg.inv(inverse + 4 * X.T @ X)
        np.testing.assert_allclose(covariance[a], S, atol=1e-9)
        np.testing.assert_allclose(mean[a], S @ (inverse @ marginal.mean[a] + 4 * r @ X), atol=1e-9)
    # what sDM gains: no action's posterior is wider in any direction
    gap = covariance - sdm(log, prior, ma.Linear(0.5)).posterior()[1]
    assert np.linalg.eigvalsh(gap).min() > -1e-10
    hierarchical = ma.HierarchicalPrior(4, np.zeros(2), np.eye(2), 2 * np.eye(2))
    np.testing.assert_allclose(hierarchical.marginal().covariance, 3 * np.eye(2))
    with pytest.raises(InvalidInput):
        dm_bayes(log, "prior", ma.Linear())  # type: ignore[arg-type]


def test_a_mixed_effect_prior_is_a_latent_prior(rng: np.random.Generator) -> None:
    K, L, d = 7, 3, 2
    weights = rng.standard_normal((K, L))
    mixed = ma.MixedEffectPrior(weights, rng.standard_normal((L, d)), spd(rng, L * d, L * d), spd(rng, d, d))
    W = np.stack([np.kron(b[None], np.eye(d)) for b in weights])
    latent = LatentPrior(W, mixed.effect_mean.ravel(), mixed.effect_covariance, mixed.action_covariance)
    log = random_log(rng, 50, K, d)
    for ours, theirs in zip(sdm(log, latent).posterior(), sdm(log, mixed).posterior(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)
    np.testing.assert_allclose(latent.marginal().covariance, mixed.marginal().covariance, atol=1e-12)


def test_a_warm_start_goes_on_from_the_log(rng: np.random.Generator, tmp_path: Path) -> None:
    prior, log = latent_prior(rng, 8, 3, 2), random_log(rng, 60, 8, 3)
    model = sdm(log, prior)
    agent, direct = model.agent(seed=4), warm_start(log, prior, seed=4)
    cold = ma.Agent(belief_of(prior, ma.Linear()), ma.Thompson(), 4)
    cold.observe(log.contexts, log.actions, log.rewards)
    X = rng.uniform(-1, 1, (20, 3))
    expected = cold.decide(X)
    np.testing.assert_array_equal(agent.decide(X), expected)
    np.testing.assert_array_equal(direct.decide(X), expected)
    before = model.parameters.copy()
    agent.observe(X[0], 3, 5.0)
    np.testing.assert_array_equal(model.parameters, before)  # the model keeps its own belief
    assert np.abs(agent.posterior(3)[0] - before[3]).max() > 1e-3
    agent.save(tmp_path / "agent")
    np.testing.assert_array_equal(ma.load(tmp_path / "agent").decide(X), agent.decide(X))


def test_a_structure_can_be_learned_from_a_part_of_the_log() -> None:
    world = ma.worlds.MixedEffect(60, 3, 3, weights="onehot", action_scale=0.1, noise=0.3, seed=1)
    log = log_from(world, 6_000)
    learn, use = log.split(0.5, seed=0)
    prior = learned_structure(learn, 3)
    assert prior.actions == 60 and prior.effects == 3
    found = sdm(use.rows(slice(0, 100)), prior, ma.Linear(0.3)).parameters
    plain = dm_frequentist(use.rows(slice(0, 100))).parameters
    assert np.square(found - world.theta).mean() < 0.5 * np.square(plain - world.theta).mean()


def test_sdm_learns_what_others_cannot() -> None:
    """In its own world, with most actions unseen: nearer to the truth and better decisions than DM (Bayes)."""
    world = Latent(500, 5, 3, seed=2)
    log = log_from(world, 200)
    X = world.contexts(2_000)
    value = {
        name: float(np.mean(world.mean_reward(X, model.decide(X))))
        for name, model in (("sdm", sdm(log, world.prior())), ("bayes", dm_bayes(log, world.prior())))
    }
    best = float(world.optimal(X)[1].mean())
    assert value["bayes"] < value["sdm"] <= best


# ---- worlds and their logs --------------------------------------------------------------------------------------------


def test_the_latent_world_has_the_law_that_it_says() -> None:
    drawn = [Latent(50, 3, 4, latent_scale=2.0, action_scale=0.5, seed=s) for s in range(400)]
    psi = np.array([world.psi - world.latent_mean for world in drawn])
    own = np.concatenate([world.theta - world.matrices @ world.psi for world in drawn])
    np.testing.assert_allclose(np.cov(psi.T), 2.0 * np.eye(4), atol=0.5)
    np.testing.assert_allclose(np.cov(own.T), 0.5 * np.eye(3), atol=0.05)
    assert max(np.abs(world.matrices).max() for world in drawn) <= 1
    assert np.abs(np.array([world.latent_mean for world in drawn])).max() <= 1
    world = Latent(5, 3, 6, matrices="orthonormal", unit_contexts=True, seed=0)
    np.testing.assert_allclose(
        world.matrices @ np.swapaxes(world.matrices, 1, 2), np.tile(np.eye(3), (5, 1, 1)), atol=1e-12
    )
    X = world.contexts(5_000)
    assert np.linalg.norm(X, axis=1).max() <= 1 == world.kappa_x
    np.testing.assert_allclose(X.T @ X / 5_000, np.eye(3) / 9, atol=0.01)
    prior = world.hierarchical_prior()
    assert prior.actions == 5 and world.action_prior().actions == 5 and "Latent" in repr(world)
    for bad in ({"matrices": "diagonal"}, {"matrices": "orthonormal", "latent_dim": 2}, {"latent_scale": 0.0}):
        with pytest.raises(InvalidInput):
            Latent(**{"actions": 5, "dim": 3, "latent_dim": 6, **bad})  # type: ignore[arg-type]


def test_logs_of_worlds() -> None:
    world = Latent(20, 3, 2, seed=1)
    policy = skewed_policy(20, seed=3)
    log = log_from(world.replay(5), 4_000, policy, seed=7)
    again = log_from(world.replay(5), 4_000, policy, seed=7)
    np.testing.assert_array_equal(log.rewards, again.rewards)
    assert log.logging is policy and log.propensities is not None
    np.testing.assert_array_equal(log.propensities, policy.probabilities[log.actions])
    shares = np.bincount(log.actions, minlength=20) / 4_000
    np.testing.assert_allclose(shares, policy.probabilities, atol=0.03)
    assert policy.probabilities.max() / policy.probabilities.min() == pytest.approx(20)
    left = log.rewards - world.mean_reward(log.contexts, log.actions)
    assert abs(left.mean()) < 0.06 and left.std() == pytest.approx(1.0, abs=0.05)
    np.testing.assert_allclose(log_from(world, 10).propensities, 1 / 20)
    with pytest.raises(InvalidInput):
        log_from(world, 10, skewed_policy(19))


# ---- bad input --------------------------------------------------------------------------------------------------------


def test_bad_input_is_refused(rng: np.random.Generator) -> None:
    prior, log = latent_prior(rng, 4, 3, 2), random_log(rng, 20, 4, 3)
    for source in (random_log(rng, 20, 4, 2), random_log(rng, 20, 9, 3)):
        with pytest.raises(InvalidInput):
            sdm(source, prior)
    with pytest.raises(InvalidInput, match="reward"):
        sdm(log, prior, ma.Logistic())
    model = sdm(log, prior)
    with pytest.raises(UnknownAction):
        model.predict(log.contexts, np.full(20, 4))
    with pytest.raises(UnknownAction):
        model.posterior([0.5])
    for call in (
        lambda: model.predict(log.contexts, [0, 1]),
        lambda: model.decide(np.zeros((2, 5))),
        lambda: model.decide(log.contexts, 5),
        lambda: model.decide(log.contexts, width=-1.0),
        lambda: DirectFrequentist(0.0),
        lambda: LatentPrior(np.zeros((4, 3)), np.zeros(2), np.eye(2), np.eye(3)),
        lambda: LatentPrior(np.zeros((4, 3, 2)), np.zeros(3), np.eye(2), np.eye(3)),
        lambda: LatentPrior(np.zeros((4, 3, 2)), np.zeros(2), np.tile(np.eye(2), (4, 1, 1)), np.eye(3)),
        lambda: LatentPrior(np.zeros((4, 3, 2)), np.zeros(2), np.eye(2), np.tile(np.eye(3), (3, 1, 1))),
        lambda: BeliefModel(ma.agents.jointTS(ma.ActionPrior(1, np.zeros(2), np.eye(2)), 3).belief),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert "4 actions" in repr(model)
