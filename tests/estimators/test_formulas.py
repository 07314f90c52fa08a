"""Every objective's value is the formula that it stands for, summed row by row from a table of probabilities."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from dense_answers import dense_answers, value_of
from manyarms.errors import InvalidInput
from manyarms.estimators import (
    BPR,
    DM,
    DR,
    ES,
    ESLPI,
    IPS,
    IX,
    LPI,
    LS,
    MIPS,
    PC,
    PWLL,
    SNDR,
    SNIPS,
    Distance,
    ESBeta,
    OffCEM,
    RegKL,
    RegKLLinear,
    SampleVariance,
    SwitchDR,
    cIPS,
    cLPI,
)  # fmt: skip
from manyarms.estimators.neighbours import Neighbours
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy
from manyarms.rewards.linear import LinearModel
from manyarms.weights import ClipPropensities, ClipWeights, ExponentialAlpha, Harmonic, Shrinkage

N, K, D = 60, 9, 3


class Case:
    """A log of a softmax policy, another policy's scores, and both tables of probabilities."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.rng = rng
        X = rng.standard_normal((N, D))
        logging = SoftmaxPolicy(rng.standard_normal((K, D)))
        self.pi0 = logging.probabilities_of_many(X, np.tile(np.arange(K), (N, 1)))
        a = logging.sample(X, rng)
        r = rng.random(N) * (rng.random(N) < 0.6)
        self.log = LoggedData(X, a, r, K, self.pi0[np.arange(N), a], logging=logging)
        self.scores = torch.tensor(X @ rng.standard_normal((D, K)), requires_grad=True)
        self.log_pi = self.scores.log_softmax(1)
        self.pi = self.log_pi.detach().exp().numpy()
        self.labels = rng.permutation(np.arange(K) % 4)
        self.model = LinearModel(rng.standard_normal((K, D)) / 3)
        self.r_hat = X @ self.model.parameters.T
        self.embeddings = rng.standard_normal((K, 2))
        i = np.arange(N)
        self.a, self.r, self.p, self.p0 = a, r, self.pi[i, a], self.pi0[i, a]
        self.left = r - self.r_hat[i, a]
        same = self.labels == self.labels[a][:, None]
        self.group, self.group0 = (self.pi * same).sum(1), (self.pi0 * same).sum(1)
        self.expected = (self.pi * self.r_hat).sum(1)


def neighbourhoods(c, **how):
    near = np.zeros((K, K), dtype=bool)
    for action, ids in Neighbours(c.embeddings, **how).lists(np.arange(K)):
        near[action, ids] = True
    return (c.pi * near[c.a]).sum(1), (c.pi0 * near[c.a]).sum(1)


def nearby(c, **how):
    ours, theirs = neighbourhoods(c, **how)
    return (ours / theirs * c.r).mean()


