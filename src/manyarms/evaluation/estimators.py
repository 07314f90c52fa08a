"""Estimators of a policy's value from the logged actions: the IPS family, the direct method, and their combinations.

IPS      mean of w_hat r                                        any correction of `manyarms.weights`
DM       mean of E_pi[r_hat]                                    (thesis, lines 1736-1739)
DR       mean of w_hat (r - r_hat) + E_pi[r_hat]                (thesis, lines 2082-2086)
SWITCH   mean of w r 1(w <= t) + E_pi[r_hat 1(w > t)]           (Wang et al., 2017)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.estimators.logging_policy import CellFunction, RewardModel
from manyarms.evaluation.terms import Base, Case, Estimator, Smoothing, Terms
from manyarms.weights import ClipPropensities, Correction, LogSmoothing, NoCorrection, Weighting, named

COVERED = "unbiased where the logging policy plays whatever the policy plays"


def describe(weighting: Weighting) -> str:
    """A weighting's name with its parameters."""
    settings = ", ".join(f"{name}={value:.3g}" for name, value in weighting.correction.settings.items())
    return f"{weighting.name} ({settings})" if settings else weighting.name


@dataclass(frozen=True)
class IPS(Base):
    """The mean of w_hat r, or, self-normalised, the sum of w_hat r over the sum of w_hat.

    weighting: a correction, a weighting, or a name of `manyarms.weights` ("ips", "snips", "cips", "es", ...), whose
    parameter then follows the family's rule for the number of rows.
    """

    weighting: Weighting | Correction | str = "ips"
    parameter: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.weighting, str):
            named(self.weighting, self.parameter, rows=1)  # refuses unknown names here, not in the middle of a pass
        elif self.parameter is not None:
            raise InvalidInput("parameter", self.parameter, "none: the correction has its own")
        elif isinstance(self.weighting, Correction):
            object.__setattr__(self, "weighting", Weighting(self.weighting))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The weighting's name."""
        return self.weighting if isinstance(self.weighting, str) else self.weighting.name

    @property
    def label(self) -> str:
        """The name with its parameters."""
        return describe(self.weighting) if isinstance(self.weighting, Weighting) else self.name

    def resolved(self, rows: int) -> Estimator:
        """The same with the family's parameter for so many rows."""
        return IPS(named(self.weighting, self.parameter, rows=rows)) if isinstance(self.weighting, str) else self

    def of(self, case: Case) -> Terms:
        """w_hat r."""
        assert isinstance(self.weighting, Weighting)
        correction, rewards = self.weighting.correction, case.log.rewards
        if isinstance(correction, LogSmoothing):
            return _log_smoothing(correction, case)
        weights = correction.weight(case.pi, case.pi0, rewards)
        if self.weighting.self_normalised:
            plain = correction.is_none
            note = (
                "consistent, biased by about 1/n" if plain else "biased: tends to a mean over what the correction keeps"
            )
            note += ", where the logging policy plays whatever the policy plays" if plain else ""
            return Terms(weights * rewards, weights, False, note, self_normalised=True, consistent=plain)
        terms = corrected(case, correction, weights, rewards, 0.0, case.settings.reward_range, (0.0, 0.0))
        return replace(terms, never_above=correction.never_above)


def corrected(
    case: Case,
    correction: Correction,
    weights: Array,
    rewards: Array,
    baseline: Array | float,
    reward_range: tuple[float, float] | None,
    baseline_range: tuple[float, float] | None,
) -> Terms:
    """w_hat * rewards + baseline, with what is known of its bias and span; rewards may be residuals of a model."""
    values = weights * rewards + baseline
    low = high = span = wide = None
    if reward_range is not None:
        least, most = reward_range
        bound = correction.bound(case.settings.propensity_floor)
        if bound is not None and baseline_range is not None:
            span = (baseline_range[0] + min(0.0, bound * least), baseline_range[1] + max(0.0, bound * most))
            # P and N of the bias lie in [0, 1] and [-P, 0]: what is kept of pi sums to at most 1
            wide = (span[0] + min(0.0, least, least - most), span[1] + max(0.0, most, most - least))
        lost = case.lost(correction)
        if lost is not None:
            positive, negative = lost
            low, high = values + least * positive + most * negative, values + most * positive + least * negative
    if correction.is_none:
        note = COVERED
    elif correction.never_above:
        note = "biased: counts too little of large weights; its mean is at most the value where rewards are at least 0"
    else:
        note = "biased, up or down"
    return Terms(values, weights, correction.is_none, note, low=low, high=high, span=span, span_with_bias=wide)


