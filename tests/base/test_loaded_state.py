"""A folder whose checksums fit, but whose arrays make no sense: refused whatever it holds, array by array.

Every array of every kind of object is spoiled in every way that its type allows, and saved again. Nothing of it may load.
"""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
import manyarms.agents
from manyarms._base import storage
from manyarms._base.typing import AnyArray
from manyarms.beliefs import Linear, Logistic, Poisson
from manyarms.errors import StorageError
from manyarms.logs import Actions, Encoding, LoggedData
from manyarms.logs.row_sketch import RowSketch
from manyarms.policies import FixedPolicy, Layers, Projection, SoftmaxPolicy
from manyarms.priors import ActionPrior, DiffusionPrior, HierarchicalPrior, LatentPrior, MixedEffectPrior, NetworkLink
from manyarms.priors.pretraining import History, Pretrained

K, D = 6, 2


def taught(agent: Any, reward: Callable[[int], float] = lambda i: i % 2) -> Any:
    """The agent after a few rows, with an action that was added and one that was retired."""
    X = np.random.default_rng(0).normal(size=(8, D))
    for i, x in enumerate(X):
        agent.observe(x, i % 4, float(reward(i)))
    agent.retire([5])
    return agent


def effects(**options: Any) -> Any:
    weights = np.random.default_rng(1).normal(size=(K, 3))
    return ma.meTS(MixedEffectPrior(weights, np.zeros((3, D)), np.eye(3 * D), np.eye(D)), seed=0, **options)


def chains(shared: bool, links: Any, **options: Any) -> Any:
    prior = DiffusionPrior(K, D, links, [np.eye(D)] * (len(links) + 1), shared)
    return ma.dTS(prior, Linear(0.5), seed=0, **options)


def network() -> NetworkLink:
    return NetworkLink(0.5, [(np.ones((3, D)), np.zeros(3)), (np.ones((D, 3)), np.zeros(D))])


def pretrained() -> Pretrained:
    betas = np.array([0.3, 0.6, 0.95])
    history = History(np.arange(2.0), np.ones(2), np.full(2, np.nan))
    layers = ((np.ones((3, D)), np.zeros(3)), (np.ones((D, 3)), np.zeros(D)))
    return Pretrained(np.zeros(D), np.eye(D), betas, betas, layers, np.zeros((3, 3)), history, None, 10, 0.1)


def learned_policy() -> SoftmaxPolicy:
    policy = SoftmaxPolicy(np.ones((K, 3)), encoder=Projection(np.ones((D, 3))))
    log = LoggedData(np.arange(8.0).reshape(4, D), [0, 1, 2, 3], np.ones(4), K, groups=np.array(list("aabb")))
    policy.training_rows = RowSketch.of(log)
    return policy


HIERARCHY = HierarchicalPrior(K, np.zeros(D), np.eye(D), np.eye(D))
OWN = np.stack([np.eye(D) * (1 + a) for a in range(K)])
THINGS: dict[str, Callable[[], Any]] = {
    "LinTS": lambda: taught(ma.LinTS(ActionPrior(K, np.zeros(D), np.eye(D)), seed=0)),
    "own priors": lambda: taught(ma.LinTS(ActionPrior(K, np.ones((K, D)), OWN), seed=0)),
    "HierTS": lambda: taught(ma.HierTS(HIERARCHY, seed=0)),
    "meTS": lambda: taught(effects()),
    "mean-field": lambda: taught(effects(factored=True)),
    "blockwise": lambda: taught(effects(factored="blockwise")),
    "latent": lambda: taught(
        ma.agents.GreedyAgent(LatentPrior(np.ones((K, D, 3)), np.zeros(3), np.eye(3), np.eye(D)), seed=0)
    ),
    "logistic": lambda: taught(ma.HierTS(HIERARCHY, Logistic(), seed=0)),
    "cavity": lambda: taught(ma.HierTS(HIERARCHY, Logistic(expansion="cavity"), seed=0)),
    "poisson": lambda: taught(ma.agents.GLMTS(ActionPrior(K, np.zeros(D), np.eye(D)), Poisson(), seed=0)),
    "chain": lambda: taught(chains(True, [network()], approximation="thesis")),
    "chains": lambda: taught(chains(False, [network()], approximation="thesis")),
    "particles": lambda: taught(chains(False, [network()])),
    "pretrained": pretrained,
    "policy": learned_policy,
    "layers": lambda: SoftmaxPolicy(np.ones((K, 3)), encoder=Layers([np.ones((D, 3))], [np.ones(3)])),
    "fixed": lambda: FixedPolicy([0.5, 0.25, 0.25]),
    "actions": lambda: Actions(["apple", "pear", "fig"]),
    "encoder": lambda: Encoding().fit({"age": [20.0, 40.0], "town": ["Ulm", "Bonn"]}, ["age", "town"]),
}
ANYTHING = {"history"}  # of a training: losses, which may be NaN, and are only shown
UNREAD = {"chains": {"root.mean"}, "particles": {"root.mean"}}  # these have no root
# without a row they are another thing that can be: fewer actions, inputs, or rows that were learned from
SHORTER = {"leaves.retired", "weights", "encoder/W", "encoder/weight-0", "training_rows.logs", "training_rows.groups.marks",
           "training_rows.positions.marks"}  # fmt: skip


