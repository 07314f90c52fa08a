"""What every correction, objective and estimator must satisfy, as checks that anybody can run on their own.

    from manyarms import checks
    checks.check_correction(MyCorrection(0.1))
    checks.check_objective(lambda problem: MyObjective())
    checks.check_estimator(lambda problem: MyEstimator(problem.model))

A maker gets a small problem whose every probability is known, with a log, a reward model, labels and embeddings of the actions
for those who need them. A check that fails raises `CheckFailed`. What needs PyTorch is left out where it is not installed.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.checks.base import refused, require
from manyarms.estimators.base import Answers, Batch, Estimator, Objective, Request
from manyarms.estimators.naming import as_estimator
from manyarms.estimators.oracles import FiniteProblem
from manyarms.evaluation.answers import value_on
from manyarms.evaluation.estimate import evaluate
from manyarms.evaluation.passes import plan, row_terms, survey
from manyarms.logs.data import LoggedData
from manyarms.policies.softmax import SoftmaxPolicy
from manyarms.rewards import Clipped, LinearModel
from manyarms.weights import Correction

ROUNDING = 1e-9
CONTEXTS, ACTIONS, TENTHS, FIFTHS = 3, 5, 10, 5
ROUNDS = 4 * TENTHS * FIFTHS


# ---- corrections ------------------------------------------------------------------------------------------------------


def check_correction(correction: Correction) -> None:
    """Run every check of a correction."""
    require(isinstance(correction, Correction), "a correction is a manyarms.weights.Correction", correction)
    for check in CORRECTION_CHECKS:
        check(correction)


def weights_are_numbers(correction: Correction) -> None:
    """Finite, at least 0, the same whether multiplied by the reward or not, and without a reward where none is needed."""
    pi, pi0, reward = _cells()
    weights, terms = correction.weight(pi, pi0, reward), correction.terms(pi, pi0, reward)
    require(bool((np.isfinite(weights) & (weights >= 0)).all()), "weights are finite and at least 0")
    _same(terms, weights * reward, "terms are weights times rewards")
    if not correction.depends_on_reward:
        _same(correction.weight(pi, pi0), weights, "weights do not depend on rewards unless `depends_on_reward`")
        wanted = np.log(weights[weights > 0])
        _same(correction.log_weight(np.log(pi), pi0)[weights > 0], wanted, "log_weight is the logarithm of weight")
    _same(correction.terms_from_log(np.log(pi), pi0, reward), terms, "terms_from_log are the terms")
    require(
        hash(correction) == hash(correction) and all(map(math.isfinite, correction.settings.values())),
        "a correction can be hashed, and its settings are finite numbers",
    )


def promises_are_honoured(correction: Correction) -> None:
    """rising, never_above, linear_in_policy, log_smoothing, and plain weights where `is_none`."""
    pi, pi0, reward = _cells()
    terms, plain = correction.terms(pi, pi0, reward), pi / pi0 * reward
    if correction.rising:
        more = correction.terms(np.minimum(1.0, 1.1 * pi), pi0, reward)
        require(bool((more >= terms * (1 - ROUNDING)).all()), "rising: terms never fall as pi grows")
    if correction.never_above:
        require(bool((terms <= plain * (1 + ROUNDING)).all()), "never_above: terms are at most w * r")
    if correction.linear_in_policy:
        _same(correction.terms(0.3 * pi, pi0, reward), 0.3 * terms, "linear_in_policy: terms are in proportion to pi")
    if correction.is_none:
        _same(terms, plain, "is_none: weights are pi / pi0")
    l = correction.log_smoothing
    if l > 0:
        smoothed = bool((l * terms <= np.log1p(l * plain) * (1 + ROUNDING)).all())
        require(smoothed, "log_smoothing: l w_hat r is at most log(1 + l w r)")


def bounds_hold(correction: Correction) -> None:
    """No weight exceeds bound(floor) where propensities are at least the floor."""
    pi, pi0, reward = _cells()
    for floor in (0.0, 1e-3, 0.2):
        bound, there = correction.bound(floor), pi0 >= floor
        if bound is not None:
            largest = float(correction.terms(pi, pi0, reward)[there].max())
            require(largest <= bound * (1 + ROUNDING), f"bound({floor}) bounds the weights", (largest, bound))


def effective_policies_are_what_the_mean_counts(correction: Correction) -> None:
    """pi0 * w_hat at a reward of 1, 0 where pi0 is 0, and at most 1 in all: intervals with bias terms rest on it."""
    rng = np.random.default_rng(0)
    for concentration in (0.1, 1.0, 10.0):
        pi, pi0 = (rng.dirichlet(np.full(20, concentration), 30) for _ in range(2))
        pi0 = np.maximum(pi0, 1e-12)
        kept = correction.effective_policy(pi, pi0)
        _same(kept, pi0 * correction.terms(pi, pi0, np.ones(pi.shape)), "effective_policy is pi0 * w_hat")
        require(bool((kept.sum(axis=1) <= 1 + 1e-6).all()), "an effective policy sums to at most 1")
    never = correction.effective_policy(pi, 0.0 * pi0)
    require(bool((never == 0).all()), "what is never played is never counted")


def best_policies_are_best(correction: Correction) -> None:
    """Where there is a closed form, no other policy has a larger mean of w_hat * r."""
    rng = np.random.default_rng(1)
    logging, rewards = rng.dirichlet(np.ones(6), 8), rng.uniform(0, 1, (8, 6))
    best = correction.best_policy(rewards, logging)
    if best is None:
        return
    _same(best.sum(axis=1), np.ones(8), "the best policy is a distribution")
    value = (correction.effective_policy(best, logging) * rewards).sum(axis=1)
    for _ in range(50):
        other = rng.dirichlet(np.full(6, 0.5), 8)
        theirs = (correction.effective_policy(other, logging) * rewards).sum(axis=1)
        require(bool((theirs <= value + ROUNDING).all()), "no policy is better than the best one")


def parameters_follow_their_rule(correction: Correction) -> None:
    """A correction with a rule makes itself for any number of rows, and its grid is of parameters that it takes."""
    kind = type(correction)
    if kind.rule is None:
        return
    for rows in (1, 1000):
        require(isinstance(kind.make(rows=rows), kind), "the rule gives a parameter")
        for parameter in kind.rule.grid(rows):
            require(isinstance(kind.make(parameter), kind), "the grid holds parameters", parameter)


def tensors_are_as_good_as_arrays(correction: Correction) -> None:
    """The same numbers from torch tensors, and derivatives by log pi that agree with differences."""
    torch = _torch()
    if torch is None:
        return
    pi, pi0, reward = _cells()
    log_pi = torch.tensor(np.log(pi), requires_grad=True)
    terms: Any = correction.terms_from_log(log_pi, torch.tensor(pi0), torch.tensor(reward))
    _same(terms.detach().numpy(), correction.terms(pi, pi0, reward), "tensors give the terms of arrays")
    terms.sum().backward()
    step = 1e-6
    up, down = (correction.terms(pi * math.exp(way * step), pi0, reward) for way in (1, -1))
    smooth = np.abs(up + down - 2 * correction.terms(pi, pi0, reward)) <= 1e-3 * step * np.abs(up)  # not at a corner
    slope = (up - down) / (2 * step)
    close = np.isclose(log_pi.grad.numpy(), slope, rtol=1e-4, atol=1e-6)
    require(bool((close | ~smooth).all()), "gradients are those of the formula")


CORRECTION_CHECKS: tuple[Callable[[Correction], None], ...] = (
    weights_are_numbers,
    promises_are_honoured,
    bounds_hold,
    effective_policies_are_what_the_mean_counts,
    best_policies_are_best,
    parameters_follow_their_rule,
    tensors_are_as_good_as_arrays,
)


def _cells() -> tuple[Array, Array, Array]:
    """Probabilities, propensities and rewards of all sizes."""
    pi, pi0, reward = np.meshgrid([1e-9, 1e-3, 0.07, 0.5, 1.0], [1e-6, 1e-3, 0.2, 1.0], [1e-3, 0.4, 1.0])
    return pi.ravel(), pi0.ravel(), reward.ravel()


# ---- a problem whose everything is known ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class OfflineProblem:
    """Three contexts, five actions, a log in which everything happens as often as its probability says, and a policy."""

    finite: FiniteProblem
    policy: SoftmaxPolicy
    model: Clipped
    labels: Ints
    embeddings: Array

    @cached_property
    def log(self) -> LoggedData:
        """On it the mean of an estimator's terms is their expectation."""
        logging = SoftmaxPolicy(np.log(self.finite.logging).T)  # contexts are one-hot: its scores are log-probabilities
        return replace(self.finite.log(ROUNDS), logging=logging)

    @property
    def value(self) -> float:
        """The policy's value."""
        every = np.tile(np.arange(ACTIONS), (CONTEXTS, 1))
        return self.finite.value(self.policy.probabilities_of_many(self.finite.contexts, every))


