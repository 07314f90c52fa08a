"""What cannot be certified is refused by name before the log is read; nothing that is accepted becomes NaN."""

from __future__ import annotations

import contextlib
import dataclasses
import math

import numpy as np
import pytest

from manyarms.bounds import BOUNDS, Budget, Grid, LogSmoothingBound, Unified, chernoff_upper
from manyarms.bounds.base import divergence
from manyarms.certificates import PolicyPrior, certify, improvement, rows_needed, summarise
from manyarms.errors import Contradiction, InvalidInput
from manyarms.estimators import DR, ES, SNIPS
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy, UniformPolicy
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy
from manyarms.rewards import LinearModel
from manyarms.weights import ClipPropensities, ExponentialAlpha, LogSmoothing, NoCorrection

N, K, D = 40, 5, 3
RNG = np.random.default_rng(0)
X, A = RNG.normal(size=(N, D)), RNG.integers(K, size=N)
R = (RNG.random(N) < 0.5).astype(float)
MEAN = RNG.normal(size=(K, D))
POLICY, GAUSSIAN = SoftmaxPolicy(MEAN), GaussianPolicy(MEAN)
LOG = LoggedData(X, A, R, K, np.full(N, 1 / K), logging=UniformPolicy(K))
SUMMARY = summarise(POLICY, LOG, [NoCorrection(), LogSmoothing(0.1)])


class NoRows:
    action_count, dim = K, D

    def chunks(self, rows=1):
        return iter(())


def numbers_in(thing):
    """All floats in a result."""
    if isinstance(thing, float):
        yield thing
    elif dataclasses.is_dataclass(thing):
        for one in dataclasses.fields(thing):
            yield from numbers_in(getattr(thing, one.name, None))
    elif isinstance(thing, dict):
        for one in thing.values():
            yield from numbers_in(one)
    elif isinstance(thing, tuple | list):
        for one in thing:
            yield from numbers_in(one)


