"""Objectives that are linear in pi or log pi: the terms they name are those that they sum."""

from __future__ import annotations

import numpy as np
import pytest

from manyarms.estimators import BPR, ES, ESLPI, IPS, IX, LPI, LS, PWLL, SNIPS, ESBeta, RegKL, RegKLLinear, cIPS, cLPI
from manyarms.estimators.base import Answers, Batch, Objective
from manyarms.logs.data import LoggedData

LINEAR: list[Objective] = [
    IPS(), cIPS(0.2), ES(0.5), IX(0.1), LS(0.1), LPI(), cLPI(0.1), ESLPI(0.3), RegKL(0.5), RegKLLinear(0.5),
    PWLL(lambda r, p: r + p),
]  # fmt: skip
OTHERS: list[Objective] = [SNIPS(), ESBeta(0.5), BPR(), IPS("ips-min")]


def a_log(rows: int = 60) -> LoggedData:
    rng = np.random.default_rng(0)
    return LoggedData(
        rng.standard_normal((rows, 3)),
        rng.integers(0, 7, rows),
        rng.uniform(0, 1, rows),
        7,
        rng.uniform(0.1, 0.9, rows),
    )


@pytest.mark.parametrize("objective", LINEAR, ids=lambda one: one.label)
def test_the_terms_are_those_that_the_value_sums(objective) -> None:
    log = a_log()
    objective = objective.resolved(len(log))
    terms = objective.linear_terms(log)
    assert terms is not None
    log_pi = np.log(np.random.default_rng(1).uniform(0.01, 0.9, len(log)))
    value = objective.value(Answers(log_pi[:, None]), Batch(objective.prepare(log).columns, 2 * len(log)))
    pi = log_pi if terms.of_log else np.exp(log_pi)
    assert terms.weights @ pi / (2 * len(log)) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("objective", OTHERS, ids=lambda one: one.label)
def test_others_say_nothing(objective) -> None:
    assert objective.resolved(60).linear_terms(a_log()) is None


def test_a_subclass_with_terms_of_its_own_says_nothing() -> None:
    class Squared(cLPI):
        def terms(self, answers, columns):  # type: ignore[no-untyped-def]
            return super().terms(answers, columns) ** 2

    class Halved(IPS):
        def value(self, answers, batch):  # type: ignore[no-untyped-def]
            return super().value(answers, batch) / 2

    assert Squared(0.1).linear_terms(a_log()) is None
    assert Halved().linear_terms(a_log()) is None
