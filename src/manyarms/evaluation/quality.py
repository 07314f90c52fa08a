"""Evaluation of evaluation: on a world whose truth is known, how good is each estimator, and do its intervals cover?

Logs are drawn again and again from the same world by the same logging policy, every estimator answers on each, and the
answers are held against the policy's true value: bias, variance, mean squared error, and, for each kind of interval, the
share of logs on which it holds the truth, all with their Monte Carlo errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted, number
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Estimator
from manyarms.estimators.inputs import require_policy
from manyarms.estimators.naming import as_estimators
from manyarms.evaluation.estimate import evaluate, usual_names
from manyarms.evaluation.results import Estimate
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.rewards.base import RewardModel
from manyarms.worlds.base import Pool, World

TRUTH_ROWS = 50_000


@dataclass(frozen=True, repr=False)
class Coverage(Shown):
    """How often intervals of a kind hold the truth, and the estimator's own mean."""

    kind: str
    of_value: float
    of_mean: float
    width: float


@dataclass(frozen=True, repr=False)
class Quality(Shown):
    """One estimator over all runs. bias_error is the standard error of the bias."""

    name: str
    label: str
    truth: float
    mean: float
    bias: float
    bias_error: float
    variance: float
    mse: float
    standard_error: float
    """The mean of the standard errors that the estimator reported; its square should be near the variance."""

    coverage: tuple[Coverage, ...]
    runs: int

    def covered(self, kind: str = "normal") -> Coverage:
        """The coverage of a kind of interval."""
        found = next((one for one in self.coverage if one.kind == kind), None)
        if found is None:
            raise InvalidInput("kind", validate.describe(kind), f"one of {', '.join(c.kind for c in self.coverage)}")
        return found

    def _table(self) -> Table:
        return Table(
            f"{self.label}: {number(self.mean)} on average of {counted(self.runs, 'log')}, the truth {number(self.truth)}",
            rows=[
                ("bias", f"{self.bias:+.4g} ± {self.bias_error:.2g}"),
                ("variance", number(self.variance)),
                ("mean squared error", number(self.mse)),
                ("standard error, as reported", number(self.standard_error)),
            ],
            parts=[
                Table(
                    "how often the intervals held the truth",
                    ("interval", "of the value", "of the mean", "width"),
                    [(one.kind, f"{one.of_value:.1%}", f"{one.of_mean:.1%}", one.width) for one in self.coverage],
                )
            ],
        )


def true_value(world: World, policy: Policy, rows: int = TRUTH_ROWS) -> tuple[float, float]:
    """The policy's value and its standard error: 0 where contexts come from a pool, else from `rows` fresh contexts."""
    _require_world(world)
    require_policy(policy)
    rows = validate.room("rows", validate.count("rows", rows), 8 * (world.dim + 1), "contexts")
    exact = isinstance(world.source, Pool)
    X = world.source.rows if isinstance(world.source, Pool) else world.contexts(rows)
    values = policy.expectation(X, lambda some, ids: world.rewards.mean(some @ world.theta[ids].T))
    return float(values.mean()), 0.0 if exact else float(values.std() / np.sqrt(len(values)))


def draw_log(
    world: World, logging: Policy, rows: int, rng: np.random.Generator, *, keep_policy: bool = True
) -> LoggedData:
    """A log of a world, written by a logging policy, with its propensities (and the policy itself)."""
    rows = validate.room("rows", validate.count("rows", rows), 8 * (world.dim + 4), "rows")
    X = world.contexts(rows)
    actions = logging.sample_rows(X, rng)
    return LoggedData(
        X,
        actions,
        world.reward(X, actions),
        world.actions,
        propensities=logging.probabilities_of(X, actions),
        logging=logging if keep_policy else None,
    )


def quality(
    world: World,
    policy: Policy,
    logging: Policy,
    *,
    rows: int,
    runs: int,
    estimators: Sequence[Estimator | str] | None = None,
    with_model: Callable[[RewardModel], Sequence[Estimator]] | None = None,
    fit: Callable[[LoggedData], RewardModel] | None = None,
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    replicates: int = 200,
    bias: bool | None = None,
    truth: float | None = None,
    seed: int = 0,
) -> tuple[Quality, ...]:
    """Bias, variance, mean squared error and coverage of estimators over `runs` logs of `rows` rows.

    fit, with_model: estimators that need a reward model are made on each run by with_model(fit(another log)); the
    other log is drawn beside, so that the model has not seen the rows it is judged on.
    """
    _require_world(world)
    require_policy(policy)
    require_policy(logging, "logging")
    rng = np.random.default_rng(validate.seed(seed))
    runs = validate.count("runs", runs, least=2)
    if (fit is None) != (with_model is None) or not (fit is None or (callable(fit) and callable(with_model))):
        came = f"fit={validate.describe(fit)}, with_model={validate.describe(with_model)}"
        raise InvalidInput("fit, with_model", came, "two functions, or neither")
    plain = as_estimators(usual_names() if estimators is None else estimators)
    truth = true_value(world, policy)[0] if truth is None else validate.number("truth", truth)
    answers: list[tuple[Estimate, ...]] = []
    for run in range(runs):
        log = draw_log(world, logging, rows, rng)
        chosen: list[Estimator] = list(plain)
        if fit is not None and with_model is not None:
            chosen += with_model(fit(draw_log(world, logging, rows, rng)))
        found = evaluate(
            policy, log, chosen, level=level, reward_range=reward_range, bias=bias, replicates=replicates, seed=run
        )
        answers.append(found.estimates)
    return tuple(_summary([answer[i] for answer in answers], truth) for i in range(len(answers[0])))


def _require_world(world: object) -> None:
    if not isinstance(world, World):
        raise InvalidInput("world", validate.describe(world), "a world whose actions' parameters are known")


def _summary(estimates: Sequence[Estimate], truth: float) -> Quality:
    values = np.array([one.value for one in estimates])
    mean, variance, runs = float(values.mean()), float(values.var(ddof=1)), len(values)
    coverage = []
    for kind in dict.fromkeys(interval.kind for one in estimates for interval in one.intervals):
        found = [interval for one in estimates if (interval := one.by(kind)) is not None]
        # one that was left out as a contradiction did not hold anything
        held, own = (sum(value in one for one in found) / runs for value in (truth, mean))
        coverage.append(Coverage(kind, held, own, float(np.mean([one.high - one.low for one in found]))))
    return Quality(
        estimates[0].name,
        estimates[0].label,
        truth,
        mean,
        mean - truth,
        float(np.sqrt(variance / runs)),
        variance,
        float(((values - truth) ** 2).mean()),
        float(np.mean([one.standard_error for one in estimates])),
        tuple(coverage),
        runs,
    )


__all__ = ["Coverage", "Quality", "draw_log", "quality", "true_value"]
