"""Ids are names and nothing else: an agent with ids is its twin without, draw by draw, whatever happens to both."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import manyarms as ma
from every_agent import GENERALISED, LINEAR, D, K
from manyarms._base.typing import Array
from manyarms.agents import Agent, named
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.logs import Actions, Encoding

NAMES = [f"sku-{(7 * i) % K:02d}" for i in range(K)]
NUMBERS = [(5 * i + 1000) % 10_007 for i in range(K)]
EVERY = LINEAR | GENERALISED


def twins(kind: str, ids: list[Any]) -> tuple[Agent, Agent]:
    plain = EVERY[kind]()
    return plain, Agent(plain.belief, plain.decision, 1, catalogue=ids)


def contexts(agent: Agent, n: int, seed: int = 0) -> Array:
    shape = (K, D) if not agent.belief.per_action else (agent.belief.dim,)
    return np.random.default_rng(seed).uniform(-1, 1, (n, *shape))


@pytest.mark.parametrize("kind", EVERY)
def test_an_agent_with_ids_is_its_twin_without(kind: str, tmp_path: Path) -> None:
    """Through learning, filters, top k, retired and reinstated actions, copies, snapshots and a save."""
    ids = NAMES if len(kind) % 2 else NUMBERS
    plain, called = twins(kind, ids)
    of = np.array(ids, dtype=object)
    X = contexts(plain, 9)
    for x in X[:4]:
        row, name = plain.decide(x), called.decide(x)
        assert name == ids[row] and type(name) is type(ids[0])
        plain.observe(x, row, 1.0)
        called.observe(x, name, 1.0)
    rows = np.arange(3, 8)
    plain.observe(X[4:], rows, np.ones(5))
    called.observe(X[4:], of[rows], np.ones(5))
    plain.replace_reward(X[4], 3, 1.0, 0.0)
    called.replace_reward(X[4], ids[3], 1.0, 0.0)
    for agent, actions in ((plain, [1, 3]), (called, [ids[1], ids[3]])):
        agent.retire(actions)
        agent.reinstate(actions[1])
    for mine, theirs in zip(plain.posterior(3), called.posterior(ids[3]), strict=True):
        assert_array_equal(mine, theirs)
    called.save(tmp_path)
    for again in (called, called.copy(), called.snapshot(), ma.load(tmp_path)):
        draw = plain.draws
        assert again.catalogue == Actions(ids)
        chosen = plain.decide(X, draw=draw, k=3)
        assert_array_equal(again.decide(X, draw=draw, k=3), of[chosen])
        assert_array_equal(again.decide(X, draw=draw), of[plain.decide(X, draw=draw)])
        some = plain.decide(X[0], candidates=[0, 3, 5], exclude=[5], draw=draw)
        assert again.decide(X[0], candidates=[ids[0], ids[3], ids[5]], exclude=[ids[5]], draw=draw) == ids[some]
        made = again.decide_numbered(X[0], exclude=[ids[0], ids[2]], draw=draw)
        assert made.actions == ids[plain.decide(X[0], exclude=[0, 2], draw=draw)]
        expected = plain.propensity(X[0], 3, draw=draw, draws=8)
        assert again.propensity(X[0], ids[3], draw=draw, draws=8) == expected


@pytest.mark.parametrize("kind", ["LinTS", "meTS", "meTS, own covariances", "HierTS, clicks"])
def test_new_actions_come_with_ids(kind: str, tmp_path: Path) -> None:
    plain, called = twins(kind, NAMES)
    frozen = called.snapshot()
    new = ["late-a", "late-b"]
    told: dict[str, Any] = {}
    if plain.belief.leaves.mixing.features is not None:
        told["weights"] = np.random.default_rng(1).uniform(-1, 1, (2, 3))
    if not plain.belief.leaves.shared:
        told["covariance"] = np.stack([np.eye(D), np.eye(D)])
    added = plain.add_actions(**({} if "weights" in told else {"number": 2}), **told)
    assert called.add_actions(ids=new, **told).tolist() == new
    X, of = contexts(plain, 50), np.array(NAMES + new, dtype=object)
    for agent, late in ((plain, int(added[0])), (called, "late-a")):
        agent.observe(X[0], late, 1.0)
    called.save(tmp_path)
    for again in (called, ma.load(tmp_path)):
        assert_array_equal(again.decide(X, draw=5), of[plain.decide(X, draw=5)])
    assert frozen.catalogue == Actions(NAMES) and called.catalogue == Actions(NAMES + new)
    with pytest.raises(UnknownAction, match="action 'late-a'"):
        frozen.posterior("late-a")
    before = called.version
    for wrong in (["late-a"], ["x", "x"], ["x", "y"], [1], [""], [True], "xy", [None], 3):
        arguments = {name: value[:1] for name, value in told.items()}
        with pytest.raises(InvalidInput, match="ids"):
            called.add_actions(ids=wrong, **({} if "weights" in told else {"number": 1}), **arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"ids: expected .* ids for the new actions"):
        called.add_actions(**({} if "weights" in told else {"number": 2}), **told)
    with pytest.raises(InvalidInput, match="ids: expected nothing"):
        plain.add_actions(ids=new, **told)
    assert called.version == before and called.catalogue == Actions(NAMES + new)


def test_copies_that_grow_apart_do_not_share_new_ids() -> None:
    one = ma.LinTS(ma.ActionPrior(2, [0.0], [[1.0]]), catalogue=["a", "b"], seed=0)
    other = one.copy()
    one.add_actions(ids=["c"])
    other.add_actions(ids=["d", "e"])
    assert list(one.catalogue or ()) == ["a", "b", "c"] and list(other.catalogue or ()) == ["a", "b", "d", "e"]
    with pytest.raises(UnknownAction):
        one.observe([1.0], "d", 1.0)


UNKNOWN = [True, 1.5, b"a", None, float("nan"), "", ["a"], 10**30, np.True_]


@pytest.mark.parametrize("ids", [NAMES, NUMBERS], ids=["names", "numbers"])
def test_what_is_no_id_is_refused(ids: list[Any]) -> None:
    agent = EVERY["LinTS"]()
    agent = Agent(agent.belief, agent.decision, 1, catalogue=ids)
    x = contexts(agent, 1)[0]
    for wrong in [*UNKNOWN, "nobody", 7, ids[:1] * 2]:
        for call in (
            lambda wrong=wrong: agent.observe(x, wrong, 1.0),
            lambda wrong=wrong: agent.posterior(wrong),
            lambda wrong=wrong: agent.propensity(x, wrong),
            lambda wrong=wrong: agent.retire([wrong]),
            lambda wrong=wrong: agent.decide(x, candidates=[ids[0], wrong]),
        ):
            with pytest.raises(InvalidInput):
                call()
    for wrong in UNKNOWN:
        with pytest.raises(InvalidInput, match="exclude"):
            agent.decide(x, exclude=[wrong])
    with pytest.raises(UnknownAction, match="more than once"):
        agent.decide(x, candidates=[ids[0], ids[0]])
    agent.retire(ids[2])
    with pytest.raises(UnknownAction, match=r"candidates: .*, which is retired"):
        agent.decide(x, candidates=[ids[2]])
    assert agent.version == 1 and agent.draws == 0


@pytest.mark.parametrize(
    "ids",
    [
        ["a", 1],
        ["a", "a"],
        [True, False],
        [1.0, 2.0],
        [b"a", b"b"],
        ["a", ""],
        ["a", None],
        "ab",
        3,
        [float("nan"), 1],
        ["a"],
    ],
    ids=str,
)
def test_catalogues_that_could_not_be_kept_are_refused(ids: Any) -> None:
    with pytest.raises(InvalidInput, match=r"ids|catalogue"):
        ma.LinTS(ma.ActionPrior(2, [0.0], [[1.0]]), catalogue=ids)


@pytest.mark.parametrize("ids", [None, NAMES], ids=["rows", "names"])
def test_unknown_exclusions_do_no_harm(ids: list[str] | None) -> None:
    agent = EVERY["meTS"]()
    agent = Agent(agent.belief, agent.decision, 1, catalogue=ids)
    x = contexts(agent, 1)[0]
    gone: list[Any] = [10**9, -3] if ids is None else ["delisted", "gone"]
    known: list[Any] = [0, 5] if ids is None else [NAMES[0], NAMES[5]]
    for candidates in (None, [*known, (3 if ids is None else NAMES[3])]):
        assert agent.decide(x, candidates=candidates, exclude=known + gone, draw=3) == agent.decide(
            x, candidates=candidates, exclude=known, draw=3
        )


# ---- filters of each context -----------------------------------------------------------------------------------------------


def _filters(n: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [np.sort(rng.choice(K, rng.integers(2, 6), replace=False)).tolist() for _ in range(n)]


def _mask(lists: list[list[int]]) -> Any:
    mask = np.zeros((len(lists), K), dtype=bool)
    for i, some in enumerate(lists):
        mask[i, some] = True
    return mask


@pytest.mark.parametrize("kind", ["LinTS", "meTS", "meTS, own covariances", "jointTS", "dTS, own chains"])
@pytest.mark.parametrize("name", ["candidates", "exclude"])
def test_a_batch_takes_filters_for_each_context(kind: str, name: str) -> None:
    """Lists, masks and sparse masks say the same; a greedy batch is its contexts one by one, and so is a drawn one."""
    _, agent = twins(kind, NAMES)
    X, lists = contexts(agent, 7), _filters(7, 3)
    mask, of = _mask(lists), np.array(NAMES, dtype=object)
    called = [of[some].tolist() for some in lists]
    drawn = agent.decide(X, **{name: called}, rng=np.random.default_rng(4), k=2)
    for same in (mask, sparse.csr_array(mask), sparse.csc_matrix(mask.astype(float)), [set(some) for some in called]):
        assert_array_equal(agent.decide(X, **{name: same}, rng=np.random.default_rng(4), k=2), drawn)
    one_by_one = np.random.default_rng(4)
    assert_array_equal(
        [agent.decide(x, **{name: c}, rng=one_by_one, k=2) for x, c in zip(X, called, strict=True)], drawn
    )
    allowed = mask if name == "candidates" else ~mask
    rows = Actions(NAMES).rows(drawn.ravel()).reshape(drawn.shape)
    assert allowed[np.arange(7)[:, None], rows].all()
    greedy = Agent(agent.belief, ma.Greedy(), catalogue=NAMES)
    best = [greedy.decide(x, **{name: c}) for x, c in zip(X, called, strict=True)]
    assert_array_equal(greedy.decide(X, **{name: called}), best)


def test_both_filters_and_contexts_of_actions() -> None:
    _, agent = twins("meTS", NAMES)
    Z = np.random.default_rng(2).uniform(-1, 1, (4, K, D))
    lists = [[0, 1, 2, 3], [4, 5, 6], [1, 5, 9, 11], [2, 3]]
    mask, of = _mask(lists), np.array(NAMES, dtype=object)
    called, out = [of[some].tolist() for some in lists], [[NAMES[0]], [NAMES[4], "gone"], [], [NAMES[2]]]
    ragged = [Z[i, some] for i, some in enumerate(lists)]
    chosen = agent.decide(action_contexts=ragged, candidates=called, exclude=out, draw=3)
    assert_array_equal(agent.decide(action_contexts=Z, candidates=mask, exclude=out, draw=3), chosen)
    barred = mask.copy()
    for i, names in enumerate(out):
        barred[i, [NAMES.index(name) for name in names if name != "gone"]] = False
    assert_array_equal(agent.decide(action_contexts=Z, exclude=~barred, draw=3), chosen)


def test_filters_that_do_not_fit_are_refused() -> None:
    plain, agent = twins("LinTS", NAMES)
    X = contexts(agent, 3)
    mask = np.ones((3, K), dtype=bool)
    wrong: dict[str, tuple[Any, str]] = {
        "two lists": ([[NAMES[0]], [NAMES[1]]], "2 lists"),
        "narrow": (mask[:, 1:], "shape"),
        "sparse, narrow": (sparse.csr_array(mask[:, 1:]), "shape"),
        "short": (mask[:2], "2 lists or rows"),
        "unknown": ([[NAMES[0]], ["nobody"], [NAMES[1]]], r"candidates\[1\].*nobody"),
        "empty": ([[NAMES[0]], [], [NAMES[1]]], r"candidates\[1\]: .*empty"),
        "an empty row": (np.vstack([mask[:2], ~mask[:1]]), r"candidates\[2\]: .*empty"),
        "numbers": (mask.astype(float), r"candidates\[0\]"),
        "three axes": (mask[None], "candidates"),
    }
    for candidates, told in wrong.values():
        with pytest.raises(InvalidInput, match=told):
            agent.decide(X, candidates=candidates)
    with pytest.raises(InvalidInput, match=r"exclude\[0\]"):
        agent.decide(X, exclude=mask)
    with pytest.raises(InvalidInput, match="there is one context"):
        agent.decide(X[0], candidates=mask[:1])
    with pytest.raises(InvalidInput, match="k: expected at most 1"):
        plain.decide(X, candidates=[[0, 1], [1], [2, 3]], k=2)
    agent.retire(NAMES[2])
    with pytest.raises(UnknownAction, match=rf"candidates\[0\]: .*{NAMES[2]}.*retired"):
        agent.decide(X, candidates=mask)
    assert agent.draws == 0


# ---- contexts as rows of a table -------------------------------------------------------------------------------------------


def test_an_agent_takes_rows_of_a_table_and_keeps_its_encoder(tmp_path: Path) -> None:
    table = {"age": [20.0, 40.0, 30.0], "town": ["Ulm", "Bonn", "Ulm"]}
    encoder = Encoding().fit(table, ["age", "town"])
    prior = ma.ActionPrior(3, np.zeros(encoder.dim), np.eye(encoder.dim))
    agent = ma.LinTS(prior, seed=0, catalogue=["a", "b", "c"], encoder=encoder)
    row = {"age": 25.0, "town": "Bonn"}
    x = encoder.apply({name: [value] for name, value in row.items()})[0]
    twin = ma.LinTS(prior, seed=0)
    agent.observe(row, "b", 1.0)
    twin.observe(x, 1, 1.0)
    agent.observe(table, ["a", "b", "a"], [0.0, 1.0, 2.0])
    twin.observe(encoder.apply(table), [0, 1, 0], [0.0, 1.0, 2.0])
    agent.save(tmp_path)
    for again in (agent, agent.snapshot(), agent.copy(), ma.load(tmp_path)):
        for draw in range(5):
            assert again.decide(row, draw=draw) == "abc"[twin.decide(x, draw=draw)]
        expected = np.array(list("abc"), dtype=object)[twin.decide(encoder.apply(table), draw=9)]
        assert_array_equal(again.decide(table, draw=9), expected)
        rows = [{name: values[i] for name, values in table.items()} for i in range(3)]
        assert_array_equal(again.decide(rows, draw=9), expected)
        assert again.propensity(row, "c", draw=2) == twin.propensity(x, 2, draw=2)
        assert again.encoder is not None and again.encoder.names == encoder.names
        assert again.schema.catalogue == again.catalogue
    with pytest.raises(InvalidInput, match="town"):
        agent.decide({"age": 1.0})
    with pytest.raises(InvalidInput, match="encoder"):
        twin.decide(row)
    with pytest.raises(InvalidInput, match="encoder: expected length 2"):
        ma.LinTS(ma.ActionPrior(3, [0.0, 0.0], np.eye(2)), encoder=encoder)
    with pytest.raises(InvalidInput, match="encoder"):
        ma.LinTS(prior, encoder=3)  # type: ignore[arg-type]


def test_every_named_agent_takes_a_catalogue_and_an_encoder() -> None:
    for name in named.__all__:
        parameters = inspect.signature(getattr(named, name)).parameters
        assert {"seed", "catalogue", "encoder"} <= set(parameters), name
    called = ma.agents.UniformAgent(3, 2, seed=0, catalogue=[7, 8, 9])
    assert called.decide([0.0, 1.0]) in (7, 8, 9)
    assert ma.agents.jointTS(ma.ActionPrior(1, [0.0], [[1.0]]), 2, catalogue=["a", "b"]).catalogue == Actions(
        ["a", "b"]
    )


def test_a_warm_start_speaks_the_ids_of_its_log() -> None:
    encoder = Encoding().fit({"age": [20.0, 40.0]}, ["age"])
    log = ma.LoggedData(np.ones((2, 2)), [0, 1], [0.0, 9.0], 2, catalogue=Actions(["x", "y"]), encoder=encoder)
    prior = ma.ActionPrior(2, np.zeros(2), np.eye(2))
    agent = ma.rewards.warm_start(log, prior, ma.Linear(0.1), ma.Greedy(), seed=0)
    model = ma.rewards.sdm(log, prior, ma.Linear(0.1))
    for one in (agent, agent.as_policy(), model.greedy(), model.greedy_policy(), model.agent(ma.Greedy())):
        assert one.decide({"age": 30.0}) == "y" and one.schema == log.schema  # type: ignore[union-attr, attr-defined]
    assert agent.as_policy().sample([1.0, 1.0], 0) == "y"  # type: ignore[attr-defined]
    other = ma.LoggedData(np.ones((2, 2)), [0, 1], [0.0, 9.0], 2, catalogue=Actions(["y", "x"]))
    with pytest.raises(InvalidInput, match="other ids"):
        model.fold(other)
    assert isinstance(model.decide([1.0, 1.0]), int)  # models speak rows
