"""The same calls make the same agent, to the last bit: loaded in between or not, changed in place or on twins, in any layout.

A journal of calls that is read again after a crash rests on this.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from every_agent import EVERY, D, K, add_actions, rows_for, same_bits
from manyarms._base.typing import Array
from manyarms.agents import Agent
from manyarms.beliefs import ROOTS
from manyarms.beliefs.belief import BELIEFS
from manyarms.beliefs.likelihoods.base import LIKELIHOODS

Call = Callable[[Agent], object]
every = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY.keys())


def as_it_is(array: Array) -> Array:
    return array


def calls(like: Agent, laid: Callable[[Array], Array] = as_it_is) -> list[Call]:
    """All that changes an agent, in small and large portions; `laid` puts contexts and rewards in some order of memory."""
    out: list[Call] = []
    seen: list[tuple[Array, int, float]] = []

    def observe(seed: int, n: int, actions: list[int], batch: bool) -> None:
        X, A, r = rows_for(like, seed, n, actions)
        seen.extend(zip(X, A.tolist(), r.tolist(), strict=True))
        if batch:
            out.append(lambda agent: agent.observe(laid(X), A, laid(r)))
        else:
            out.extend(
                lambda agent, x=x, a=int(a), y=float(y): agent.observe(laid(x), a, y)
                for x, a, y in zip(X, A, r, strict=True)
            )

    def replace(start: int, stop: int, batch: bool) -> None:
        exact = like.belief.likelihood.exact
        rows = [(x, a, r, 1.7 * r + 3 if exact else 1 - r) for x, a, r in seen[start:stop]]
        X, A, was, now = (np.array(column) for column in zip(*rows, strict=True))
        if batch:
            out.append(lambda agent: agent.replace_reward(laid(X), A, laid(was), laid(now)))
        else:
            out.extend(lambda agent, row=row: agent.replace_reward(laid(row[0]), *row[1:]) for row in rows)

    observe(1, 3, [4, 2], batch=False)
    replace(0, 2, batch=False)
    observe(2, 40, [4, 7, 1], batch=True)
    replace(10, 13, batch=False)
    replace(20, 30, batch=True)
    out.append(lambda agent: agent.decide(np.ones(D) if agent.belief.per_action else np.ones((K, D))))
    replace(30, 32, batch=True)
    observe(3, 2, [4, 9], batch=False)
    out.append(lambda agent: agent.retire([7, 3]))
    replace(13, 14, batch=False)
    out.append(lambda agent: add_actions(agent, 2))
    observe(4, 3, [5, K - 1], batch=True)
    out.append(lambda agent: agent.observe(np.zeros((2, D)), [0, 6], np.zeros(2)))  # which tell nothing
    replace(33, 35, batch=False)
    out.append(lambda agent: agent.reinstate([3]))
    observe(5, 30, [3, 0, 5], batch=True)
    replace(46, 60, batch=True)
    return out


def test_every_kind_is_here() -> None:
    made = [make().belief for make in EVERY.values()]
    ours = {name for name, part in BELIEFS.items() if part.__module__.startswith("manyarms.")}
    assert {belief.kind for belief in made} >= ours
    ours = {name for name, part in ROOTS.items() if part.__module__.startswith("manyarms.")}
    assert {belief.root.kind for belief in made if type(belief.root) in ROOTS.values()} >= ours
    ours = {name for name, part in LIKELIHOODS.items() if part.__module__.startswith("manyarms.")}
    assert {belief.likelihood.kind for belief in made} >= ours


@every
def test_an_agent_that_is_saved_and_loaded_goes_on_alike(make: Callable[[], Agent], tmp_path: Path) -> None:
    """One never stops, the other is loaded again and again."""
    steady, again = make(), make()
    for number, call in enumerate(calls(steady)):
        call(steady)
        call(again)
        assert not same_bits(steady, again), number
        if number % 3 == 0:
            again.save(tmp_path)
            again = ma.load(tmp_path)
    assert steady.version == again.version > 20


@every
def test_changes_in_place_and_on_twins_are_alike(make: Callable[[], Agent]) -> None:
    """Snapshots that are held and dropped, and readers, make copies and twins of the belief; and contexts lie as they may."""
    alone, shared = make(), make()
    held: list[object] = []
    strided = calls(alone, lambda array: np.repeat(np.asfortranarray(array), 2, axis=-1)[..., ::2])
    for number, (call, other) in enumerate(zip(calls(alone), strided, strict=True)):
        call(alone)
        if number % 7 == 1:
            held.append(shared.snapshot())
        if number % 7 == 4:
            held.clear()
        reading = shared._belief.enter() if number % 3 == 2 else None  # a reader in the middle of a decision
        other(shared)
        if reading is not None:
            shared._belief.leave(reading)
        assert not same_bits(alone, shared), number
    assert alone.version == shared.version


def test_contexts_may_lie_in_memory_as_they_like() -> None:
    """Sums over strided numbers are made in another order, and have other roundings, from some length on."""
    d = 40
    one = ma.HierTS(ma.HierarchicalPrior(5, np.zeros(d), np.eye(d), np.eye(d)), seed=0)
    other, X = one.copy(), np.random.default_rng(0).standard_normal((12, d))
    for agent, rows in ((one, X), (other, np.repeat(X, 2, axis=1)[:, ::2])):
        for x in rows:
            agent.observe(x, 1, 1.0)
            agent.replace_reward(x, 1, 1.0, 0.3)
        agent.observe(rows, np.arange(12) % 5, np.ones(12))
        agent.replace_reward(rows, np.arange(12) % 5, np.ones(12), np.zeros(12))
    assert not same_bits(one, other)
