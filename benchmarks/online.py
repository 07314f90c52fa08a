"""Speed and memory of online decisions; ends with one line of JSON, its figures by name (benchmarks/README.md).

python benchmarks/online.py                 everything; peers that are not installed are left out
python benchmarks/online.py --quick         no peers, fewer turns
python benchmarks/online.py --only mets     one part; --list names them
"""

from __future__ import annotations

import os

# one thread for everybody, and before numpy is loaded: two pools that spin on the same cores measure each other
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import gc
import itertools
import threading
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from _batches import batches, beside_numpy, policy_over_scan
from _churn import agents as churning_agents
from _churn import churn
from _drift import drift
from _peers import PEERS, CarefulNumPy, EinsumNumPy, Textbook
from _propensities import propensities
from _real_embeddings import real
from _report import Figures, as_json, first_line, report
from _timing import Learner, Play, alternate, clock, floor_of_scoring, label, milliseconds, over, summary

import manyarms as ma
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.worlds import MixedEffect


@dataclass(frozen=True)
class Sizes:
    """How large everything is; the defaults are the sizes that the goals speak of."""

    small: int = 10_000
    large: int = 1_000_000
    peers: int = 100_000
    dim: int = 10
    effects: int = 5
    many_effects: int = 20
    real_effects: int = 64
    rounds: int = 3_000  # played before the clock starts
    played: int = 5_000  # different actions played before meTS's clock starts
    turns: int = 15
    batch: int = 40  # our rounds in a turn
    peer_turns: int = 3
    listed: int = 500  # candidates with a context of their own
    listed_dim: int = 16
    churn: int = 100_000  # actions that are added, retired or reinstated
    taught: int = 4_000  # rounds before propensities are asked for
    asked: int = 60
    contexts: int = 10_000  # decided together
    alone: int = 300  # of them, decided one by one
    scored: int = 64  # length of the embeddings that a learned policy scores


# ---- worlds and agents ------------------------------------------------------------------------------------------------


def alike(sizes: Sizes, actions: int, shared: float) -> MixedEffect:
    """A world of actions with a common prior: theta_a ~ N(mu, I), and mu ~ N(0, shared I)."""
    return MixedEffect(actions, 1, sizes.dim, effect_scale=shared, weights=np.ones((actions, 1)), seed=1)


def lints(sizes: Sizes, actions: int) -> tuple[Agent, MixedEffect]:
    """LinTS that has not played yet, and its world."""
    prior = ma.ActionPrior(actions, np.zeros(sizes.dim), np.eye(sizes.dim))
    return ma.LinTS(prior, seed=0), alike(sizes, actions, 0.0)


def hierts(sizes: Sizes, actions: int) -> tuple[Agent, MixedEffect]:
    """HierTS that has not played yet, and its world."""
    world = alike(sizes, actions, 1.0)
    return ma.HierTS(world.hierarchical_prior(), seed=0), world


def mets_onehot(sizes: Sizes, actions: int) -> tuple[Agent, MixedEffect]:
    """meTS with one-hot categories that has not played yet, and its world."""
    world = MixedEffect(actions, sizes.effects, sizes.dim, weights="onehot", seed=1)
    return ma.meTS(world.prior(), seed=0), world


def practised(sizes: Sizes, agent: Agent, world: MixedEffect) -> Play:
    """An agent after its first rounds."""
    play = Play(agent, world)
    play.rounds(sizes.rounds)
    return play


def one_row_each(world: MixedEffect) -> tuple[Array, Ints, Array]:
    """Contexts, actions and rewards that play every action once."""
    X, everybody = world.contexts(world.actions), np.arange(world.actions)
    return X, everybody, world.reward(X, everybody)


# ---- parts ------------------------------------------------------------------------------------------------------------


