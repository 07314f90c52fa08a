"""Policies for the edge, and decisions that were made there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from manyarms._base.typing import JSON
from manyarms.client.arguments import a_name, within
from manyarms.client.call import Answer, Call, call
from manyarms.client.calls.answers import a, batch, some_unfinished
from manyarms.client.errors import ServiceError
from manyarms.client.results import EdgeDownload, EdgePublicKeys


class EdgeCalls:
    """Bundles and uploads; `manyarms.client.EdgeClient` does all of it by itself."""

    @call
    def edge_bundle(self, agent: str, *, etag: str | None = None) -> Call[EdgeDownload]:
        """The policy of an arm for the edge, as bytes for `manyarms.edge.EdgePolicy`. etag: of the one that you have.

        found = client.edge_bundle("agent")
        client.edge_bundle("agent", etag=found.etag).data is None   # still the same
        """
        headers = {"Accept": "application/vnd.manyarms.edge", **({} if etag is None else {"If-None-Match": etag})}
        return Call("GET", _path(agent), _bundle, headers=headers, again=True, fine=(304,))

    @call
    def edge_key(self) -> Call[EdgePublicKeys]:
        """The public key that bundles are signed with, and those before it. Get it once, by a way that you trust.

        edge = EdgeClient(client, "agent", client.edge_key().public_key)
        """
        return Call("GET", "/v1/edge/key", a(EdgePublicKeys), again=True)

    @call
    def upload_decisions(
        self, agent: str, decisions: Sequence[Mapping[str, JSON]]
    ) -> Call[tuple[ServiceError | None, ...]]:
        """Decisions that were made at the edge, each with its id: uploaded again, they count once. For each None, or its error.

        client.upload_decisions("agent", [decision.as_json() for decision in made])
        """
        body: list[JSON] = [dict(one) for one in decisions]
        reading = batch("decisions", len(body), f"POST {_path(agent)}/decisions", lambda value, where: None)
        return Call(
            "POST", f"{_path(agent)}/decisions", reading, {"decisions": body}, again=True, unfinished=some_unfinished,
            known=None if body else (),
        )  # fmt: skip


def _path(agent: str) -> str:
    return f"/v1/edge/{within(a_name('agent', agent))}"


def _bundle(answer: Answer) -> EdgeDownload:
    return EdgeDownload(None if answer.status == 304 else answer.content, answer.headers.get("etag"))


__all__ = ["EdgeCalls"]