FORMULAS = {
    "pwll": (lambda c: PWLL(lambda r, p: r**2 + 1 / p), lambda c: ((c.r**2 + 1 / c.p0) * np.log(c.p)).mean()),
    "lpi": (lambda c: LPI(), lambda c: (c.r * np.log(c.p)).mean()),
    "clpi": (lambda c: cLPI(0.1), lambda c: (c.r / np.maximum(c.p0, 0.1) * np.log(c.p)).mean()),
    "es-lpi": (lambda c: ESLPI(0.7), lambda c: (c.r / c.p0**0.7 * np.log(c.p)).mean()),
    "regkl": (lambda c: RegKL(0.4), lambda c: (np.exp(c.r / 0.4) * np.log(c.p)).mean()),
    "regkl-lin": (lambda c: RegKLLinear(0.4), lambda c: (np.exp(c.r / 0.4) * c.p).mean()),
    "ips": (lambda c: IPS(), lambda c: (c.p / c.p0 * c.r).mean()),
    "ips-min": (lambda c: IPS(ClipWeights(1.5)), lambda c: (np.minimum(c.p / c.p0, 1.5) * c.r).mean()),
    "harmonic": (
        lambda c: IPS(Harmonic(0.3)),
        lambda c: (c.p / c.p0 / (0.7 + 0.3 * c.p / c.p0) * c.r).mean(),
    ),
    "shrinkage": (
        lambda c: IPS(Shrinkage(5.0)),
        lambda c: (5 * c.p / c.p0 / (5 + (c.p / c.p0) ** 2) * c.r).mean(),
    ),
    "cips": (lambda c: cIPS(0.1), lambda c: (c.p / np.maximum(c.p0, 0.1) * c.r).mean()),
    "es": (lambda c: ES(0.6), lambda c: (c.p / c.p0**0.6 * c.r).mean()),
    "es-beta": (lambda c: ESBeta(0.6), lambda c: ((c.p / c.p0) ** 0.6 * c.r).mean()),
    "ix": (lambda c: IX(0.2), lambda c: (c.p / (c.p0 + 0.2) * c.r).mean()),
    "ls, linear": (lambda c: LS(0.5), lambda c: (c.p / 0.5 * np.log1p(0.5 * c.r / c.p0)).mean()),
    "ls": (lambda c: LS(0.5, linear=False), lambda c: (np.log1p(0.5 * c.p / c.p0 * c.r) / 0.5).mean()),
    "snips": (lambda c: SNIPS(), lambda c: (c.p / c.p0 * c.r).sum() / (c.p / c.p0).sum()),
    "sn-cips": (
        lambda c: IPS(ClipPropensities(0.1), self_normalised=True),
        lambda c: (c.p / np.maximum(c.p0, 0.1) * c.r).sum() / (c.p / np.maximum(c.p0, 0.1)).sum(),
    ),
    "sn-harmonic": (
        lambda c: SNIPS(Harmonic(0.3)),
        lambda c: (c.p / (0.7 * c.p0 + 0.3 * c.p) * c.r).sum() / (c.p / (0.7 * c.p0 + 0.3 * c.p)).sum(),
    ),
    "dm": (lambda c: DM(c.model), lambda c: c.expected.mean()),
    "switch-dr": (
        lambda c: SwitchDR(c.model, 1.2),
        lambda c: (c.p / c.p0 * (c.p / c.p0 <= 1.2) * c.left + c.expected).mean(),
    ),
    "dr": (lambda c: DR(c.model), lambda c: (c.p / c.p0 * c.left + c.expected).mean()),
    "dr, clipped": (
        lambda c: DR(c.model, tau=0.1),
        lambda c: (c.p / np.maximum(c.p0, 0.1) * c.left + c.expected).mean(),
    ),
    "dr, smoothed": (
        lambda c: DR(c.model, correction=ExponentialAlpha(0.5)),
        lambda c: (c.p / c.p0**0.5 * c.left + c.expected).mean(),
    ),
    "sndr": (
        lambda c: SNDR(c.model),
        lambda c: (c.p / c.p0 * c.left).sum() / (c.p / c.p0).sum() + c.expected.mean(),
    ),
    "sndr, clipped": (
        lambda c: SNDR(c.model, tau=0.1),
        lambda c: np.average(c.left, weights=c.p / np.maximum(c.p0, 0.1)) + c.expected.mean(),
    ),
    "mips": (lambda c: MIPS(c.labels), lambda c: (c.group / c.group0 * c.r).mean()),
    "mips, texts": (lambda c: MIPS([f"c{l}" for l in c.labels]), lambda c: (c.group / c.group0 * c.r).mean()),
    "offcem": (
        lambda c: OffCEM(c.labels, c.model),
        lambda c: (c.group / c.group0 * c.left + c.expected).mean(),
    ),
    "pc, k": (lambda c: PC(c.embeddings, k=3), lambda c: nearby(c, k=3)),
    "pc, radius": (lambda c: PC(c.embeddings, radius=1.0), lambda c: nearby(c, radius=1.0)),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", FORMULAS)
def test_value_is_the_formula(name, seed):
    case = Case(seed)
    make, formula = FORMULAS[name]
    found = value_of(make(case), case.log, case.log_pi)
    assert found.shape == ()
    np.testing.assert_allclose(found.item(), formula(case), rtol=1e-10)


@pytest.mark.parametrize("name", FORMULAS)
def test_rows_that_are_not_active_have_no_part(name):
    """The value and the gradient over all rows are those over the active ones, with 1/B as it was."""
    case = Case(5)
    objective = FORMULAS[name][0](case)
    rows = objective.prepare(case.log)
    found = []
    for active_only in (True, False):
        value = objective.value(*dense_answers(rows, case.log, case.log_pi, active_only=active_only))
        found.append((value.item(), torch.autograd.grad(value, case.scores, retain_graph=True)[0].numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-14)
    weightless = ("lpi", "clpi", "es-lpi", "ips", "cips", "mips", "pc, k", "ls")
    if name in weightless:
        np.testing.assert_array_equal(rows.active, case.r != 0)


@pytest.mark.parametrize("name", ["clpi", "cips", "dr", "mips", "offcem", "pc, radius"])
def test_batches_are_parts_of_the_log(name):
    """A batch's value is the mean over its own rows, so that batches of one size average to the log's value."""
    case = Case(6)
    objective = FORMULAS[name][0](case)
    rows = objective.prepare(case.log)
    order = case.rng.permutation(N).reshape(4, -1)
    parts = [objective.value(*dense_answers(rows, case.log, case.log_pi, index=some)).item() for some in order]
    np.testing.assert_allclose(np.mean(parts), FORMULAS[name][1](case), rtol=1e-10)


@pytest.mark.parametrize("name", ["mips", "offcem", "pc, k"])
def test_propensities_of_groups_come_from_a_listed_support_too(name):
    case = Case(7)
    order = np.argsort(case.rng.random((N, K)), axis=1)
    listed = dataclasses.replace(
        case.log, logging=None, support=order, support_probabilities=np.take_along_axis(case.pi0, order, axis=1)
    )
    make, formula = FORMULAS[name]
    np.testing.assert_allclose(value_of(make(case), listed, case.log_pi).item(), formula(case), rtol=1e-10)
    with pytest.raises(InvalidInput, match="all actions"):
        make(case).prepare(dataclasses.replace(case.log, logging=None))


def test_bpr_ranks_the_rewarded_above_the_random():
    case = Case(8)
    negatives = case.rng.integers(K, size=(N, 2))
    scores = case.scores.detach().numpy()
    lead = scores[np.arange(N), case.a][:, None] - np.take_along_axis(scores, negatives, axis=1)
    truth = (case.r * -np.log1p(np.exp(-lead)).mean(1)).mean()
    found = value_of(BPR(2), case.log, case.log_pi, scores=case.scores, negatives=negatives)
    np.testing.assert_allclose(found.item(), truth, rtol=1e-10)


def test_bpr_at_equal_scores_has_half_the_slope_and_never_overflows():
    log = LoggedData([[1.0]], [0], [1.0], 2)
    rows = BPR().prepare(log)
    for gap, slope in ((0.0, 0.5), (-800.0, 1.0), (800.0, 0.0)):
        scores = torch.tensor([[gap, 0.0]], dtype=torch.float64, requires_grad=True)
        value = BPR().value(*dense_answers(rows, log, scores.log_softmax(1), scores=scores, negatives=np.array([[1]])))
        value.backward()
        assert np.isfinite(value.item())
        np.testing.assert_allclose(scores.grad[0], [slope, -slope], atol=1e-12)


def test_gradients_stay_finite_where_probabilities_vanish():
    """A logged action of probability exp(-2000): 0 in every precision, and a slope of 0 and not nothing over nothing."""
    log = LoggedData([[1.0]] * 2, [0, 1], [1.0, 1.0], 2, [0.5, 0.5])
    for objective in (IPS(), cIPS(0.1), ES(0.5), ESBeta(0.5), IX(0.1), LS(0.1), LS(0.1, linear=False),
                      IPS(Harmonic(0.5)), IPS(Shrinkage(2.0)), SNIPS(), cLPI(0.1)):  # fmt: skip
        scores = torch.tensor([[-2000.0, 0.0], [-2000.0, 0.0]], dtype=torch.float64, requires_grad=True)
        value_of(objective, log, scores.log_softmax(1)).backward()
        assert torch.isfinite(scores.grad).all(), objective


def test_pwll_is_concave_in_the_parameters_of_a_linear_softmax(rng):
    """No eigenvalue of the Hessian is above 0 (thesis, Section 7.2); IPS on the same problems has some that are."""
    K, D, n = 4, 3, 12
    convex_somewhere = False
    for _ in range(12):
        X = rng.standard_normal((n, D))
        actions, rewards = rng.integers(K, size=n), rng.random(n)
        log = LoggedData(X, actions, rewards, K, rng.uniform(0.01, 1, size=n))
        beta = torch.tensor(2 * rng.standard_normal(K * D))

        def largest(objective, log=log, X=X, beta=beta):
            def value(flat):
                return value_of(objective, log, (torch.as_tensor(X) @ flat.reshape(K, D).T).log_softmax(1))

            hessian = torch.autograd.functional.hessian(value, beta)
            return float(torch.linalg.eigvalsh(hessian)[-1] / hessian.abs().max())

        for objective in (LPI(), cLPI(0.05), ESLPI(0.5), RegKL(0.5), PWLL(lambda r, p: np.sqrt(r) + p)):
            assert largest(objective) <= 1e-10
        convex_somewhere |= largest(IPS()) > 1e-3
    assert convex_somewhere


@pytest.mark.parametrize("seed", range(2))
def test_sample_variance_is_taken_off(seed):
    """Rows that are not active count as terms of 0; n is the log's, whatever the batch."""
    case = Case(seed)
    each = case.p / np.maximum(case.p0, 0.1) * case.r
    objective = SampleVariance(cIPS(0.1), 2.0)
    truth = each.mean() - 2 * np.sqrt(each.var(ddof=1) / N)
    np.testing.assert_allclose(value_of(objective, case.log, case.log_pi).item(), truth, rtol=1e-10)
    some = np.arange(20)
    part = objective.value(*dense_answers(objective.prepare(case.log), case.log, case.log_pi, index=some))
    truth = each[some].mean() - 2 * np.sqrt(each[some].var(ddof=1) / N)
    np.testing.assert_allclose(part.item(), truth, rtol=1e-10)


def test_sample_variance_of_equal_terms_has_a_gradient():
    log = LoggedData([[1.0]] * 3, [0, 0, 0], [1.0, 1.0, 1.0], 2, [0.5] * 3)
    scores = torch.zeros((3, 2), dtype=torch.float64, requires_grad=True)
    value_of(SampleVariance(IPS(), 1.0), log, scores.log_softmax(1)).backward()
    assert torch.isfinite(scores.grad).all()
    silent = LoggedData([[1.0]] * 3, [0, 0, 0], [0.0] * 3, 2, [0.5] * 3)
    assert value_of(SampleVariance(IPS(), 1.0), silent, scores.log_softmax(1)).item() == 0


def test_distance_is_written_down_for_whoever_holds_the_parameters():
    case = Case(1)
    objective = Distance(cIPS(0.1), 3.0)
    assert (objective.distance, cIPS(0.1).distance) == (3.0, 0.0)
    assert value_of(objective, case.log, case.log_pi) == value_of(cIPS(0.1), case.log, case.log_pi)