def flat(name: str, make: Callable[[Sizes, int], tuple[Agent, MixedEffect]], sizes: Sizes) -> Figures:
    """A round at the large and at the small catalogue, after the same number of rounds, and the state of both."""
    large, small = label(sizes.large), label(sizes.small)
    agents = [make(sizes, actions) for actions in (sizes.large, sizes.small)]
    plays = [practised(sizes, agent, world) for agent, world in agents]
    (big, _), (little, _) = agents
    figures: Figures = {
        f"{name}_state_{large}_over_{small}": big.nbytes / little.nbytes,
        f"{name}_{large}_state_bytes": big.nbytes,
        f"{name}_{large}_played": big.played,
        f"{name}_{small}_played": little.played,
    }
    times = alternate(sizes.turns, *(partial(play.rounds, sizes.batch) for play in plays))
    print("  " + summary((f"{name} {large}", f"{name} {small}"), times))
    return {f"{name}_{large}_over_{small}": over(times, 0, 1), f"{name}_{large}_ms": milliseconds(times, 0), **figures}


def run_lints(sizes: Sizes) -> Figures:
    """LinTS with a common prior: is a round flat in the number of actions?"""
    return flat("lints", lints, sizes)


def run_hierts(sizes: Sizes) -> Figures:
    """HierTS, which learns the common mean: is it flat in the number of actions, too?"""
    return flat("hierts", hierts, sizes)


def run_onehot(sizes: Sizes) -> Figures:
    """meTS with one-hot categories: is it flat in the number of actions, too?"""
    return flat("mets_onehot", mets_onehot, sizes)


def mets(sizes: Sizes, actions: int) -> tuple[Agent, MixedEffect]:
    """meTS with distinct real weights that has not played yet, and its world."""
    world = MixedEffect(actions, sizes.effects, sizes.dim, seed=1)
    return ma.meTS(world.prior(), seed=0), world


