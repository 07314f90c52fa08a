"""Effects that are independent are held as blocks: the same prior, and the same beliefs, as with the whole matrix."""

from __future__ import annotations

import copy
import dataclasses
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import manyarms as ma
from manyarms._base import block_diagonal
from manyarms._base.typing import Array
from manyarms.beliefs import Belief, IdentityMixing, Leaves, MixingMatrices, MixingWeights
from manyarms.beliefs.factored_root import FactoredRoot
from manyarms.beliefs.mixing import CommonMixing, Mixing
from manyarms.beliefs.roots import GaussianRoot

K, L, D = 7, 3, 2


def covariances(rng: np.random.Generator, number: int, size: int) -> Array:
    half = rng.standard_normal((number, size, size))
    return half @ np.swapaxes(half, 1, 2) + np.eye(size)


@pytest.fixture
def blocks(rng: np.random.Generator) -> Array:
    return covariances(rng, L, D)


@pytest.fixture
def weights(rng: np.random.Generator) -> Array:
    return rng.standard_normal((K, L))


def whole(blocks: Array) -> Array:
    """Written out, block by block."""
    out = np.zeros((len(blocks) * D, len(blocks) * D))
    for i, block in enumerate(blocks):
        out[i * D : (i + 1) * D, i * D : (i + 1) * D] = block
    return out


def test_blocks_and_the_matrix_that_they_make(blocks: Array, rng: np.random.Generator) -> None:
    matrix = whole(blocks)
    assert (block_diagonal.dense(blocks) == matrix).all()
    assert (block_diagonal.diagonal_blocks(matrix, L) == blocks).all()
    found = block_diagonal.blocks_of(matrix, L)
    assert found is not None and (found == blocks).all()
    matrix[0, -1] = 1e-300
    assert block_diagonal.blocks_of(matrix, L) is None


@pytest.mark.parametrize("given", ["blocks", "matrix"])
def test_a_prior_of_independent_effects_holds_blocks(given: str, blocks: Array, weights: Array) -> None:
    covariance = blocks if given == "blocks" else whole(blocks)
    prior = ma.MixedEffectPrior(weights, np.ones((L, D)), covariance, np.eye(D))
    assert prior.effect_blocks is not None
    assert_allclose(prior.effect_blocks, blocks, rtol=1e-15)
    assert_allclose(prior.effect_covariance, whole(blocks), rtol=1e-15)
    assert_allclose(prior.single_effect().covariance, blocks[0], rtol=1e-15)
    twice = prior.scaled(effect_covariance=2.0)
    assert twice.effect_blocks is not None
    assert_allclose(twice.effect_covariance, 2 * whole(blocks), rtol=1e-15)
    marginal = prior.marginal()
    for b, mean, spread in zip(weights, marginal.mean, marginal.covariance, strict=True):
        W = np.kron(b, np.eye(D))
        assert_allclose(mean, W @ np.ones(L * D), rtol=1e-12)
        assert_allclose(spread, W @ whole(blocks) @ W.T + np.eye(D), rtol=1e-12)
    wanted = whole(blocks)
    covariance[...] = 5.0  # the prior has its own
    assert_allclose(prior.effect_covariance, wanted, rtol=1e-15)
    for twin in (dataclasses.replace(prior, weights=2 * weights), copy.deepcopy(prior)):
        assert twin.effect_blocks is not None and (twin.effect_blocks == prior.effect_blocks).all()
    assert "effect_covariance" in repr(prior)
    with pytest.raises(AttributeError, match="effect_matrix"):
        prior.effect_matrix  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(dataclasses.FrozenInstanceError):
        prior.weights = weights  # type: ignore[misc]


