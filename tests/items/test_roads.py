"""Item features lead into every method, and help there: in a shop whose items of one kind are alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.logs import LoggedData

K, D, KINDS = 240, 4, 6
NOISE = 0.3


class Shop:
    """theta_a = psi_kind + a little of its own; the embedding of an item is its theta, seen through noise."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        kind = np.arange(K) % KINDS
        self.theta = rng.normal(size=(KINDS, D))[kind] + 0.15 * rng.normal(size=(K, D))
        self.items = ma.Catalogue(
            {
                "sku": [f"sku-{a}" for a in range(K)],
                "kind": [f"kind {c}" for c in kind],
                "price": rng.gamma(2.0, 5.0, K),
                "embedding": self.theta + 0.1 * rng.normal(size=(K, D)),
            }
        )
        self.kind = kind

    def contexts(self, n: int) -> Any:
        x = self.rng.normal(size=(n, D))
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    def log(self, n: int) -> LoggedData:
        X, chosen = self.contexts(n), self.rng.integers(0, K, n)
        rewards = np.einsum("nd,nd->n", X, self.theta[chosen]) + NOISE * self.rng.normal(size=n)
        return LoggedData(
            X,
            chosen,
            rewards,
            K,
            np.full(n, 1 / K),
            catalogue=self.items.actions,
            logging=ma.SoftmaxPolicy(np.zeros((K, D))),
        )

    def regret(self, agent: Any, X: Any) -> float:
        """What an agent misses of the best item on the way."""
        total = 0.0
        for x in X:
            name = agent.decide(x)
            means = self.theta @ x
            mean = means[self.items.actions.row(name)]
            total += means.max() - mean
            agent.observe(x, name, mean + NOISE * self.rng.normal())
        return total


def test_categories_as_mixing_weights() -> None:
    """meTS learns the kinds, an agent without features one item after the other: 150 rounds are fewer than items."""
    shop = Shop(0)
    X, linear = shop.contexts(150), ma.Linear(NOISE)
    prior = shop.items.prior(D, "kind", variance=1.0, share=0.9)
    with_kinds = shop.regret(ma.meTS(prior, linear, catalogue=shop.items, seed=0), X)
    without = shop.regret(ma.LinTS(prior.marginal(), linear, catalogue=shop.items, seed=0), X)
    assert with_kinds < 0.5 * without


def test_new_items_arrive_with_their_kind() -> None:
    shop = Shop(1)
    agent = ma.meTS(shop.items.prior(D, "kind"), ma.Linear(NOISE), catalogue=shop.items, seed=0)
    shop.regret(agent, shop.contexts(100))
    best = int(np.argmax([shop.theta[shop.kind == c].mean(axis=0)[0] for c in range(KINDS)]))
    new = {
        "sku": ["new", "odd"],
        "kind": [f"kind {best}", "never seen"],
        "price": [3.0, 3.0],
        "embedding": np.zeros((2, D)),
    }
    longer = shop.items.add(new)
    added = agent.add_actions(ids=["new", "odd"], weights=longer.mixing("kind")[K:])
    assert list(added) == ["new", "odd"]
    # what is known of its kind is known of it
    x = np.eye(D)[0]
    scores = {
        name: np.mean([agent.decide(x, candidates=["new", "odd"]) == name for _ in range(50)]) for name in new["sku"]
    }
    assert scores["new"] > 0.5


def test_a_mixture_of_the_embeddings() -> None:
    pytest.importorskip("sklearn")
    found, plain = 0.0, 0.0
    for seed in range(4):  # of one shop alone, luck would decide
        shop = Shop(seed)
        X, linear = shop.contexts(150), ma.Linear(NOISE)
        prior = shop.items.prior(D, "embedding", "mixture", effects=KINDS, variance=1.0, share=0.9)
        found += shop.regret(ma.meTS(prior, linear, catalogue=shop.items, seed=0), X)
        plain += shop.regret(ma.LinTS(prior.marginal(), linear, catalogue=shop.items, seed=0), X)
    assert found < 0.5 * plain


def test_contexts_of_actions_share_what_a_feature_is_worth() -> None:
    """Rewards are x^T W f_a: one matrix for all items, which an agent of contexts per action learns from any item."""
    rng = np.random.default_rng(3)
    shop = Shop(3)
    f = shop.items.features("embedding")
    W = rng.normal(size=(D, D)) / D
    p = (D + 1) * (D + 1)
    prior = ma.HierarchicalPrior(K, np.zeros(p), np.eye(p) / D, 1e-3 * np.eye(p))
    shared = ma.HierTS(prior, ma.Linear(NOISE), catalogue=shop.items, seed=0)
    alone = ma.LinTS(ma.ActionPrior(K, np.zeros(D), np.eye(D)), ma.Linear(NOISE), catalogue=shop.items, seed=0)
    missed = {"shared": 0.0, "alone": 0.0}
    for x in shop.contexts(100):
        means = f @ W.T @ x
        Z = shop.items.action_contexts(x, columns="embedding")
        for name, chosen in (("shared", shared.decide(action_contexts=Z)), ("alone", alone.decide(x))):
            row = shop.items.actions.row(chosen)
            missed[name] += means.max() - means[row]
            reward = means[row] + NOISE * rng.normal()
            shared.observe(Z[row], chosen, reward) if name == "shared" else alone.observe(x, chosen, reward)
    assert missed["shared"] < 0.7 * missed["alone"]


