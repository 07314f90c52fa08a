"""A policy with a schema is its twin without, by other names; filters restrict its law and change nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

import manyarms as ma
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.logs import Actions, Encoding, Schema
from manyarms.policies import (
    EpsilonMixture,
    FixedPolicy,
    FunctionPolicy,
    GaussianPolicy,
    MixedLogitPolicy,
    SoftmaxPolicy,
    StreamedPolicy,
    TopSoftmaxPolicy,
    UniformPolicy,
)

K, D = 7, 3
NAMES = list("gfedcba")
WEIGHTS = np.random.default_rng(0).normal(size=(K, D))
X = np.random.default_rng(1).normal(size=(9, D))
ENCODER = Encoding().fit({"age": [1.0, 2.0, 4.0], "size": [0.0, 5.0, 1.0]}, ["age", "size"])

POLICIES: dict[str, StreamedPolicy] = {
    "softmax": SoftmaxPolicy(WEIGHTS),
    "Gaussian": GaussianPolicy(WEIGHTS),
    "mixed logit": MixedLogitPolicy(WEIGHTS, draws=500),
    "top": TopSoftmaxPolicy(WEIGHTS, 4),
    "fixed": FixedPolicy(np.arange(1, K + 1) / np.arange(1, K + 1).sum()),
    "uniform": UniformPolicy(K),
    "mixture": EpsilonMixture(SoftmaxPolicy(WEIGHTS), 0.2),
}


def twin(kind: str) -> StreamedPolicy:
    """The same policy with ids."""
    made = POLICIES[kind]
    again = type(made).restored(made.saved_spec(), made.arrays())
    again.schema = Schema(catalogue=Actions(NAMES))
    return again


@pytest.mark.parametrize("kind", POLICIES)
def test_a_policy_with_ids_is_its_twin_without(kind: str, tmp_path: Path) -> None:
    plain, of = POLICIES[kind], np.array(NAMES, dtype=object)
    twin(kind).save(tmp_path)
    for called in (twin(kind), ma.load(tmp_path)):
        assert_array_equal(called.decide(X), of[plain.decide(X)])
        assert_array_equal(called.decide(X, k=3), of[plain.decide(X, k=3)])
        assert called.decide(X[0]) == NAMES[plain.decide(X[0])]
        filters = {"candidates": ["a", "c", "e"], "exclude": ["c", "gone"]}
        assert_array_equal(called.decide(X, **filters), of[plain.decide(X, candidates=[6, 4, 2], exclude=[4, 99])])
        assert_array_equal(called.sample(X, 3), of[plain.sample(X, 3)])
        assert_array_equal(called.sample_rows(X, 3), plain.sample(X, 3))  # the inside speaks rows
        assert called.sample(X[0], 3) == NAMES[plain.sample(X[0], 3)]
        assert_array_equal(
            called.propensity(X, of[:K].repeat(2)[: len(X)]), plain.propensity(X, np.arange(K).repeat(2)[: len(X)])
        )
        assert called.propensity(X[0], "e") == plain.probabilities_of(X[:1], [2])[0]
        assert called.schema.catalogue == Actions(NAMES)


@pytest.mark.parametrize("kind", POLICIES)
def test_filters_are_the_law_given_what_is_on_offer(kind: str) -> None:
    """pi(a | x, a on offer) = pi(a|x) / sum over b on offer of pi(b|x), for lists, masks and sparse masks alike."""
    policy, rng = twin(kind), np.random.default_rng(5)
    mask = rng.random((len(X), K)) < 0.5
    mask[np.arange(len(X)), POLICIES[kind].decide(X)] = True  # something that it plays
    dense = policy.probabilities_of_many(X, np.tile(np.arange(K), (len(X), 1))) * mask
    dense /= dense.sum(axis=1, keepdims=True)
    of = np.array(NAMES, dtype=object)
    lists = [of[row].tolist() for row in mask]
    others = [of[~row].tolist() for row in mask]
    for filters in (
        {"candidates": lists},
        {"candidates": mask},
        {"exclude": sparse.csr_array(~mask)},
        {"exclude": others},
    ):
        for action, name in enumerate(NAMES):
            assert_allclose(policy.propensity(X, [name] * len(X), **filters), dense[:, action], atol=1e-12)
        assert_array_equal(policy.decide(X, **filters), policy.decide(X, candidates=lists))
        assert_array_equal(policy.sample(X, 4, **filters), policy.sample(X, 4, candidates=lists))
    n = 1000
    for i in (0, 4):
        seen = Actions(NAMES).rows(policy.sample(np.repeat(X[i : i + 1], n, axis=0), 9, candidates=lists[i]))
        counts, played = np.bincount(seen, minlength=K), dense[i] > 0
        assert not counts[~played].any()
        if played.sum() > 1:
            expected = n * dense[i][played]
            large = expected > 5
            assert (
                stats.chisquare(
                    np.append(counts[played][large], counts[played][~large].sum() + 1e-9),
                    np.append(expected[large], expected[~large].sum() + 1e-9),
                ).pvalue
                > 1e-6
            )


def test_contexts_may_be_rows_of_a_table(tmp_path: Path) -> None:
    policy = SoftmaxPolicy(WEIGHTS)
    policy.schema = Schema(ENCODER, Actions(NAMES))
    table = {"age": [2.0, 3.0], "size": [1.0, 4.0]}
    row = {"age": 3.0, "size": 4.0}
    policy.save(tmp_path)
    for one in (policy, ma.load(tmp_path)):
        contexts = ENCODER.apply(table)
        assert_array_equal(one.decide(table), one.decide(contexts))
        assert one.decide(row) == one.decide(contexts[1]) == one.decide([row, row])[0]
        assert one.sample(row, 3) == one.sample(contexts[1], 3)
        assert_array_equal(one.sample(table, 3), one.sample(contexts, 3))
        assert one.propensity(row, "a") == one.propensity(contexts[1], "a")
        assert_array_equal(one.propensity(table, ["a", "b"]), one.propensity(contexts, ["a", "b"]))
    with pytest.raises(InvalidInput, match="encoder="):
        SoftmaxPolicy(WEIGHTS).decide(row)
    with pytest.raises(InvalidInput, match="'size'"):
        policy.sample({"age": 3.0})


def test_what_is_refused() -> None:
    policy = twin("top")
    wrong: dict[str, Any] = {
        "unknown candidate": lambda: policy.decide(X, candidates=["z"]),
        "no id": lambda: policy.decide(X, exclude=[1.5]),
        "number in place of a text": lambda: policy.decide(X, candidates=[3]),
        "unknown action": lambda: policy.propensity(X[0], "z"),
        "several actions": lambda: policy.propensity(X[0], ["a", "b"]),
        "too few actions": lambda: policy.propensity(X, ["a", "b"]),
        "one list too few": lambda: policy.sample(X, 0, candidates=[["a"]] * 8),
        "nothing left": lambda: policy.sample(X, 0, candidates=["a"], exclude=["a"]),
        "lists for one context": lambda: policy.decide(X[0], candidates=[["a"]]),
        "a narrow mask": lambda: policy.decide(X, candidates=np.ones((len(X), K - 1), dtype=bool)),
    }
    for name, call in wrong.items():
        with pytest.raises(InvalidInput):
            pytest.fail(f"{name}: {call()}")
    with pytest.raises(UnknownAction, match=r"candidates\[2\]"):
        policy.decide(X[:3], candidates=[["a"], ["b"], ["z"]])
    never = int(np.argmin(WEIGHTS @ X[0]))  # the worst of seven is not among the best four
    with pytest.raises(InvalidInput, match="never plays in context 0"):
        policy.sample(X[0], 0, candidates=[NAMES[never]])
    assert policy.decide(X[0], candidates=[NAMES[never]]) == NAMES[never]
    assert FunctionPolicy(lambda x, ids: np.full(len(ids), 0.5), 2).propensity([1.0], 1) == 0.5


def test_a_schema_that_does_not_fit_is_not_loaded(tmp_path: Path) -> None:
    policy = UniformPolicy(3)
    policy.schema = Schema(catalogue=Actions(["a", "b"]))
    policy.save(tmp_path)
    with pytest.raises(ma.errors.StorageError, match="a catalogue of 2 actions"):
        ma.load(tmp_path)


def test_what_is_on_offer_is_weighed_against_itself() -> None:
    """Beside the best of all actions those on offer underflow; beside each other they do not."""
    policy = SoftmaxPolicy(np.array([[4000.0], [1.0], [0.0], [-800.0]]))
    x = np.array([1.0])
    odds = 1 / (1 + np.exp(-1.0))
    assert_allclose(policy.propensity(x, 1, candidates=[1, 2]), odds, rtol=1e-12)
    assert_allclose(policy.propensity(x, 2, exclude=[0]), 1 - odds, rtol=1e-12)
    assert policy.sample(x, rng=0, candidates=[3]) == policy.decide(x, candidates=[3]) == 3
    drawn = policy.sample(np.ones((2000, 1)), rng=0, candidates=[1, 2])
    count = int((np.asarray(drawn) == 1).sum())
    assert stats.binomtest(count, 2000, odds).pvalue > 1e-6
