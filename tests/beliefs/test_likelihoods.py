"""Likelihoods keep their formulas, and one of your own is one short file: known to agents, checks and storage by its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from scipy.special import expit

import manyarms as ma
from manyarms import checks
from manyarms._base.typing import Array
from manyarms.beliefs import LIKELIHOODS, GeneralisedLinear, Likelihood
from manyarms.errors import InvalidInput

SHIPPED: dict[str, tuple[Likelihood, list[float], list[float]]] = {
    "linear": (ma.Linear(0.7), [-1.5, 0.2, 3.0], []),
    "logistic": (ma.Logistic(), [0.0, 1.0], [0.5, -1.0, 2.0]),
    "poisson": (ma.beliefs.Poisson(), [0.0, 1.0, 2.0, 4.0], [0.5, -1.0]),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_likelihoods(name: str) -> None:
    likelihood, rewards, impossible = SHIPPED[name]
    checks.check_likelihood(likelihood, rewards, impossible)
    assert likelihood.kind == name
    if isinstance(likelihood, GeneralisedLinear):
        for other in (type(likelihood)(expansion="cavity"), type(likelihood)(0.3, "mle")):
            checks.check_likelihood(other, rewards, impossible)


def test_every_registered_likelihood_is_checked() -> None:
    assert set(LIKELIHOODS) == set(SHIPPED)


@pytest.fixture
def binomial(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[GeneralisedLinear]]:
    """A likelihood as another package would define it, gone after the test."""
    monkeypatch.setattr(LIKELIHOODS, "_parts", dict(LIKELIHOODS))

    @LIKELIHOODS.register("binomial")
    @dataclass(frozen=True)
    class Binomial(GeneralisedLinear):
        """How many of `trials` succeed, each with probability 1 / (1 + exp(-x^T theta))."""

        trials: int = 3

        def mean(self, u: Array) -> Array:
            return cast(Array, self.trials * expit(u))

        def slope(self, u: Array) -> Array:
            return cast(Array, self.trials * expit(u) * expit(-u))

        def potential(self, u: Array) -> Array:
            return self.trials * np.logaddexp(0.0, u)

        def check(self, rewards: Array) -> None:
            if not np.isin(rewards, np.arange(self.trials + 1)).all():
                raise InvalidInput("reward", "another number", f"integers from 0 to {self.trials}")

    yield Binomial


def test_a_likelihood_of_ones_own(binomial: type[GeneralisedLinear], tmp_path: Path) -> None:
    likelihood = binomial(trials=4)  # type: ignore[call-arg]
    checks.check_likelihood(likelihood, [0.0, 1.0, 4.0], [0.5, 5.0])
    prior = ma.MixedEffectPrior.isotropic(np.random.default_rng(0).uniform(-1, 1, (9, 2)), 3)
    checks.check_agent(lambda seed: ma.meTS(prior, likelihood, seed=seed))
    agent = ma.meTS(prior, likelihood, seed=0)
    agent.observe([1.0, 0.5, -0.2], 3, 2.0)
    agent.save(tmp_path)
    assert ma.load(tmp_path).belief.likelihood == likelihood and agent.name == "meTS-GLM"


def test_a_wrong_derivative_is_caught(binomial: type[GeneralisedLinear]) -> None:
    class Wrong(binomial):  # type: ignore[misc, valid-type]
        def slope(self, u: Array) -> Array:
            return 2.0 * cast(Array, super().slope(u))

    with pytest.raises(checks.CheckFailed, match="the slope agrees with finite differences"):
        checks.check_likelihood(Wrong(), [0.0, 1.0, 3.0])
    with pytest.raises(checks.CheckFailed, match=r"an impossible reward, .*, is refused"):
        checks.check_likelihood(ma.Linear(), [0.0], [3.0])


def test_one_without_a_name_cannot_be_saved(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Nameless(ma.Logistic):
        """A logistic likelihood that is not registered."""

    prior = ma.ActionPrior(4, np.zeros(2), np.eye(2))
    with pytest.raises(InvalidInput, match="a registered likelihood"):
        ma.agents.GLMTS(prior, Nameless(), seed=0).save(tmp_path)


def test_the_exact_fit_is_what_the_leaves_sum_up(rng: np.random.Generator) -> None:
    """Through the Gaussian that stands for its likelihood, a linear reward teaches what the exact update does."""
    X, r = rng.standard_normal((30, 3)), rng.standard_normal(30)
    likelihood = ma.Linear(0.4)
    _, G, B = likelihood.fit(X, r, np.zeros(3))
    agent = ma.LinTS(ma.ActionPrior(2, np.zeros(3), np.eye(3)), likelihood, seed=0)
    agent.observe(X, np.zeros(30, dtype=int), r)
    covariance = np.linalg.inv(np.eye(3) + G)
    np.testing.assert_allclose(agent.posterior(0)[0], covariance @ B, atol=1e-10)
    np.testing.assert_allclose(agent.posterior(0)[1], covariance, atol=1e-10)