def a_problem(seed: int = 0) -> OfflineProblem:
    """A problem to check on; the logging policy plays every action."""
    rng = np.random.default_rng(seed)
    logging = (1 + rng.multinomial(TENTHS - ACTIONS, np.full(ACTIONS, 1 / ACTIONS), size=CONTEXTS)) / TENTHS
    rewards = rng.integers(0, FIFTHS + 1, size=(CONTEXTS, ACTIONS)) / FIFTHS
    finite = FiniteProblem(np.eye(CONTEXTS), np.array([0.25, 0.25, 0.5]), logging, rewards)
    policy = SoftmaxPolicy(rng.standard_normal((ACTIONS, CONTEXTS)))
    model = Clipped(LinearModel(rng.uniform(0, 1, (ACTIONS, CONTEXTS))), 0.0, 1.0)
    return OfflineProblem(finite, policy, model, np.array([0, 0, 1, 1, 2]), rng.standard_normal((ACTIONS, 2)))


MakeObjective = Callable[[OfflineProblem], Objective]
MakeEstimator = Callable[[OfflineProblem], Estimator]


# ---- objectives -------------------------------------------------------------------------------------------------------


def check_objective(make: MakeObjective) -> None:
    """Run every check of an objective that a softmax policy can be learned by."""
    for seed in range(2):
        problem = a_problem(seed)
        objective = make(problem).resolved(ROUNDS)
        require(isinstance(objective, Objective), "an objective is a manyarms.estimators.Objective", objective)
        for check in OBJECTIVE_CHECKS:
            check(objective, problem)


