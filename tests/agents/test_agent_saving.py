"""Save, load and copy: the next decisions are the same to the last bit, for every named agent, at every point of its life."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from brute_force import MIXINGS, random_case, random_rows
from manyarms._base import storage
from manyarms._base.typing import AnyArray, Array
from manyarms.agents.agent import Agent
from manyarms.beliefs.actions import blocks, search

K, L, D = 12, 3, 2
RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(-1, 1, (K, L))
ONE_HOT = np.eye(L)[RNG.integers(L, size=K)]
MEANS = RNG.standard_normal((L, D))
OWN_MEANS = RNG.standard_normal((K, D))
OWN = np.stack([np.eye(D) * s for s in RNG.uniform(0.5, 2, K)])


def mixed(weights: Array = WEIGHTS, covariance: Array | None = None) -> ma.MixedEffectPrior:
    return ma.MixedEffectPrior(weights, MEANS, np.eye(L * D), np.eye(D) if covariance is None else covariance)


def of_case(mixing: str, shared: bool) -> Agent:
    return random_case(1, mixing, shared=shared, actions=K).agent(1)


COMMON = ma.ActionPrior(K, np.zeros(D), np.eye(D))
SHARED = ma.HierarchicalPrior(K, np.zeros(D), np.eye(D), np.eye(D))

AGENTS: dict[str, Callable[[], Agent]] = {
    "LinTS": lambda: ma.LinTS(COMMON, seed=1),
    "LinTS, marginal": lambda: ma.LinTS(mixed(), seed=1),
    "LinTS, own means": lambda: ma.LinTS(ma.ActionPrior(K, OWN_MEANS, np.eye(D)), seed=1),
    "LinUCB": lambda: ma.LinUCB(COMMON, seed=1),
    "GLM-TS": lambda: ma.agents.GLMTS(COMMON, seed=1),
    "GLM-TS, counts": lambda: ma.agents.GLMTS(COMMON, ma.beliefs.Poisson(), seed=1),
    "UCB-GLM": lambda: ma.agents.UCBGLM(COMMON, seed=1),
    "GLM-UCB": lambda: ma.agents.GLMUCB(COMMON, seed=1),
    "HierTS": lambda: ma.HierTS(SHARED, seed=1),
    "HierTS, clicks": lambda: ma.HierTS(SHARED, ma.Logistic(), seed=1),
    "meTS": lambda: ma.meTS(mixed(), ma.Linear(0.3), seed=1),
    "meTS, one-hot": lambda: ma.meTS(mixed(ONE_HOT), seed=1),
    "meTS, own covariances": lambda: ma.meTS(mixed(covariance=OWN), seed=1),
    "meTS, mean-field": lambda: ma.meTS(mixed(), factored=True, seed=1),
    "meTS, blockwise": lambda: ma.meTS(mixed(), factored="blockwise", seed=1),
    "meTS-GLM": lambda: ma.meTS(mixed(), ma.Logistic(), seed=1),
    "meTS-GLM, cavity": lambda: ma.meTS(mixed(), ma.Logistic(expansion="cavity"), seed=1),
    "meTS-GLM, the thesis's rule": lambda: ma.meTS(mixed(), ma.Logistic(expansion="mle"), seed=1),
    "meTS-GLM, mean-field": lambda: ma.meTS(mixed(), ma.Logistic(), factored=True, seed=1),
    "meTS-GLM, blockwise": lambda: ma.meTS(mixed(), ma.beliefs.Poisson(), factored="blockwise", seed=1),
    "greedy": lambda: ma.agents.GreedyAgent(mixed(), seed=1),
    "epsilon-greedy": lambda: ma.agents.EpsilonGreedyAgent(mixed(), seed=1),
    "uniform": lambda: ma.agents.UniformAgent(K, D, seed=1),
    "pessimistic": lambda: Agent(ma.beliefs.belief_of(mixed(), ma.Linear()), ma.agents.Pessimistic(0.5), 1),
    "knowledge gradient": lambda: Agent(
        ma.beliefs.belief_of(mixed(), ma.Linear()), ma.agents.KnowledgeGradient(20.0), 1
    ),
    "scaled Thompson": lambda: Agent(ma.beliefs.belief_of(mixed(), ma.Linear()), ma.agents.ScaledThompson(0.5), 1),
    **{
        f"{mixing}, {'shared' if shared else 'own'}": (partial(of_case, mixing, shared))
        for mixing in MIXINGS
        for shared in (True, False)
    },
}


def learn(agent: Agent, seed: int, n: int, actions: list[int], batch: bool) -> None:
    X, A, r = random_rows(seed, n, D, np.array(actions))
    if not isinstance(agent.belief.likelihood, ma.Linear):
        r = (r > 0.5).astype(float)
    if batch:
        agent.observe(X, A, r)
    else:
        for x, a, y in zip(X, A.tolist(), r.tolist(), strict=True):
            agent.observe(x, a, y)


def add(agent: Agent, number: int) -> None:
    """New actions with the rows and covariances that this agent needs."""
    leaves = agent.belief.leaves
    covariance = None if leaves.shared else np.stack([1.5 * np.eye(D)] * number)
    weights = None
    if isinstance(leaves.mixing, ma.beliefs.MixingWeights):
        weights = leaves.mixing.features[:number]
    elif isinstance(leaves.mixing, ma.beliefs.MixingMatrices):
        weights = leaves.mixing.features[:number].reshape(number, D, -1)
    agent.add_actions(number, weights=weights, covariance=covariance)


def add_others(agent: Agent, number: int) -> None:
    """New actions with rows that nobody had, one of them twice."""
    leaves, rng = agent.belief.leaves, np.random.default_rng(agent.belief.catalogue.size)
    covariance = None if leaves.shared else np.stack([1.5 * np.eye(D)] * number)
    weights = None
    if leaves.mixing.features is not None:
        weights = rng.uniform(-1, 1, (number, leaves.mixing.features.shape[1]))
        weights[-1] = weights[0]
        if isinstance(leaves.mixing, ma.beliefs.MixingMatrices):
            weights = weights.reshape(number, D, -1)
    agent.add_actions(number, weights=weights, covariance=covariance)


def life(agent: Agent) -> Iterator[str]:
    """The points at which it is saved."""
    yield "new"
    learn(agent, 1, 3, [4, 2], batch=False)
    agent.decide([0.3, 0.4])
    yield "rows"
    learn(agent, 2, 20, [4, 7, 1], batch=True)
    yield "a batch that nobody has looked at"
    learn(agent, 3, 2, [4, 9], batch=False)
    yield "rows after a batch"
    agent.retire([7, 3])
    add(agent, 2)
    learn(agent, 4, 6, [K, 5], batch=False)
    yield "additions"
    add(agent, 3)
    agent.retire([K + 1, K])
    yield "more additions, and latecomers retired"
    learn(agent, 6, 2, [3, K + 1], batch=True)
    yield "late rewards"
    agent.reinstate([3, 7, K + 1])
    add_others(agent, 4)
    agent.retire([10, K + 6])
    yield "reinstated, and new kinds of actions"
    agent.reinstate([10, K + 6])
    agent.decide([0.3, 0.4])
    add_others(agent, 3)
    learn(agent, 5, 30, [K + 2, 0, 5], batch=True)
    yield "the end"


def next_decisions(agent: Agent) -> list[list[int]]:
    """A day of decisions and lessons; everything that follows from the state."""
    X = np.random.default_rng(8).uniform(-1, 1, (5, D))
    out = [np.asarray(agent.decide(X)).tolist(), np.asarray(agent.decide(X, k=3)).ravel().tolist()]
    for x in X:
        a = agent.decide(x, exclude=[5])
        agent.observe(x, int(a), 1.0)
        out.append([int(a)])
    out.append(np.asarray(agent.decide(X, k=2, candidates=[0, 5, 6, 8, 11])).ravel().tolist())
    return out


def assert_same_state(first: Agent, second: Agent) -> None:
    one, other = first.belief.arrays(), second.belief.arrays()
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes() and array.dtype == other[name].dtype, name


@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS.keys())
def test_the_next_decisions_are_the_same(
    make: Callable[[], Agent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loaded, and copied; through the search of few units and of many, with blocks that have been split."""
    for few in (4096, 2):
        monkeypatch.setattr(search, "FEW", few)
        monkeypatch.setattr(blocks, "BLOCK", 3)
        agent = make()
        for point in life(agent):
            agent.save(tmp_path / "saved")
            loaded, twin = ma.load(tmp_path / "saved"), agent.copy()
            assert_same_state(agent, loaded)
            assert (loaded.name, loaded.actions, loaded.played) == (agent.name, agent.actions, agent.played)
            assert loaded.decision == agent.decision and loaded.belief.likelihood == agent.belief.likelihood
            wanted = next_decisions(agent.copy())
            assert next_decisions(loaded) == wanted, point
            assert next_decisions(twin) == wanted, point
            assert_same_state(loaded, twin)


