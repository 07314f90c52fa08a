"""Which agents and policies can become arms of a store."""

from __future__ import annotations

from collections.abc import Iterable

from manyarms._base import validate
from manyarms.agents import Agent
from manyarms.agents.draws import NumberedDraws
from manyarms.errors import InvalidInput
from manyarms.live.agent_arm import AgentArm
from manyarms.live.arms import Arm
from manyarms.live.policy_arm import PolicyArm
from manyarms.policies import Policy


def an_arm(name: str, value: object, learns: bool = True) -> Arm:
    """An agent or a policy, as an arm."""
    known = check_kind(name, value)
    return AgentArm(known.copy(), learns) if isinstance(known, Agent) else PolicyArm(known, NumberedDraws.seeded(None))


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
    if default is not None:
        try:
            arm.check_reward(default)
        except InvalidInput:
            raise InvalidInput("default", f"{default:g}", "a reward that every agent of the store can learn") from None
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


__all__ = ["an_arm", "check_joins", "check_kind"]
