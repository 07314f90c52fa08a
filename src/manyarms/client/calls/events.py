"""Events that were decided: looked up, listed, explained, erased."""

from __future__ import annotations

from manyarms._base import validate
from manyarms.client.arguments import ActionId, a_name, an_action, within
from manyarms.client.call import Answer, Call, Page, call, pages
from manyarms.client.calls.answers import a, following, nothing, several
from manyarms.client.results import ServiceEvent, ServiceWhy


class Events:
    """What the service's log has."""

    @call
    def event(self, event: str) -> Call[ServiceEvent]:
        """What the log has of a decision.

        client.event(d.id).rewards
        """
        return Call("GET", _path(event), a(ServiceEvent), again=True)

    @pages
    def events(
        self,
        *,
        arm: str | None = None,
        action: ActionId | None = None,
        text: str | None = None,
        since: float | None = None,
        rewarded: bool = False,
        page: int = 100,
    ) -> Call[Page[ServiceEvent]]:
        """Decisions, the newest first: of an arm, of an action, with this text in their id or unit, decided since then (seconds
        since 1970), with a reward. page: how many are asked for at once.

        for event in itertools.islice(client.events(arm="careful"), 20): ...
        """
        query: dict[str, str | int | float] = {"limit": validate.count("page", page)}
        if arm is not None:
            query["arm"] = a_name("arm", arm)
        if action is not None:
            query["action"] = an_action("action", action)
        if text is not None:
            query["id"] = a_name("text", text)
        if since is not None:
            query["since"] = validate.not_negative("since", since)
        if validate.flag("rewarded", rewarded):
            query["rewarded"] = "true"
        return _events(query)

    @call
    def why(self, event: str) -> Call[ServiceWhy]:
        """Which features, and which share of what, made the score of an event's action.

        print(client.why(d.id))
        """
        return Call("GET", f"{_path(event)}/why", a(ServiceWhy), again=True)

    @call
    def erase(self, event: str) -> Call[None]:
        """Forget an event: its record is blanked, and the state becomes what it would be had it never been.

        client.erase(d.id)
        """
        return Call("DELETE", _path(event), nothing)


def _path(event: str) -> str:
    return f"/v1/events/{within(a_name('event', event))}"


def _events(query: dict[str, str | int | float]) -> Call[Page[ServiceEvent]]:
    def page(answer: Answer) -> Page[ServiceEvent]:
        entries = several("events", ServiceEvent)(answer)
        before = following(answer, "next")
        return Page(entries, None if before is None else _events({**query, "before": before}))

    return Call("GET", "/v1/events", page, query=query, again=True)


__all__ = ["Events"]
