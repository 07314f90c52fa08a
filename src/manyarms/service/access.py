"""Who may do what: API keys with scopes; without keys, this machine alone and no page of another site."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import Request

from manyarms.service.config import is_loopback
from manyarms.service.keys import SCOPES
from manyarms.service.problems import Problem

if TYPE_CHECKING:
    from manyarms.service.config import Config
    from manyarms.service.keys import Keys
    from manyarms.service.limits import RateLimit


_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
HEADERS = ("Authorization: Bearer KEY", "X-API-Key: KEY", "Ocp-Apim-Subscription-Key: KEY")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the name of its key, or its address where there are no keys."""

    name: str
    scopes: frozenset[str]


class Access:
    """Tells callers apart. Called by the event loop alone."""

    def __init__(self, config: Config, keys: Keys | None, rate: RateLimit) -> None:
        self._keys, self._rate = keys, rate
        self._names = frozenset({*config.hosts, *([] if config.host in ("0.0.0.0", "::") else [config.host.lower()])})

    def recognise(self, request: Request) -> None:
        """Refuse whoever has no key at all, or may not ask without: before anything of a request is read."""
        if self._keys is None:
            self._check_local(request)
        else:
            self._by_key(request, self._keys)

    def check(self, request: Request, scope: str, cost: int = 1) -> Caller:
        """The caller, if it may; refused otherwise: 401, 403, 421, 429."""
        if self._keys is None:
            self._check_local(request)
            caller = Caller(_address(request), frozenset(SCOPES))
        else:
            caller = self._by_key(request, self._keys)
            if scope not in caller.scopes:
                text = f"the key {caller.name!r} has no scope {scope!r}; it has {', '.join(sorted(caller.scopes))}"
                raise Problem(403, text, name="scope")
        request.scope["manyarms.caller"] = caller.name
        self._rate.take(caller.name, cost)
        return caller

    def _by_key(self, request: Request, keys: Keys) -> Caller:
        text = key_of(request)
        found = None if text is None else keys.find(text)
        if found is None:
            came = "no key came" if text is None else "this key is not known, or not any more"
            raise Problem(
                401, f"{came}: send it as {', or '.join(HEADERS)}", name="key", headers={"WWW-Authenticate": "Bearer"}
            )
        return Caller(found.name, frozenset(found.scopes))

    def _check_local(self, request: Request) -> None:
        """Without keys a browser on this machine must not be made to call by pages of other sites: by their names for this
        machine (DNS rebinding), or from their own origin."""
        headers = request.headers
        asked = headers.get("host", "").lower()
        found = _HOST.fullmatch(asked)
        if found is None or not (is_loopback(found[1]) or found[1].strip("[]") in self._names):
            raise Problem(421, "this service answers to its own address and to the names in server.names", name="host")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if (origin is not None and not _same(origin, asked)) or site not in ("same-origin", "none"):
            text = "pages of other sites may not call this service: it has no keys"
            raise Problem(403, text, name="origin", title="Not from another site")


def key_of(request: Request) -> str | None:
    """The key that a request brings."""
    headers = request.headers
    kind, _, text = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and text.strip():
        return text.strip()
    return headers.get("x-api-key") or headers.get("ocp-apim-subscription-key") or None


def _same(origin: str, host: str) -> bool:
    """Whether a page's origin is at this host and port. Another port is another program, whose pages are not ours."""
    scheme, _, rest = origin.lower().partition("://")
    usual = {"http": ":80", "https": ":443"}.get(scheme, "")
    return bool(usual) and rest.removesuffix(usual) == host.removesuffix(usual)


def _address(request: Request) -> str:
    return request.client.host if request.client else "local"


__all__ = ["HEADERS", "SCOPES", "Access", "Caller", "key_of"]
