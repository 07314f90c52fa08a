"""Rewards that drift: a static belief against a model of drift, forgetting, restarts and published baselines.

No experiment of the thesis, which has rewards that stay as they are. Regret is dynamic: a round's choice against the best action
of that very round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from manyarms._base.seeds import seed_of
from manyarms.worlds import Drifting, Pool, Seasons, Sudden, Turnover, Wandering, simulate_drifting
from manyarms.worlds.changes import Change
from manyarms_thesis.drift.agents import CHOSEN, GRADIENT, MODEL, SCALED, STATIC, STATIC_SCALED, agent, methods
from manyarms_thesis.drift.figures import by_method, regret_over_time
from manyarms_thesis.harness.claims import Claim, claim, least, listed, measured
from manyarms_thesis.harness.experiments import Chapter, Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, Run

BURN_IN = 0.25  # of the rounds
POINTS = 60  # of a curve
RECOVERED = 1.5  # times the level before the change
LARGEST_COST = 0.05  # of the regret, where nothing drifts
NO_DRIFT, SUDDEN = "no drift", "sudden change"
LIVES = "model, half-life {:,g}"
# where nothing drifts: what a model or forgetting costs
STILL = (STATIC, MODEL, GRADIENT, "model, scaled", CHOSEN, "discount", "window", "restarts, alarm", "D-LinUCB")


def drifting_world(*, seed: int, kind: str, actions: int, dim: int, at: float, rounds: int) -> Drifting:
    """A world by the kind of its change; `at` is its half-life or period, or how many rounds an action lives."""
    if kind == "arms":
        source = Pool(np.ones((1, 1)))
        return Drifting(actions, 1, changes=Wandering(at), structure="independent", source=source, seed=seed)
    changes: Mapping[str, Callable[[], Change]] = {
        "wandering": lambda: Wandering(at),
        "sudden": lambda: Sudden(changes_at(rounds)),
        "seasons": lambda: Seasons(at),
        "turnover": lambda: Turnover(max(1, round(at / 20)), max(1, actions // 20)),
    }
    return Drifting(actions, dim, changes=[changes[kind]()] if kind in changes else [], seed=seed)


def changes_at(rounds: int) -> list[int]:
    """The sudden changes: after the burn-in, and late enough for a level before each of them."""
    return [round(0.4 * rounds), round(0.7 * rounds)]


def dynamic_regret(run: Run) -> Columns:
    """One run: regret a round over time, its mean after the burn-in, and how long recoveries took."""
    world = run.draw_problem(rounds=run.rounds)
    # one seed for all methods of a run: those that differ in little play alike for long, and their difference shows
    actor = run.method(world=world, rounds=run.rounds, seed=seed_of("agent", run.problem_seed))
    played = simulate_drifting(world, actor, run.rounds)
    marks = np.unique(np.linspace(0, run.rounds, min(POINTS, run.rounds) + 1).round().astype(np.int64))
    burn_in, window = round(BURN_IN * run.rounds), max(10, run.rounds // 40)
    sums = np.concatenate(([0.0], np.cumsum(played.regret)))
    recoveries = [
        played.recovery(change, window=window, level=run.rounds // 10, factor=RECOVERED)
        for change in _recovered(world, run)
    ]
    return {
        "round": marks[1:],
        "regret_a_round": np.diff(sums[marks]) / np.diff(marks),
        "regret": sums[marks[1:]],
        "after_burn_in": played.regret_a_round(burn_in),
        "recovery": float(np.mean(recoveries)) if recoveries else math.nan,
        "half_life": float(getattr(actor, "half_life", math.nan)),
        "restarts": int(getattr(actor, "restarts", 0)),
        "milliseconds_a_round": played.milliseconds_a_round,
        "played": int(actor.played),
        "agent_bytes": int(actor.nbytes),
    }


def _recovered(world: Drifting, run: Run) -> list[int]:
    return changes_at(run.rounds) if any(isinstance(change, Sudden) for change in world.changes) else []


def _cells(sizes: Sizes) -> Iterator[Cell]:
    rounds, runs, K, h, grid = (sizes[name] for name in ("rounds", "runs", "K", "half_life", "half_lives"))
    d = sizes["dims"][0]

    def cell(panel: str, kind: str, at: float, half_life: float, K: int = K, d: int = d) -> Cell:
        parameters = {"kind": kind, "K": K, "d": d, "at": at, "told": half_life}
        problem = Call(drifting_world, {"kind": kind, "actions": K, "dim": d, "at": at})
        return Cell(panel, parameters, problem, methods(half_life, rounds), rounds, runs, dynamic_regret)

    for arms in sizes["arms"]:
        yield cell(f"AR(1) arms, K={arms:,}", "arms", h, h, arms, 1)
    for dim in sizes["dims"]:
        yield cell(f"wandering, d={dim}", "wandering", h, h, d=dim)
    # a segment between two changes: a quarter of it for a half-life
    yield cell(SUDDEN, "sudden", 0.3 * rounds, 0.075 * rounds)
    # the correlation of a season falls to 1/2 in a sixth of its period
    yield cell("seasons", "seasons", 6 * h, h)
    # an action lives `at` rounds on average, and is the same all the while
    yield cell("turnover", "turnover", 2 * h, 2 * h * math.log(2.0))
    each = {LIVES.format(one): Call(agent, {"forgetting": "model", "half_life": one}) for one in grid}
    still = cell(NO_DRIFT, "none", 0, h)
    # five per cent is little beside what runs differ by
    yield replace(still, runs=sizes["still_runs"], methods={**{name: still.methods[name] for name in STILL}, **each})


def _claims(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        if panel == NO_DRIFT:
            continue
        moving = "" if panel != "turnover" else " where actions come and go, but stay what they are"
        for method, name in ((MODEL, "The model"), (GRADIENT, "The model with the knowledge gradient")):
            yield _ahead(results, panel, method, STATIC, f"{name} has less regret than a static belief{moving}")
        alike = f"Decided alike, by scaled Thompson sampling, the model has less regret than a static belief{moving}"
        yield _ahead(results, panel, SCALED, STATIC_SCALED, alike)
        yield _ahead(results, panel, GRADIENT, MODEL, "The knowledge gradient has less regret than Thompson sampling")
        yield _best(results, panel)
    yield _ahead(
        results,
        SUDDEN,
        MODEL,
        STATIC,
        "The model recovers sooner from a sudden change than a static belief",
        "recovery",
    )
    yield _cost(results)


def _ahead(
    results: Results, panel: str, method: str, other: str, statement: str, column: str = "after_burn_in"
) -> Claim:
    ours, theirs = (results.final(panel, name, column) for name in (method, other))
    shown = ", ".join(f"{name} {measured(values)}" for name, values in ((method, ours), (other, theirs)))
    what = "rounds until recovery" if column == "recovery" else "regret a round after burn-in"
    return claim(statement, "", measured(theirs - ours), panel=panel, detail=f"{what}: {shown}")


def _best(results: Results, panel: str) -> Claim:
    ours = results.final(panel, GRADIENT, "after_burn_in")
    others = [name for name in results.methods(panel) if name != GRADIENT]
    ahead = {name: measured(results.final(panel, name, "after_burn_in") - ours) for name in others}
    nearest, difference = least(ahead)
    return claim(
        "The model with the knowledge gradient has the least regret of all methods", "", difference, panel=panel,
        parts=list(ahead.values()),
        detail=f"regret a round above its {measured(ours)}: {listed(ahead)}; least convincing: {nearest}",
    )  # fmt: skip


def _cost(results: Results) -> Claim:
    """Over all rounds: without drift most regret is in the first of them, and a burn-in would hide it."""
    static = results.final(NO_DRIFT, STATIC)
    names = (CHOSEN, *(name for name in results.methods(NO_DRIFT) if name.startswith("model, half-life")))
    costs = {name: measured((results.final(NO_DRIFT, name) - static) / static.mean()) for name in names}
    lives = results.final(NO_DRIFT, CHOSEN, "half_life")
    runs = {life: int((lives == life).sum()) for life in np.unique(lives)}
    chosen = ", ".join(
        f"{'none' if math.isinf(life) else f'{life:,g}'} ({number} runs)" for life, number in runs.items()
    )
    return claim(
        f"Where nothing drifts, the model at the half-life chosen costs less than {LARGEST_COST:.0%} regret", "",
        measured(LARGEST_COST - (results.final(NO_DRIFT, CHOSEN) - static) / static.mean()), panel=NO_DRIFT,
        detail=f"share of the static belief's regret ({measured(static)} in all rounds) lost: {listed(costs)}; chosen: {chosen}",
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    some = [next(panel for panel in results.panels if panel.startswith("wandering")), SUDDEN, NO_DRIFT]
    few = (STATIC, MODEL, GRADIENT, "discount")
    yield regret_over_time(
        results, some, folder, "overview", "What drift costs, and what following it gains", few,
        seen="A static belief beside what follows drift, in a world that wanders, one that changes at two moments, and one that "
        "stays as it is.",
    )  # fmt: skip
    yield regret_over_time(
        results, results.panels, folder, "regret", "Regret a round in worlds that drift",
        seen="Static belief, models of drift, discounting, restarts and a published baseline in all worlds.",
    )  # fmt: skip
    yield by_method(
        results, results.panels, folder, "methods", "Regret a round after burn-in", "after_burn_in", "regret a round",
        seen="Regret a round after the burn-in, of all methods in all worlds.",
    )  # fmt: skip
    yield by_method(
        results, [SUDDEN], folder, "recovery", "Recovery after a sudden change", "recovery", "rounds until recovery",
        seen="How many rounds each method takes to be back near its own level before a sudden change.",
    )  # fmt: skip


DRIFT = Chapter("drift", 10).experiment(
    "drift",
    order=1,
    title="Rewards that drift: models, forgetting and restarts",
    thesis_lines="",
    question="When rewards drift, what does a static belief lose, what do a model of drift, forgetting and restarts gain, and "
    "what do they cost where nothing drifts?",
    setting="Worlds whose parameters wander (AR(1), half-life {half_life} rounds), change suddenly, follow seasons, or whose "
    "actions come and go, and one that stays; {K} actions (arms: {arms}), d={dims}, {rounds} rounds, {runs} runs ({still_runs} "
    "where nothing drifts). Regret is against the best action of each round.",
    scales={
        "smoke": {
            "rounds": 160, "runs": 3, "still_runs": 3, "K": 20, "dims": [2, 3], "arms": [10, 50], "half_life": 40,
            "half_lives": [20, 2_000],
        },
        "quick": {
            "rounds": 3_000, "runs": 8, "still_runs": 16, "K": 100, "dims": [2, 5], "arms": [10, 1_000], "half_life": 693,
            "half_lives": [100, 300, 1_000, 3_000, 10_000, 100_000],
        },
        "paper": {
            "rounds": 20_000, "runs": 40, "still_runs": 80, "K": 100, "dims": [2, 5], "arms": [10, 100, 1_000],
            "half_life": 693, "half_lives": [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    numbers={
        "after_burn_in": "regret a round", "recovery": "rounds to recover", "milliseconds_a_round": "ms a round",
        "agent_bytes": "agent, MB",
    },
    accuracy=("runs", "still_runs"),
    remarks=[
        "No experiment of the thesis, whose rewards stay as they are.",
        "Regret is dynamic: against the best action of that very round. The first quarter of the rounds is burn-in. Methods of a "
        "run have the same world and the same seed.",
        "Every agent knows the prior (mixed effects, L = 3; arms are independent, with prior variance 1) and the noise, "
        "sigma = 1. Those that forget know the half-life; where the world has none it is that of the panel: a quarter of the "
        "time between sudden changes, a sixth of a season's period, log 2 times the mean life of an action, any (no drift). "
        "Windows and discounts give their rows the same weight in all, half-life / log 2 rounds; restarts come every "
        "2 half-life / log 2 rounds, or on an alarm of the residual detector with a mean time of 10,000 between false alarms.",
        "'model, chosen' knows no half-life: it plays a static belief in the first quarter of the rounds, and goes on with the "
        "half-life, or none, that rewards.choose_drift finds in these.",
        "'scaled' is Thompson sampling with half the standard deviation. D-LinUCB and SW-LinUCB have a parameter for each "
        "action, the published width with delta = 1 / rounds, lam = 1, and for the bound of ||theta|| its root mean square "
        "under the prior; 'width 1' replaces the published width by 1.",
        f"Recovered is an agent when its mean regret of the last {1 / 40:.1%} of all rounds is at most {RECOVERED} times its "
        "own mean regret of the 10 % of all rounds before the change; one that is not recovered by the next change counts "
        "with the rounds until then, a lower limit. Whoever loses much before a change is soon back at that: read it beside the "
        "regret.",
    ],
)  # fmt: skip

__all__ = ["DRIFT", "changes_at", "drifting_world", "dynamic_regret"]