@pytest.mark.parametrize(
    ("argument", "bad"),
    [
        ("policy", None), ("policy", SoftmaxPolicy), ("policy", np.zeros(3)), ("policy", UniformPolicy(K + 1)),
        ("log", "log"), ("log", NoRows()), ("log", LoggedData), ("prior", 3), ("prior", MEAN), ("prior", POLICY),
        ("delta", 0.0), ("delta", 1), ("delta", 5e-324), ("delta", 1 - 1e-16), ("delta", "a"), ("delta", np.array([0.1, 0.2])),
        ("bound", []), ("bound", {}), ("bound", "nope"), ("bound", [["ls"]]), ("bound", iter(["ls"])), ("bound", Unified),
        ("bound", SNIPS()), ("bound", ES("adaptive")), ("bound", DR(LinearModel(MEAN))),
        ("grid", {}), ("grid", np.zeros((2, 2))), ("grid", Grid), ("largest_reward", math.nan), ("largest_reward", 5e-324),
        ("two_sided", "no"), ("learned_from", "rows"), ("largest_group", 2.5), ("independent", None), ("draws", 2.5),
        ("draws", 1), ("seed", -1), ("seed", 1.0), ("seed", np.array([1])),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_an_argument_is_refused_by_its_name(argument, bad):
    with pytest.raises(InvalidInput, match=argument):
        certify(**{"policy": POLICY, "log": LOG, argument: bad})


@pytest.mark.parametrize("kind", [SoftmaxPolicy, GaussianPolicy])
def test_a_policy_over_contexts_of_another_length(kind):
    for call in (certify, improvement, lambda policy, log: summarise(policy, log, [NoCorrection()])):
        with pytest.raises(InvalidInput, match=f"^policy: expected one over contexts of length {D}, as the log's are"):
            call(kind(np.zeros((K, D + 1))), LOG)


@pytest.mark.parametrize("name", list(BOUNDS))
def test_bounds_without_a_correction_or_a_divergence(name):
    kind = BOUNDS[name]
    for bad in (None, "es", ExponentialAlpha, math.nan):
        with pytest.raises(InvalidInput, match="correction"):
            kind.for_estimate(bad)
    for bad in ({}, None, "grid"):
        with pytest.raises(InvalidInput, match="grid"):
            kind.usual(bad, 10)
    with pytest.raises(InvalidInput, match="rows"):
        kind.usual(Grid(), 0)


@pytest.mark.parametrize("kl", [-1.0, math.nan, "1", None, 10**400, np.array([1.0, 2.0]), 1j, True], ids=repr)
def test_what_is_no_divergence(kl):
    with pytest.raises(InvalidInput, match="kl"):
        divergence(kl)
    with pytest.raises(InvalidInput, match="kl"):
        rows_needed(SUMMARY, kl, 0.1, 0.05, [LogSmoothingBound(0.1)])
    assert divergence(math.inf) == math.inf and divergence(np.float32(2.0)) == 2.0


@pytest.mark.parametrize("field", ["lambdas", "alphas", "taus", "gammas", "smoothings", "strengths"])
@pytest.mark.parametrize("bad", [[], [math.nan], [-1.0], "ab", 0.5, [[0.5]], iter([0.5]), [1e-320, "x"], [10**400]])
def test_grids(field, bad):
    with pytest.raises(InvalidInput, match=field):
        Grid(**{field: bad})


def test_grids_that_are_small_or_not_resolved():
    for field in ("lambdas", "taus", "gammas", "smoothings", "strengths"):
        with pytest.raises(InvalidInput, match=field):
            Grid(**{field: [1e-320]})
        with pytest.raises(InvalidInput, match="resolved"):
            Grid().values(field)
    with pytest.raises(InvalidInput, match="rows"):
        Grid().resolved(0)


def test_the_budget_keeps_what_was_checked():
    assert Budget(np.float16(0.5)) == Budget(0.5)
    assert Budget(0.1, points=np.uint8(200)).each == 0.1 / 400  # 2 * 200 does not fit into 8 bits
    for bad in ({"sides": 0}, {"sides": 3}, {"points": 0}, {"points": 1.5}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            Budget(0.1, **bad)


def test_chernoff():
    for bad in ({"mean": 1.5}, {"mean": math.nan}, {"rows": 0}, {"rows": math.nan}, {"delta": 0.0}, {"delta": 5e-324}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            chernoff_upper(**{"mean": 0.5, "rows": 10, "delta": 0.1, **bad})
    assert chernoff_upper(np.float16(0.5), np.uint8(200), 0.1) == chernoff_upper(0.5, 200, 0.1)


@pytest.mark.parametrize(
    ("argument", "bad"),
    [
        ("summary", None), ("summary", 3), ("improvement", math.nan), ("improvement", "a"), ("delta", 1.0), ("bounds", []),
        ("bounds", LogSmoothingBound(0.1)), ("bounds", ["ls"]), ("bounds", iter([LogSmoothingBound(0.1)])),
        ("lambda", None),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_rows_needed_for_what(argument, bad):
    usual = {"summary": SUMMARY, "kl": 0.0, "improvement": 0.1, "delta": 0.05, "bounds": [LogSmoothingBound(0.1)]}
    changed = {"bounds": [Unified(NoCorrection())]} if argument == "lambda" else {argument: bad}
    with pytest.raises(InvalidInput, match=argument):
        rows_needed(**{**usual, **changed})


@pytest.mark.parametrize(
    ("argument", "bad"),
    [("statistics", "ips"), ("statistics", [3]), ("statistics", [NoCorrection]), ("statistics", NoCorrection()), ("chunk", 0),
     ("all_actions", 1), ("mixture", "x"), ("largest_reward", 0.0)],
)  # fmt: skip
def test_summaries_of_what(argument, bad):
    with pytest.raises(InvalidInput, match=argument):
        summarise(**{"policy": POLICY, "log": LOG, "statistics": [NoCorrection()], argument: bad})


def test_a_prior_is_a_private_copy():
    mean = MEAN.copy()
    prior = PolicyPrior(mean)
    mean[:] = 0.0
    np.testing.assert_array_equal(prior.mean, MEAN)
    for bad in ({"encoder": 3}, {"learned_from": "rows"}, {"sigma": 5e-324}, {"mean": [1.0]}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            PolicyPrior(**{"mean": MEAN, **bad})
    with pytest.raises(InvalidInput, match="prior"):
        PolicyPrior.of(GaussianPolicy)


@pytest.mark.parametrize("smallest", [1e-50, 1e-149, 1e-160, 1e-300, 1e-310])
def test_tiny_propensities(smallest):
    """A refusal with the limit; above it a contradiction, or ends that are numbers."""
    p, rewards = np.full(N, 0.3), R.copy()
    p[[3, 17]], rewards[[3, 17]] = smallest, 1.0
    log = LoggedData(X, A, rewards, K, p)
    for call in (
        certify,
        improvement,
        lambda p, log: certify(p, log, bound=["london", "sakhi-1", "bernstein", "ix-tail"]),
    ):
        if smallest < 1e-150:
            with pytest.raises(InvalidInput, match="propensit"):
                call(POLICY, log)
            continue
        with contextlib.suppress(Contradiction):
            assert not any(math.isnan(number) for number in numbers_in(call(POLICY, log)))


@pytest.mark.parametrize("scale", [20.0, 100.0, 3000.0])
@pytest.mark.parametrize("policy", [POLICY, UniformPolicy(K), GAUSSIAN, MixedLogitPolicy(MEAN, draws=64)])
def test_a_logging_policy_that_hardly_explores(policy, scale):
    """Variances over all actions are then beyond all numbers: an end that says nothing, and no NaN, in any chunks."""
    logging = SoftmaxPolicy(scale * RNG.normal(size=(K, D)))
    actions = logging.sample(X, 1)
    log = LoggedData(X, actions, R, K, logging.probabilities_of(X, actions), logging=logging)
    found = certify(policy, log, bound=["es", "ips", "clip", "ix", "any-alpha", "any-lambda", "sakhi-2"], draws=64)
    summary = summarise(policy, log, [NoCorrection(), ExponentialAlpha(0.7), ClipPropensities(0.0)], chunk=7)
    assert not any(math.isnan(number) for number in numbers_in([found, dict(summary.averages)]))
    assert 0 <= found.lower <= found.upper <= 1


def test_one_row_certifies_nothing():
    log = LoggedData(X[:1], A[:1], R[:1], K, [0.2])
    found = certify(POLICY, log, bound=["ls", "london", "sakhi-1", "bernstein", "ix-tail"])
    assert not any(math.isnan(number) for number in numbers_in(found))
