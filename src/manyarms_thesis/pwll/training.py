"""One run of an experiment that learns from logs: settings, a policy, and what it is worth for users that nobody trained on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import Array
from manyarms.logs import LoggedData
from manyarms.policies import Policy
from manyarms_thesis.harness.learning import COLLAPSED, MODE, one_thread, rows_for
from manyarms_thesis.harness.results import BY_GROUP
from manyarms_thesis.harness.spec import Columns, Run
from manyarms_thesis.pwll.learners import Space, Start, Weight, estimate, fit, objective_of
from manyarms_thesis.pwll.problems import RIDGE, Problem, by_group
from manyarms_thesis.pwll.tuning import METRICS, chosen, divided

if TYPE_CHECKING:
    from manyarms.learning.trainable import Learnable

AFTER_ONE = "_after_one"  # columns that are of the first epoch
STILL = 0.05  # a policy that moved less far than this, in total variation, has the start's probabilities
NOISE = 2.0  # standard errors over test users within which a value is the start's


class Course:
    """What is seen of one training: values by epoch, of drawn and of most probable actions."""

    def __init__(self, problem: Problem, log: LoggedData, settings: Mapping[str, Any], estimates: bool) -> None:
        self.problem, self.log, self.estimates = problem, log, estimates
        self.told, self.options = divided({name: value for name, value in settings.items() if name != "objective"})
        self.objective = objective_of(settings["objective"], problem, **self.options)
        self.seen: list[dict[str, Array]] = []
        self.estimated: list[tuple[float, float]] = []

    def look(self, policy: Policy) -> float:
        """Judge a policy by test users, and by the log where that is asked for."""
        each = {
            "value": self.problem.values(policy),
            MODE: self.problem.values_of_mode(cast("Learnable", policy)),
        }
        self.seen.append(each)
        if self.estimates:
            self.estimated.append((estimate(self.objective, self.log, policy), self.problem.value_in_log(policy)))
        return float(each["value"].mean())

    def go(self, seed: int, curve: bool) -> None:
        """Train."""
        begun = time.perf_counter()
        self.first, self.learned = fit(
            self.problem, self.log, self.objective, seed=seed, ridge=self.options.get("ridge", RIDGE),
            after_epoch=self.look if curve else None, **self.told,
        )  # fmt: skip
        self.seconds = time.perf_counter() - begun
        after, self.seen = self.seen, []
        later, self.estimated = self.estimated, []
        self.look(self.first)
        if curve:
            self.seen += after
            self.estimated += later
        else:
            self.look(self.learned.policy)

    def values(self, metric: str) -> Array:
        """(epochs seen,): the value of the policy."""
        return np.array([each[metric].mean() for each in self.seen])

    def collapsed(self, metric: str, logging_value: float) -> bool:
        """Whether the policy ended below the logging policy, or never left its start."""
        first, last = self.seen[0][metric], self.seen[-1][metric]
        if last.mean() < logging_value:
            return True
        gained = last - first
        within = abs(gained.mean()) <= NOISE * gained.std(ddof=1) / np.sqrt(len(gained))
        return bool(within and self.problem.moved(self.first, self.learned.policy) < STILL)


def train(
    *,
    problem: Problem,
    steps: int,
    seed: int,
    objective: str,
    epochs: int,
    batch: int,
    rate: float,
    schedule: str = "constant",
    space: Space | None = None,
    weight: Weight = "heavy",
    start: Start = "zero",
    optimiser: str = "adam",
    curve: bool = False,
    estimates: bool = False,
    validated: bool = False,
    tune: Mapping[str, Sequence[float]] | None = None,
    choose_at: Mapping[str, Any] | None = None,
    **options: float,
) -> Columns:
    """Learn a policy and say what it is worth before and after; curve: after every epoch.

    space: all actions, but clusters for POTEC. estimates: also what the objective says of the policy on the log, beside the
    policy's true value for those who are in the log. validated: also what validation users get from the policy, for those who
    choose among runs. tune: settings that are first chosen on validation users, for drawn and
    for most probable actions; where the two differ, two policies are learned, and each way to count has the one chosen for it.
    choose_at: how to optimise while choosing, where that is not how this policy is learned.
    """
    one_thread()
    log = problem.log.rows(slice(0, rows_for(steps, epochs, batch)))
    how: dict[str, Any] = {
        "epochs": epochs, "batch": batch, "rate": rate, "schedule": schedule, "optimiser": optimiser,
        "space": space or ("clusters" if objective == "POTEC" else "all"), "weight": weight, "start": start, **options,
    }  # fmt: skip
    choices = (
        chosen(problem, objective, {**how, **(choose_at or {})}, tune) if tune else {metric: {} for metric in METRICS}
    )
    courses: dict[str, Course] = {}
    for metric in METRICS:
        twin = next((courses[other] for other in courses if choices[other] == choices[metric]), None)
        if twin is None:
            settings = {**how, **choices[metric], "objective": objective}
            # errors are those of the objective that was chosen for the values that it estimates
            twin = Course(problem, log, settings, estimates and choices[metric] == choices["value"])
            twin.go(seed, curve)
        courses[metric] = twin
    columns = _columns(problem, log, courses, choices, how, curve)
    return {**columns, **_of_validation_users(problem, courses)} if validated else columns


def _of_validation_users(problem: Problem, courses: Mapping[str, Course]) -> dict[str, float]:
    """What validation users get from the learned policies, for either way to count."""
    judges = {"value": problem.values, MODE: problem.values_of_mode}
    return {
        validation(metric): float(judges[metric](course.learned.policy, "validation").mean())
        for metric, course in courses.items()
    }


def validation(metric: str) -> str:
    """The column with what validation users get from a policy."""
    return f"validation_{metric}"


def _columns(
    problem: Problem,
    log: LoggedData,
    courses: Mapping[str, Course],
    choices: Mapping[str, Mapping[str, float]],
    how: Mapping[str, Any],
    curve: bool,
) -> Columns:
    epochs, drawn = how["epochs"], courses["value"]
    logged = problem.value(problem.world.logging)
    objectives = [epoch.objective for epoch in drawn.learned.history[slice(None) if curve else slice(-1, None)]]
    columns: dict[str, npt.ArrayLike] = {
        "epoch": np.arange(len(drawn.seen)) if curve else np.array([0, epochs]),
        "value": drawn.values("value"),
        MODE: courses[MODE].values(MODE),
        "objective": np.array([np.nan, *objectives]),
        "logging_value": logged,
        "milliseconds_a_round": 1e3 * drawn.seconds / (epochs * -(-len(log) // how["batch"])),
        "actions": problem.world.actions,
        "log_rows": len(log),
        "test_users": len(drawn.seen[-1]["value"]),
        "mean_reward": float(log.rewards.mean()),
    }
    for metric, course in courses.items():
        columns[f"{metric}{BY_GROUP}"] = by_group(course.seen[-1][metric])
        if curve:
            columns[f"{metric}{AFTER_ONE}{BY_GROUP}"] = by_group(course.seen[1][metric])
        columns[COLLAPSED[metric]] = float(course.collapsed(metric, logged))
        of = "" if metric == "value" else "mode_"
        columns |= {f"{of}chosen_{name}": value for name, value in choices[metric].items()}
    if drawn.estimated:
        columns |= {
            name: np.array([pair[i] for pair in drawn.estimated]) for i, name in enumerate(("estimate", "truth"))
        }
        columns["squared_error"] = np.array([(said - true) ** 2 for said, true in drawn.estimated])
    return columns


def learned_from_enough(run: Run) -> Columns:
    """One run: a log of the problem with as many rows as the steps need, and a policy learned from it."""
    how = run.method.parameters
    problem = run.draw_problem(enough=rows_for(run.rounds, how["epochs"], how["batch"]))
    columns: Columns = run.method(problem=problem, steps=run.rounds, seed=run.method_seed)
    return columns


__all__ = ["AFTER_ONE", "learned_from_enough", "train", "validation"]