def test_effects_that_hang_together_stay_one_matrix(weights: Array, rng: np.random.Generator) -> None:
    covariance = covariances(rng, 1, L * D)[0]
    prior = ma.MixedEffectPrior(weights, np.zeros((L, D)), covariance, np.eye(D))
    assert prior.effect_blocks is None
    assert (dataclasses.replace(prior, weights=weights).effect_covariance == prior.effect_covariance).all()
    assert_allclose(prior.effect_covariance, covariance, rtol=1e-15)
    assert_allclose(prior.scaled(effect_covariance=3.0).effect_covariance, 3 * covariance, rtol=1e-15)
    assert_allclose(prior.single_effect().covariance, covariance[:D, :D], rtol=1e-15)
    W = np.kron(weights[2], np.eye(D))
    assert_allclose(prior.marginal().covariance[2], W @ covariance @ W.T + np.eye(D), rtol=1e-12)


@pytest.mark.parametrize(
    "wrong", [np.ones((L, D, D)), np.eye(L * D + 1), np.stack([np.eye(D)] * (L + 1)), -np.eye(L * D), np.ones(4)]
)
def test_what_is_no_covariance_of_the_effects_is_refused(wrong: Array, weights: Array) -> None:
    with pytest.raises(ma.errors.InvalidInput, match="effect_covariance"):
        ma.MixedEffectPrior(weights, np.zeros((L, D)), wrong, np.eye(D))


