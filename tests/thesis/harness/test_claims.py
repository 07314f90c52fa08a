"""A statement holds when its difference is above zero by two standard errors, and never otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms_thesis.harness.claims import (
    Measured,
    claim,
    gain,
    increasing,
    least,
    logarithm,
    lower_regret,
    measured,
    outperforms,
    ratio,
    saved,
    slope,
)
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, solve


def results(**regrets: list[float]) -> Results:
    """One panel with made-up final regrets."""
    runs = len(next(iter(regrets.values())))
    cell = Cell("p", {"K": 3}, Call(dict), {name: Call(dict) for name in regrets}, 10, runs, solve)
    rows = {
        ("p", name, run): {"round": np.array([5, 10]), "regret": np.array([value / 2, value])}
        for name, values in regrets.items()
        for run, value in enumerate(values)
    }
    return Results("e", "smoke", [cell], rows)


@pytest.mark.parametrize(
    ("mean", "error", "holds"),
    [
        (2.1, 1.0, True),
        (2.0, 1.0, True),
        (1.9, 1.0, False),
        (-5.0, 1.0, False),
        (0.0, 0.0, False),
        (1.0, 0.0, True),
        (5.0, math.nan, False),
    ],
)
def test_two_standard_errors_above_zero(mean: float, error: float, holds: bool) -> None:
    made = claim("something is larger", "1-2", Measured(mean, error))
    assert made.holds is holds
    assert set(made.plain()) >= {"statement", "thesis_lines", "figure", "standard_error", "holds"}


def test_one_run_proves_nothing() -> None:
    made = claim("s", "1", measured(np.array([7.0])))
    assert not made.holds
    assert made.plain()["standard_error"] is None


def test_standard_errors_are_those_of_the_mean() -> None:
    value = measured(np.array([1.0, 2.0, 3.0, 6.0]))
    assert value.mean == 3.0
    assert value.standard_error == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2)
    with pytest.raises(InvalidInput):
        measured(np.array([]))


def test_differences_are_paired_over_runs() -> None:
    """Worlds differ far more than agents do: unpaired, this difference would drown."""
    made = results(ours=[100.0, 200.0, 301.0], theirs=[110.0, 211.0, 310.0])
    assert gain(made, "p", "ours", "theirs").mean == pytest.approx(10.0)
    assert gain(made, "p", "ours", "theirs").standard_error == pytest.approx(1 / math.sqrt(3))


def test_outperforming_all_needs_every_difference() -> None:
    made = results(ours=[1.0, 2.0, 3.0], near=[1.1, 1.9, 3.1], far=[9.0, 10.0, 11.2])
    verdict = outperforms(made, "p", "ours", ["near", "far"], "ours is best", "1")
    assert not verdict.holds
    assert "least convincing: near" in verdict.detail
    assert outperforms(made, "p", "ours", ["far"], "ours is best", "1").holds


def test_increasing_needs_every_step() -> None:
    steps = {"K=1": Measured(1.0, 0.1), "K=2": Measured(3.0, 0.1), "K=3": Measured(3.1, 0.1)}
    verdict = increasing(steps, "grows", "1")
    assert not verdict.holds
    assert "K=2 to K=3" in verdict.detail
    assert increasing({name: steps[name] for name in ("K=1", "K=2")}, "grows", "1").holds
    assert verdict.standard_error == pytest.approx(math.hypot(0.1, 0.1))
    alone = increasing({"K=1": Measured(1.0, 0.1)}, "grows", "1")  # in a part of an experiment
    assert alone.verdict == "undecided" and alone.detail == "nothing to compare"


def test_the_least_convincing_is_ranked_by_standard_errors() -> None:
    assert (
        least({"small and sure": Measured(1.0, 0.01), "large and unsure": Measured(5.0, 4.0)})[0] == "large and unsure"
    )


def test_what_is_the_same_in_every_run_convinces_nobody() -> None:
    """No error and no difference: it does not hold, so that it must be the least convincing beside what holds."""
    same = Measured(0.0, 0.0)
    assert same.strength == Measured(-0.0, 0.0).strength == 0.0
    assert least({"far": Measured(5.0, 0.1), "same": same})[0] == "same"
    assert least({"far": Measured(5.0, 0.0), "against": Measured(-1.0, 0.0), "same": same})[0] == "against"


def test_ratios_by_the_delta_method() -> None:
    """The error is that of the quotient of means over paired runs, to first order: against a bootstrap."""
    rng = np.random.default_rng(0)
    worlds = rng.normal(100, 10, 400)
    ours, theirs = worlds + rng.normal(0, 3, 400), 2 * worlds + rng.normal(0, 3, 400)
    made = results(ours=list(ours), theirs=list(theirs))
    found = ratio(made, "p", "ours", "theirs")
    draws = rng.integers(400, size=(2_000, 400))
    boot = theirs[draws].mean(axis=1) / ours[draws].mean(axis=1)
    assert found.mean == pytest.approx(theirs.mean() / ours.mean())
    assert found.standard_error == pytest.approx(boot.std(), rel=0.1)
    assert logarithm(found).mean == pytest.approx(math.log(found.mean))
    assert logarithm(found).standard_error == pytest.approx(np.log(boot).std(), rel=0.1)
    share = saved(made, "p", "ours", "theirs")
    assert share.mean == pytest.approx(1 - 1 / found.mean)
    assert share.standard_error == pytest.approx((1 - 1 / boot).std(), rel=0.1)
    assert lower_regret(made, "p", "ours", "theirs", "ours is lower", "1").holds


def test_the_slope_is_least_squares() -> None:
    x, y = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.5, 4.0])
    found = slope(x, [Measured(float(value), 0.1) for value in y])
    assert found.mean == pytest.approx(np.polyfit(x, y, 1)[0])
    assert found.standard_error == pytest.approx(0.1 / np.sqrt(((x - x.mean()) ** 2).sum()))


def test_runs_in_the_same_world_are_not_independent() -> None:
    """Against a simulation: three worlds with an effect of their own, four runs in each; and as usual where each has its own."""
    values = np.array([1.0, 2.0, 4.0, 7.0])
    assert measured(values, np.arange(4)).standard_error == pytest.approx(np.std(values, ddof=1) / 2)
    assert math.isnan(measured(values, np.zeros(4, dtype=np.int64)).standard_error)
    rng = np.random.default_rng(0)
    met, found = np.repeat(np.arange(3), 4), []
    for _ in range(4_000):
        found.append(measured(rng.standard_normal(3)[met] + rng.standard_normal(12), met))
    assert {one.degrees for one in found} == {2}
    assert np.mean([one.standard_error**2 for one in found]) == pytest.approx(
        np.var([one.mean for one in found]), rel=0.1
    )
    decided = np.mean([one.above_zero or one.below_zero for one in found])
    assert decided == pytest.approx(0.0455, abs=0.014)  # four standard errors of 4,000 draws
