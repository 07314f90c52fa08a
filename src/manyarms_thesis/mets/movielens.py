"""meTS on MovieLens, with a learned structure and a model that is not the truth (thesis, Section 3.4 and Appendix A.4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from manyarms_thesis.harness import movielens
from manyarms_thesis.harness.claims import Claim, claim, gain, gains, least, listed
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.online import ACTION_CONTEXTS_REMARK, online_regret
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell
from manyarms_thesis.mets.agents import AGENTS, AT_MODES, LINEAR, LINEAR_BASELINES
from manyarms_thesis.mets.common import (
    CONTEXT_ACCURACY,
    FEWER_RUNS,
    LOOKS,
    METS,
    MODES_REMARK,
    at_modes,
    beats_baselines,
    both_schemes,
    highest_regret,
)

LOGISTIC = ("meTS-GLM", "meTS-GLM-Fa", "meTS-Lin", "GLM-TS", "HierTS")
LEFT_OUT = ("UCB-GLM", "GLM-UCB")
NOISE, EFFECTS = 0.5, 5


def _cells(sizes: Sizes) -> Iterator[Cell]:
    data = movielens.source()
    for reward, agents in (("linear", LINEAR), ("logistic", (*LOGISTIC, *AT_MODES))):
        for d in sizes["d"]:
            for K in sizes["K"]:
                main = reward == "logistic" and (d, K) == (sizes["d"][-1], sizes["K"][-1])
                methods = {name: AGENTS[name] for name in ((*agents, *LEFT_OUT) if main else agents)}
                world = {"source": data, "actions": K, "dim": d, "reward": reward, "noise": NOISE, "effects": EFFECTS}
                parameters = {"reward": reward, "K": K, "L": EFFECTS, "d": d, "data": data}
                problem, panel = Call(movielens.movielens_world, world), f"{reward}, K={K}, d={d}"
                yield Cell(panel, parameters, problem, methods, sizes["rounds"], sizes["runs"], online_regret)


def _claims(results: Results) -> list[Claim]:
    return movielens.flag_ratings(results, _found(results))


def _found(results: Results) -> Iterator[Claim]:
    dims, sizes = results.levels("d"), results.levels("K")
    for panel in results.panels:
        main = results.parameter(panel, "d") == dims[-1] and results.parameter(panel, "K") == sizes[-1]
        for made in beats_baselines(results, panel, "1263" if main else "3384", without=LEFT_OUT):
            method = made.statement.partition(" ")[0]
            statement = f"On MovieLens {method} has lower regret than the baselines"
            beside = listed({n: gain(results, panel, method, n) for n in LEFT_OUT if n in results.methods(panel)})
            detail = f"{made.detail}; not counted, as the thesis leaves them out: {beside}" if beside else made.detail
            yield replace(made, statement=statement, detail=detail)
    for reward, method in (("linear", "meTS-Lin"), ("logistic", "meTS-GLM")):
        for d in dims:
            panels = {f"K={K}": results.where(reward=reward, d=d, K=K)[0] for K in sizes}
            yield _widening(results, panels, method, f"{reward}, d={d}")
    (main_panel,) = results.where(reward="logistic", d=dims[-1], K=sizes[-1])
    for agent in LEFT_OUT:
        yield highest_regret(results, main_panel, agent, LOGISTIC, "1259")
    yield from at_modes(results, results.where(reward="logistic"))


def _widening(results: Results, panels: Mapping[str, str], method: str, where: str) -> Claim:
    """The gap to each baseline grows from each number of actions to the next."""
    baselines = [
        name for name in (*LINEAR_BASELINES, "GLM-TS") if all(name in results.methods(p) for p in panels.values())
    ]
    ahead = {name: gains(results, panels, method, name) for name in baselines}
    steps = {
        f"{name}, {before} to {after}": gap[after] - gap[before]
        for name, gap in ahead.items()
        for before, after in pairwise(gap)
    }
    step, difference = least(steps)
    shown = "; ".join(f"{name}: {listed(gap)}" for name, gap in ahead.items())
    return claim(
        f"On MovieLens the gap between {method} and the baselines is smaller when K/L is small", "3384", difference,
        panel=where, parts=list(steps.values()),
        detail=f"final regret above that of {method}, {shown}; least convincing step: {step}",
    )  # fmt: skip


MOVIELENS = METS.experiment(
    "mets-movielens",
    order=5,
    title="meTS on MovieLens with a learned structure",
    thesis_lines="1256-1270, 3382-3398",
    scales={
        "smoke": {"rounds": 60, "runs": 3, "K": [10, 30], "d": [2]},
        "quick": {"rounds": 1_500, "runs": 12, "K": [20, 50, 100], "d": [2, 5]},
        "paper": {"rounds": 5_000, "runs": 50, "context_runs": 20, "K": [20, 50, 100], "d": [2, 5]},
    },
    build=lambda sizes: both_schemes(sizes, _cells(sizes)),
    accuracy=CONTEXT_ACCURACY,
    claims=_claims,
    figures=lambda results, folder: [
        regret_curves(
            results, results.where(reward=reward), folder, f"regret-{reward}",
            f"Regret with {reward} rewards, {movielens.source_title(results)}",
            columns=len(results.levels("K")), looks=LOOKS,
            seen="Recommending movies to users: rewards come from a factorisation of the ratings, and the structure that meTS "
            "uses from a mixture of the movies' vectors.",
        )
        for reward in ("linear", "logistic")
    ],
    question="Nothing says that movies mix a few effects. Does meTS still lose less than agents without that structure when it "
    "is learned from a clustering of the movies?",
    setting="Users arrive at random, and one of K = {K} movies is recommended; ratings are factorised into d = {d} dimensions, "
    "and L = 5 clusters of movies are the effects. Rewards are the factorisation's with noise (linear) or clicks (logistic). "
    "meTS and its factored variants play {rounds} rounds against LinTS or GLM-TS, LinUCB and HierTS, {runs} times with "
    "new movies.",
    remarks=[
        MODES_REMARK,
        ACTION_CONTEXTS_REMARK,
        FEWER_RUNS,
        "A context for each action means here that every movie is offered to another user in a round: the agent chooses a pair.",
        "HierTS's prior, which the thesis does not print here, has the movies' mean and the same split of their "
        "variances as meTS; linear agents take sigma = 1 for their noise in the logistic world.",
        "UCB-GLM and GLM-UCB, which the thesis leaves out of its comparison, run in the largest logistic panel to see "
        "whether their regret is as high as it says; they are not among the baselines of the other statements."
    ],
    warnings=movielens.warnings,
)  # fmt: skip

__all__ = ["MOVIELENS"]