def objectives_say_what_they_are(objective: Objective, problem: OfflineProblem) -> None:
    """A name, a label that begins with it, numbers as settings; resolving again changes nothing."""
    require(bool(objective.name) and objective.name in objective.label, "a label has the name", objective.label)
    require(all(math.isfinite(v) for v in objective.settings.values()), "settings are numbers", objective.settings)
    require(objective.resolved(7).label == objective.label, "a resolved objective stays as it is")


def requests_fit_the_log(objective: Objective, problem: OfflineProblem) -> None:
    """Every column has one entry per row."""
    request = objective.prepare(problem.log).computed(ROUNDS)
    sizes = {name: len(column) for name, column in request.columns.items() if not callable(column)}
    require(set(sizes.values()) <= {ROUNDS}, "columns have one entry per row", sizes)


def arrays_and_tensors_agree(objective: Objective, problem: OfflineProblem) -> None:
    """One value, whether the policy answers in NumPy or in torch; with a gradient that agrees with differences."""
    torch = _torch()
    request = objective.prepare(problem.log).computed(ROUNDS)
    if torch is None or request.sums or request.divergence:
        return
    found, gradient = _with_gradient(torch, objective, request, problem)
    if not (request.raw_scores or request.all_actions):
        ours = value_on(objective, problem.policy, problem.log)
        _same(np.array(ours), found, "arrays and tensors give one value")
    start = torch.tensor(np.asarray(problem.policy.actions), dtype=torch.float64)
    rng, step = np.random.default_rng(0), 1e-6
    for _ in range(5):
        way = rng.standard_normal(gradient.shape)
        moved = (start + sign * step * torch.tensor(way) for sign in (1, -1))
        up, down = (float(objective.value(*_dense(torch, request, problem, at))) for at in moved)
        slope = float((gradient * way).sum())
        right = math.isclose((up - down) / (2 * step), slope, rel_tol=1e-4, abs_tol=1e-6)
        require(right, "the gradient is that of the value", ((up - down) / (2 * step), slope))