def _log_smoothing(correction: LogSmoothing, case: Case) -> Terms:
    """Terms of logarithmic smoothing, for rewards moved to [0, 1]; the value is moved back."""
    if case.settings.reward_range is None:
        raise InvalidInput(
            "rewards", f"rewards from {case.log.rewards.min():g} to {case.log.rewards.max():g}",
            "rewards in [0, 1] for logarithmic smoothing, or reward_range=(low, high), the range that they can have",
        )  # fmt: skip
    offset, top = case.settings.reward_range
    width = top - offset
    high: Array | None = None
    unit = (case.log.rewards - offset) / width
    values = offset + width * correction.terms(case.pi, case.pi0, unit)
    complement = correction.terms(case.pi, case.pi0, 1.0 - unit)
    note = "biased: its mean is at most the value"
    if (offset, width) != (0.0, 1.0):
        note += f"; rewards were moved from [{offset:g}, {top:g}] to [0, 1] and the value moved back"
    span = wide = None
    bound = correction.bound(case.settings.propensity_floor)
    if bound is not None:
        span, wide = (offset, offset + width * bound), (offset, offset + width * (bound + 1.0))
    lost = case.lost(correction)
    if lost is not None:
        high = values + width * lost[0]
    return Terms(
        values, case.pi / case.pi0, correction.is_none, note, low=values, high=high, span=span, span_with_bias=wide,
        never_above=True, smoothing=Smoothing(correction.smoothing, offset, width, complement),
    )  # fmt: skip


def bounds_of(model: RewardModel) -> tuple[float, float] | None:
    """Numbers between which all predictions lie, where the model says so."""
    bounds = getattr(model, "bounds", None)
    return (float(bounds[0]), float(bounds[1])) if isinstance(bounds, tuple) else None


def residual_range(case: Case, model: RewardModel) -> tuple[float, float] | None:
    """Numbers between which r - r_hat lies, where rewards and predictions are bounded."""
    rewards, predictions = case.settings.reward_range, bounds_of(model)
    if rewards is None or predictions is None:
        return None
    return rewards[0] - predictions[1], rewards[1] - predictions[0]


@dataclass(frozen=True, eq=False)
class DM(Base):
    """The direct method: the mean over contexts of the sum over a of pi(a|x) r_hat(x, a) (thesis, lines 1736-1739)."""

    model: RewardModel
    name: str = "dm"

    def of(self, case: Case) -> Terms:
        """E_pi[r_hat]."""
        note = "as good as its model: the interval shows the spread over contexts, not the model's error"
        return Terms(case.expected(self.model), None, False, note, span=bounds_of(self.model))


@dataclass(frozen=True, eq=False)
class DR(Base):
    """Doubly robust: the mean of w_hat (r - r_hat) + E_pi[r_hat] (thesis, lines 2082-2086, 4783-4789).

    correction: none by default; ClipPropensities(tau) is the thesis's. A number stands for ClipPropensities.
    """

    model: RewardModel
    correction: Correction | float = NoCorrection()  # noqa: RUF009  frozen, and so shared safely
    name: str = "dr"

    def __post_init__(self) -> None:
        if not isinstance(self.correction, Correction):
            object.__setattr__(self, "correction", ClipPropensities(self.correction))
        if isinstance(self.correction, LogSmoothing):
            raise InvalidInput("correction", self.correction.name, "a correction that does not depend on rewards")

    @property
    def label(self) -> str:
        """The name with its correction."""
        assert isinstance(self.correction, Correction)
        none = isinstance(self.correction, NoCorrection)
        return self.name if none else f"{self.name}, {describe(Weighting(self.correction))}"

    def of(self, case: Case) -> Terms:
        """w_hat (r - r_hat) + E_pi[r_hat]."""
        assert isinstance(self.correction, Correction)
        weights = self.correction.weight(case.pi, case.pi0)
        terms = corrected(
            case, self.correction, weights, case.log.rewards - case.predicted(self.model), case.expected(self.model),
            residual_range(case, self.model), bounds_of(self.model),
        )  # fmt: skip
        if terms.unbiased:
            note = f"{COVERED}, and the model was fitted on other rows"
        else:
            note = "biased by what the correction leaves of the model's error"
        return replace(terms, note=note)


