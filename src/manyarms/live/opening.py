"""Opening a live store: making it where there is none, and going on where it was left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from manyarms._base import validate
from manyarms.agents import Agent
from manyarms.errors import InvalidInput
from manyarms.live import log, packing, snapshots
from manyarms.live.deployment import Deployment
from manyarms.live.joining import an_arm, check_joins, check_kind, check_schema, schema_of
from manyarms.live.live import Live
from manyarms.live.settings import Aggregate, Settings
from manyarms.live.state import State
from manyarms.live.stores.database import Database, Transaction
from manyarms.live.stores.opening import is_nowhere, open_database
from manyarms.policies import Policy

FIRST_ARM = "agent"


def open(
    store: str | Path | Database,
    agent: Agent | Policy | None = None,
    *,
    name: str = FIRST_ARM,
    aggregate: Aggregate = "first",
    default: float | None = None,
    wait: float = 600.0,
    reward_range: tuple[float, float] | None = None,
    background: bool = True,
    fold_every: float = 0.5,
    snapshot_every: int = 200,
    most_waiting: int = 4096,
    patience: float = 5.0,
    gather: float = 0.0,
    without_store: Literal["refuse", "decide"] = "refuse",
    learner: bool = True,
    propensities: bool = True,
    propensity_share: float = 1.0,
) -> Live:
    """A live store: a file (SQLite), or a PostgreSQL address such as postgresql://user@host/name.

    agent: what decides first, where the store is new; a store that is there goes on with what it has learned, and `agent` may be
    left out. name: what that arm is called. Its encoder and the ids of its actions become the store's: contexts may then be
    mappings or rows of a frame, and whatever names actions speaks ids.

    aggregate, default, wait, reward_range: how rewards count (see `Settings`), agreed when the store is made; opened later, they
    are those of the store.

    background: learn in threads of this process, every `fold_every` seconds; otherwise `learn()` does. learner: whether this
    process may become the one that learns for all. propensities: compute them in the background, where the rule does not know
    them; propensity_share: the part of the time that this may take, 0.001 to 1. snapshot_every: chunks between two
    snapshots. most_waiting: writes that may wait at once; patience: seconds that a caller then waits for room before it is
    refused (Overloaded). gather: seconds, up to 1, that the first few writes wait for others, to share a transaction with them.
    without_store: "refuse" to decide while the store cannot be reached, or "decide" without a record
    (`logged` is False).
    """
    settings = Settings(aggregate, default, wait, reward_range)
    name = _arm_name(name)
    if not isinstance(store, str | Path | Database):
        raise InvalidInput("store", validate.describe(store), "the path of a file, an address, or a database")
    if agent is not None:
        check_kind("agent", agent)
    elif not isinstance(store, Database) and is_nowhere(store):
        raise _is_new()
    database = store if isinstance(store, Database) else open_database(store)
    try:
        if log.get(_reader(database), "origin") is None:
            if agent is None:
                raise _is_new()
            _make(database, agent, name, settings)
        state = snapshots.fold(database, snapshots.newest(database))
        _check_same(agent, state)
        return Live(
            database, state, background=background, fold_every=fold_every, snapshot_every=snapshot_every,
            most_waiting=most_waiting, patience=patience, gather=gather, without_store=without_store, learner=learner,
            propensities=propensities,
            propensity_share=propensity_share,
        )  # fmt: skip
    except BaseException:
        if database is not store:
            database.close()
        raise


class _reader:
    """Single statements, each on its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        return self._database.read(sql, parameters)


def _make(database: Database, agent: Agent | Policy, name: str, settings: Settings) -> None:
    """The origin: the agent as it is given, before anything was decided. Who comes second finds it made."""
    arm = an_arm("agent", agent)
    check_joins(arm, (), settings.default)
    state = State(settings, os.urandom(16).hex(), {name: arm}, Deployment({name: 1.0}), schema=schema_of(agent))
    content = packing.pack_state(state)
    writing = packing.write_parts(database, content)

    def work(tx: Transaction) -> None:
        if log.get(tx, "origin") is not None:
            tx.execute("DELETE FROM snapshot_parts WHERE writing = ?", (writing,))
            return
        _, at = tx.following()
        tx.execute(
            "INSERT INTO snapshots (version, upto, writing, parts, sha256, at, origin) VALUES (0, 0, ?, ?, ?, ?, 1)",
            (writing, -(-len(content) // packing.PART), packing.sha256(content), at),
        )
        log.put(tx, "origin", writing)

    database.do(work)


def _is_new() -> InvalidInput:
    return InvalidInput("agent", None, "an agent or a policy that decides first: there is no store yet at this address")


def _check_same(agent: Agent | Policy | None, state: State) -> None:
    """An agent that is given to a store with another shape is a mistake, and not one to be silent about.

    It may know fewer actions than the store: those that were added since.
    """
    if agent is not None:
        check_schema("agent", state.schema, schema_of(agent))
    if not isinstance(agent, Agent):
        return
    catalogue = agent.belief.catalogue
    for arm in state.arms.values():
        own = getattr(arm, "agent", None)
        if own is not None and own.belief.dim != agent.belief.dim:
            came = f"an agent for contexts of length {agent.belief.dim}"
            raise InvalidInput("agent", came, f"length {own.belief.dim}, that of the agent in the store (or None)")
        if own is not None and catalogue.size > own.belief.catalogue.size:
            most = f"at most {own.belief.catalogue.size}, those of the agent in the store: `add_actions` adds others"
            raise InvalidInput("agent", f"an agent with {catalogue.size} actions", most)


def _arm_name(name: object) -> str:
    if not isinstance(name, str) or not name or len(name) > 100 or name == "baseline":
        raise InvalidInput("name", validate.describe(name), "a short name for the first arm, other than 'baseline'")
    return name


__all__ = ["open"]