def inactive_rows_have_no_part(objective: Objective, problem: OfflineProblem) -> None:
    """Rows that a request calls inactive change neither value nor gradient."""
    torch = _torch()
    request = objective.prepare(problem.log).computed(ROUNDS)
    if torch is None or request.active is None or request.sums or request.divergence:
        return
    active, slopes = _with_gradient(torch, objective, request, problem)
    every, all_slopes = _with_gradient(torch, objective, request, problem, np.arange(ROUNDS))
    _same(active, every, "inactive rows have value 0")
    _same(slopes, all_slopes, "inactive rows have gradient 0")


def learning_climbs(objective: Objective, problem: OfflineProblem) -> None:
    """A few small steps over the whole log raise the objective."""
    request = objective.prepare(problem.log)
    if _torch() is None or request.sums or request.divergence or request.raw_scores:
        return
    from manyarms.learning import learn

    history = learn(
        problem.log, problem.policy, objective, epochs=6, batch=ROUNDS, learning_rate=1e-3, precision="fp64", device="cpu"
    ).history  # fmt: skip
    require(history[-1].objective >= history[0].objective - ROUNDING, "learning raises the objective")


OBJECTIVE_CHECKS: tuple[Callable[[Objective, OfflineProblem], None], ...] = (
    objectives_say_what_they_are,
    requests_fit_the_log,
    arrays_and_tensors_agree,
    inactive_rows_have_no_part,
    learning_climbs,
)


# ---- estimators -------------------------------------------------------------------------------------------------------


def check_estimator(make: MakeEstimator) -> None:
    """Run every check of an estimator, and of the objective that it is."""
    check_objective(make)
    for seed in range(2):
        problem = a_problem(seed)
        estimator = as_estimator(make(problem)).resolved(ROUNDS)
        for check in ESTIMATOR_CHECKS:
            check(estimator, problem)


def evaluation_averages_the_terms(estimator: Estimator, problem: OfflineProblem) -> None:
    """The estimate is the mean of the terms (self-normalised, their sum over that of the weights), in any chunks."""
    terms = row_terms(problem.policy, problem.log, estimator)
    value = float(terms.values.mean())
    if estimator.self_normalised:
        require(terms.weights is not None, "self-normalised estimators have weights")
        value = float(terms.values.sum() / np.asarray(terms.weights).sum())
        value += 0.0 if terms.baseline is None else float(terms.baseline.mean())
    for chunk in (ROUNDS, 37):
        found = evaluate(problem.policy, problem.log, [estimator], replicates=0, chunk=chunk).estimates[0]
        _same(np.array(found.value), np.array(value), "evaluate averages the terms")
        require(found.name == estimator.name and found.unbiased == estimator.unbiased, "an estimate is the estimator's")


def the_mean_is_as_promised(estimator: Estimator, problem: OfflineProblem) -> None:
    """unbiased: the policy's value; never_above: at most that; between the bias terms in any case."""
    terms, truth = row_terms(problem.policy, problem.log, estimator, bias=True), problem.value
    mean = float(terms.values.mean())
    if estimator.unbiased:
        _same(np.array(mean), np.array(truth), "unbiased: the mean of the terms is the value")
    if estimator.consistent:  # on a log in which everything happens as often as it should
        estimate = evaluate(problem.policy, problem.log, [estimator], replicates=0).estimates[0].value
        _same(np.array(estimate), np.array(truth), "consistent: without chance the estimate is the value")
    if estimator.never_above:
        require(mean <= truth + ROUNDING, "never_above: the mean is at most the value", (mean, truth))
    if terms.low is not None and terms.high is not None:
        ends = float(terms.low.mean()), float(terms.high.mean())
        require(ends[0] - ROUNDING <= truth <= ends[1] + ROUNDING, "bias terms bracket the value", (*ends, truth))


def terms_lie_in_their_span(estimator: Estimator, problem: OfflineProblem) -> None:
    """With a floor under propensities and rewards in [0, 1]."""
    told: dict[str, Any] = {"propensity_floor": 1 / TENTHS, "bias": True}
    terms = row_terms(problem.policy, problem.log, estimator, **told)
    todo = plan(survey(problem.log), [estimator], **told)
    for span, arrays in ((todo.span(0), (terms.values,)), (todo.span(0, with_bias=True), (terms.low, terms.high))):
        if span is None:
            continue
        for array in arrays:
            inside = array is None or (array.min() >= span[0] - ROUNDING and array.max() <= span[1] + ROUNDING)
            require(inside, "terms lie in the span that is stated", (span, estimator.label))