@dataclass(frozen=True, eq=False)
class SWITCH(Base):
    """IPS where the weight is at most a threshold t, the model elsewhere (Wang, Agarwal and Dudik, 2017).

    The mean of w r 1(w <= t) + sum over a of pi(a|x) r_hat(x, a) 1(w(a|x) > t), which needs pi0 of all actions.
    doubly_robust: the mean of w (r - r_hat) 1(w <= t) + E_pi[r_hat], which needs pi0 of the logged ones only.
    threshold: sqrt(n) by default.
    """

    model: RewardModel
    threshold: float | None = None
    doubly_robust: bool = False

    def __post_init__(self) -> None:
        if self.threshold is not None:
            validate.not_negative("threshold", self.threshold)

    @property
    def name(self) -> str:  # type: ignore[override]
        """switch or switch-dr."""
        return "switch-dr" if self.doubly_robust else "switch"

    @property
    def label(self) -> str:
        """The name with its threshold."""
        return self.name if self.threshold is None else f"{self.name} (threshold={self.threshold:.3g})"

    def resolved(self, rows: int) -> Estimator:
        """The same with a threshold."""
        return self if self.threshold is not None else SWITCH(self.model, rows**0.5, self.doubly_robust)

    def of(self, case: Case) -> Terms:
        """What is reweighted, and what the model says of the rest."""
        assert self.threshold is not None
        t = self.threshold
        weights = case.pi / case.pi0
        weights = np.where(weights <= t, weights, 0.0)
        note = "biased by the model's error where weights exceed the threshold"
        if not self.doubly_robust or case.settings.bias:
            near: list[CellFunction] = [
                lambda c: c.pi * (c.pi <= t * c.pi0),
                lambda c: c.pi * (c.pi <= t * c.pi0) * c.predicted(self.model),
            ]
            sums = case.keep(("switch", id(self.model), t), lambda: (case.whole("SWITCH").sums(case.policy, near),))[0]
            far = np.maximum(1.0 - sums[:, 0], 0.0)  # pi's mass where the weight is above the threshold
            far_model = case.expected(self.model) - sums[:, 1]
        if self.doubly_robust:
            residual = case.log.rewards - case.predicted(self.model)
            values = weights * residual + case.expected(self.model)
        else:
            values = weights * case.log.rewards + far_model
        low = high = None
        if case.settings.bias and case.settings.reward_range is not None:
            least, most = case.settings.reward_range
            low, high = values - far_model + least * far, values - far_model + most * far
        return Terms(values, weights, False, note, low=low, high=high, span=self._span(case))

    def _span(self, case: Case) -> tuple[float, float] | None:
        assert self.threshold is not None
        rewards, predictions = case.settings.reward_range, bounds_of(self.model)
        if rewards is None or predictions is None:
            return None
        if self.doubly_robust:
            rewards = rewards[0] - predictions[1], rewards[1] - predictions[0]
            extra = predictions
        else:
            extra = min(0.0, predictions[0]), max(0.0, predictions[1])
        return extra[0] + min(0.0, self.threshold * rewards[0]), extra[1] + max(0.0, self.threshold * rewards[1])


__all__ = ["DM", "DR", "IPS", "SWITCH", "bounds_of", "corrected", "describe", "residual_range"]
