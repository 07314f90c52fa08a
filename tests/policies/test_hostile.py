"""Policies in hostile hands: nothing without a meaning is taken, no size of K is held, extreme numbers give probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms.policies import (
    DeterministicPolicy,
    EpsilonMixture,
    ExactScan,
    FixedPolicy,
    FunctionPolicy,
    GaussianPolicy,
    Layers,
    MixedLogitPolicy,
    Projection,
    SegmentSoftmaxPolicy,
    SoftmaxPolicy,
    SupportSoftmaxPolicy,
    TopSoftmaxPolicy,
    TwoStagePolicy,
    UniformPolicy,
)

K, D, ROWS = 6, 3, 8
rng = np.random.default_rng(0)
BETA, X = rng.normal(size=(K, D)), rng.normal(size=(ROWS, D))
ALL = np.tile(np.arange(K), (ROWS, 1))
HUGE = 2**62


def masked(array: np.ndarray) -> np.ma.MaskedArray:
    mask = np.zeros(array.shape, dtype=bool)
    mask.flat[0] = True
    return np.ma.array(array, mask=mask)


def every_policy() -> list[Any]:
    return [
        SoftmaxPolicy(BETA), GaussianPolicy(BETA), MixedLogitPolicy(BETA, draws=64), UniformPolicy(K),
        FixedPolicy(np.full(K, 1 / K)), TopSoftmaxPolicy(BETA, 3), SegmentSoftmaxPolicy(BETA, BETA[:2], [[0, 1], [2, 3]]),
        TwoStagePolicy(BETA[:2], [0, 0, 0, 1, 1, 1], BETA), SupportSoftmaxPolicy(BETA, TopSoftmaxPolicy(BETA, 2)),
        DeterministicPolicy(lambda x: np.zeros(len(x), dtype=int), K), EpsilonMixture(SoftmaxPolicy(BETA), 0.1),
        FunctionPolicy(lambda x, ids: np.full(len(ids), 1 / K), K),
    ]  # fmt: skip


@pytest.mark.parametrize("policy", every_policy(), ids=lambda policy: type(policy).__name__)
def test_no_policy_takes_what_means_nothing(policy: Any) -> None:
    for wrong in (masked(X), X.astype(str), [[1.0], [1.0, 2.0]], X + 1j, X[None], np.full_like(X, np.nan), None, X[0]):
        with pytest.raises(InvalidInput, match="X"):
            policy.probabilities_of(wrong, np.zeros(ROWS, dtype=int))
    for wrong in (masked(X[0]), "abc", [[1.0], [1.0, 2.0]], np.full(D, np.nan)):
        with pytest.raises(InvalidInput, match="x"):
            policy.decide(wrong)
    for wrong in (
        masked(ALL),
        ALL + 0.5,
        ALL.astype(str),
        [[1], [1, 2]],
        ALL[:2],
        ALL + K,
        np.full(ALL.shape, 2**64 - 1, np.uint64),
    ):
        with pytest.raises(InvalidInput, match="ids"):
            policy.probabilities_of_many(X, wrong)
    for name in ("exclude", "candidates"):
        unknown = [[-1]] if name == "candidates" else []  # what is not there need not be left out
        for wrong in (masked(np.arange(2)), [0.5], "a", [[1], [1, 2]], np.ma.masked, [2**70], *unknown):
            with pytest.raises(InvalidInput, match=name):
                policy.decide(X[0], **{name: wrong})
    for labels, wanted in (
        ([0, 1, np.nan, 0, 1, 1], [0] * ROWS),
        (list("aabbcc"), [0] * ROWS),
        (masked(np.arange(K)), [0] * ROWS),
    ):
        with pytest.raises(InvalidInput, match=r"labels|wanted"):
            policy.group_mass(X, labels, wanted)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: SoftmaxPolicy(masked(BETA)), "actions"),
        (lambda: SoftmaxPolicy(masked(BETA.astype(np.float32))), "actions"),
        (lambda: SoftmaxPolicy([[1.0], [1.0, 2.0]]), "actions"),
        (lambda: SoftmaxPolicy(BETA.astype(str)), "actions"),
        (lambda: SoftmaxPolicy(np.zeros((K, D), [("f", float)])), "actions"),
        (lambda: SoftmaxPolicy(np.empty((K, 0))), "actions"),
        (lambda: SoftmaxPolicy(BETA, 5e-324), "temperature"),
        (lambda: SoftmaxPolicy(BETA, 10**400), "temperature"),
        (lambda: GaussianPolicy(BETA, nodes=10**15), "nodes"),
        (lambda: MixedLogitPolicy(BETA, draws=10**15), "draws"),
        (lambda: FixedPolicy(masked(np.full(2, 0.5))), "probabilities"),
        (lambda: UniformPolicy(2**63), "actions"),
        (lambda: UniformPolicy(HUGE).decide(X, k=2**50), "k"),
        (lambda: DeterministicPolicy(3, K), "decide"),
        (lambda: DeterministicPolicy(lambda x: None, K).sample(X), "decide"),
        (lambda: DeterministicPolicy(lambda x: masked(np.zeros(len(x), dtype=int)), K).sample(X), "decide"),
        (lambda: FunctionPolicy("x", K), "probabilities"),
        (lambda: FunctionPolicy(lambda x, ids: np.full(len(ids), np.nan), K).sample(X), "probabilities"),
        (lambda: EpsilonMixture(3, 0.1), "policy"),
        (lambda: EpsilonMixture(SoftmaxPolicy, 0.1), "policy"),
        (lambda: Layers(3, [np.zeros(D)]), "weights"),
        (lambda: Layers([np.eye(D)], [np.zeros(D)], ["relu"]), "activation"),
        (lambda: Projection(masked(np.eye(D))), "W"),
        (lambda: SegmentSoftmaxPolicy(BETA, BETA[:1], masked(np.array([[0, 1]]))), "lists"),
        (lambda: TwoStagePolicy(BETA[:2], [0.0, 0, 0, 1, 1, 1], BETA), "labels"),
        (lambda: TwoStagePolicy(BETA[:2], masked(np.array([0, 0, 0, 1, 1, 1])), BETA), "labels"),
        (lambda: TwoStagePolicy(BETA[:2], [0, 0, 0, 1, 1, 1], BETA).best_actions(X[:, :2]), "X"),
        (lambda: TwoStagePolicy(BETA[:2], [0, 0, 0, 1, 1, 1], BETA).cluster_probabilities(X * np.nan), "X"),
        (lambda: SegmentSoftmaxPolicy(BETA, BETA[:1], [[0, 1]]).segment_of(X + 1j), "X"),
        (lambda: ExactScan(BETA).search(X, 2, exclude=[[1], [1, 2]]), "exclude"),
        (lambda: ExactScan(BETA).search(X, 2, exclude=masked(np.arange(2))), "exclude"),
        (lambda: SoftmaxPolicy(BETA.astype(np.float32)).sample(X * 1e60), "X"),
        (lambda: SoftmaxPolicy(BETA * 1e99, encoder=Layers([np.eye(D) * 1e99] * 3, [np.zeros(D)] * 3)).sample(X * 1e99), "X"),
    ],
)  # fmt: skip
def test_what_makes_no_policy_is_refused_by_name(make: Callable[[], Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        make()


def test_a_policy_does_not_change_with_the_arrays_that_it_came_from() -> None:
    given = {"beta": BETA.copy(), "centres": BETA[:2].copy(), "lists": np.array([[0, 1], [2, 3]]), "W": np.eye(D)}
    given |= {"labels": np.array([0, 0, 0, 1, 1, 1]), "p": np.full(K, 1 / K)}
    made = [
        SoftmaxPolicy(given["beta"], encoder=Projection(given["W"])),
        SegmentSoftmaxPolicy(given["beta"], given["centres"], given["lists"]),
        TwoStagePolicy(given["centres"], given["labels"], given["beta"]), FixedPolicy(given["p"]), GaussianPolicy(given["beta"]),
    ]  # fmt: skip
    before = [policy.probabilities_of_many(X, ALL) for policy in made]
    for array in given.values():
        array[...] = 0
    for policy, probabilities in zip(made, before, strict=True):
        np.testing.assert_array_equal(policy.probabilities_of_many(X, ALL), probabilities)
    with pytest.raises(ValueError, match="read-only"):
        made[0].actions[0] = 0.0  # type: ignore[attr-defined]


def test_a_table_that_is_private_already_is_not_copied() -> None:
    policy = SoftmaxPolicy(BETA)
    assert SoftmaxPolicy(policy.actions, 2.0).actions is policy.actions
    assert BETA.flags.writeable


@pytest.mark.parametrize("kind", [SoftmaxPolicy, GaussianPolicy, lambda beta: MixedLogitPolicy(beta, draws=64)])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_extreme_numbers_give_probabilities_or_an_error(kind: Callable[[Any], Any], precision: type) -> None:
    """From denormal numbers to the largest there may be: what is not refused sums to 1, and has an action for every context."""
    answered = 0
    for scale in (1e-320, 1e-160, 1e-30, 1.0, 1e9, 1e30, 1e99):
        for size in (1e-320, 1e-160, 1.0, 1e15, 1e40, 1e99):
            with np.errstate(over="ignore", under="ignore"):
                beta = (BETA * scale).astype(precision)
            if not np.isfinite(beta).all():
                continue
            policy = kind(beta)
            try:
                probabilities = policy.probabilities_of_many(X * size, ALL)
                chosen = policy.decide(X * size)
            except InvalidInput:
                continue
            answered += 1
            np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-2 if precision == np.float32 else 1e-6)
            assert ((chosen >= 0) & (chosen < K)).all()
    assert answered >= 10


def test_contexts_that_are_nearly_nothing_keep_their_direction() -> None:
    """h / ||h|| is the same for all lengths, also where the square of the length is 0 or infinite."""
    policy = GaussianPolicy(BETA)
    exact = policy.probabilities_of_many(X, ALL)
    for size in (1e-200, 1e-290, 1e98):
        np.testing.assert_allclose(policy.probabilities_of_many(X * size, ALL), exact, atol=1e-9)


def test_a_uniform_policy_of_any_size() -> None:
    policy = UniformPolicy(HUGE)
    np.testing.assert_array_equal(policy.probabilities_of(X, np.zeros(ROWS, dtype=int)), 1 / HUGE)
    np.testing.assert_array_equal(policy.decide(X[:2], k=3, exclude=[0, 2]), [[1, 3, 4]] * 2)
    drawn = policy.sample(np.zeros((4000, 1)), 0)
    assert drawn.min() >= 0 and drawn.max() < HUGE
    assert abs(drawn.astype(float).mean() / HUGE - 0.5) < 5 / np.sqrt(12 * 4000)
    small = UniformPolicy(K)
    np.testing.assert_allclose(small.group_mass(X, [0, 0, 0, 1, 1, 5], [0, 1, 5, 7] * 2), [0.5, 1 / 3, 1 / 6, 0] * 2)
    np.testing.assert_allclose(small.expectation(X, lambda x, ids: np.tile(ids, (len(x), 1))), (K - 1) / 2)


def test_a_listed_policy_of_any_size() -> None:
    """Beyond its list come the lowest ids; pairs of rows and ids are told apart where they do not fit into 64 bits."""
    played = np.arange(HUGE - ROWS, HUGE)
    policy = DeterministicPolicy(lambda x: played[: len(x)], HUGE)
    np.testing.assert_array_equal(policy.decide(X, k=3, exclude=[1]), [[own, 0, 2] for own in played])
    np.testing.assert_array_equal(policy.probabilities_of(X, played), 1.0)
    np.testing.assert_array_equal(policy.probabilities_of(X, played[::-1]), 0.0)


def test_a_short_list_is_filled_as_by_looking_at_all_actions() -> None:
    policy = TopSoftmaxPolicy(BETA, 3)
    for barred in ([], [0], [1, 4]):
        for k in range(1, K - len(barred) + 1):
            mass = policy.probabilities_of_many(X, ALL)
            mass[:, barred] = -1.0
            order = np.argsort(-mass, axis=1, kind="stable")[:, :k]
            np.testing.assert_array_equal(policy.decide(X, k=k, exclude=np.array(barred, dtype=int)), order)


def test_faiss_finds_the_same_at_any_scale() -> None:
    pytest.importorskip("faiss")
    from manyarms.policies import FaissIndex

    for scale in (1e-60, 1.0, 1e60):
        index = FaissIndex(BETA * scale, lists=2, probes=10**12, seed=2**100)
        np.testing.assert_array_equal(index.search(X, 2)[0], ExactScan(BETA).search(X, 2)[0])