@pytest.fixture(autouse=True)
def no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of saves that no crash will ask for."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def spoiled(name: str, array: AnyArray) -> Iterator[tuple[str, AnyArray | None]]:
    """An array in forms that no honest save has; None: it is missing."""
    yield "missing", None
    if name in ANYTHING:
        return
    if array.dtype.kind == "f" and array.size:
        for value in (np.nan, np.inf):
            bad = array.copy()
            bad.flat[-1] = value
            yield str(value), bad
    if array.ndim and array.size:
        if name not in SHORTER:
            yield "a row less", array[:-1]
        yield "texts", array.astype("U8")
    if array.ndim == 2 and array.shape[1] > 1:
        yield "one column", array[:, :1]


@pytest.mark.parametrize("thing", THINGS)
def test_no_array_can_be_spoiled(thing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    THINGS[thing]().save(tmp_path)
    kind = storage._manifest_of(tmp_path)["kind"]
    spec, arrays = storage.read(tmp_path, kind)
    ma.load(tmp_path)
    accepted = []
    for name in arrays.keys() - UNREAD.get(thing, set()):
        for how, bad in spoiled(name, arrays[name]):
            changed = {key: value for key, value in arrays.items() if key != name}
            changed |= {} if bad is None else {name: bad}
            # as if it had been saved so; `load` is called on the folder all the same
            monkeypatch.setattr(storage, "read", lambda *_, changed=changed, **__: (copy.deepcopy(spec), changed))
            try:
                ma.load(tmp_path)
                accepted.append(f"{name}: {how}")
            except StorageError as error:
                assert str(tmp_path) in str(error)
    assert not accepted


def refused(folder: Path, agent: Any, reason: str, **changed: AnyArray) -> None:
    agent.save(folder)
    spec, arrays = storage.read(folder, "agent")
    assert changed.keys() <= arrays.keys()
    storage.save(folder, "agent", spec, {**arrays, **changed})
    with pytest.raises(StorageError, match=reason):
        ma.load(folder)


@pytest.mark.parametrize("name", ["leaves.S", "leaves.G", "leaves.covariance", "root.prior_covariance"])
def test_what_is_a_covariance_must_be_one(name: str, tmp_path: Path) -> None:
    agent = taught(ma.HierTS(HIERARCHY, seed=0))
    array = agent.belief.arrays()[name]
    refused(tmp_path, agent, r"positive (semi)?definite", **{name: -array})
    if array.shape == (D, D):
        refused(tmp_path, agent, "not symmetric", **{name: array + np.triu(np.ones((D, D)), 1)})


def test_evidence_that_takes_away_more_than_was_known(tmp_path: Path) -> None:
    """Refused, or taken for what rounding leaves of it; but no agent that fails later."""
    taught(ma.HierTS(HIERARCHY, seed=0)).save(tmp_path)
    spec, arrays = storage.read(tmp_path, "agent")
    storage.save(tmp_path, "agent", spec, {**arrays, "root.precision": -1e6 * np.eye(D)})
    with contextlib.suppress(StorageError):
        agent = ma.load(tmp_path)
        agent.observe(np.ones((2, D)), [0, 1], [1.0, 0.0])
        assert np.isfinite(agent.belief.root.mean()).all() and np.isfinite(agent.belief.root.factor()).all()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("leaves.played", np.array([0, 1, 2, 2]), "more than once"),
        ("leaves.played", np.array([0, 1, 2, K]), "ids from"),
        ("leaves.played", np.array([0, 1, 2, -1]), "ids from"),
        ("leaves.retired", np.array([K]), "ids from"),
        ("leaves.retired", np.array([5, 5]), "more than once"),
        ("leaves.counts", np.array([1, 1, 1, -1]), "at least 0"),
        ("leaves.sizes", np.array([K, K - 1, 1]), "sizes are"),
        ("leaves.sizes", np.array([0, K, 1]), "sizes are"),
        ("leaves.sizes", np.array([K, K, 2]), "sizes are"),
        ("leaves.S", np.ones((4, 1)), "leaves|S is of shape"),
    ],
)
def test_ids_and_counts_must_fit(name: str, value: AnyArray, reason: str, tmp_path: Path) -> None:
    refused(tmp_path, taught(ma.HierTS(HIERARCHY, seed=0)), reason, **{name: value})


