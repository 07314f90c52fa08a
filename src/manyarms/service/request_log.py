"""The service's own log: a line an event, as JSON or as text, on stderr.

A request's line has its route and not its path, its status, how long it took and which key it came with: no context, no key and
no body. Contexts are logged only where `logs.contexts` says so.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

NAME = "manyarms.service"
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Json(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str, ensure_ascii=True)


class _Text(logging.Formatter):
    """A line to be read."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        extra = "".join(f"  {name}={_one_line(value)}" for name, value in _extra(record).items())
        return super().format(record) + extra


def _one_line(value: object) -> str:
    return json.dumps(value, default=str) if isinstance(value, str | list | dict) else str(value)


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _PLAIN and not name.startswith("_")}


def start_logging(form: str = "json", level: str = "info", stream: TextIO | None = None) -> logging.Logger:
    """The service's logger, writing to a stream of its own; called again, it takes the place of the former one."""
    logger = logging.getLogger(NAME)
    logger.setLevel(level.upper())
    logger.propagate = False
    for old in list(logger.handlers):
        logger.removeHandler(old)
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logger.addHandler(handler)
    return logger


def logger() -> logging.Logger:
    """The service's logger."""
    return logging.getLogger(NAME)


__all__ = ["NAME", "logger", "start_logging"]
