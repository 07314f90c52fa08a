"""Pessimistic objectives: an estimate of the value less what a bound says it may be off by.

With w_hat the corrected weights of a policy, n rows, rewards in [0, 1] and KL the divergence of the learned distribution Q of
parameters from its prior (thesis, lines 2508-2530, 2678-2748, 6202-6270):

    V_hat   the mean of w_hat(A_i) R_i
    B       the mean over i of the sum over a of |pi - pi0 w_hat|                                       bias
    Var     the mean over i of the sum over a of pi0 w_hat^2, plus w_hat(A_i)^2 R_i^2                   second moments

    es, unified    V_hat - sqrt(kl1 / 2n) - B - kl2 / (n l) - l/2 Var,    kl1 = KL + ln(4 sqrt(n)/delta), kl2 = KL + ln(4/delta)
    london, sakhi1, sakhi2    the bounds of the literature for clipped propensities, pi / max(pi0, tau)
    ls             (exp(l V_ls - (KL + ln(1/delta)) / n) - 1) / l, the bound of logarithmic smoothing

Where w_hat = pi / h(pi0) is linear in pi and pi an average of deterministic policies, w_hat^2 averages to pi / h^2: the linear
form. Otherwise the expectations are over draws of the parameters: the general form.

With l = None the best l for the batch is taken, l* = sqrt(2 kl2 / (n Var)), and alpha may be adapted to the batch too. That is
fine for an objective and forbidden for a certificate: nothing here is a guarantee. `manyarms.certificates` makes those, with l
and alpha from a grid that is declared beforehand and paid for.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from manyarms._base import validate
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Answers as Terms
from manyarms.estimators.base import Batch, Objective, Tensor
from manyarms.estimators.base import Request as Rows
from manyarms.estimators.ips import ES, IPS, LS
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.weights import ClipPropensities, Correction, ExponentialAlpha, LinearLogSmoothing

BOUNDS = ("unified", "general", "london", "sakhi1", "sakhi2", "ls")
ALPHAS = tuple(float(a) for a in np.linspace(0.05, 1.0, 20))  # what an adaptive alpha is chosen from
LAMBDAS = 100  # values of lambda that sakhi1 and sakhi2 choose from


class _OnAllActions(Objective):
    """An objective that needs pi0 of every action at every row."""

    def __init__(self, value: IPS) -> None:
        if not isinstance(value, IPS) or value.self_normalised:
            raise InvalidInput(
                "value", validate.describe(value), "an objective of the IPS family (IPS, ES, cIPS, IX, LS)"
            )
        self.inner = value

    @property
    def correction(self) -> Correction:
        """How weights are regularised."""
        return self.inner.correction

    def prepare(self, log: LoggedData) -> Rows:
        log.require("unit_rewards", purpose=self.label)
        rows = self.inner.checked(log)
        rows.active, rows.rising = None, False  # bias and variance count in every row
        rows.columns = {**rows.columns, "rounds": np.full(len(log), float(len(log)))}
        if self.whole:
            log.require("logging", purpose=self.label)
            if not isinstance(log.logging, Policy):
                raise InvalidInput("log.logging", validate.describe(log.logging), f"a policy, for {self.label}")
        rows.all_actions = self.whole
        return rows

    @property
    def whole(self) -> bool:
        """Whether pi0 is needed at all actions, and not at the logged ones alone."""
        return True


class PACBayes(_OnAllActions):
    """A PAC-Bayes lower bound on the value of a policy that averages over parameters, as an objective.

    value: the estimate inside: ES(alpha) (alpha a number, or "adaptive"), cIPS(tau), IX(gamma), IPS(), any other in the general
    form; LS for the bound "ls". delta: one minus the confidence. bound: "unified" (ES's is a case of it), "general", "london",
    "sakhi1", "sakhi2" (these three need cIPS), "ls". lam: lambda; the best one for the batch unless given.
    """

    name: ClassVar[str] = "pac-bayes"

    def __init__(self, value: IPS, delta: float = 0.05, bound: str | None = None, lam: float | None = None) -> None:
        super().__init__(value)
        chosen = ("ls" if isinstance(value, LS) else "unified") if bound is None else bound
        if chosen not in BOUNDS:
            raise InvalidInput("bound", repr(bound), "one of " + ", ".join(BOUNDS))
        if not 0 < delta < 1:
            raise InvalidInput("delta", delta, "a number above 0 and below 1")
        self.bound, self.delta = chosen, float(delta)
        self.lam = None if lam is None else validate.positive("lam", lam)
        needs_clip, needs_ls = chosen in ("london", "sakhi1", "sakhi2"), chosen == "ls"
        clipped = isinstance(self.correction, ClipPropensities) and self.correction.tau > 0
        if needs_clip and not clipped:
            raise InvalidInput("value", self.inner.label, f"cIPS(tau) with tau above 0, for the bound {chosen!r}")
        if needs_ls and not (isinstance(self.correction, LinearLogSmoothing) and self.correction.smoothing > 0):
            raise InvalidInput("value", self.inner.label, "LS(smoothing) in its linear form, for the bound 'ls'")
        if chosen == "unified" and not self.correction.linear_in_policy:
            raise InvalidInput("value", self.inner.label, "weights linear in the policy, or bound='general'")

    @property
    def settings(self) -> dict[str, float]:
        more = {} if self.lam is None else {"lam": self.lam}
        return {**self.inner.settings, "delta": self.delta, **more}

    @property
    def label(self) -> str:
        return f"{self.bound} bound of {self.inner.label}"

    @property
    def adaptive(self) -> bool:
        """Whether alpha is chosen anew on every batch."""
        return isinstance(self.inner, ES) and self.inner.adaptive

    @property
    def whole(self) -> bool:
        return self.bound in ("unified", "general", "sakhi2")

    def prepare(self, log: LoggedData) -> Rows:
        rows = super().prepare(log)
        rows.draws = self.bound == "general"
        rows.divergence = True
        return rows

    def value(self, terms: Terms, batch: Batch) -> Tensor:
        if terms.divergence is None:
            raise InvalidInput(
                "policy", "a policy without a distribution of parameters", "a GaussianPolicy or MixedLogitPolicy"
            )
        n = float(batch.columns["rounds"][0]) if len(batch.columns["rounds"]) else 1.0
        kl = terms.divergence
        if self.bound in ("unified", "general"):
            correction = self._adapted(terms, batch, n) if self.adaptive else self.correction
            value, bias, variance = moments(correction, terms, batch, general=self.bound == "general")
            return value - width(kl, bias, variance, n, self.delta, self.lam)
        estimate = _estimate(self.correction, terms, batch)
        if self.bound == "ls":
            lam = self.correction.settings["smoothing"]
            return ((lam * estimate - (kl + math.log(1 / self.delta)) / n).exp() - 1) / lam
        tau = self.correction.settings["tau"]
        if self.bound == "london":
            cost = (kl + math.log(n / self.delta)) / (tau * max(n - 1, 1))
            return estimate - (2 * (1 / tau - estimate).clip(min=0) * cost).clip(min=1e-30) ** 0.5 - 2 * cost
        if self.bound == "sakhi1":
            return self._sakhi1(estimate, (kl + math.log(2 * math.sqrt(n) / self.delta)) / n, tau)
        return self._sakhi2(terms, batch, estimate, kl, n, tau)

    def _sakhi1(self, estimate: Tensor, cost: Tensor, tau: float) -> Tensor:
        """(exp(tau l V_hat - cost) - 1) / (tau (e^l - 1)), the best l of a grid: Catoni's bound on 1 - tau V."""
        best = None
        for lam in [self.lam] if self.lam else np.geomspace(1e-3, 10, LAMBDAS):
            found = ((tau * float(lam) * estimate - cost).exp() - 1) / (tau * math.expm1(float(lam)))
            best = found if best is None or float(found.detach()) > float(best.detach()) else best
        return best

    def _sakhi2(self, terms: Terms, batch: Batch, estimate: Tensor, kl: Tensor, n: float, tau: float) -> Tensor:
        """A Bernstein bound, the best of LAMBDAS values of l, with their union bound paid."""
        pi: Tensor = terms.probabilities
        pi0: Tensor = batch.logging
        variance = (pi * pi0 / pi0.clip(min=tau) ** 2).sum(-1).sum() / batch.size
        first = ((kl + math.log(4 * math.sqrt(n) / self.delta)) / (2 * n)) ** 0.5
        best = None
        for lam in [self.lam] if self.lam else np.geomspace(1e-2 * n * tau, 10 * n * tau, LAMBDAS):
            u = float(lam) / (tau * n)
            g = (math.expm1(u) - u) / u**2
            cost = (kl + math.log(2 * LAMBDAS / self.delta)) / float(lam) + float(lam) / n * g * variance
            best = cost if best is None or float(cost.detach()) < float(best.detach()) else best
        return estimate - first - best

    def _adapted(self, terms: Terms, batch: Batch, n: float) -> Correction:
        """alpha* of the thesis's lines 2532-2545 on the batch: the least B + sqrt(2 kl2 Var / n)."""

        def cost(alpha: float) -> float:
            _, bias, variance = moments(ExponentialAlpha(alpha), terms, batch)
            return float((bias + (2 * _kl2(terms.divergence, self.delta) * variance / n) ** 0.5).detach())

        return ExponentialAlpha(min(ALPHAS, key=cost))


class Heuristic(_OnAllActions):
    """V_hat - l1 ||theta - start||^2 - l2 Var - l3 B (thesis, lines 2585-2592, 2740-2748).

    For averages over parameters (Gaussian policies) Var and B have their linear form, else those of the policy itself.
    """

    name: ClassVar[str] = "heuristic"

    def __init__(self, value: IPS, distance: float = 1e-5, variance: float = 1e-5, bias: float = 1e-5) -> None:
        super().__init__(value)
        if isinstance(value, ES) and value.adaptive:
            raise InvalidInput("alpha", "'adaptive'", "a number: only a PACBayes objective has a bound to adapt it to")
        self.distance_weight = validate.not_negative("distance", distance)
        self.variance_weight, self.bias_weight = (
            validate.not_negative("variance", variance),
            validate.not_negative("bias", bias),
        )

    @property
    def settings(self) -> dict[str, float]:
        weights = {"l1": self.distance_weight, "l2": self.variance_weight, "l3": self.bias_weight}
        return {**self.inner.settings, **weights}

    @property
    def label(self) -> str:
        return f"heuristic on {self.inner.label}"

    def prepare(self, log: LoggedData) -> Rows:
        rows = super().prepare(log)
        rows.squared_distance = self.distance_weight
        return rows

    def value(self, terms: Terms, batch: Batch) -> Tensor:
        linear = terms.divergence is not None and self.correction.linear_in_policy
        value, bias, variance = moments(self.correction, terms, batch, squares=not linear)
        return value - self.variance_weight * variance - self.bias_weight * bias


def width(kl: Tensor, bias: Tensor, variance: Tensor, n: float, delta: float, lam: float | None) -> Tensor:
    """sqrt(kl1 / 2n) + B + kl2 / (n l) + l/2 Var; without l, at the best one, where the last two are sqrt(2 kl2 Var / n)."""
    first = ((kl + math.log(4 * math.sqrt(n) / delta)) / (2 * n)) ** 0.5
    if lam is None:
        return first + bias + (2 * _kl2(kl, delta) * variance / n) ** 0.5
    return first + bias + _kl2(kl, delta) / (n * lam) + lam / 2 * variance


def moments(
    correction: Correction, terms: Terms, batch: Batch, general: bool = False, squares: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """V_hat, B and Var on a batch; linear form, or with squared weights, or averaged over draws (general)."""
    pi0: Tensor = batch.logging
    rewards, p0 = batch.columns["reward"], batch.columns["propensity"]
    pi: Tensor = terms.probabilities
    own: Tensor = terms.log_probability[:, 0].exp()
    played = pi0 > 0
    safe = pi0 + ~played  # where pi0 is 0 nothing is ever seen: no weight, all bias
    if general or squares:
        pi, own = (pi[None], own[None]) if terms.draws is None else (terms.draws, terms.own_draws)
        weights = correction.weight(pi, safe, pi * 0 + 1) * played
        own_weight = correction.weight(own, p0, rewards)
        value = correction.terms(own, p0, rewards).mean(0).sum() / batch.size
        bias = (pi - pi0 * weights).abs().sum(-1).mean(0).sum() / batch.size
        moment = (pi0 * weights**2).sum(-1).mean(0) + (own_weight**2).mean(0) * rewards**2
        return value, bias, moment.sum() / batch.size
    unit = correction.weight(pi0 * 0 + 1, safe) * played  # 1 / h(pi0)
    own_unit = correction.weight(p0 * 0 + 1, p0)
    bias = (pi * (1 - pi0 * unit)).sum(-1).sum() / batch.size
    moment = (pi * pi0 * unit**2).sum(-1) + own * own_unit**2 * rewards**2
    return _estimate(correction, terms, batch), bias, moment.sum() / batch.size


def _estimate(correction: Correction, terms: Terms, batch: Batch) -> Tensor:
    columns = batch.columns
    return (
        correction.terms(terms.log_probability[:, 0].exp(), columns["propensity"], columns["reward"]).sum() / batch.size
    )


def _kl2(kl: Tensor, delta: float) -> Tensor:
    return kl + math.log(4 / delta)


__all__ = ["BOUNDS", "Heuristic", "PACBayes", "moments", "width"]
