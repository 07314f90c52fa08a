"""Online experiments: agents in worlds, with exact regret. The task, and the agents that several chapters compare with.

An agent of a cell is a function of the world, the horizon and a seed. What it knows beforehand follows from the world
(thesis, Sections 3.4.1 and 4.4.1): `lints` and its kin have the marginal prior of an action, `hierts` one shared mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from manyarms.agents import named as agents
from manyarms.beliefs import Linear, Logistic
from manyarms.errors import InvalidInput
from manyarms.worlds import World, simulate
from manyarms_thesis.harness.spec import Cell, Columns, Run, Task, variant_of

# in logistic worlds the linear agents keep the noise of the linear ones, sigma = 1
LINEAR_NOISE_IN_LOGISTIC_WORLDS = 1.0
# the thesis expands a logistic likelihood at its maximum (Section 3.2.3); the library's default is a mode
THESIS_EXPANSION = "mle"
LOGISTIC: Mapping[str, Any] = {"likelihood": "logistic"}
# the thesis writes one context X_t a round; its authors' public code for meTS draws one for each
ACTION_CONTEXTS = "a context for each action"
ACTION_CONTEXTS_REMARK = (
    "Every panel runs twice: with one context a round that all actions share, as the thesis writes (its statements are judged "
    "there), and with a context for each action, drawn alike and independently, as its authors' public code for meTS does. "
    "Regret is then against the best pair of action and context. With a shared context what actions have in common is the same "
    "number for all of them and never decides; with a context each it does."
)


def online_regret(run: Run) -> Columns:
    """One run of an online cell: the regret curve."""
    return play(run)[1]


def online_regret_of_action_contexts(run: Run) -> Columns:
    """The same where every action has a context of its own in every round."""
    return play(run, action_contexts=True)[1]


def with_action_contexts(
    cells: Iterable[Cell],
    task: Task = online_regret_of_action_contexts,
    *,
    most: int | None = None,
    runs: int | None = None,
) -> Iterator[Cell]:
    """The cells, and then each of them again with a context for each action, done by `task`.

    most: only cells of at most so many actions (their parameter K) are run again; a context for each costs K d a round.
    runs: how often, where it is not as often as with a shared context.
    """
    printed = list(cells)
    yield from printed
    for cell in printed:
        if most is None or int(cell.parameters["K"]) <= most:
            both = f"{cell.variant}, {ACTION_CONTEXTS}" if cell.variant else ACTION_CONTEXTS
            yield variant_of(cell, both, task=task, runs=runs)


def play(run: Run, *, action_contexts: bool = False, **more: Any) -> tuple[Any, dict[str, Any]]:
    """The world of a run, and the columns of its agent's regret there; the agent is told `more` besides."""
    world = run.draw_problem()
    agent = run.method(world=world, rounds=run.rounds, seed=run.method_seed, **more)
    played = simulate(world, agent, run.rounds, action_contexts=action_contexts)
    return world, {
        "round": played.rounds,
        "regret": played.regret,
        "final_regret": played.regret[-1],
        "milliseconds_a_round": played.milliseconds_a_round,
        "played": int(agent.played),
        "agent_bytes": int(agent.nbytes),
    }


def linear_noise(world: Any) -> Linear:
    """The linear likelihood with the world's noise; sigma = 1 where rewards are not linear."""
    return Linear(world.noise if world.likelihood == "linear" else LINEAR_NOISE_IN_LOGISTIC_WORLDS)


def likelihood_of(world: Any, name: str, expansion: str = THESIS_EXPANSION) -> Linear | Logistic:
    """The likelihood that an agent takes for true."""
    if name not in ("linear", "logistic"):
        raise InvalidInput("likelihood", repr(name), "'linear' or 'logistic'")
    return linear_noise(world) if name == "linear" else Logistic(expansion=expansion)


def lints(*, world: World, rounds: int, seed: int) -> Any:
    """Thompson sampling that learns every action alone."""
    return agents.LinTS(world.action_prior(), linear_noise(world), seed=seed)


def hierts(*, world: World, rounds: int, seed: int) -> Any:
    """Thompson sampling with one shared mean."""
    return agents.HierTS(world.hierarchical_prior(), linear_noise(world), seed=seed)


def linucb(*, world: Any, rounds: int, seed: int) -> Any:
    """LinUCB with the horizon and the largest context known."""
    widest = math.sqrt(world.kappa_x)
    return agents.LinUCB(world.action_prior(), linear_noise(world), horizon=rounds, context_norm=widest, seed=seed)


def glmts(*, world: World, rounds: int, seed: int, expansion: str = THESIS_EXPANSION) -> Any:
    """Thompson sampling with logistic rewards, every action alone."""
    return agents.GLMTS(world.action_prior(), Logistic(expansion=expansion), seed=seed)


def ucbglm(
    *, world: World, rounds: int, seed: int, expansion: str = THESIS_EXPANSION, width: float | None = None
) -> Any:
    """UCB-GLM of Li et al., with their width for the horizon or another."""
    return agents.UCBGLM(world.action_prior(), Logistic(expansion=expansion), horizon=rounds, width=width, seed=seed)


def glmucb(*, world: World, rounds: int, seed: int, expansion: str = THESIS_EXPANSION) -> Any:
    """GLM-UCB of Filippi et al."""
    return agents.GLMUCB(world.action_prior(), Logistic(expansion=expansion), horizon=rounds, seed=seed)


def no_learning(*, world: Any, rounds: int, seed: int) -> Any:
    """Any action, all alike: where all actions are alike beforehand, the Bayes regret of whoever does not look at rewards."""
    return agents.UniformAgent(world.actions, world.dim, seed=seed)


__all__ = [
    "ACTION_CONTEXTS", "ACTION_CONTEXTS_REMARK", "LOGISTIC", "THESIS_EXPANSION", "glmts", "glmucb", "hierts", "likelihood_of",
    "linear_noise", "lints", "linucb", "no_learning", "online_regret", "online_regret_of_action_contexts", "play", "ucbglm",
    "with_action_contexts",
]  # fmt: skip
