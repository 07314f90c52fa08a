"""The decision service: HTTP around `manyarms.live` (extra `service`).

app = ma.service.create_app(live)              an ASGI application, for tests or inside another program
manyarms serve --agent agent/                  the same as a server of its own

`Config`, `read_config`, `make_config`: its settings. `open_service`: the store and the keys that they name, for `create_app`.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from manyarms.errors import MissingExtra as _MissingExtra
from manyarms.service.config import Config, ConfigError, make_config, read_config

if _TYPE_CHECKING:
    from manyarms.service.app import create_app
    from manyarms.service.runtime import Service as Service
    from manyarms.service.runtime import open_service

_LATE = {"create_app": "app", "Service": "runtime", "open_service": "runtime"}


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module 'manyarms.service' has no attribute {name!r}")
    try:
        return getattr(_import_module(f"manyarms.service.{_LATE[name]}"), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("manyarms", ""):
            raise
        raise _MissingExtra(package, "service", "the decision service") from None


__all__ = ["Config", "ConfigError", "create_app", "make_config", "open_service", "read_config"]