def test_clusters_narrow_an_estimate() -> None:
    """Items of one kind are nearly alike, so that weights of kinds say the same as weights of items, with less noise."""
    shop = Shop(4)
    log = shop.log(4000)
    policy = ma.SoftmaxPolicy(actions=8.0 * shop.theta)
    labels = shop.items.clusters(columns="kind")
    assert len(set(zip(labels.tolist(), shop.kind.tolist(), strict=True))) == KINDS
    found = ma.evaluate(policy, log, [ma.IPS(), ma.MIPS(labels)])
    by_item, by_kind = found["ips"], found["mips"]
    X = shop.contexts(2000)
    truth = float(
        np.mean([(p := np.exp(s - s.max())) @ (shop.theta @ x) / p.sum() for x in X for s in [8 * shop.theta @ x]])
    )
    # within a kind scores spread by 0.15, which a softmax at 8 tilts: weights by exp(8^2 0.15^2) = 4, means by 8 0.15^2 = 0.18
    assert by_kind.standard_error < 0.8 * by_item.standard_error
    assert abs(by_kind.value - truth) < 0.25 + 5 * by_kind.standard_error


def test_a_structured_prior_reads_a_log_better() -> None:
    shop = Shop(5)
    log = shop.log(600)  # less than three rows an item
    prior = shop.items.prior(D, "kind", variance=1.0, share=0.9)
    X, rows = shop.contexts(K), np.arange(K)
    truth = np.einsum("nd,nd->n", X, shop.theta)
    errors = [
        float(np.mean((model.predict(X, rows) - truth) ** 2))
        for model in (ma.sdm(log, prior, ma.Linear(NOISE)), ma.sdm(log, prior.marginal(), ma.Linear(NOISE)))
    ]
    assert errors[0] < 0.5 * errors[1]


def test_embeddings_as_a_policy_and_in_an_index() -> None:
    pytest.importorskip("torch")
    from manyarms.policies.retrieval import ExactScan

    shop = Shop(6)
    log, vectors = shop.log(1500), shop.items.embeddings()
    learned = ma.learn(log, ma.SoftmaxPolicy(actions=vectors), ma.IPS(), epochs=1, seed=0).policy
    X = shop.contexts(200)
    # a start that knows the items: their embeddings are their parameters, but for noise and length
    start, blank = (
        float(np.mean([np.exp(X @ v.T) / np.exp(X @ v.T).sum(1, keepdims=True) * (X @ shop.theta.T)]) * K)
        for v in (5.0 * vectors, np.zeros((K, D)))
    )
    assert start > blank + 0.5
    x = shop.contexts(1)[0]
    assert learned.decide(x) in shop.items
    found = ExactScan(vectors).search(vectors[:5], 1)[0]
    np.testing.assert_array_equal(found[:, 0], range(5))
    wide = np.column_stack([log.contexts, log.contexts])  # contexts of another length than embeddings
    other = LoggedData(wide, log.actions, log.rewards, K, log.propensities, catalogue=shop.items.actions)
    projected = ma.learn(other, ma.SoftmaxPolicy(actions=vectors), ma.IPS(), epochs=2, seed=0)
    assert projected.policy.dim == 2 * D and any("projection" in note for note in projected.notes)


def test_a_diffusion_prior_of_the_embeddings() -> None:
    pytest.importorskip("torch")
    shop = Shop(7)
    pretrained = ma.pretrain(shop.items.embeddings(normalise=False), depth=3, hidden=8, epochs=5, seed=0)
    agent = ma.dTS(pretrained.prior(K), ma.Linear(NOISE), catalogue=shop.items, seed=0)
    assert shop.regret(agent, shop.contexts(5)) >= 0


def test_two_stages_over_clusters() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    shop = Shop(8)
    log, labels = shop.log(800), shop.items.clusters(KINDS, "embedding")
    model = ma.sdm(log, shop.items.prior(D, "kind"), ma.Linear(NOISE))
    theta = np.stack([model.predict(np.eye(D), np.full(D, a)) for a in range(K)])
    two = ma.policies.TwoStagePolicy(np.zeros((KINDS, D)), labels, theta)
    learned = ma.learn(log, two, ma.estimators.OffCEM(labels, model), epochs=1, seed=0).policy
    assert learned.decide(shop.contexts(1)[0]) in shop.items


@pytest.mark.parametrize("kind", ["categories", "mixture"])
def test_all_items_have_the_variance_that_was_asked_for(kind: Any) -> None:
    if kind == "mixture":
        pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    table = {"sku": [f"s{i}" for i in range(60)], "kind": ["a|b", "b", "a|b|c"] * 20, "price": rng.normal(size=60)}
    items = ma.Catalogue(table, features=["kind", "price"])
    columns, told = ("kind", {"separator": "|"}) if kind == "categories" else ("price", {"effects": 3})
    prior = items.prior(2, columns, kind, variance=0.6, share=0.5, **told)
    shared = np.einsum("al,lij->aij", prior.weights**2, prior.effect_blocks)
    np.testing.assert_allclose(
        shared + prior.action_covariance, np.broadcast_to(0.6 * np.eye(2), (60, 2, 2)), atol=1e-12
    )
