"""Agents and policies of the service, and who decides.

Operations have no ids: they are sent again only where no connection was made, so that nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from manyarms._base import validate
from manyarms._base.typing import JSON
from manyarms.client.arguments import a_name, shares_of, within
from manyarms.client.call import Call, call
from manyarms.client.calls.answers import a, nothing, several
from manyarms.client.results import ArmEntry, ChallengeEntry, ServiceDeployment


class Agents:
    """The arms."""

    @call
    def agents(self) -> Call[tuple[ArmEntry, ...]]:
        """Every agent and policy of the store.

        [arm.name for arm in client.agents()]
        """
        return Call("GET", "/v1/agents", several("agents", ArmEntry), again=True)

    @call
    def load_agent(self, name: str, folder: str, *, learns: bool = True) -> Call[None]:
        """Take in a saved agent or policy. It learns what is decided from now on, and decides nothing until it is deployed.

        folder: a name inside the service's folder of agents. learns: whether it does.

            client.load_agent("careful", "careful-2")
        """
        body: dict[str, JSON] = {
            "name": a_name("name", name),
            "folder": a_name("folder", folder),
            "learns": validate.flag("learns", learns),
        }
        return Call("POST", "/v1/agents", nothing, body)

    @call
    def remove_agent(self, name: str) -> Call[None]:
        """Let go of an arm that has no part in the deployment.

        client.remove_agent("careful")
        """
        return Call("DELETE", _path(name), nothing)

    @call
    def promote(self, name: str) -> Call[ServiceDeployment]:
        """All the traffic but the hold-out to this arm; those that had it look on.

        client.promote("careful")
        """
        return Call("POST", f"{_path(name)}/promote", a(ServiceDeployment))

    @call
    def roll_back(self) -> Call[ServiceDeployment]:
        """Back to what was deployed before.

        client.roll_back()
        """
        return Call("POST", "/v1/agents/roll-back", a(ServiceDeployment))

    @call
    def deployment(self) -> Call[ServiceDeployment]:
        """Who decides.

        client.deployment().shares
        """
        return Call("GET", "/v1/deployment", a(ServiceDeployment), again=True)

    @call
    def deploy(
        self,
        shares: Mapping[str, float] | str,
        *,
        holdout: float = 0.0,
        holdout_arm: str | None = None,
        shadows: Sequence[str] = (),
    ) -> Call[ServiceDeployment]:
        """Who decides from now on; the arguments are those of `manyarms.live.Live.deploy`.

        client.deploy({"agent": 0.9, "careful": 0.1}, holdout=0.05, holdout_arm="agent")
        """
        body = {
            "shares": shares_of(shares),
            "holdout": validate.probability("holdout", holdout),
            "holdout_arm": None if holdout_arm is None else a_name("holdout_arm", holdout_arm),
            "shadows": [a_name("shadows", one) for one in shadows],
        }
        return Call("PUT", "/v1/deployment", a(ServiceDeployment), body)

    @call
    def challenge(
        self,
        name: str,
        *,
        alpha: float = 0.05,
        margin: float = 0.0,
        guard: float = 0.02,
        mean_time: float = 10_000,
    ) -> Call[tuple[ChallengeEntry, ...]]:
        """Promote this arm by itself once it is certified to be better than what is deployed; every challenge there is.

        The arguments are those of `manyarms.live.Live.challenge`.

        client.challenge("careful", margin=0.01)
        """
        body = {
            "alpha": validate.number("alpha", alpha),
            "margin": validate.number("margin", margin),
            "guard": validate.number("guard", guard),
            "mean_time": validate.number("mean_time", mean_time),
        }
        return Call("POST", f"{_path(name)}/challenge", several("challenges", ChallengeEntry), body)


def _path(name: str) -> str:
    return f"/v1/agents/{within(a_name('name', name))}"


__all__ = ["Agents"]
