"""Which agents and policies can become arms of a store."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import numpy as np

from manyarms._base import validate
from manyarms.agents import Agent
from manyarms.agents.draws import NumberedDraws
from manyarms.errors import InvalidInput
from manyarms.live.agent_arm import AgentArm
from manyarms.live.arms import Arm, ArmView
from manyarms.live.policy_arm import PolicyArm
from manyarms.logs.encoding import Encoder
from manyarms.logs.schema import NOTHING, Schema
from manyarms.policies import Policy


def an_arm(name: str, value: object, learns: bool = True) -> Arm:
    """An agent or a policy, as an arm: of its own, and without encoder and ids, which belong to the store."""
    known = check_kind(name, value)
    if isinstance(known, Agent):
        bare = known.copy()
        bare._encoder = bare.belief.catalogue.names = None
        return AgentArm(bare, learns)
    policy = known
    if schema_of(known):
        policy = copy.copy(known)
        policy.schema = NOTHING  # type: ignore[attr-defined]
    return PolicyArm(policy, NumberedDraws.seeded(None))


def schema_of(value: Agent | Policy) -> Schema:
    """The encoder and the ids of an agent or a policy."""
    found: Schema = getattr(value, "schema", NOTHING)
    return found


def check_schema(name: str, ours: Schema, theirs: Schema) -> None:
    """Refuse what calls actions, or encodes contexts, otherwise than the store: it would be told of other ones.

    What has neither takes the store's word for it. A policy may know the first actions only.
    """
    if theirs.catalogue is not None:
        if ours.catalogue is None:
            raise InvalidInput(name, "one whose actions have ids", "one without: the actions of this store have none")
        number = len(theirs.catalogue)
        if number > len(ours.catalogue) or any(a != b for a, b in zip(ours.catalogue, theirs.catalogue, strict=False)):
            raise InvalidInput(name, "one with other ids", "the ids of the store's actions, in the same order")
    if theirs.encoder is not None:
        if ours.encoder is None:
            raise InvalidInput(name, "one with an encoder", "one without: this store takes contexts as vectors")
        if not same_encoder(ours.encoder, theirs.encoder):
            raise InvalidInput(name, "one with another encoder", "the encoder of the store")


def same_encoder(one: Encoder, other: Encoder) -> bool:
    """Whether two encoders are the same, number by number."""
    (spec, arrays), (others_spec, others) = one.state(), other.state()
    return (
        spec == others_spec
        and arrays.keys() == others.keys()
        and all(np.array_equal(array, others[name]) for name, array in arrays.items())
    )


def check_kind(name: str, value: object) -> Agent | Policy:
    """Refuse what cannot be an arm."""
    if isinstance(value, Agent):
        return value
    if isinstance(value, Policy) and not isinstance(value, type):
        if not hasattr(value, "save"):
            raise InvalidInput(name, validate.describe(value), "a policy that can be saved")
        return value
    raise InvalidInput(name, validate.describe(value), "an agent or a policy")


def check_joins(arm: Arm, others: Iterable[Arm], default: float | None) -> None:
    """Refuse an arm that does not fit the others of a store: whatever one of them takes, all that learn can learn."""
    check_default(arm, default)
    for other in others:
        agents = arm.dim is not None, other.dim is not None
        if all(agents) and arm.dim != other.dim:
            raise InvalidInput(
                "arm", f"an agent for contexts of length {arm.dim}", f"length {other.dim}, that of the store's agents"
            )
        if all(agents) and arm.actions != other.actions:
            came = f"an agent with {arm.actions} actions"
            raise InvalidInput("arm", came, f"{other.actions} actions, as the store's agents have")
        if any(agents):
            agent, policy = (arm, other) if agents[0] else (other, arm)
            if policy.actions > agent.actions:
                raise InvalidInput(
                    "arm",
                    f"a policy for {policy.actions} actions",
                    f"at most {agent.actions}, those of the store's agents",
                )


def check_default(arm: Arm | ArmView, default: float | None) -> None:
    """Refuse a default that an arm could not learn."""
    if default is not None:
        try:
            arm.check_reward(default)
        except InvalidInput:
            raise InvalidInput("default", f"{default:g}", "a reward that every agent of the store can learn") from None


__all__ = ["an_arm", "check_default", "check_joins", "check_kind", "check_schema", "same_encoder", "schema_of"]
