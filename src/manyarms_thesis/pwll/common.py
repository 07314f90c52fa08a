"""What the experiments on large action spaces share: the chapter, sizes, families of objectives and panels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from manyarms_thesis.harness.data import MADE_UP, missing_data
from manyarms_thesis.harness.experiments import Chapter, Sizes
from manyarms_thesis.harness.learning import IN_WORDS, MODE, learning_cell
from manyarms_thesis.harness.spec import Call, Cell, variant_of
from manyarms_thesis.pwll.learners import ALPHA, BETA, RADIUS, SIGMA, TAU
from manyarms_thesis.pwll.problems import CATALOGUE, RIDGE, is_there, logged_problem
from manyarms_thesis.pwll.training import learned_from_enough, train
from manyarms_thesis.pwll.tuning import grid_for

LIKELIHOODS = ("LPI", "cLPI", "RegKL", "BPR")  # policy-weighted log-likelihoods, and BPR, which is nearly one
ESTIMATES = ("IPS", "ES", "DR", "MIPS", "OffCEM", "POTEC", "PC")  # estimates of a value (thesis, Section 7.3)
REAL = ("ml-1m", "gowalla", "amazon-book", "ciao", "epinions")
# of MovieLens in the thesis; every other set has OTHER_ROWS (Appendix D.4.1)
ROWS: Mapping[str, int] = {"ml-1m": 132_744}
OTHER_ROWS = 400_000
# users that policies are judged by, and settings chosen with; Ciao has 3,485 users with twenty items or more
# (a choice on few of them is one of noise: 500 users know a value of 0.1 to 0.013)
TEST_USERS, VALIDATION_USERS, VALIDATION_USERS_OF_WHOLE_SETS = 3_000, 1_000, 2_000
FEWER: Mapping[str, tuple[int, int]] = {"ciao": (1_500, 300), "ml-1m": (3_000, 1_000)}

# the thesis's world has the embeddings of its authors' pipeline; the other one is this project's
SCALED = "scores scaled, zero start"
LENGTH = 0.04  # of a generated catalogue's contexts in the thesis's world: what they have in Gowalla's
# rates that are tried for every objective: scores of unscaled embeddings are small, and need larger ones
# (the first is taken while an objective's own parameter is chosen for panels that set their rates)
RATES, SCALED_RATES = (0.1, 0.5), (0.1, 0.01)
AUTHORS_RATE, AUTHORS_BATCH = 5e-5, 32  # of Adam in the public code of Sakhi et al. (AAAI 2023)

FEW = "the 5,000 most visited places of Gowalla, {rows} rounds of log, 3,000 test users"
WHOLE = "all 40,981 places of Gowalla, {rows} rounds of log, 3,000 test users"
ALL_SETS = (
    "MovieLens 1M, Gowalla, Amazon-Book, Ciao and Epinions (132,744 rounds of log for the first, 400,000 for the others), "
    "3,000 test users (Ciao 1,500), and a generated catalogue of 1,000,000 actions"
)
TINY = "300 films of MovieLens 1M, {rows} rounds of log, 50 test users"

SMOKE: dict[str, Any] = {
    "data": ["ml-1m"], "dim": 8, "users": 500, "items": 300, "rows": 1_000, "clusters": 20, "epochs": 2, "runs": 2,
    "batch": 64, "rate": 0.1, "k0": 30, "rates_tried": [0.1], "scaled_rates_tried": [0.1], "told": TINY.format(rows="1,000"),
}  # fmt: skip
# where every row costs K products whether it was rewarded or not
QUICK: dict[str, Any] = {
    "data": ["gowalla"], "dim": 32, "items": 5_000, "rows": 10_000, "clusters": 200, "epochs": 4, "runs": 3, "batch": 256,
    "rate": 0.1, "k0": 100, "rates_tried": [*RATES], "scaled_rates_tried": [*SCALED_RATES], "told": FEW.format(rows="10,000"),
}  # fmt: skip
# where only rewarded rows cost anything
LARGE: dict[str, Any] = QUICK | {
    "items": None, "dim": 64, "rows": 20_000, "epochs": 5, "told": WHOLE.format(rows="20,000"),
}  # fmt: skip
PAPER: dict[str, Any] = {
    "data": [*REAL, CATALOGUE], "dim": 64, "clusters": 2_000, "epochs": 10, "runs": 5, "batch": 256, "rate": 0.1, "k0": 100,
    "rates_tried": [*RATES, 0.01, AUTHORS_RATE], "scaled_rates_tried": [*SCALED_RATES, 0.001, AUTHORS_RATE], "told": ALL_SETS,
}  # fmt: skip
MILLION = 1_000_000
TUNED = "one-cycle"  # the schedule of the ablations (thesis, Appendix D.4.4)

NUMBERS = {
    MODE: f"{IN_WORDS[MODE]}, test users",
    "mode_collapsed": "collapsed by it",
    "value": f"{IN_WORDS['value']}, test users",
    "collapsed": "collapsed by it ",
    "logging_value": "value of the logging policy",
    "milliseconds_a_round": "ms a step",
}

MEASURE = (
    f"Policies are counted in two ways, each named where it is used. The {IN_WORDS[MODE]} is what the thesis's authors "
    f"report in their public code; the {IN_WORDS['value']} lets a policy play with its randomness. Both are exact: the mean "
    "over test users of the probability of their hidden items (in the generated catalogue, of the mean reward at test "
    "contexts). The best policy of a weighted likelihood spreads over all that was rewarded, that of an estimate plays one "
    "action, so that the former loses more by playing at random. A round, in this page's settings, is a step of the "
    "optimiser."
)
COLLAPSE = (
    "A policy has collapsed where it ends below what the logging policy earns, or where it never left its start: its value "
    "within two standard errors of the start's, and its probabilities within 0.05 in total variation; by its most probable "
    "action it may have left with hardly a change of its probabilities. Shares of collapsed runs stand in the table. What "
    "collapsed counts as having lost everything where steadiness is compared, and what collapsed in every run is ahead of "
    "nothing, however far behind another one is: such a lead counts as none."
)
ERRORS = (
    "Runs differ in the log, in the start and in the order of training; split, test users, embeddings and clusters are the "
    "same for all. Errors contain both the logs and the test users: the value is kept for 30 fixed groups of test users, "
    "and differences of two learners are taken by run and group (two-way random effects)."
)
WORLDS = (
    "Two worlds stand side by side. The thesis's is its authors' pipeline, as their public code has it: the right singular "
    "vectors of the training users' whole histories as embeddings, unscaled, so that all scores are small and the logging "
    f"policy is all but uniform over its k0; policies start at N(0, {SIGMA:g}²). In the other one, “{SCALED}”, embeddings "
    "are scaled by the root of K / d to a mean squared length of 1 and made from the seen halves alone, and policies start "
    "at zero."
)
SETS = (
    "The thesis's sets are MovieLens with 60,000 films, Twitch and GoodReads, which could not be had; other public sets are "
    "used in their place, and a generated catalogue of 1,000,000 actions. A row of the log is a user drawn at random, whom "
    f"the logging policy serves once; the thesis has more users and one row for each. {TEST_USERS:,} users are for testing "
    f"and {VALIDATION_USERS:,} or {VALIDATION_USERS_OF_WHOLE_SETS:,} for validation where there are enough, which the "
    "authors have at a tenth each."
)
CHOICES = (
    "Learning rate, clipping (tau), ES's alpha, IX's gamma, RegKL's beta, the ridge of reward models (1 to 1,000) and PC's "
    f"radius (such that a logged action has 2, 10 or 50 neighbours on average; the thesis's radius, {RADIUS:g}, means "
    "nothing without a scale) are chosen for each objective and world on validation users, with a log of their own, unless "
    "the panel sets them; for either way to count a policy. Not printed in the thesis: embeddings of 64 dimensions (32 or "
    f"64 in quick, 8 in smoke); k-means with MiniBatchKMeans above 20,000 actions. Where nothing is chosen: tau = {TAU:g}, "
    f"alpha = {ALPHA:g}, beta = {BETA:g}, ridge {RIDGE:g}."
)


def warnings() -> list[str]:
    """What must not be overlooked when data are missing."""
    return missing_data(
        REAL, is_there,
        "NO REAL DATA WAS FOUND. The interactions are made up (500 users, 300 items), and nothing here says anything about "
        "real catalogues.",
    )  # fmt: skip


# what the proofs and the toy landscape say of the objectives themselves
PWLL = Chapter("pwll", 4)
# policies learned from logs
LEARNED = Chapter("pwll", 4, (WORLDS, MEASURE, COLLAPSE, CHOICES, ERRORS, SETS), warnings, numbers=NUMBERS)


def worlds(sizes: Sizes, **more: Any) -> dict[str, dict[str, Any]]:
    """Parameters of the settings of a scale by the name of the data.

    Data sets that are not found are left out; where none is, made-up interactions take their place.
    """
    found = [data for data in sizes["data"] if is_there(data)]
    if not any(data in REAL for data in found) and any(data in REAL for data in sizes["data"]):
        found = [MADE_UP, *found]
    return {data: _world(data, sizes) | more for data in found}


def _world(data: str, sizes: Sizes) -> dict[str, Any]:
    own: dict[str, Any] = {"data": data, "dim": sizes["dim"], "k0": sizes["k0"], "clusters": sizes["clusters"]}
    rows = sizes.get("rows", ROWS.get(data, OTHER_ROWS))
    if data == CATALOGUE:
        return own | {"actions": sizes.get("actions", MILLION), "rows": rows, "test": TEST_USERS, "length": LENGTH}
    unscaled = {"scale": 1.0, "history": "whole"}
    if data == MADE_UP:  # 500 users and 300 items
        return (
            own
            | unscaled
            | {
                "dim": 8,
                "k0": min(30, sizes["k0"]),
                "clusters": min(30, sizes["clusters"]),
                "rows": min(rows, 2_000),
            }
        )
    real = own | unscaled | {"items": sizes.get("items"), "users": sizes.get("users"), "rows": rows}
    if sizes.get("users") is None:
        whole = sizes.get("items") is None
        usual = TEST_USERS, VALIDATION_USERS_OF_WHOLE_SETS if whole else VALIDATION_USERS
        test, validation = sizes.get("judges") or FEWER.get(data, usual)
        real |= {"test_users": test, "validation_users": validation}
    return real


def logged_cells(
    name: str, world: Mapping[str, Any], learners: Mapping[str, Call], runs: int, **parameters: Any
) -> Iterator[Cell]:
    """A panel in the thesis's world, and the same panel with scaled scores and a zero start.

    What describes the world, and `parameters`, become columns of the results.
    """
    columns = {key: world[key] for key in ("data", "rows", "clusters", "k0", "dim")} | parameters
    problem = Call(logged_problem, dict(world))
    cell = learning_cell(name, columns, problem, world["rows"], _told(learners, ""), runs, learned_from_enough)
    yield cell
    scaled = {key: value for key, value in world.items() if key not in ("scale", "history", "length")}
    yield variant_of(cell, SCALED, problem=Call(logged_problem, scaled), methods=_told(learners, SCALED))


def _told(learners: Mapping[str, Call], variant: str) -> dict[str, Call]:
    """Learners as a world has them: where they start unless it is the logging policy, and the rates that are tried."""
    told = {}
    for name, call in learners.items():
        how = dict(call.parameters)
        tried = {"": how.pop("rates_tried", None), SCALED: how.pop("scaled_rates_tried", None)}[variant]
        how["start"] = how.get("start") or ("zero" if variant else "random")
        if tried is not None:
            grid = grid_for(how["objective"], tried, fixed=[*how.pop("fixed", ()), *how])
            if "rate" in how:  # the panel's: what is chosen is chosen in the usual way to optimise, once for all panels
                how["choose_at"] = {**how["choose_at"], "rate": tried[0]}
            else:
                how |= {"rate": tried[0]}
                how.pop("choose_at")
            how["tune"] = grid
            if not grid:
                how = {key: value for key, value in how.items() if key not in ("tune", "choose_at")}
        told[name] = replace(call, parameters=how)
    return told


def learners(
    names: Sequence[str], sizes: Sizes, *, schedule: str = TUNED, suffix: str = "", tuned: bool = True, **options: Any
) -> dict[str, Call]:
    """Learners by the names of their objectives, with the scale's optimiser unless `options` say otherwise.

    What `options` do not set is chosen on validation users: the learning rate, and the objective's own parameter.
    """
    common = {"epochs": sizes["epochs"], "batch": sizes["batch"], "schedule": schedule} | options
    if tuned:
        common |= {name: list(sizes[name]) for name in ("rates_tried", "scaled_rates_tried")}
        common["choose_at"] = {"batch": sizes["batch"], "schedule": TUNED}
    elif "rate" not in common:
        common["rate"] = sizes["rate"]
    return {f"{name}{suffix}": Call(train, {"objective": name, **common}) for name in names}


def configurations(sizes: Sizes) -> Iterator[tuple[str, dict[str, Any]]]:
    """All rates, schedules and batch sizes of a scale together, in words and as options of `learners`."""
    for rate, schedule, batch in product(sizes["rates"], sizes["schedules"], sizes["batches"]):
        yield f"rate {rate:g}, {schedule}, batch {batch}", {"schedule": schedule, "batch": batch, "rate": rate}


__all__ = [
    "AUTHORS_BATCH", "AUTHORS_RATE", "ESTIMATES", "FEW", "LARGE", "LEARNED", "LIKELIHOODS", "NUMBERS", "PAPER", "PWLL", "QUICK",
    "SCALED", "SMOKE", "TUNED", "WHOLE", "configurations", "learners", "logged_cells", "worlds",
]  # fmt: skip
