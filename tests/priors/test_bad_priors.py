"""Priors, links and what they are learned from: refused where they come in, and their own from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms import priors
from manyarms.errors import InvalidInput

EYE = np.eye(2)


def arrays_of(thing: object) -> dict[str, np.ndarray]:
    return {name: value for name, value in vars(thing).items() if isinstance(value, np.ndarray)}


MADE: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "ActionPrior": (lambda m, c: ma.ActionPrior(4, m, c), [np.zeros(2), EYE]),
    "ActionPrior, each": (lambda m, c: ma.ActionPrior(2, m, c), [np.zeros((2, 2)), np.stack([EYE, EYE])]),
    "HierarchicalPrior": (lambda m, c, a: ma.HierarchicalPrior(4, m, c, a), [np.zeros(2), EYE, EYE]),
    "MixedEffectPrior": (ma.MixedEffectPrior, [np.ones((4, 3)), np.zeros((3, 2)), np.eye(6), EYE]),
    "LatentPrior": (priors.LatentPrior, [np.ones((4, 2, 3)), np.zeros(3), np.eye(3), EYE]),
    "TwoLevelPrior": (lambda W, c, a: priors.TwoLevelPrior(4, W, c, a), [np.ones((2, 3)), np.eye(3), EYE]),
    "DiffusionPrior": (lambda W, c: ma.DiffusionPrior(4, 2, [W], c), [EYE / 2, np.stack([EYE, EYE])]),
    "LinearLink": (priors.LinearLink, [EYE]),
    "Factors": (priors.Factors, [np.ones((3, 2)), np.ones((5, 2))]),
}


@pytest.mark.parametrize(("make", "parts"), MADE.values(), ids=MADE)
def test_what_the_caller_does_with_its_arrays_changes_nothing(
    make: Callable[..., Any], parts: list[np.ndarray]
) -> None:
    given = [part.copy() for part in parts]
    prior = make(*given)
    before = {name: value.copy() for name, value in arrays_of(prior).items()}
    assert before
    for part in given:
        part[...] = 7.0
    for name, value in arrays_of(prior).items():
        assert np.array_equal(value, before[name]), name
        assert not value.flags.writeable, name


def test_a_chain_and_a_network_keep_their_links() -> None:
    W, A, c = EYE / 2, EYE.copy(), np.zeros(2)
    chain = ma.DiffusionPrior(4, 2, [W, priors.NetworkLink(0.5, [(A, c)])], [1.0, 1.0, 1.0])
    x = np.array([[0.3, -0.4]])
    before = [link(x) for link in chain.links]
    for part in (W, A, c):
        part[...] = 7.0
    assert all(np.array_equal(link(x), old) for link, old in zip(chain.links, before, strict=True))
    assert np.array_equal(chain.links[1].jacobian(x)[0], 1.5 * EYE)


def test_a_link_that_writes_on_its_points_or_on_what_it_returned_does_no_harm() -> None:
    buffer = np.empty((8, 2))

    def in_place(points: np.ndarray) -> np.ndarray:
        return np.tanh(points, out=points)

    def reused(points: np.ndarray) -> np.ndarray:
        out = buffer[: len(points)] if len(points) <= 8 else np.empty(points.shape)
        return np.tanh(points, out=out)

    points = np.array([[0.2, -0.3], [0.5, 0.1]])
    kept, expected = points.copy(), priors.FunctionLink(np.tanh)
    for function in (in_place, reused):
        link = priors.FunctionLink(function)
        assert np.array_equal(link(points), np.tanh(kept)) and np.array_equal(points, kept)
        assert np.array_equal(link.jacobian(points), expected.jacobian(points))


def chain(*links: Any, covariances: Any = (1.0, 1.0), dim: Any = 2, **options: Any) -> ma.DiffusionPrior:
    return ma.DiffusionPrior(4, dim, list(links), covariances, **options)


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "covariances in a set": (lambda: chain(EYE, covariances={1.0, 2.0}), "covariances"),
    "covariances as text": (lambda: chain(EYE, covariances="ab"), "covariances"),
    "a denormal diagonal": (lambda: chain(EYE, covariances=[[5e-324, 1.0], 1.0]), r"covariances\[0\]"),
    "links as an array of numbers": (lambda: ma.DiffusionPrior(4, 2, np.zeros((2, 2)), [1.0] * 3), r"links\[0\]"),
    "links as a set": (lambda: ma.DiffusionPrior(4, 2, {1}, [1.0] * 2), "links"),
    "a link of another size": (lambda: chain(np.eye(3)), r"links\[0\]"),
    "a link that raises": (lambda: chain(lambda p: {}["no"]), "fails on points"),
    "a link that is complex": (lambda: chain(lambda p: p + 1j), "numbers"),
    "a link that is masked": (lambda: chain(lambda p: np.ma.array(p, mask=True)), "numbers"),
    "a jacobian of another shape": (
        lambda: priors.FunctionLink(np.tanh, lambda p: p).jacobian(np.ones((3, 2))),
        "jacobian",
    ),
    "a link that is no function": (lambda: priors.FunctionLink(3), "function"),
    "shared by a word": (lambda: chain(EYE, shared="no"), "shared"),
    "more dimensions than memory": (lambda: chain(np.tanh, dim=10**12), "dim: expected at most"),
    "draws without a generator": (lambda: chain(np.tanh).draw(3), "rng"),
    "more draws than memory": (lambda: chain(np.tanh).centre_moments(draws=10**13), "at most"),
    "a level that is True": (lambda: chain(EYE).two_level(True), "keep"),
    "two levels of other sizes": (lambda: priors.TwoLevelPrior(4, np.ones((2, 3)), EYE, EYE), "covariance"),
    "two levels of a list": (lambda: priors.TwoLevelPrior([3], EYE, EYE, EYE), "actions"),
    "two levels that are NaN": (lambda: priors.TwoLevelPrior(4, EYE * np.nan, EYE, EYE), "matrix"),
    "two levels, not definite": (lambda: priors.TwoLevelPrior(4, EYE, -EYE, EYE), "covariance"),
    "a skip that is infinite": (lambda: priors.NetworkLink(np.inf, [(EYE, np.zeros(2))]), "skip"),
    "layers that are text": (lambda: priors.NetworkLink(0.0, "ab"), "layers"),
    "layers that are no pairs": (lambda: priors.NetworkLink(0.0, [EYE[0]]), "layers"),
    "a random network of huge size": (lambda: priors.NetworkLink.random(10**12, 5, np.random.default_rng(0)), "hidden"),
    "a random network from a seed": (lambda: priors.NetworkLink.random(2, 5, 3), "rng"),
    "no effects": (lambda: ma.MixedEffectPrior(np.ones((3, 0)), np.zeros((0, 2)), np.eye(0), EYE), "weights"),
    "effects in dimensions beyond memory": (lambda: ma.MixedEffectPrior.isotropic(np.ones((3, 2)), 10**12), "dim"),
    "a scale that is text": (lambda: ma.MixedEffectPrior.isotropic(np.ones((3, 2)), 2).scaled(weights="a"), "weights"),
    "an integer of 400 digits": (lambda: ma.ActionPrior(4, [10**400, 0], EYE), "mean"),
    "factors of different lengths": (lambda: priors.Factors(np.ones((3, 2)), np.ones((3, 1))), "items"),
    "a user that is not there": (lambda: priors.Factors(EYE, EYE).predict([2], [0]), "users"),
    "a mixture of huge numbers": (lambda: priors.mixture(np.diag([1e60, 1.0, 2.0]), 1), "parameters"),
    "a mixture of denormal spread": (lambda: priors.mixture(np.diag([1e-200, 0.0]), 1), "parameters"),
    "a mixture by an array": (lambda: priors.mixture(np.eye(4), 2, spread=np.zeros(2)), "spread"),
    "a share of 1": (lambda: priors.mixture(np.eye(4), 2, effect_share=1.0), "effect_share"),
    "pre-training with bytes": (lambda: ma.pretrain(np.eye(4), 2, hidden=b"33"), "hidden"),
    "pre-training on huge numbers": (lambda: ma.pretrain(np.eye(4) * 1e90, 2), "parameters"),
    "pre-training in no step": (lambda: ma.pretrain(np.eye(4), 2, schedule=[1e-20, 0.999]), "schedule"),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD)
def test_it_is_refused_by_name(call: Callable[[], object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        call()


def test_sizes_of_a_byte_do_not_overflow() -> None:
    byte = np.uint8
    assert ma.DiffusionPrior(byte(200), byte(2), [EYE], [1.0, 1.0]).with_actions(byte(250)).actions == 250
    link = priors.NetworkLink.random(byte(20), byte(60), np.random.default_rng(0))
    assert link.layers[0][0].shape == (60, 20)


# ---- ratings


def test_a_huge_index_is_a_mistake_unless_the_shape_says_so() -> None:
    with pytest.raises(InvalidInput, match=r"items: .*shape=\(users, items\)"):
        priors.factorise([0, 1], [0, 10**9], [1.0, 2.0], 2)
    with pytest.raises(InvalidInput, match="at most"):
        priors.factorise([0, 1], [0, 1], [1.0, 2.0], 2, shape=(2, 10**13))
    found = priors.factorise([0, 1], [0, 10**5], [1.0, 2.0], 2, shape=(2, 2 * 10**5), seed=3)
    rated = [0, 10**5]
    assert np.flatnonzero(found.items.any(axis=1)).tolist() == rated
    # nobody else has a part in it: the vectors solve the equations of the rated alone
    for user, item, rating in ((0, 0, 1.0), (1, 10**5, 2.0)):
        v = found.users[user]
        assert np.allclose((np.outer(v, v) + np.eye(2)) @ found.items[item], rating * v)


def test_a_ridge_that_rounding_swallows_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ridge: expected at least"):
        priors.factorise([0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0], 2, ridge=1e-17)


@pytest.mark.parametrize("size", [1e60, 1e99])
def test_linear_links_whose_variances_overflow_are_refused(size: float) -> None:
    with pytest.raises(ma.errors.InvalidInput, match=r"^links: expected links that make variances below"):
        ma.DiffusionPrior(5, 2, [size * np.eye(2), np.eye(2)], [np.eye(2)] * 3)
