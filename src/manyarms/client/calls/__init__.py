"""Every call of the service, described once: `Calls` has them all, for `Client` and `AsyncClient` alike."""

from manyarms.client.calls.agents import Agents
from manyarms.client.calls.catalogue import CatalogueCalls
from manyarms.client.calls.deciding import Deciding
from manyarms.client.calls.edge import EdgeCalls
from manyarms.client.calls.events import Events
from manyarms.client.calls.operations import Operations


class Calls(Deciding, Events, CatalogueCalls, Agents, Operations, EdgeCalls):
    """All calls of the service."""


__all__ = ["Calls"]