def test_a_root_of_parts_is_the_root_of_their_matrix(blocks: Array, rng: np.random.Generator) -> None:
    mean = rng.standard_normal(L * D)
    ours, plain = GaussianRoot(mean, blocks), GaussianRoot(mean, whole(blocks))
    for name, array in plain.arrays().items():
        assert_allclose(ours.arrays()[name], array, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("rule", ["mean-field", "blockwise"])
def test_factored_roots_of_parts(rule: str, blocks: Array, rng: np.random.Generator) -> None:
    mean = rng.standard_normal(L * D)
    ours, plain = FactoredRoot(mean, blocks, L, rule), FactoredRoot(mean, whole(blocks), L, rule)
    for _ in range(5):
        u, value = rng.standard_normal(L * D), float(rng.standard_normal())
        for root in (ours, plain):
            root.observe(u, 0.7, value)
    assert_allclose(ours.mean(), plain.mean(), rtol=1e-12)
    covariance, other = (root.factor() @ root.factor().T for root in (ours, plain))  # square roots may differ
    assert_allclose(covariance, other, rtol=1e-12, atol=1e-14)
    again = FactoredRoot.restored(ours.options(), ours.arrays())
    assert (again.mean() == ours.mean()).all() and (again.factor() == ours.factor()).all()


def test_blockwise_effects_never_make_the_whole_matrix(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Two thousand numbers in the effects: neither the prior, nor the agent, nor its decisions and rows need their square."""

    def refuse(blocks: Array) -> Array:
        raise AssertionError("the whole matrix was made")

    monkeypatch.setattr(block_diagonal, "dense", refuse)
    prior = ma.MixedEffectPrior.isotropic(rng.standard_normal((30, 200)), 10)
    agent = ma.meTS(prior, factored="blockwise", seed=0)
    x = rng.uniform(-1, 1, 10)
    agent.observe(x, agent.decide(x), 1.0)
    agent.decide(x)
    assert agent.nbytes < 2**21


def test_a_batch_of_blockwise_effects_never_makes_the_whole_matrix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rng: np.random.Generator
) -> None:
    """Neither what the leaves tell, nor folding a log, nor saving and loading: a fourth of the whole matrix is room enough."""
    effects, d, n = 200, 10, 150

    def refuse(blocks: Array) -> Array:
        raise AssertionError("the whole matrix was made")

    monkeypatch.setattr(block_diagonal, "dense", refuse)
    prior = ma.MixedEffectPrior.isotropic(rng.standard_normal((30, effects)), d)
    agent = ma.meTS(prior, factored="blockwise", seed=0)
    X, actions, rewards = rng.uniform(-1, 1, (n, d)), rng.integers(0, 5, n), rng.standard_normal(n)
    tracemalloc.start()
    try:
        agent.observe(X, actions, rewards)
        agent.belief.fold([(X, actions, rewards)] * 2)
        agent.save(tmp_path / "agent")
        again = ma.load(tmp_path / "agent")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 8 * (effects * d) ** 2 / 4
    assert again.decide(X[0]) == agent.decide(X[0])


@pytest.mark.parametrize("own", [False, True])
def test_the_parts_of_evidence_are_the_blocks_of_the_whole(own: bool, weights: Array, rng: np.random.Generator) -> None:
    """A blockwise root that is given blocks learns what one learns that takes them from the whole matrix."""
    covariance = covariances(rng, K, D) if own else np.eye(D)
    mean = rng.standard_normal(L * D)
    X, actions, rewards = rng.standard_normal((40, D)), rng.integers(0, K, 40), rng.standard_normal(40)

    def learned(root: FactoredRoot) -> FactoredRoot:
        belief = Belief(root, Leaves(MixingWeights(weights), covariance), ma.Linear(0.5))
        for _ in range(2):  # new actions, and actions that told the root something before
            belief.fold([(X, actions, rewards)])
        return root

    root = FactoredRoot(mean, whole(covariances(rng, L, D)), L, "blockwise")
    ours, plain = learned(copy.deepcopy(root)), learned(WholeEvidence(copy.deepcopy(root)))
    assert ours.parts == L and plain.parts == 1
    for name, array in plain.arrays().items():
        assert_allclose(ours.arrays()[name], array, rtol=1e-12, atol=1e-12, err_msg=name)


class WholeEvidence(FactoredRoot):
    """A blockwise root that asks for the whole matrix."""

    def __init__(self, root: FactoredRoot) -> None:
        self.__dict__ = root.__dict__

    @property
    def parts(self) -> int:
        return 1


@pytest.mark.parametrize("mixing", [MixingWeights, MixingMatrices, CommonMixing, IdentityMixing])
def test_parts_of_what_any_mixing_gathers(mixing: type[Mixing], rng: np.random.Generator) -> None:
    d, ids = 2 * D, np.array([0, 3, 4])
    made = {
        MixingWeights: lambda: MixingWeights(rng.standard_normal((K, L))),
        MixingMatrices: lambda: MixingMatrices(rng.standard_normal((K, d, 2 * L))),
        CommonMixing: lambda: CommonMixing(rng.standard_normal((d, 2 * L))),
        IdentityMixing: IdentityMixing,
    }[mixing]()
    D_a, e = covariances(rng, len(ids), d), rng.standard_normal((len(ids), d))
    precision, information = made.gather(ids, D_a, e)
    for parts in [parts for parts in (2, L) if not made.root_dim(d) % parts]:
        blocks, same = made.gather_parts(ids, D_a, e, parts)
        assert_allclose(blocks, block_diagonal.diagonal_blocks(precision, parts), rtol=1e-12, atol=1e-12)
        assert_allclose(same, information, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("root", ["gaussian", "mean-field", "blockwise"])
def test_loading_a_root_inverts_nothing(
    root: str, monkeypatch: pytest.MonkeyPatch, blocks: Array, rng: np.random.Generator
) -> None:
    mean, covariance = rng.standard_normal(L * D), whole(blocks) + 0.5
    ours = GaussianRoot(mean, covariance) if root == "gaussian" else FactoredRoot(mean, covariance, L, root)
    for _ in range(3):
        ours.observe(rng.standard_normal(L * D), 0.7, float(rng.standard_normal()))
    sizes: list[int] = []
    factorise = np.linalg.cholesky

    def counted(matrices: Array) -> Array:
        sizes.append(int(matrices.shape[-1]))
        return factorise(matrices)

    def refuse(matrices: Array) -> Array:
        raise AssertionError("something was inverted")

    monkeypatch.setattr(np.linalg, "cholesky", counted)
    monkeypatch.setattr(np.linalg, "inv", refuse)
    again = type(ours).restored(ours.options(), ours.arrays())
    assert sizes.count(L * D) == (root != "blockwise")  # whether the prior's covariance is one, and no more
    monkeypatch.undo()
    assert again.kind == ours.kind and again.options() == ours.options()
    for name, array in ours.arrays().items():
        assert (again.arrays()[name] == array).all(), name
    assert (again.mean() == ours.mean()).all() and (again.factor() == ours.factor()).all()
