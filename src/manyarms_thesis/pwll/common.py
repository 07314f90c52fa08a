"""What the experiments on large action spaces share: the chapter, sizes, families of objectives and panels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from manyarms_thesis.harness.data import MADE_UP, missing_data
from manyarms_thesis.harness.experiments import Chapter, Sizes
from manyarms_thesis.harness.learning import learning_cell
from manyarms_thesis.harness.spec import Call, Cell
from manyarms_thesis.pwll.learners import (
    ALPHA,
    BETA,
    CATALOGUE,
    RIDGE,
    TAU,
    is_there,
    learned_from_enough,
    logged_problem,
    train,
)

LIKELIHOODS = ("LPI", "cLPI", "RegKL", "BPR")  # policy-weighted log-likelihoods, and BPR, which is nearly one
ESTIMATES = ("IPS", "ES", "DR", "MIPS", "OffCEM", "POTEC", "PC")  # estimates of a value (thesis, Section 7.3)
REAL = ("ml-1m", "gowalla", "amazon-book", "ciao", "epinions")
# of MovieLens in the thesis; every other set has OTHER_ROWS (Appendix D.4.1)
ROWS: Mapping[str, int] = {"ml-1m": 132_744}
OTHER_ROWS = 400_000

SMOKE: dict[str, Any] = {
    "data": ["ml-1m"], "dim": 8, "users": 500, "items": 300, "rows": 1_000, "clusters": 20, "epochs": 2, "runs": 2,
    "batch": 64, "rate": 0.1, "k0": 30,
}  # fmt: skip
QUICK: dict[str, Any] = {
    "data": ["gowalla"], "dim": 32, "items": 5_000, "rows": 20_000, "clusters": 200, "epochs": 5, "runs": 5, "batch": 256,
    "rate": 0.1, "k0": 100,
}  # fmt: skip
PAPER: dict[str, Any] = {
    "data": [*REAL, CATALOGUE], "dim": 64, "clusters": 2_000, "epochs": 10, "runs": 5, "batch": 256, "rate": 0.01, "k0": 100,
}  # fmt: skip
MILLION = 1_000_000
TUNED = "one-cycle"  # the schedule of the ablations (thesis, Appendix D.4.4)

CAPTION = "Mean over runs; the bars and bands are one standard error wide on each side."
NUMBERS = {
    "value": "value of the policy, test users",
    "mode_value": "value of its most probable actions",
    "logging_value": "value of the logging policy",
    "milliseconds_a_round": "ms a step",
}

MEASURE = (
    "The value is exact: the mean over test users of the policy's probability of their hidden items (in the made-up catalogue, "
    "of its mean reward at 1,000 test contexts). A policy counts as it is, with its randomness; the value of its most "
    "probable actions (its modes) stands beside it in the table, and in claims that say so: the best policy of a weighted "
    "likelihood spreads over all that was rewarded, that of an estimate plays one action, so that the former loses more by "
    "playing at random. A round, in this page's settings, is a step of the optimiser."
)
WORLDS = (
    "The thesis's sets are MovieLens with 60,000 films, Twitch and GoodReads; other public sets are used in their place, "
    "and a made-up catalogue of 1,000,000 actions. A row of the log is a user drawn at random, whom the logging policy "
    "serves once; the thesis has more users and one row for each. Split, embeddings and clusters are the same for all runs; "
    "runs differ in the log and in the order of training."
)
CHOICES = (
    "Not printed in the thesis and chosen here: embeddings of 64 dimensions (32 in quick, 8 in smoke) scaled to a mean squared "
    "length of 1; Adam at a rate of 0.01 (0.1 in quick and smoke, which have far fewer steps) where nothing else is "
    "said; heavyweight policies start at beta = 0, the uniform policy (pwll-seeds also starts at the logging policy's "
    f"embeddings); clipping at tau = {TAU:g}, ES with alpha = {ALPHA:g}, RegKL with beta = {BETA:g}, DR clipped at the same tau, "
    f"a ridge of {RIDGE:g} for every action's reward model; k-means on the embeddings, with MiniBatchKMeans above 20,000 actions."
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
LEARNED = Chapter("pwll", 4, (MEASURE, WORLDS, CHOICES), warnings, CAPTION, NUMBERS)


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
        return own | {"actions": sizes.get("actions", MILLION), "rows": rows}
    if data == MADE_UP:  # 500 users and 300 items
        return own | {
            "dim": 8,
            "k0": min(30, sizes["k0"]),
            "clusters": min(30, sizes["clusters"]),
            "rows": min(rows, 2_000),
        }
    return own | {"items": sizes.get("items"), "users": sizes.get("users"), "rows": rows}


def logged_cell(
    name: str, world: Mapping[str, Any], learners: Mapping[str, Call], runs: int, **parameters: Any
) -> Cell:
    """A panel of a world, with what describes the world, and `parameters`, as columns of the results."""
    columns = {key: world[key] for key in ("data", "rows", "clusters", "k0", "dim")} | parameters
    problem = Call(logged_problem, dict(world))
    return learning_cell(name, columns, problem, world["rows"], learners, runs, learned_from_enough)


def learners(
    names: Sequence[str], sizes: Sizes, *, schedule: str = TUNED, suffix: str = "", **options: Any
) -> dict[str, Call]:
    """Learners by the names of their objectives, with the scale's optimiser unless `options` say otherwise."""
    common = {"epochs": sizes["epochs"], "batch": sizes["batch"], "rate": sizes["rate"], "schedule": schedule} | options
    return {f"{name}{suffix}": Call(train, {"objective": name, **common}) for name in names}


def configurations(sizes: Sizes) -> Iterator[tuple[str, dict[str, Any]]]:
    """All rates, schedules and batch sizes of a scale together, in words and as options of `learners`."""
    for rate, schedule, batch in product(sizes["rates"], sizes["schedules"], sizes["batches"]):
        yield f"rate {rate:g}, {schedule}, batch {batch}", {"schedule": schedule, "batch": batch, "rate": rate}


__all__ = [
    "ESTIMATES", "LEARNED", "LIKELIHOODS", "NUMBERS", "PAPER", "PWLL", "QUICK", "SMOKE", "TUNED", "configurations", "learners",
    "logged_cell", "worlds",
]  # fmt: skip
