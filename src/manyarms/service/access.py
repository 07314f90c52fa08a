"""Who may do what: API keys with scopes; without keys, this machine alone and no page of another site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import Request

from manyarms.service.config import is_loopback
from manyarms.service.keys import SCOPES
from manyarms.service.problems import Problem

if TYPE_CHECKING:
    from manyarms.service.config import Config
    from manyarms.service.keys import Keys
    from manyarms.service.limits import RateLimit


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
        host = _host_of(f"//{request.headers.get('host', '')}")
        if not (host and (is_loopback(host) or host in self._names)):
            raise Problem(421, "this service answers to its own address and to the names in server.names", name="host")
        origin = request.headers.get("origin")
        if origin is not None and _host_of(origin) != host:
            raise Problem(403, "pages of other sites may not call this service: it has no keys", name="origin")


def key_of(request: Request) -> str | None:
    """The key that a request brings."""
    headers = request.headers
    kind, _, text = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and text.strip():
        return text.strip()
    return headers.get("x-api-key") or headers.get("ocp-apim-subscription-key") or None


def _host_of(address: str) -> str | None:
    try:
        return (urlsplit(address).hostname or "").lower() or None
    except ValueError:
        return None


def _address(request: Request) -> str:
    return request.client.host if request.client else "local"


__all__ = ["HEADERS", "SCOPES", "Access", "Caller", "key_of"]
