"""Which rule for evidence about a diffusion, and when: the table of docs/methods.md.

The thesis passes evidence up a chain as if its links were the identity (Appendix B.2). Here its rule meets the others of
`manyarms.beliefs.belief_of` where one chain is shared by all actions, and where each action has its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.files import write_text_atomically
from manyarms._base.palette import PALETTE
from manyarms._base.typing import Array
from manyarms.agents import Agent
from manyarms_thesis.dts.agents import dts
from manyarms_thesis.dts.common import CONTEXT_ACCURACY, DTS, diffusion_world, with_contexts
from manyarms_thesis.dts.pretrained import DEPTH, GIVEN_PRIORS, prepared_lints, pretrained_dts, swiss_world
from manyarms_thesis.harness.claims import Claim, lower_regret, measured, ratio
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, regret_curves
from manyarms_thesis.harness.online import ACTION_CONTEXTS, ACTION_CONTEXTS_REMARK, lints, play
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, Run

LINTS, THESIS, JACOBIAN, MOMENTS, PARTICLES = "LinTS", "thesis", "jacobian", "moments", "particles"
LOOKS = {
    LINTS: (PALETTE[1], "-"), THESIS: (PALETTE[0], "-"), JACOBIAN: (PALETTE[3], "--"), MOMENTS: (PALETTE[2], "-"),
    PARTICLES: (PALETTE[4], "-."),
}  # fmt: skip


def some(offered: int) -> str:
    """The method that is offered a few of the actions only."""
    return f"{MOMENTS}, {offered} actions"


@dataclass(frozen=True, eq=False)
class AmongSome:
    """An agent that chooses among the first few actions, which are as good as any others before anything is known."""

    agent: Agent
    offered: int

    def decide(self, x: Array | None = None, *, action_contexts: Array | None = None) -> int:
        """Its choice, in one context or with one for each action."""
        some = np.arange(self.offered)
        if action_contexts is None:
            return int(self.agent.decide(x, candidates=some))
        return int(self.agent.decide(action_contexts=action_contexts[: self.offered], candidates=some))

    def observe(self, x: Array, action: int, reward: float) -> None:
        """Learn a row."""
        self.agent.observe(x, action, reward)

    @property
    def played(self) -> int:
        """How many different actions it has played."""
        return self.agent.played

    @property
    def nbytes(self) -> int:
        """Bytes of its belief."""
        return self.agent.nbytes


def dts_among_some(*, world: Any, rounds: int, seed: int, offered: int) -> Any:
    """dTS by moments, offered a few of the actions only."""
    return AmongSome(dts(world=world, rounds=rounds, seed=seed, approximation=MOMENTS), min(offered, world.actions))


def rule_regret(run: Run, **told: Any) -> Columns:
    """One run: the regret curve, and the share of rounds that played a new action."""
    columns = play(run, **told)[1]
    return {**columns, "new_share": columns["played"] / run.rounds}


def rule_regret_by_action_contexts(run: Run) -> Columns:
    """The same where every action has a context of its own, drawn anew in every round."""
    return rule_regret(run, action_contexts=True)


def own_chains_regret(run: Run) -> Columns:
    """The same with a prior that is prepared for the run."""
    return rule_regret(run, preparation=run.problem_seed)


def own_chains_regret_by_action_contexts(run: Run) -> Columns:
    """Both: a prior that is prepared for the run, and a context for each action."""
    return rule_regret(run, preparation=run.problem_seed, action_contexts=True)


def _cells(sizes: Sizes) -> list[Cell]:
    return [*with_contexts(sizes, _shared_cells(sizes), rule_regret_by_action_contexts), *_own_cells(sizes)]


def _shared_cells(sizes: Sizes) -> list[Cell]:
    cells = []
    for K, d, L, rounds in sizes["shared"]:
        agents = {LINTS: Call(lints)}
        agents |= {rule: Call(dts, {"approximation": rule}) for rule in (THESIS, JACOBIAN, MOMENTS)}
        if rounds < 2 * K:
            agents[some(sizes["offered"])] = Call(dts_among_some, {"offered": sizes["offered"]})
        told = {"actions": K, "dim": d, "depth": L, "links": "network", "scaled": False, "reward": "linear"}
        parameters = {"chain": "shared", "K": K, "d": d, "L": L, "noise": 1.0, "contexts": "one"}
        panel = f"shared chain, K={K:,}, d={d}, L={L}, {rounds:,} rounds"
        cells.append(Cell(panel, parameters, Call(diffusion_world, told), agents, rounds, sizes["runs"], rule_regret))
    return cells


def _own_cells(sizes: Sizes) -> list[Cell]:
    K, rounds = sizes["own"]
    prior = {"data": "swiss-roll", "size": sizes["n"], "depth": sizes["depth"], **sizes.get("training", {})}
    told = {"prior": prior, "preparations": sizes["preparations"]}
    rules = {rule: Call(pretrained_dts, {**told, "approximation": rule}) for rule in (THESIS, PARTICLES, MOMENTS)}
    cells = []
    for contexts, task in (("one", own_chains_regret), ("one per action", own_chains_regret_by_action_contexts)):
        agents = {LINTS: Call(prepared_lints), **rules}
        for noise in sizes["noise"]:
            parameters = {"chain": "own", "K": K, "d": 2, "L": sizes["depth"], "noise": noise, "contexts": contexts}
            panel = f"own chains, Swiss roll, K={K}, σ={noise:g}, {contexts} context, {rounds:,} rounds".replace(
                "one per action context", "a context per action"
            )
            world = Call(swiss_world, {"actions": K, "noise": noise})
            cell = Cell(panel, parameters, world, agents, rounds, sizes["runs"], task)
            cells.append(cell if contexts == "one" else replace(cell, variant=ACTION_CONTEXTS))
    return cells


def _claims(results: Results) -> list[Claim]:
    found = []
    for panel in results.where(chain="shared"):
        for ours, theirs, statement, lines in (
            (THESIS, LINTS, "With non-linear links, left out on the way up, dTS outperforms LinTS", "1631, 3553-3556"),
            (
                MOMENTS,
                THESIS,
                "A Gaussian with the moments of the chain's end has lower regret than the thesis's rule",
                "",
            ),
            (MOMENTS, LINTS, "A Gaussian with the moments of the chain's end has lower regret than LinTS", ""),
        ):
            found.append(lower_regret(results, panel, ours, theirs, statement, lines))
    for panel in results.where(chain="own"):
        for ours, theirs, statement in (
            (PARTICLES, LINTS, "With one chain per action, by particles, dTS has lower regret than LinTS"),
            (PARTICLES, THESIS, "With one chain per action, particles have lower regret than the thesis's rule"),
        ):
            found.append(lower_regret(results, panel, ours, theirs, statement, ""))
    return found


def table(results: Results) -> str:
    """Rule by regret, time and exploration, as Markdown."""
    lines = [
        "| world | rule | final regret | LinTS's over it | ms a round | rounds with a new action |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for panel in results.panels:
        for method in results.methods(panel):
            regret, over = measured(results.final(panel, method)), ratio(results, panel, method, LINTS)
            spent, new = (
                float(results.final(panel, method, column).mean()) for column in ("milliseconds_a_round", "new_share")
            )
            figures = f"{regret.mean:,.0f} ± {regret.standard_error:,.0f} | {over.mean:.2f} ± {over.standard_error:.2f}"
            lines.append(f"| {panel} | {method} | {figures} | {spent:.2f} | {100 * new:.1f} % |")
    return "\n".join(lines) + "\n"


def _figures(results: Results, folder: Path) -> list[Drawn]:
    write_text_atomically(folder.parent / "table.md", table(results))
    drawings = (
        (
            "shared",
            "one chain for all actions",
            3,
            "All items hang on one hidden cause, through links that are not linear.",
        ),
        ("own", "one chain per action", 2, "Items on a Swiss roll, each with a pre-trained diffusion of its own."),
    )
    return [
        regret_curves(results, panels, folder, name, f"Regret by rule, {words}", columns=n, looks=LOOKS, seen=seen)
        for name, words, n, seen in drawings
        if (panels := results.where(chain=name))
    ]


RULES = DTS.experiment(
    "dts-rules",
    order=12,
    title="Which rule for evidence about a diffusion, and when",
    thesis_lines="1286-1300, 3539-3566",
    scales={
        # shared: K, d, L, rounds; own: K, rounds
        "smoke": {
            "runs": 2, "shared": [[20, 5, 2, 50], [200, 5, 2, 50]], "offered": 10, "own": [12, 40], "noise": [1.0, 0.3],
            "n": 200, "depth": 5, "preparations": 1, "training": {"epochs": 100},
        },
        "quick": {
            "runs": 6, "shared": [[100, 5, 2, 2_000], [100, 20, 4, 2_000], [2_000, 5, 2, 3_000]], "offered": 100,
            "own": [100, 1_000], "noise": [1.0, 0.3], "n": 10_000, "depth": DEPTH, "preparations": 1,
            "context_K": 1_000,
        },
        "paper": {
            "runs": 16, "shared": [[100, 5, 2, 5_000], [100, 20, 4, 5_000], [10_000, 5, 2, 5_000]], "offered": 100,
            "own": [100, 5_000], "noise": [1.0, 0.3], "n": 10_000, "depth": DEPTH, "preparations": 4,
            "context_K": 1_000,
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    numbers={
        "regret": "final regret", "milliseconds_a_round": "ms a round", "new_share": "share of rounds with a new action",
        "agent_bytes": "agent, MB",
    },
    accuracy=CONTEXT_ACCURACY,
    question="There are several ways to update a diffusion prior with what was observed: which one should a practitioner use, "
    "and when?",
    setting="Shared chains with random network links, sizes (K, d, L, rounds) = {shared}; and a chain for each of the "
    "items on a Swiss roll, (K, rounds) = {own}, noise σ = {noise}. dTS by each rule, and LinTS, meet the same worlds, {runs} of "
    "each.",
    remarks=[
        GIVEN_PRIORS,
        ACTION_CONTEXTS_REMARK + " The shared chain with more than 1,000 actions is left out there: it is too dear.",
        "“thesis” leaves the links out on the way up, “jacobian” linearises them (beliefs/messages.py); “moments” has a Gaussian "
        "with the mean and covariance of the chain's end, “particles” a cloud of its draws (beliefs/particles.py). One chain per "
        "action by moments is LinTS with the pre-trained prior's moments. “moments, 100 actions” is offered that many of the "
        "actions, in every round the same.",
        "Shared chains: non-linear links as printed (Section 4.4.1), the world drawn from the prior that the agents have. Own "
        "chains: a Swiss roll, with a prior pre-trained on other points of it; LinTS has the roll's exact moments.",
        "The table is written as table.md beside the page.",
    ],
)  # fmt: skip

__all__ = ["RULES", "AmongSome", "table"]
