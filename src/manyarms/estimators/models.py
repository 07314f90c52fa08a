"""Estimators with a reward model: the direct method, doubly robust estimation, self-normalised or not, and SWITCH.

DM         1/n sum_i E_pi[r_hat(X_i, A)]                                          (thesis, Section 5.1)
DR         1/n sum_i w_hat (R_i - r_hat(X_i, A_i)) + E_pi[r_hat(X_i, A)]          (thesis, Section 7.1.1)
SNDR       sum_i w_hat (R_i - r_hat(X_i, A_i)) / sum_i w_hat + 1/n sum_i E_pi[r_hat(X_i, A)]
SWITCH     1/n sum_i w R_i 1(w <= t) + E_pi[r_hat 1(w > t)]                       (Wang, Agarwal and Dudik, 2017)
SwitchDR   1/n sum_i w (R_i - r_hat) 1(w <= t) + E_pi[r_hat]
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import ClassVar, Self

import numpy as np

from manyarms._base import validate
from manyarms._base.arrays import softmax
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.estimators.base import OBJECTIVES, Answers, Batch, Estimator, Range, Request, Tensor, weighted_span
from manyarms.estimators.inputs import require_model
from manyarms.estimators.ips import CONSISTENT, COVERED, CorrectedEstimator
from manyarms.estimators.logging_policy import CellFunction, Cells, logged_propensities
from manyarms.estimators.oracles import FiniteProblem, greedy, predictions
from manyarms.estimators.predictions import bounds_of, checked_model, residual_range, residuals
from manyarms.logs.data import LoggedData
from manyarms.rewards.base import RewardModel
from manyarms.weights import ClipPropensities, Correction


@OBJECTIVES.register("dm")
class DM(Estimator):
    """The direct method: the mean of E_pi[r_hat]; the best policy plays the model's best action. Needs no propensities."""

    summary: ClassVar[str] = "direct method: a reward model's value; needs no propensities"
    note: str = "as good as its model: the interval shows the spread over contexts, not the model's error"
    by_default: ClassVar[bool] = True
    weighted: ClassVar[bool] = False
    row_by_row = True

    def __init__(self, model: RewardModel) -> None:
        require_model(model)
        self.model = model

    def prepare(self, log: LoggedData) -> Request:
        return Request(logged=False, model=checked_model(self.model, log))

    def terms(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return answers.expectation

    def span(self, rewards: Range | None, floor: float) -> Range | None:
        return bounds_of(self.model)

    def oracle(self, problem: FiniteProblem) -> Array:
        """The model's best action."""
        return greedy(predictions(problem, self.model))


@OBJECTIVES.register("dr")
class DR(CorrectedEstimator):
    """Doubly robust: w_hat (R - r_hat(X, A)) + E_pi[r_hat(X, .)], clipped at tau (thesis, Section 7.1.1).

    tau = 0 clips nothing. correction: another one in place of clipping; it may not depend on rewards.
    """

    summary: ClassVar[str] = "doubly robust: a reward model, and clipped inverse propensities for its errors"
    parameter: ClassVar[str | None] = "tau"
    by_default: ClassVar[bool] = True
    row_by_row = True

    def __init__(self, model: RewardModel, tau: float = 0.0, *, correction: Correction | None = None) -> None:
        require_model(model)
        self.model = model
        clipped = ClipPropensities(tau)  # checked in any case
        self._correction: Correction = clipped if correction is None else correction
        if not isinstance(self._correction, Correction) or self._correction.depends_on_reward:
            raise InvalidInput(
                "correction", validate.describe(correction), "a correction that does not depend on rewards"
            )
        self.unbiased, self.note = self._correction.is_none, "biased by what the correction leaves of the model's error"
        if self.unbiased:
            self.note = f"{COVERED}, and the model was fitted on other rows"

    @property
    def correction(self) -> Correction:
        """How weights are regularised."""
        return self._correction

    @property
    def settings(self) -> dict[str, float]:
        return self.correction.settings

    @property
    def label(self) -> str:
        return self.name if self.unbiased else f"{self.name}, {self.correction.label}"

    def prepare(self, log: LoggedData) -> Request:
        return _residuals(self.model, log, self.name)

    def terms(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return self.corrected(answers, columns["propensity"], columns["residual"]) + answers.expectation

    def weights(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return self.correction.weight(answers.pi[:, 0], columns["propensity"])

    def factor_range(self, rewards: Range | None) -> Range | None:
        return residual_range(rewards, self.model)

    def baseline_range(self) -> Range | None:
        return bounds_of(self.model)

    def oracle(self, problem: FiniteProblem) -> Array:
        """The action with the largest r_hat + (r - r_hat) pi0 w_hat / pi."""
        if not self.correction.linear_in_policy:
            raise InvalidInput("correction", self.correction.name, "one whose best policy has a closed form")
        r_hat = predictions(problem, self.model)
        counted = self.correction.effective_policy(np.ones(r_hat.shape), problem.logging)
        return greedy(r_hat + counted * (problem.rewards - r_hat))


@OBJECTIVES.register("sndr")
class SNDR(DR):
    """Self-normalised doubly robust: the weighted mean of what the model leaves over, plus the model's value.

    sum w_hat (R - r_hat) / sum w_hat is a mean with weights that sum to 1: it stays within the range of the residuals, whatever
    the weights, where DR's may leave it (Thomas and Brunskill, 2016, call the step-wise form weighted doubly robust). Consistent
    without a correction; in learning the ratio is that of a batch, as for SNIPS.
    """

    summary: ClassVar[str] = "self-normalised doubly robust: as dr, with weights that sum to 1"
    by_default: ClassVar[bool] = False
    self_normalised: bool = True

    def __init__(self, model: RewardModel, tau: float = 0.0, *, correction: Correction | None = None) -> None:
        super().__init__(model, tau, correction=correction)
        self.unbiased, self.consistent = False, self.correction.is_none
        self.note = "biased: tends to a mean of the model's errors over what the correction keeps"
        if self.consistent:
            self.note = f"{CONSISTENT}, and the model was fitted on other rows"

    @property
    def label(self) -> str:
        return self.name if self.consistent else f"{self.name}, {self.correction.label}"

    def terms(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return self.corrected(answers, columns["propensity"], columns["residual"])

    def baseline(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor | None:
        return answers.expectation

    def value(self, answers: Answers, batch: Batch) -> Tensor:
        assert answers.expectation is not None
        shares = softmax(self.correction.log_weight(answers.log_pi[:, 0], batch.columns["propensity"]))
        return (shares * batch.columns["residual"]).sum() + answers.expectation.sum() / batch.size

    def factor_range(self, rewards: Range | None) -> Range | None:
        return None  # what is weighted depends on all rows: no term has a range of its own

    def bias_sums(self) -> dict[Hashable, CellFunction]:
        return {}

    def oracle(self, problem: FiniteProblem) -> Array:
        """That of DR, where pi0 plays every action and nothing is corrected."""
        if not self.consistent:
            raise InvalidInput("correction", self.correction.name, "one whose best policy has a closed form")
        if not problem.logging.min() > 0:
            raise InvalidInput("problem.logging", "actions that are never played", "every action's probability above 0")
        return super().oracle(problem)


@OBJECTIVES.register("switch")
class SWITCH(Estimator):
    """IPS where the weight is at most a threshold t, the model elsewhere (Wang, Agarwal and Dudik, 2017).

    The mean of w r 1(w <= t) + sum over a of pi(a|x) r_hat(x, a) 1(w(a|x) > t), which needs pi0 of all actions.
    threshold: sqrt(n) by default.
    """

    summary: ClassVar[str] = "inverse propensity scoring up to a threshold of the weight, a reward model beyond"
    note: str = "biased by the model's error where weights exceed the threshold"
    parameter: ClassVar[str | None] = "threshold"
    learnable: ClassVar[bool] = False
    row_by_row = True

    def __init__(self, model: RewardModel, threshold: float | None = None) -> None:
        require_model(model)
        self.model = model
        self._threshold = None if threshold is None else validate.not_negative("threshold", threshold)

    @property
    def threshold(self) -> float:
        """The largest weight that is used."""
        if self._threshold is None:
            raise InvalidInput("threshold", "nothing", "a number, or the log that it is computed from")
        return self._threshold

    @property
    def settings(self) -> dict[str, float]:
        return {} if self._threshold is None else {"threshold": self._threshold}

    def resolved(self, rows: int) -> Self:
        return self if self._threshold is not None else type(self)(self.model, rows**0.5)

    def prepare(self, log: LoggedData) -> Request:
        columns = {"reward": log.rewards, "propensity": logged_propensities(log, self.name)}
        return Request(columns, model=checked_model(self.model, log), sums=self.bias_sums())

    def terms(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return self.weights(answers, columns) * columns["reward"] + self._beyond(answers)[1]

    def weights(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        weights = answers.pi[:, 0] / columns["propensity"]
        return weights * (weights <= self.threshold)

    def span(self, rewards: Range | None, floor: float) -> Range | None:
        predicted = bounds_of(self.model)
        if predicted is None:
            return None
        return weighted_span(self.threshold, rewards, (min(0.0, predicted[0]), max(0.0, predicted[1])))

    def bias_sums(self) -> dict[Hashable, CellFunction]:
        t, model = self.threshold, self.model
        return {("up to", t): partial(_up_to, t), ("up to", t, id(model)): partial(_predicted_up_to, t, model)}

    def bracket(self, values: Array, answers: Answers, rewards: Range) -> tuple[Array, Array] | None:
        """The rewards beyond the threshold may be anything in their range, whatever the model says."""
        far, predicted = self._beyond(answers)
        return values - predicted + rewards[0] * far, values - predicted + rewards[1] * far

    def _beyond(self, answers: Answers) -> tuple[Array, Array]:
        """pi's mass where the weight is above the threshold, and the model's value there, (n,) each."""
        t = self.threshold
        assert answers.expectation is not None
        far = np.maximum(1.0 - answers.sums["up to", t], 0.0)
        return far, answers.expectation - answers.sums["up to", t, id(self.model)]


@OBJECTIVES.register("switch-dr")
class SwitchDR(SWITCH):
    """SWITCH in its doubly robust form: the mean of w (r - r_hat) 1(w <= t) + E_pi[r_hat].

    It needs pi0 of the logged actions only; its bias terms need all.
    """

    summary: ClassVar[str] = "doubly robust up to a threshold of the weight, a reward model beyond"
    by_default: ClassVar[bool] = True
    learnable: ClassVar[bool] = True

    def prepare(self, log: LoggedData) -> Request:
        return _residuals(self.model, log, self.name)

    def terms(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return self.weights(answers, columns) * columns["residual"] + answers.expectation

    def span(self, rewards: Range | None, floor: float) -> Range | None:
        return weighted_span(self.threshold, residual_range(rewards, self.model), bounds_of(self.model))


def _residuals(model: RewardModel, log: LoggedData, name: str) -> Request:
    """What a model leaves over, to be weighed, and the model to be averaged."""
    pi0, checked = logged_propensities(log, name), checked_model(model, log)
    return Request({"residual": residuals(checked, log), "propensity": pi0}, model=checked)


def _up_to(threshold: float, cells: Cells) -> Array:
    return cells.pi * (cells.pi <= threshold * cells.pi0)


def _predicted_up_to(threshold: float, model: RewardModel, cells: Cells) -> Array:
    return cells.pi * (cells.pi <= threshold * cells.pi0) * cells.predicted(model)


__all__ = ["DM", "DR", "SNDR", "SWITCH", "SwitchDR"]