def test_in_the_middle_of_a_churn(tmp_path: Path) -> None:
    """At the sizes that the constants are made for: blocks that have grown and split before and after they were saved."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((9_000, 2))
    agent = ma.meTS(ma.MixedEffectPrior.isotropic(rows[:5_000], D), seed=0)
    X = rng.uniform(-1, 1, (20, D))
    agent.decide(X)
    agent.retire(rng.permutation(5_000)[:1_000])
    for start in range(5_000, 9_000, 1_000):
        gone = agent.belief.catalogue.retired_ids()
        agent.add_actions(weights=rows[start : start + 1_000])
        agent.add_actions(weights=rows[rng.integers(start, size=100)])
        agent.reinstate(gone[::3])
        agent.retire(np.arange(start, start + 300))
        agent.observe(X, np.asarray(agent.decide(X)), rng.standard_normal(20))
        agent.save(tmp_path)
        loaded = ma.load(tmp_path)
        assert_same_state(agent, loaded)
        wanted = np.asarray(agent.copy().decide(X, k=3))
        assert (np.asarray(loaded.decide(X, k=3)) == wanted).all()
        agent = loaded if start == 6_000 else agent


@pytest.mark.parametrize("played", [3, 97, 700])
def test_scores_are_the_same_to_the_last_bit_however_tables_have_grown(played: int, tmp_path: Path) -> None:
    """A loaded table has other room to grow than one that grew row by row; products with it must not show that."""
    rng = np.random.default_rng(0)
    actions, effects, d = 5000, 4, 7
    prior = ma.MixedEffectPrior(
        rng.uniform(-1, 1, (actions, effects)), np.zeros((effects, d)), np.eye(effects * d), np.eye(d)
    )
    contexts = rng.uniform(-1, 1, (40, d))
    for agent in (ma.meTS(prior, seed=0), ma.LinTS(prior, seed=0), ma.HierTS(prior, seed=0)):
        for a in range(played):
            agent.observe(rng.uniform(-1, 1, d), a, float(rng.standard_normal()))
        agent.save(tmp_path)
        loaded, twin = ma.load(tmp_path), agent.copy()
        for X in (contexts[:1], contexts):
            wanted, _ = agent.belief.draw_scores(X, agent.belief.catalogue.offer(), np.random.default_rng(1))
            for other in (loaded, twin):
                scores, _ = other.belief.draw_scores(X, other.belief.catalogue.offer(), np.random.default_rng(1))
                assert (scores == wanted).all()


@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS.keys())
def test_a_copy_is_independent(make: Callable[[], Agent]) -> None:
    """What the copy does leaves the original alone, and both go the same way when they see the same."""
    agent, alone = make(), make()
    for one in (agent, alone):
        learn(one, 1, 12, [4, 2, 6], batch=False)
    twin = agent.copy()
    learn(twin, 2, 30, [4, 2, 0, 9], batch=False)
    twin.retire([2, 10])
    add(twin, 2)
    twin.decide(np.ones((5, D)))
    assert_same_state(agent, alone)
    assert (agent.key, agent.draws, agent.version) == (alone.key, alone.draws, alone.version)
    learn(alone, 2, 30, [4, 2, 0, 9], batch=False)
    alone.retire([2, 10])
    add(alone, 2)
    alone.decide(np.ones((5, D)))
    assert_same_state(twin, alone)
    assert next_decisions(twin) == next_decisions(alone)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_any_bit_generator_can_be_saved(bits: type[np.random.BitGenerator], tmp_path: Path) -> None:
    agent = ma.LinTS(COMMON, seed=np.random.Generator(bits(3)))
    agent.decide(np.ones((3, D)))
    agent.save(tmp_path)
    batch = np.ones((50, D))
    assert (np.asarray(ma.load(tmp_path).decide(batch)) == np.asarray(agent.decide(batch))).all()


def test_saving_over_an_earlier_save(tmp_path: Path) -> None:
    agent = ma.meTS(mixed(), seed=0)
    agent.save(tmp_path)
    learn(agent, 1, 5, [1, 2], batch=False)
    agent.save(tmp_path)
    assert ma.load(tmp_path).played == agent.played == 2
    assert len(list(tmp_path.iterdir())) == 2


# ---- what is refused --------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    agent = ma.meTS(mixed(), ma.Logistic(), seed=0)
    learn(agent, 1, 12, [1, 2, 3], batch=True)
    agent.save(tmp_path)
    return tmp_path


def test_a_damaged_file_is_refused(saved: Path) -> None:
    (arrays,) = saved.glob("arrays-*.npz")
    content = bytearray(arrays.read_bytes())
    content[len(content) // 2] ^= 1
    arrays.write_bytes(bytes(content))
    with pytest.raises(ma.errors.StorageError, match="damaged"):
        ma.load(saved)


def test_a_truncated_file_is_refused(saved: Path) -> None:
    (arrays,) = saved.glob("arrays-*.npz")
    arrays.write_bytes(arrays.read_bytes()[:-100])
    with pytest.raises(ma.errors.StorageError):
        ma.load(saved)


def test_an_unknown_version_is_refused(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    manifest["version"] = 99
    (saved / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ma.errors.StorageError, match="format version 99"):
        ma.load(saved)


def test_nothing_saved_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ma.errors.StorageError):
        ma.load(tmp_path)
    with pytest.raises(ma.errors.StorageError):
        ma.load(tmp_path / "nowhere")


Spec = dict[str, Any]
Arrays = dict[str, AnyArray]


def without(name: str) -> Callable[[Spec, Arrays], None]:
    def change(spec: Spec, arrays: Arrays) -> None:
        del arrays[name]

    return change


def set_in(path: str, value: object) -> Callable[[Spec, Arrays], None]:
    def change(spec: Spec, arrays: Arrays) -> None:
        *folders, last = path.split("/")
        for name in folders:
            spec = spec[name]
        spec[last] = value

    return change


def unset(name: str) -> Callable[[Spec, Arrays], None]:
    def change(spec: Spec, arrays: Arrays) -> None:
        del spec[name]

    return change


def shortened(name: str) -> Callable[[Spec, Arrays], None]:
    def change(spec: Spec, arrays: Arrays) -> None:
        arrays[name] = arrays[name][:-1]

    return change


INCONSISTENT = {
    "an array is missing": without("leaves.S"),
    "the root is missing": without("root.precision"),
    "an unknown likelihood": set_in("belief/likelihood/kind", "gamma"),
    "an impossible ridge": set_in("belief/likelihood/ridge", -1.0),
    "an unknown root": set_in("belief/root/kind", "cubic"),
    "an unknown decision": set_in("decision/kind", "guess"),
    "an option too many": set_in("decision/hue", 3),
    "a key that is too short": set_in("draws/key", "00ff"),
    "a key that is none": set_in("draws/key", "z" * 32),
    "a number below all": set_in("draws/next", -1),
    "a number that is none": set_in("draws/next", 1.5),
    "a version below all": set_in("version", -1),
    "no draws": unset("draws"),
    "features of fewer actions": shortened("leaves.mixing.features"),
    "statistics of fewer actions": shortened("leaves.c"),
}


@pytest.mark.parametrize("change", INCONSISTENT.values(), ids=INCONSISTENT.keys())
def test_what_is_whole_but_makes_no_sense_is_refused(change: Callable[[Spec, Arrays], None], saved: Path) -> None:
    """Checksums in order, so that it is the content that is wrong."""
    spec, arrays = storage.read(saved, "agent")
    change(spec, arrays)
    storage.save(saved, "agent", spec, arrays)
    with pytest.raises(ma.errors.StorageError):
        ma.load(saved)


def test_equal_states_are_equal_files(tmp_path: Path) -> None:
    """An agent that is loaded after every round saves what one saves that never stopped, to the last byte of its files."""
    world = ma.worlds.MixedEffect(actions=60, effects=2, dim=3, seed=0)
    steady = ma.meTS(world.prior(), seed=0)
    again = steady.copy()
    for number in range(45):  # past the rounds in which a table has no room to spare
        files = []
        for name, agent in (("steady", steady), ("again", again)):
            x = np.array([1.0, 0.5, -0.3])
            agent.observe(x, number % 40, 0.5)
            agent.decide(x)
            agent.save(tmp_path / name)
            files.append(json.loads((tmp_path / name / "manifest.json").read_text())["arrays"]["sha256"])
        assert files[0] == files[1], number
        again = ma.load(tmp_path / "again")