def run_batches(sizes: Sizes) -> Figures:
    """Thousands of contexts at once, each with its own draw: a decision beside one alone, and beside NumPy; learned policies."""
    turns = max(2, sizes.turns // 3)
    agents = {
        "lints": (partial(lints, sizes, sizes.large), sizes.rounds),
        "hierts": (partial(hierts, sizes, sizes.large), sizes.rounds),
        "mets": (partial(mets, sizes, sizes.large), sizes.played),
    }
    figures = batches(agents, sizes.contexts, turns, sizes.alone)
    plain = partial(lints, sizes, sizes.peers)
    figures |= beside_numpy(plain, sizes.rounds, sizes.contexts, min(turns, sizes.peer_turns), label(sizes.peers))
    return figures | policy_over_scan(sizes.large, sizes.scored, min(256, sizes.contexts), turns)


def run_state(sizes: Sizes) -> Figures:
    """Memory that Python and NumPy really hold for a LinTS agent (`tracemalloc`), and how it grows as actions are played."""
    held: dict[int, list[int]] = {}
    played: dict[int, list[int]] = {}
    for actions in (sizes.small, sizes.large):
        _, world = lints(sizes, actions)
        gc.collect()
        tracemalloc.start()
        agent = ma.LinTS(ma.ActionPrior(actions, np.zeros(sizes.dim), np.eye(sizes.dim)), seed=0)
        play = Play(agent, world)
        held[actions], played[actions] = [], []
        for number in (sizes.rounds // 4, sizes.rounds - sizes.rounds // 4):
            play.rounds(number)
            gc.collect()
            held[actions].append(tracemalloc.get_traced_memory()[0])
            played[actions].append(agent.played)
        tracemalloc.stop()
        for count, size in zip(played[actions], held[actions], strict=True):
            print(
                f"  K={actions:,}: {count:,} played actions hold {size / 1e6:.2f} MB ({size / count:,.0f} bytes each)"
            )
    large, small = label(sizes.large), label(sizes.small)
    return {
        f"lints_traced_{large}_over_{small}": held[sizes.large][1] / held[sizes.small][1],
        f"lints_{large}_traced_bytes": held[sizes.large][1],
        f"lints_{large}_traced_bytes_per_played": held[sizes.large][1] / played[sizes.large][1],
        f"lints_{large}_traced_growth": held[sizes.large][1] / held[sizes.large][0],
        f"lints_{large}_played_growth": played[sizes.large][1] / played[sizes.large][0],
    }


def run_mets(sizes: Sizes) -> Figures:
    """meTS with distinct real weights, many actions played, against the least that scoring every action takes."""
    large = label(sizes.large)
    world = MixedEffect(sizes.large, sizes.effects, sizes.dim, seed=1)
    agent = ma.meTS(world.prior(), seed=0)
    play = Play(agent, world)
    start = time.perf_counter()
    agent.decide(world.contexts(1)[0])
    built = time.perf_counter() - start
    rounds = play.until(lambda: agent.played >= sizes.played, 50)
    played = agent.played
    floor = floor_of_scoring(world.weights, np.random.default_rng(0))
    times = alternate(sizes.turns, lambda: play.rounds(sizes.batch), floor)
    print(
        f"  {built:.1f} s for the first decision, which makes the blocks; {played:,} actions played in {rounds:,} rounds"
    )
    print("  " + summary((f"meTS {large}", "floor"), times))
    return {
        f"mets_{large}_over_floor": over(times, 0, 1),
        f"mets_{large}_ms": milliseconds(times, 0),
        "mets_floor_ms": milliseconds(times, 1),
        f"mets_{large}_played": played,
        f"mets_{large}_played_end": agent.played,
        f"mets_{large}_state_bytes": agent.nbytes,
        f"mets_{large}_first_decision_s": built,
    }


def run_many_effects(sizes: Sizes) -> Figures:
    """meTS with so many effects that most blocks open, and nothing played: a decision against its floor."""
    name = f"mets_l{sizes.many_effects}"
    world = MixedEffect(sizes.large, sizes.many_effects, sizes.dim, seed=1)
    agent = ma.meTS(world.prior(), seed=0)
    play = Play(agent, world)
    floor = floor_of_scoring(world.weights, np.random.default_rng(0))
    times = alternate(sizes.turns, lambda: play.decisions(2), floor)
    print("  " + summary((f"{name} {label(sizes.large)} decision", "floor"), times))
    return {
        f"{name}_{label(sizes.large)}_over_floor": over(times, 0, 1),
        f"{name}_{label(sizes.large)}_ms": milliseconds(times, 0),
        f"{name}_floor_ms": milliseconds(times, 1),
        f"{name}_{label(sizes.large)}_played": agent.played,
    }


def run_real(sizes: Sizes) -> Figures:
    """meTS with weights that are item factors of real interactions: a decision against the floor for that catalogue."""
    data = os.environ.get("MANYARMS_DATA") if sizes.large >= 100_000 else None
    effects = (sizes.many_effects, sizes.real_effects)
    return real(data, min(sizes.large, 100_000), effects, sizes.dim, sizes.rounds, sizes.turns, sizes.batch)


def run_action_contexts(sizes: Sizes) -> Figures:
    """A context for each of some hundred candidates of a large catalogue, half of them played: a decision by HierTS."""
    number, d = sizes.listed, sizes.listed_dim
    name = f"action_contexts_{number}"
    rng = np.random.default_rng(0)
    prior = ma.HierarchicalPrior(sizes.large, np.zeros(d), np.eye(d), np.eye(d))
    agent = ma.HierTS(prior, seed=0)
    ids = rng.choice(sizes.large, size=2 * number, replace=False)
    agent.observe(rng.uniform(-1, 1, (number, d)), ids[:number], rng.standard_normal(number))
    candidates = [ids[number // 2 : number // 2 + number], ids[number:], ids[:number]]  # half, none, all of them played
    contexts = rng.uniform(-1, 1, (sizes.batch, number, d))

    def decisions(some: Ints) -> float:
        start = clock()
        for Z in contexts:
            agent.decide(action_contexts=Z, candidates=some)
        return (clock() - start) / len(contexts)

    times = alternate(sizes.turns, *(partial(decisions, some) for some in candidates))
    print("  " + summary((f"{number} candidates, half played", "none played", "all played"), times))
    return {
        f"{name}_ms": milliseconds(times, 0),
        f"{name}_unplayed_ms": milliseconds(times, 1),
        f"{name}_played_ms": milliseconds(times, 2),
    }


class CalledByIds:
    """A learner whose actions have ids, in a world that numbers them: the translation for the world is not timed."""

    def __init__(self, world: MixedEffect, names: Sequence[str], seed: int = 0) -> None:
        self.world, self.rows = world, {name: row for row, name in enumerate(names)}

    def replay(self, seed: int) -> CalledByIds:
        """The same from the start."""
        self.world = self.world.replay(seed)
        return self

    def contexts(self, number: int) -> Array:
        """Of the world."""
        return self.world.contexts(number)

    def reward(self, x: Array, action: str) -> float:
        """Of the action with this id."""
        return float(self.world.reward(x, self.rows[action]))


def run_ids(sizes: Sizes) -> Figures:
    """LinTS whose actions have ids beside the same one whose actions are numbered: a round, and a decision with exclusions."""
    size = label(sizes.peers)
    agent, world = lints(sizes, sizes.peers)
    practised(sizes, agent, world)
    names = [f"sku-{row:07d}" for row in range(sizes.peers)]
    called = Agent(agent.belief, agent.decision, 0, catalogue=names)
    numbered = Play(agent, world)
    by_ids = Play(called, CalledByIds(world, names))  # type: ignore[arg-type]
    seen = list(range(0, sizes.peers, max(1, sizes.peers // 20)))
    left_out = [names[row] for row in seen]
    contexts = world.contexts(sizes.batch)

    def excluding(one: Agent, ids: list[int] | list[str]) -> float:
        start = clock()
        for x in contexts:
            one.decide(x, exclude=ids)
        return (clock() - start) / len(contexts)

    times = alternate(
        sizes.turns,
        partial(by_ids.rounds, sizes.batch),
        partial(numbered.rounds, sizes.batch),
        partial(excluding, called, left_out),
        partial(excluding, agent, seen),
    )
    print("  " + summary(("ids", "integers", "excluding by ids", "excluding by integers"), times))
    return {
        "ids_over_integers": over(times, 0, 1),
        "ids_excluding_over_integers": over(times, 2, 3),
        f"ids_{size}_ms": milliseconds(times, 0),
        f"integers_{size}_ms": milliseconds(times, 1),
    }


def run_propensity(sizes: Sizes) -> Figures:
    """The propensity of an action that meTS has decided on: milliseconds, and relative standard error."""
    return propensities(sizes.peers, sizes.effects, sizes.listed_dim, sizes.taught, sizes.asked)


def run_churn(sizes: Sizes) -> Figures:
    """Actions added, retired and reinstated at the large catalogue: the mean cost of one change, and the longest."""
    large, figures = label(sizes.large), Figures()
    everything = []
    for name, make in churning_agents(sizes.large, sizes.effects, sizes.dim).items():
        spent, decided = churn(*make(), sizes.churn)
        everything.append(spent)
        figures[f"churn_{name}_{large}_us"] = 1e6 * float(spent.mean())
        figures[f"churn_{name}_{large}_worst_ms"] = 1e3 * float(spent.max())
        figures[f"churn_{name}_{large}_decision_ms"] = 1e3 * float(np.median(decided))
        print(f"  {name}: {1e6 * spent.mean():.3g} us a change, the longest {1e3 * spent.max():.3g} ms")
    spent = np.concatenate(everything)
    head: Figures = {
        f"churn_{large}_us": 1e6 * float(spent.mean()),
        f"churn_{large}_worst_ms": 1e3 * float(spent.max()),
    }
    return {**head, **figures}


def run_drift(sizes: Sizes) -> Figures:
    """Rewards that drift: the model, discounting and a window against nothing forgotten; the knowledge gradient."""
    return drift(sizes.large, sizes.effects, sizes.dim, sizes.rounds, sizes.turns, 5 * sizes.batch)


def run_textbook(sizes: Sizes) -> Figures:
    """Textbook LinTS, K inversions and K draws a round, by a loop and in batched calls."""
    small = label(sizes.small)
    agent, world = lints(sizes, sizes.small)
    ours = practised(sizes, agent, world)
    made = (sizes.small, sizes.dim, 1.0, world.noise, 0)
    others = [Play(Textbook(*made), world), Play(Textbook(*made, batched=True), world)]
    played = agent.played
    times = alternate(
        sizes.peer_turns, lambda: ours.rounds(sizes.batch), lambda: others[0].rounds(1), lambda: others[1].rounds(3)
    )
    print("  " + summary(("ours", "textbook", "batched"), times))
    return {
        f"textbook_{small}_over_ours": over(times, 1, 0),
        f"textbook_batched_{small}_over_ours": over(times, 2, 0),
        f"textbook_{small}_ours_played": played,
    }


def run_numpy(sizes: Sizes) -> Figures:
    """NumPy that scores all K actions at once, with full and with packed matrices, against LinTS after its rounds."""
    size = label(sizes.peers)
    agent, world = lints(sizes, sizes.peers)
    made = (sizes.peers, sizes.dim, 1.0, world.noise, 0)
    plays = [practised(sizes, agent, world), Play(CarefulNumPy(*made), world), Play(EinsumNumPy(*made), world)]
    played = agent.played
    times = alternate(sizes.turns, lambda: plays[0].rounds(sizes.batch), *_short(plays[1:], sizes))
    print("  " + summary(("ours", "packed NumPy", "full matrices"), times))
    return {
        f"numpy_{size}_over_ours": over(times, 2, 0),
        f"numpy_packed_{size}_over_ours": over(times, 1, 0),
        f"numpy_{size}_ours_ms": milliseconds(times, 0),
        f"numpy_{size}_ms": milliseconds(times, 2),
        f"numpy_packed_{size}_ms": milliseconds(times, 1),
        f"numpy_{size}_ours_played": played,
    }


def run_allplayed(sizes: Sizes) -> Figures:
    """Every action already played, so that no shortcut is left: LinTS against careful NumPy."""
    size = label(sizes.peers)
    agent, world = lints(sizes, sizes.peers)
    X, everybody, rewards = one_row_each(world)
    agent.observe(X, everybody, rewards)
    others: list[Learner] = []
    for make in (CarefulNumPy, EinsumNumPy):
        other = make(sizes.peers, sizes.dim, 1.0, world.noise, 0)
        for x, action, reward in zip(X, everybody.tolist(), rewards.tolist(), strict=True):
            other.observe(x, action, reward)
        others.append(other)
    plays = [Play(agent, world), *(Play(other, world) for other in others)]
    times = alternate(sizes.turns, *_short(plays, sizes))
    print("  " + summary(("ours", "careful NumPy", "einsum"), times))
    return {
        f"allplayed_{size}_over_numpy": over(times, 0, 1),
        f"allplayed_{size}_over_numpy_einsum": over(times, 0, 2),
        f"allplayed_{size}_ms": milliseconds(times, 0),
        f"allplayed_{size}_played": agent.played,
    }


def _short(plays: Sequence[Play], sizes: Sizes) -> list[Callable[[], float]]:
    """Sides whose rounds are long: a quarter of a batch each."""
    return [partial(play.rounds, max(1, sizes.batch // 4)) for play in plays]


def peer(name: str) -> Callable[[Sizes], Figures]:
    """The part that compares LinTS with one library."""

    def run(sizes: Sizes) -> Figures:
        size = label(sizes.peers)
        figure = f"{name}_{size}_over_ours"
        agent, world = lints(sizes, sizes.peers)
        try:
            start = time.perf_counter()
            other = PEERS[name](world.replay(1))
        except ImportError as error:
            print(f"  left out: {error} (pip install 'manyarms[bench]')")
            return {figure: None}
        print(f"  {time.perf_counter() - start:.0f} s to set it up")
        everything, _ = lints(sizes, sizes.peers)
        everything.observe(*one_row_each(world.replay(1)))
        ours, theirs, full = practised(sizes, agent, world), Play(other, world), Play(everything, world)
        played = agent.played
        times = alternate(
            sizes.peer_turns, partial(ours.rounds, sizes.batch), partial(theirs.rounds, 1), *_short([full], sizes)
        )
        print("  " + summary(("ours", name, "ours with every action played"), times))
        return {
            figure: over(times, 1, 0),
            f"{name}_{size}_over_ours_allplayed": over(times, 1, 2),
            f"{name}_{size}_s": milliseconds(times, 1) / 1e3,
            f"{name}_{size}_ours_played": played,
        }

    run.__doc__ = f"{name} against LinTS after its rounds."
    return run


def run_threads(sizes: Sizes) -> Figures:
    """HierTS that threads share: decisions a second by 1 and by 4 threads, by the clock on the wall, beside one that learns."""
    agent, world = hierts(sizes, sizes.peers)
    practised(sizes, agent, world)
    number = sizes.turns * sizes.batch
    contexts, figures = world.contexts(number), dict[str, float | None]()
    rewards = np.random.default_rng(0).standard_normal(number).tolist()

    def decide(taken: list[float]) -> None:
        for x in contexts:
            start = time.perf_counter()
            agent.decide(x)
            taken.append(time.perf_counter() - start)

    def learn(done: threading.Event) -> None:
        for i in itertools.count():
            if done.is_set():
                return
            agent.observe(contexts[i % number], i % 1000 % world.actions, rewards[i % number])

    for threads in (1, 4):
        taken: list[float] = []
        done = threading.Event()
        learner = threading.Thread(target=learn, args=(done,))
        deciders = [threading.Thread(target=decide, args=(taken,)) for _ in range(threads)]
        version, start = agent.version, time.perf_counter()
        for thread in (learner, *deciders):
            thread.start()
        for thread in deciders:
            thread.join()
        seconds = time.perf_counter() - start
        done.set()
        learner.join()
        figures[f"threads_{threads}_decisions_per_s"] = len(taken) / seconds
        figures[f"threads_{threads}_p99_ms"] = 1e3 * float(np.quantile(taken, 0.99))
        figures[f"threads_{threads}_learned_per_s"] = (agent.version - version) / seconds
        print(f"  {threads} deciding, 1 learning: " + ", ".join(f"{k} {v:.4g}" for k, v in list(figures.items())[-3:]))
    return figures


PARTS: dict[str, Callable[[Sizes], Figures]] = {
    "lints": run_lints,
    "hierts": run_hierts,
    "mets": run_mets,
    "mets-many-effects": run_many_effects,
    "mets-real": run_real,
    "mets-onehot": run_onehot,
    "batches": run_batches,
    "action-contexts": run_action_contexts,
    "ids": run_ids,
    "propensity": run_propensity,
    "churn": run_churn,
    "drift": run_drift,
    "state": run_state,
    "textbook": run_textbook,
    "numpy": run_numpy,
    "allplayed": run_allplayed,
    "threads": run_threads,
    **{name: peer(name) for name in PEERS},
}


def main(arguments: Sequence[str] | None = None, sizes: Sizes | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Speed and memory of online decisions; ends with one line of JSON.")
    parser.add_argument(
        "--only", action="append", choices=list(PARTS), metavar="PART", help="run this part (repeatable)"
    )
    parser.add_argument("--quick", action="store_true", help="no peers, and a third of the turns")
    parser.add_argument("--list", action="store_true", help="name the parts")
    options = parser.parse_args(arguments)
    titles = {name: first_line(part) for name, part in PARTS.items()}
    if options.list:
        print("\n".join(f"{name:<18} {title}" for name, title in titles.items()))
        return
    sizes = sizes or Sizes()
    if options.quick:
        sizes = replace(sizes, turns=max(1, sizes.turns // 3), churn=max(1, sizes.churn // 5))
    names = options.only or [name for name in PARTS if not (options.quick and name in PEERS)]
    print(as_json(report({name: partial(PARTS[name], sizes) for name in names}, titles)))


if __name__ == "__main__":
    main()