def wrong_input_is_refused(estimator: Estimator, problem: OfflineProblem) -> None:
    """Another number of actions; no propensities, where rows are weighed."""
    law = "wrong input is refused with InvalidInput"
    refused(lambda: row_terms(SoftmaxPolicy(np.zeros((ACTIONS + 1, CONTEXTS))), problem.log, estimator), law)
    if estimator.weighted:
        log = problem.log
        bare = LoggedData(log.contexts, log.actions, log.rewards, log.action_count)
        refused(lambda: row_terms(problem.policy, bare, estimator), law)


ESTIMATOR_CHECKS: tuple[Callable[[Estimator, OfflineProblem], None], ...] = (
    evaluation_averages_the_terms,
    the_mean_is_as_promised,
    terms_lie_in_their_span,
    wrong_input_is_refused,
)


# ---- parts ------------------------------------------------------------------------------------------------------------


def _with_gradient(
    torch: Any, objective: Objective, request: Request, problem: OfflineProblem, rows: Ints | None = None
) -> tuple[Array, Array]:
    """The objective at the problem's policy, and its gradient by the parameters (K, d)."""
    parameters = torch.tensor(np.asarray(problem.policy.actions), dtype=torch.float64, requires_grad=True)
    value = objective.value(*_dense(torch, request, problem, parameters, rows))
    value.backward()
    return value.detach().numpy(), parameters.grad.numpy()


def _dense(
    torch: Any, request: Request, problem: OfflineProblem, parameters: Any, rows: Ints | None = None
) -> tuple[Answers, Batch]:
    """A softmax policy's answers written out over all actions, at the active rows (or those given), and the batch."""
    log = problem.log
    active = np.arange(ROUNDS) if request.active is None else np.flatnonzero(request.active)
    index = active if rows is None else rows
    part = request.rows(index)
    scores = torch.tensor(log.contexts[index]) @ parameters.T
    log_pi = scores.log_softmax(1)
    ids = [log.actions[index][:, None]] if part.logged else []
    ids += [part.ids] if part.ids is not None and not callable(part.ids) else []
    ids += [np.tile(np.arange(part.negatives) % ACTIONS, (len(index), 1))] if part.negatives else []
    asked = torch.as_tensor(np.concatenate([np.empty((len(index), 0), dtype=np.int64), *ids], axis=1))
    at = (scores if part.raw_scores else log_pi).gather(1, asked.clamp(min=0)).masked_fill(asked < 0, -math.inf)
    answers = Answers(scores=at) if part.raw_scores else Answers(at)
    if part.labels is not None and part.wanted is not None:
        inside = torch.as_tensor(part.labels == part.wanted[:, None])
        answers.group_log_mass = torch.where(inside, log_pi, -math.inf).logsumexp(1)
    if part.model is not None:
        values = part.model.block(log.contexts[index], np.arange(ACTIONS))
        answers.expectation = (log_pi.exp() * torch.as_tensor(values)).sum(1)
    batch = Batch({name: torch.as_tensor(column) for name, column in part.columns.items()}, ROUNDS)
    if part.all_actions:
        answers.probabilities = log_pi.exp()
        every = np.tile(np.arange(ACTIONS), (len(index), 1))
        batch.logging = torch.as_tensor(problem.log.logging.probabilities_of_many(log.contexts[index], every))  # type: ignore[union-attr]
    return answers, batch


def _torch() -> Any:
    """PyTorch, where it is installed."""
    return None if importlib.util.find_spec("torch") is None else importlib.import_module("torch")


def _same(found: Array, wanted: Array, law: str) -> None:
    close = np.isclose(found, wanted, rtol=ROUNDING, atol=1e-12)
    require(bool(close.all()), law, None if close.all() else (found[~close][:3], wanted[~close][:3]))


__all__ = ["OfflineProblem", "a_problem", "check_correction", "check_estimator", "check_objective"]
