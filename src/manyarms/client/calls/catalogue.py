"""The catalogue: iterated over, grown, changed. Changes hold for every arm alike."""

from __future__ import annotations

import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import JSON
from manyarms.client.arguments import ActionId, Actions, actions, an_action, given, numbers, within
from manyarms.client.call import Answer, Call, Page, call, pages
from manyarms.client.calls.answers import a, following, nothing, several
from manyarms.client.reading import parsed, read
from manyarms.client.results import AddedActions, CatalogueEntry
from manyarms.errors import InvalidInput


class CatalogueCalls:
    """The actions."""

    @pages
    def catalogue(self, *, search: str | None = None, page: int = 1000) -> Call[Page[CatalogueEntry]]:
        """Every action, in the order of the catalogue; those whose id has `search` in it. page: how many are asked for at once.

        [action.id for action in client.catalogue() if action.retired]
        """
        query: dict[str, str | int] = {"limit": validate.count("page", page)}
        return _catalogue(query if search is None else {**query, "search": search})

    @call
    def action(self, action: ActionId) -> Call[CatalogueEntry]:
        """One action.

        client.action("sku-17").retired
        """
        return Call("GET", _path(action), a(CatalogueEntry), again=True)

    @call
    def add_actions(
        self,
        number: int | None = None,
        *,
        ids: Actions | None = None,
        weights: npt.ArrayLike | None = None,
        covariance: npt.ArrayLike | None = None,
    ) -> Call[tuple[ActionId, ...]]:
        """New actions for every arm; their ids. The arguments are those of `manyarms.Agent.add_actions`.

        client.add_actions(ids=["sku-17", "sku-18"], weights=[[0.3, 0.7], [1.0, 0.0]])
        """
        if number is None and ids is None and weights is None:
            raise InvalidInput("number", None, "how many actions are new, their `ids`, or their `weights`")
        body = given(
            number=None if number is None else validate.count("number", number),
            ids=None if ids is None else actions("ids", ids),
            weights=None if weights is None else numbers("weights", weights, (2,)),
            covariance=None if covariance is None else numbers("covariance", covariance, (2, 3)),
        )
        return Call("POST", "/v1/catalogue", _ids, body)

    @call
    def update_action(
        self, action: ActionId, *, weights: npt.ArrayLike | None = None, retired: bool | None = None
    ) -> Call[CatalogueEntry]:
        """Change one action: its mixing weights, or whether it may be chosen. What was learned of it stays.

        client.update_action("sku-17", weights=[0.5, 0.5])
        """
        body = given(
            weights=None if weights is None else numbers("weights", weights, (1,)),
            retired=None if retired is None else validate.flag("retired", retired),
        )
        if not body:
            raise InvalidInput("weights", None, "something to change: `weights` or `retired`")
        return Call("PATCH", _path(action), a(CatalogueEntry), body)

    @call
    def retire(self, actions: ActionId | Actions) -> Call[None]:
        """Do not choose these any more; rewards that come late are still learned.

        client.retire(["sku-17"])
        """
        return Call("POST", "/v1/catalogue/retire", nothing, {"actions": _listed(actions)})

    @call
    def reinstate(self, actions: ActionId | Actions) -> Call[None]:
        """Choose these again.

        client.reinstate(["sku-17"])
        """
        return Call("POST", "/v1/catalogue/reinstate", nothing, {"actions": _listed(actions)})


def _path(action: ActionId) -> str:
    return f"/v1/catalogue/{within(an_action('action', action))}"


def _listed(some: ActionId | Actions) -> list[JSON]:
    return actions("actions", some)


def _ids(answer: Answer) -> tuple[ActionId, ...]:
    return read(AddedActions, parsed(answer.content)).ids


def _catalogue(query: dict[str, str | int]) -> Call[Page[CatalogueEntry]]:
    def page(answer: Answer) -> Page[CatalogueEntry]:
        entries = several("actions", CatalogueEntry)(answer)
        after = following(answer, "next")
        return Page(entries, None if after is None else _catalogue({**query, "after": after}))

    return Call("GET", "/v1/catalogue", page, query=query, again=True)


__all__ = ["CatalogueCalls"]