def test_the_root_before_the_rows_is_not_made_up(tmp_path: Path) -> None:
    agent = taught(ma.HierTS(HIERARCHY, Logistic(), seed=0))
    agent.save(tmp_path)
    spec, arrays = storage.read(tmp_path, "agent")
    lost = {name: array for name, array in arrays.items() if not name.startswith("glm.root")}
    storage.save(tmp_path, "agent", spec, lost)
    with pytest.raises(StorageError, match=r"glm\.root_mean is missing"):
        ma.load(tmp_path)


def test_impossible_rewards_are_refused(tmp_path: Path) -> None:
    agent = taught(ma.HierTS(HIERARCHY, Logistic(), seed=0))
    rewards = agent.belief.arrays()["glm.r"]
    refused(tmp_path, agent, "reward", **{"glm.r": rewards + 7.0})


def test_states_of_large_condition_load_again(tmp_path: Path) -> None:
    """What rounding does to an honest state is no reason to refuse it."""
    scale = np.diag([1.0, 1e-12])
    prior = HierarchicalPrior(K, np.zeros(D), np.eye(D), scale)
    agent = ma.HierTS(prior, Linear(1e-3), seed=0)
    for x in np.random.default_rng(0).normal(size=(500, D)) * np.array([1e3, 1e-3]):
        agent.observe(x, 0, float(x @ [1.0, -1.0]))
    agent.save(tmp_path)
    ma.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec["belief"].update(kind="os.system"),
        lambda spec: spec["belief"]["root"].update(kind="__import__"),
        lambda spec: spec["belief"].update(mixing="Catalogue"),
        lambda spec: spec["belief"]["likelihood"].update(kind="eval"),
        lambda spec: spec["belief"].update(dim=10**9),
        lambda spec: spec["belief"].update(dim=0),
        lambda spec: spec["belief"].update(dim="2"),
        lambda spec: spec["decision"].update(kind="breakpoint"),
        lambda spec: spec["decision"].update(surprise=1),
        lambda spec: spec.pop("decision"),
        lambda spec: spec.update(belief=["two-level"]),
    ],
)
def test_names_in_a_spec_are_looked_up_in_lists(change: Callable[[dict[str, Any]], object], tmp_path: Path) -> None:
    taught(ma.HierTS(HIERARCHY, seed=0)).save(tmp_path)
    spec, arrays = storage.read(tmp_path, "agent")
    change(spec)
    storage.save(tmp_path, "agent", spec, arrays)
    with pytest.raises(StorageError, match=str(tmp_path)):
        ma.load(tmp_path)


def test_policies_nested_without_end(tmp_path: Path) -> None:
    spec: dict[str, Any] = {"type": "uniform", "actions": 2}
    for _ in range(400):
        spec = {"type": "epsilon-mixture", "epsilon": 0.1, "policy": spec}
    storage.save(tmp_path, "policy", spec, {})
    with contextlib.suppress(StorageError):  # deep, but it can be made; or too deep, which is said as such
        ma.load(tmp_path)
