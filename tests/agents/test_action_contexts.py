"""A context for each action: the law of the textbook sampler, exact moments, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from brute_force import MIXINGS, Case, Joint, Rows, covariance_of_root, random_case, random_rows, same_law
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.beliefs import leaf_scores
from manyarms.beliefs.listed import view_of

K, D = 8, 2
DRAWS, TEXTBOOK = 3000, 40_000
PLAYED = (1, 4, 6)
Z = np.random.default_rng(11).uniform(-1, 1, (K, D))
FORMS = [(m, r, s) for m in MIXINGS for r in ("gaussian", "known") for s in (True, False)]
FORM_IDS = [f"{m}, {r} root, {'one Sigma' if s else 'Sigma each'}" for m, r, s in FORMS]


def learned(case: Case, actions: tuple[int, ...] = PLAYED, rows: Rows | None = None) -> tuple[Agent, Joint]:
    """The case after rows of some of its actions, each observed with the context of its own, and the same in full."""
    agent = case.agent(seed=7)
    rows = random_rows(3, 9, D, np.array(actions)) if rows is None else rows
    agent.observe(*rows)
    joint = case.joint.given(rows, case.noise)
    if not case.belief.root.known:  # a factored root keeps the conditionals, but has a law of its own
        joint = joint.with_root(case.belief.root.mean(), covariance_of_root(case.belief))
    return agent, joint


def decided(agent: Agent, contexts: Array, n: int = DRAWS, **options: Any) -> Ints:
    """Many decisions with the same contexts."""
    return np.asarray(agent.decide(action_contexts=np.tile(contexts, (n, 1, 1)), **options))


def moments(agent: Agent, contexts: Array, ids: Ints | None = None) -> tuple[Array, Array]:
    view, X, offer = view_of(agent.belief, contexts[None], agent.belief.catalogue.listed(ids), whole=False)
    mean, variance = view.played_moments(X, offer, spread=True)
    return mean[0], variance[0]


# ---- exactness --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mixing", "root", "shared"), FORMS, ids=FORM_IDS)
def test_moments_are_those_of_the_joint_gaussian(mixing: str, root: str, shared: bool) -> None:
    agent, joint = learned(random_case(2, mixing, root, shared=shared, actions=K))
    mean, variance = moments(agent, Z)
    wanted_mean, wanted = joint.scores(Z)
    np.testing.assert_allclose(mean, wanted_mean, atol=1e-9)
    np.testing.assert_allclose(variance, np.diag(wanted), atol=1e-9)
    some = np.array([6, 0, 3])  # in another order, played and unplayed
    mean, variance = moments(agent, Z[some], some)
    np.testing.assert_allclose(mean, wanted_mean[some], atol=1e-9)
    np.testing.assert_allclose(variance, np.diag(wanted)[some], atol=1e-9)


@pytest.mark.parametrize("n", [1, 5])
def test_pieces_of_actions_change_nothing(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, _ = learned(random_case(2, "weights", actions=K))
    many = np.random.default_rng(0).standard_normal((n, K, D))
    view, X, offer = view_of(agent.belief, many, agent.belief.catalogue.listed(), whole=True)
    whole = view.played_moments(X, offer, spread=True)
    monkeypatch.setattr(leaf_scores, "FULL_AT_A_TIME", 3 * D * (D + n))
    pieces = view.played_moments(X, offer, spread=True)
    np.testing.assert_allclose(pieces, whole, atol=1e-12)


@pytest.mark.parametrize("mixing", ["identity", "weights"])
def test_a_matrix_repeated_is_as_good_as_its_copies(mixing: str) -> None:
    """Contexts that are one matrix seen n times (as propensities ask) give the very draws of n copies."""
    agent, _ = learned(random_case(2, mixing, actions=K))
    view, X, offer = view_of(agent.belief, np.broadcast_to(Z, (6, K, D)), agent.belief.catalogue.listed(), whole=True)
    for spread in (False, True):
        seen, copied = (view.played_moments(contexts, offer, spread=spread) for contexts in (X, X.copy()))
        np.testing.assert_allclose(seen, copied, atol=1e-12)
    seen, copied = (view.draw_scores(contexts, offer, np.random.default_rng(0))[0] for contexts in (X, X.copy()))
    np.testing.assert_allclose(seen, copied, atol=1e-12)


def test_glm_moments_are_those_of_the_gaussians_behind_them() -> None:
    case = random_case(4, "weights", actions=K)
    belief = ma.beliefs.Belief(case.belief.root, case.belief.leaves, ma.Logistic())
    agent = Agent(belief, ma.Thompson(), 0)
    X, A, r = random_rows(3, 30, D, np.array(PLAYED))
    agent.observe(X, A, (r > 0.5).astype(float))
    G, B = np.zeros((K, D, D)), np.zeros((K, D))
    played = belief.catalogue.played.rows
    G[played], B[played] = belief.leaves.packing.unpack(belief.leaves.G.rows), belief.leaves.B.rows
    wanted_mean, wanted = case.joint.given_gaussians(G, B).scores(Z)
    mean, variance = moments(agent, Z)
    np.testing.assert_allclose(mean, wanted_mean, atol=1e-8)
    np.testing.assert_allclose(variance, np.diag(wanted), atol=1e-8)


# ---- laws -------------------------------------------------------------------------------------------------------------


def made(mixing: str, root: str = "gaussian", **options: Any) -> Callable[[], Case]:
    return lambda: random_case(5, mixing, root, actions=K, **options)


CASES: dict[str, Callable[[], Case]] = {
    "LinTS": made("identity", "known"),
    "LinTS, Sigma each": made("identity", "known", shared=False),
    "LinTS, a mean each": made("matrices", "known"),
    "HierTS": made("identity"),
    "two levels": made("common"),
    "meTS": made("weights"),
    "meTS, categories": made("one-hot"),
    "meTS, Sigma each": made("weights", shared=False),
    "meTS-Fa": made("weights", factored="mean-field"),
    "sDM's prior": made("matrices"),
}


@pytest.mark.parametrize("name", CASES)
def test_thompson_has_the_law_of_the_textbook(name: str) -> None:
    """Of the best two, over all actions and over a few of them in an order of their own."""
    agent, joint = learned(CASES[name]())
    rng = np.random.default_rng(99)
    assert same_law(decided(agent, Z, k=2), joint.thompson(Z, TEXTBOOK, rng, k=2)) > 1e-6
    some = np.array([6, 0, 3, 1])
    ours = decided(agent, Z[some], candidates=some, exclude=[3])
    assert same_law(ours, joint.thompson(Z, TEXTBOOK, rng, np.array([0, 1, 6]))[:, 0]) > 1e-6


def test_the_law_test_sees_a_context_of_somebody_else() -> None:
    agent, joint = learned(CASES["meTS"]())
    wrong = joint.thompson(Z[::-1], TEXTBOOK, np.random.default_rng(9), k=2)
    assert same_law(decided(agent, Z, k=2), wrong) < 1e-6


@pytest.mark.parametrize("links", ["linear", "network"])
@pytest.mark.parametrize("shared", [True, False], ids=["one chain", "chains of their own"])
def test_equal_contexts_are_one_context_for_diffusions(links: str, shared: bool) -> None:
    rng = np.random.default_rng(2)
    parts: list[Any] = [
        ma.priors.LinearLink(rng.standard_normal((D, D)))
        if links == "linear"
        else ma.priors.NetworkLink.random(D, 8, rng, scaled=True)
        for _ in range(2)
    ]
    agent = ma.dTS(ma.DiffusionPrior(K, D, parts, [0.5, 0.8, 1.0], shared), ma.Linear(0.7), seed=0)
    agent.observe(*random_rows(3, 9, D, np.array(PLAYED)))
    x = np.array([0.8, -0.5])
    one = np.asarray(agent.decide(np.tile(x, (DRAWS, 1)), k=2))
    assert same_law(decided(agent, np.tile(x, (K, 1)), k=2), one) > 1e-6
    greedy = Agent(agent.belief, ma.Greedy(), 0)
    np.testing.assert_array_equal(greedy.decide(action_contexts=np.tile(x, (K, 1)), k=K), greedy.decide(x, k=K))


def test_chains_of_their_own_with_linear_links_are_independent_gaussians() -> None:
    rng = np.random.default_rng(2)
    links = [ma.priors.LinearLink(rng.standard_normal((D, D))) for _ in range(2)]
    prior = ma.DiffusionPrior(K, D, links, [0.5, 0.8, 1.0], False)
    agent, rows = ma.dTS(prior, ma.Linear(0.7), seed=0), random_rows(3, 9, D, np.array(PLAYED))
    agent.observe(*rows)
    own = np.broadcast_to(prior.marginal().covariance, (K, D, D))
    joint = Joint.prior(np.zeros(D), np.zeros((D, D)), np.zeros((K, D, D)), own).given(rows, 0.7)
    ours = decided(agent, Z, k=2)
    assert same_law(ours, joint.thompson(Z, TEXTBOOK, np.random.default_rng(1), k=2)) > 1e-6


@pytest.mark.parametrize("name", ["LinTS", "HierTS", "meTS"])
def test_equal_contexts_are_one_context(name: str) -> None:
    agent, _ = learned(CASES[name]())
    x = np.array([0.8, -0.5])
    same = np.tile(x, (K, 1))
    one = np.asarray(agent.decide(np.tile(x, (DRAWS, 1)), k=2))
    assert same_law(decided(agent, same, k=2), one) > 1e-6
    for decision in (ma.Greedy(), ma.agents.UCB(1.5), ma.agents.Pessimistic(0.7)):
        index = Agent(agent.belief, decision, 0)
        assert np.asarray(index.decide(action_contexts=same, k=4)).tolist() == np.asarray(index.decide(x, k=4)).tolist()


def test_one_parameter_for_all_actions() -> None:
    """jointTS: action_contexts are the features of the candidates, and what was taken is learned from its own features."""
    prior = ma.HierarchicalPrior(1, np.zeros(D), np.eye(D), 0.5 * np.eye(D))
    agent, twin = (ma.agents.jointTS(prior, K, ma.Linear(0.7), seed=0) for _ in range(2))
    rng = np.random.default_rng(0)
    phi, actions, rewards = rng.standard_normal((6, K, D)), rng.integers(K, size=6), rng.standard_normal(6)
    agent.observe(phi[0], int(actions[0]), rewards[0])
    agent.observe(phi[1:], actions[1:], rewards[1:])
    own = phi[np.arange(6), actions]
    twin.observe(own[0], int(actions[0]), rewards[0])
    twin.observe(own[1:], actions[1:], rewards[1:])
    np.testing.assert_allclose(twin.posterior(0)[0], agent.posterior(0)[0], atol=1e-12)
    assert agent.decide(Z, k=3, rng=5).tolist() == agent.decide(action_contexts=Z, k=3, rng=5).tolist()  # type: ignore[union-attr]
    some = np.array([6, 0, 3, 1])
    mean, covariance = agent.posterior(0)
    theta = rng.multivariate_normal(mean, covariance, TEXTBOOK)
    wanted = some[np.argsort(-(theta @ Z[some].T), axis=1)[:, :2]]
    assert same_law(decided(agent, Z[some], candidates=some, k=2), wanted) > 1e-6
    np.testing.assert_allclose(moments(agent, Z)[1], np.einsum("kd,de,ke->k", Z, covariance, Z), atol=1e-12)


def test_rows_of_zeros_tie_and_are_broken_evenly() -> None:
    """Only scores of zero are left when all others are far below: any of them, alike."""
    agent = ma.LinTS(ma.ActionPrior(K, np.array([-50.0, 0.0]), np.eye(D)), seed=0)
    agent.observe([[0.0, 1.0]], [2], [0.3])
    contexts = np.tile([1.0, 0.0], (K, 1))
    contexts[[2, 5, 7]] = 0.0
    for k in (1, 2):
        ours = decided(agent, contexts, k=k)
        uniform = np.argsort(np.random.default_rng(0).random((TEXTBOOK, 3)), axis=1)[:, :k]
        assert same_law(ours, np.array([2, 5, 7])[uniform]) > 1e-6
    ours = decided(agent, np.zeros((K, D)))
    assert same_law(ours, np.random.default_rng(0).integers(K, size=TEXTBOOK)) > 1e-6


# ---- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "decision", [ma.Greedy(), ma.agents.UCB(1.5), ma.agents.Pessimistic(0.7)], ids=lambda d: d.kind
)
def test_batches_are_their_contexts_one_by_one(decision: ma.agents.Decision) -> None:
    belief = learned(CASES["meTS"]())[0].belief
    agent, rng = Agent(belief, decision, 0), np.random.default_rng(1)
    many = rng.standard_normal((7, K, D))
    together = np.asarray(agent.decide(action_contexts=many, k=3))
    assert together.tolist() == [np.asarray(agent.decide(action_contexts=z, k=3)).tolist() for z in many]
    lists = [rng.permutation(K)[: rng.integers(2, K + 1)] for _ in many]
    ragged = [z[ids] for z, ids in zip(many, lists, strict=True)]
    alone = [agent.decide(action_contexts=z, candidates=ids) for z, ids in zip(ragged, lists, strict=True)]
    assert np.asarray(agent.decide(action_contexts=ragged, candidates=lists)).tolist() == alone
    assert np.asarray(agent.decide(many[:, 0], action_contexts=ragged, candidates=lists)).tolist() == alone
    table = np.stack([rng.permutation(K)[:3] for _ in many])  # lists of one length may be a table
    some = np.take_along_axis(many, table[:, :, None], axis=1)
    alone = [agent.decide(action_contexts=z, candidates=ids) for z, ids in zip(some, table, strict=True)]
    assert np.asarray(agent.decide(action_contexts=some, candidates=table)).tolist() == alone
    assert np.asarray(agent.decide(action_contexts=list(some), candidates=table.tolist())).tolist() == alone
    assert np.asarray(agent.decide(action_contexts=some.astype(object), candidates=table)).tolist() == alone
    objects = np.empty(len(ragged), dtype=object)
    objects[:] = ragged
    assert np.array_equal(
        np.asarray(agent.decide(action_contexts=objects, candidates=lists)),
        np.asarray(agent.decide(action_contexts=ragged, candidates=lists)),
    )


def test_the_contexts_of_a_batch_have_draws_of_their_own() -> None:
    agent, joint = learned(CASES["HierTS"]())
    other = Z[::-1].copy()
    ours = np.asarray(agent.decide(action_contexts=np.tile(np.stack([Z, other]), (DRAWS, 1, 1))))
    lists = [np.arange(K), np.array([0, 2, 5])] * (DRAWS // 2)
    ragged = np.asarray(agent.decide(action_contexts=[Z[ids] for ids in lists], candidates=lists))
    rng = np.random.default_rng(3)
    for mine, contexts, among in (
        (ours[::2], Z, None),
        (ours[1::2], other, None),
        (ragged[::2], Z, None),
        (ragged[1::2], Z, np.array([0, 2, 5])),
    ):
        assert same_law(mine, joint.thompson(contexts, TEXTBOOK, rng, among)[:, 0]) > 1e-6
    pairs = np.column_stack([ours[:-2:4], ours[2::4]])
    shuffled = np.column_stack([ours[:-2:4], np.random.default_rng(0).permutation(ours[2::4])])
    assert same_law(pairs, shuffled) > 1e-6


def test_shapes() -> None:
    agent = learned(CASES["meTS"]())[0]
    batch = np.broadcast_to(Z, (4, K, D))
    assert isinstance(agent.decide(action_contexts=Z), int)
    assert isinstance(agent.decide(Z[0], action_contexts=Z.tolist()), int)
    assert np.shape(agent.decide(action_contexts=Z, k=3)) == (3,)
    assert np.shape(agent.decide(action_contexts=batch)) == (4,)
    assert np.shape(agent.decide(np.zeros((4, D)), action_contexts=batch, k=3)) == (4, 3)
    assert np.shape(agent.decide(action_contexts=[Z[:2], Z[:3]], candidates=[[0, 1], [5, 2, 3]], k=2)) == (2, 2)


def test_retired_and_excluded_actions_keep_their_rows_and_are_never_chosen() -> None:
    agent = learned(CASES["meTS"]())[0]
    agent.retire([1, 2])
    ours = decided(agent, Z, exclude=[3, 2])
    assert set(ours.tolist()) == {0, 4, 5, 6, 7}
    greedy = Agent(agent.belief, ma.Greedy(), 0)
    alive = np.array([0, 4, 5, 6, 7])
    assert greedy.decide(action_contexts=Z, exclude=[3]) == greedy.decide(action_contexts=Z[alive], candidates=alive)


# ---- other decisions, propensities, keeping ----------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1.5, -0.7, 0.0])
def test_indices_rank_by_the_joint_gaussians_moments(width: float) -> None:
    agent, joint = learned(CASES["meTS, Sigma each"]())
    mean, covariance = joint.scores(Z)
    ranked = np.argsort(-(mean + width * np.sqrt(np.diag(covariance))))
    decision = ma.agents.UCB(width) if width > 0 else ma.agents.Pessimistic(-width)
    assert np.asarray(Agent(agent.belief, decision, 0).decide(action_contexts=Z, k=K)).tolist() == ranked.tolist()


@pytest.mark.parametrize(
    "decision",
    [ma.Thompson(), ma.Greedy(), ma.agents.UCB(1.0), ma.agents.EpsilonGreedy(0.3), ma.agents.Uniform()],
    ids=lambda d: d.kind,
)
def test_propensities_are_those_of_decide_and_sum_to_one(decision: ma.agents.Decision) -> None:
    agent = Agent(learned(CASES["HierTS"]())[0].belief, decision, 0)
    some, exclude, k = np.array([6, 0, 3, 1, 2]), [2], 2
    asked: dict[str, Any] = {"candidates": some, "exclude": exclude, "k": k}
    ours = decided(agent, Z[some], **asked)
    found = [agent.propensity(None, a, action_contexts=Z[some], draws=200, rng=3, **asked) for a in range(K)]
    assert abs(sum(p.value for p in found) - 1) < 5 * sum(p.standard_error for p in found) + 1e-12
    assert abs(sum(p.inclusion for p in found) - k) < 5 * sum(p.inclusion_standard_error for p in found) + 1e-12
    for a, p in enumerate(found):
        if a in (2, 4, 5, 7):
            assert p.value == p.inclusion == 0 and p.exact
        error = 6 * np.sqrt(p.standard_error**2 + 0.25 / DRAWS)
        assert abs((ours[:, 0] == a).mean() - p.value) < error
        assert abs((ours == a).any(axis=1).mean() - p.inclusion) < error


def test_propensities_of_many_draws_do_not_copy_the_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    import manyarms.agents.decisions.base as module

    monkeypatch.setattr(module, "SCORES_AT_A_TIME", 100)
    agent, joint = learned(CASES["HierTS"]())
    first = joint.thompson(Z, TEXTBOOK, np.random.default_rng(0))[:, 0]
    p = agent.propensity(None, 4, action_contexts=Z, draws=1000)
    assert abs(p.value - (first == 4).mean()) < 6 * np.hypot(p.standard_error, 0.5 / np.sqrt(len(first)))


def test_a_million_actions_and_a_few_candidates() -> None:
    """The cost is that of the candidates; those that nobody played are told apart by their contexts."""
    agent = ma.HierTS(ma.HierarchicalPrior(10**6, np.zeros(D), np.eye(D), np.eye(D)), seed=0)
    candidates = np.arange(999_000, 999_500)
    contexts = np.random.default_rng(0).standard_normal((500, D))
    for _ in range(20):
        a = agent.decide(action_contexts=contexts, candidates=candidates)
        assert isinstance(a, int)
        agent.observe(contexts[a - 999_000], a, 0.1)
    greedy = Agent(agent.belief, ma.Greedy(), 0)
    mean, _ = agent.belief.action_posterior(candidates)
    assert greedy.decide(action_contexts=contexts, candidates=candidates) == 999_000 + int(
        np.einsum("ad,ad->a", mean, contexts).argmax()
    )


@pytest.mark.parametrize("name", ["LinTS, Sigma each", "meTS", "two levels"])
def test_a_saved_agent_decides_the_same(name: str, tmp_path: Path) -> None:
    agent, _ = learned(CASES[name]())
    agent.save(tmp_path / "agent")
    loaded, copied = ma.load(tmp_path / "agent"), agent.copy()
    lists = [[5, 1, 2], [3, 4]]
    for _ in range(3):
        wanted = agent.decide(action_contexts=Z, k=3)
        ragged = agent.decide(action_contexts=[Z[ids] for ids in lists], candidates=lists)
        for other in (loaded, copied):
            assert np.array_equal(other.decide(action_contexts=Z, k=3), wanted)
            assert np.array_equal(other.decide(action_contexts=[Z[ids] for ids in lists], candidates=lists), ragged)


def test_deciding_with_action_contexts_changes_nothing_but_the_stream() -> None:
    agent = learned(CASES["meTS"]())[0]
    before = {name: array.tobytes() for name, array in agent.belief.arrays().items()}
    agent.decide(action_contexts=Z, k=2)
    agent.propensity(None, 1, action_contexts=Z, draws=5)
    assert {name: array.tobytes() for name, array in agent.belief.arrays().items()} == before


# ---- what is refused ---------------------------------------------------------------------------------------------------

NAN = float("nan")
HOLE = np.where(np.arange(K)[:, None] == 3, NAN, Z)
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "one row": ({"action_contexts": Z[0]}, "action_contexts", r"shape \(2,\)"),
    "too wide": ({"action_contexts": np.ones((K, 3))}, "action_contexts", r"shape \(8, 3\)"),
    "four axes": ({"action_contexts": np.ones((1, 1, K, D))}, "action_contexts", r"shape \(1, 1, 8, 2\)"),
    "no rows": ({"action_contexts": np.ones((0, D))}, "action_contexts", r"shape \(0, 2\)"),
    "no contexts": ({"action_contexts": np.ones((0, K, D))}, "action_contexts", r"shape \(0, 8, 2\)"),
    "too few rows": ({"action_contexts": Z[:5]}, "action_contexts", "contexts of 5 actions"),
    "another number": ({"action_contexts": Z, "candidates": [0, 1]}, "action_contexts", "contexts of 8 actions"),
    "NaN": ({"action_contexts": HOLE}, "action_contexts", "nan"),
    "words": ({"action_contexts": "abc"}, "action_contexts", "abc"),
    "numbers as words": ({"action_contexts": [["1", "2"]] * K}, "action_contexts", "'1', '2'"),
    "complex": ({"action_contexts": Z + 1j}, "action_contexts", "complex"),
    "ragged rows": ({"action_contexts": [[1.0, 2.0], [1.0]]}, "action_contexts", r"shape \(2,\) in context 0"),
    "ragged, none listed": ({"action_contexts": [Z[:2], Z[:3]]}, "candidates", "None"),
    "ragged, one list": ({"action_contexts": [Z[:2], Z[:3]], "candidates": [0, 1]}, "candidates", "0, 1"),
    "ragged, too few lists": (
        {"action_contexts": [Z[:2], Z[:3]], "candidates": [[0, 1]]},
        "candidates",
        "1 lists",
    ),
    "ragged, a list too short": (
        {"action_contexts": [Z[:2], Z[:3]], "candidates": [[0, 1], [2, 3]]},
        "action_contexts",
        "contexts of 3 actions",
    ),
    "ragged, NaN": (
        {"action_contexts": [Z[:2], HOLE], "candidates": [[0, 1], np.arange(K)]},
        "action_contexts",
        "nan",
    ),
    "ragged, retired": (
        {"action_contexts": [Z[:2], Z[:3]], "candidates": [[0, 1], [2, 3, 5]]},
        r"candidates\[1\]",
        "action 5.*retired",
    ),
    "lists for one context": ({"action_contexts": Z[:2], "candidates": [[0], [1]]}, "candidates", "2 contexts"),
    "retired": ({"action_contexts": Z[:2], "candidates": [0, 5]}, "candidates", "action 5.*retired"),
    "unknown": ({"action_contexts": Z[:2], "candidates": [0, 8]}, "candidates", "action 8"),
    "twice": ({"action_contexts": Z[:3], "candidates": [0, 3, 0]}, "candidates", "action 0 more"),
    "nobody": ({"action_contexts": Z, "candidates": []}, "candidates", "empty"),
    "nobody left": ({"action_contexts": Z[:1], "candidates": [1], "exclude": [1]}, "candidates", "empty"),
    "a bad exclusion": ({"action_contexts": Z, "exclude": [0.5]}, "exclude", "0.5"),
    "k too large": ({"action_contexts": Z[:2], "candidates": [0, 1], "k": 3}, "k", "3"),
    "k too large for one": (
        {"action_contexts": [Z[:2], Z[:3]], "candidates": [[0, 1], [1, 2, 3]], "k": 3},
        "k",
        "3",
    ),
    "contexts for one": ({"x": Z[:4], "action_contexts": Z}, "x", "4 contexts"),
    "one context for many": ({"x": Z[0], "action_contexts": np.stack([Z, Z])}, "x", "one context"),
    "three contexts for two": ({"x": Z[:3], "action_contexts": np.stack([Z, Z])}, "x", "3 contexts"),
    "a context too long": ({"x": np.ones(3), "action_contexts": Z}, "x", r"shape \(3,\)"),
}


@pytest.mark.parametrize(("arguments", "argument", "value"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("asked", ["decide", "propensity"])
def test_what_is_refused(asked: str, arguments: dict[str, Any], argument: str, value: str) -> None:
    agent, twin = (learned(CASES["meTS"]())[0] for _ in range(2))
    for one in (agent, twin):
        one.retire(5)
    before = {name: array.tobytes() for name, array in agent.belief.arrays().items()}
    with pytest.raises(ma.errors.InvalidInput, match=f"^{argument}: expected .*, got .*{value}"):
        if asked == "decide":
            agent.decide(**arguments)
        else:
            agent.propensity(action=0, **{"x": None, **arguments})
    assert {name: array.tobytes() for name, array in agent.belief.arrays().items()} == before
    assert np.array_equal(decided(agent, Z, 20), decided(twin, Z, 20))


def test_a_batch_has_no_propensity_and_own_chains_no_variance() -> None:
    agent = learned(CASES["meTS"]())[0]
    with pytest.raises(ma.errors.InvalidInput, match=r"^action_contexts: .*single"):
        agent.propensity(None, 0, action_contexts=np.stack([Z, Z]))
    prior = ma.DiffusionPrior(K, D, [np.tanh], [0.5, 0.8], False)
    chains = Agent(ma.beliefs.belief_of(prior, ma.Linear(), approximation="thesis"), ma.agents.UCB(1.0), 0)
    with pytest.raises(ma.errors.InvalidInput, match=r"^decision"):
        chains.decide(action_contexts=Z)


def test_particles_have_moments_for_listed_actions(rng):
    """Means and variances as the exact posteriors of single actions say, played or not; UCB decides by them."""
    prior = ma.DiffusionPrior(5, 2, [np.tanh], [0.3, 1.0], shared=False)
    agent = ma.dTS(prior, approximation="particles", seed=0)
    agent.observe(rng.uniform(-1, 1, (6, 2)), [0, 0, 2, 2, 2, 0], rng.standard_normal(6))
    Z, ids = rng.uniform(-1, 1, (3, 4, 2)), np.array([3, 0, 2, 4])
    mean, variance = agent.belief.listed_moments(Z, ids, spread=True)
    theta, covariance = agent.belief.action_posterior(ids)
    np.testing.assert_allclose(mean, np.einsum("nad,ad->na", Z, theta), atol=1e-10)
    np.testing.assert_allclose(variance, np.einsum("nad,ade,nae->na", Z, covariance, Z), rtol=1e-9)
    ucb = ma.Agent(agent.belief, ma.agents.UCB(1.0), seed=0)
    best = ids[np.argmax(mean + np.sqrt(variance), axis=1)]
    np.testing.assert_array_equal(ucb.decide(action_contexts=Z, candidates=ids), best)
