"""An engine by its name, for every call and command that takes `on`.

    "local"             this machine, the default
    "ray"               the Ray cluster that RAY_ADDRESS names or that runs here; where none does, one of this machine's own
    "ray://host:port"   the cluster whose client server answers there (`ray start --head` opens port 10001 for it)
    an engine           one that is open already, such as `with manyarms.engine.opened("ray") as engine:`, for several calls

What streams through one process at the speed of its files (folding, evaluating) does so with "local"; an engine divides it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from manyarms._base import validate
from manyarms.engine.base import Engine
from manyarms.engine.local import local
from manyarms.errors import InvalidInput

IN_THIS_PROCESS = "local"
EXPECTED = '"local", "ray", "ray://host:port", or an open engine'
_ADDRESS = re.compile(r"ray://[^/\s:]+(:\d{1,5})?/?", re.ASCII)

On = str | Engine


def checked_on(on: On) -> On:
    """`on`, if it names an engine or is one."""
    if isinstance(on, Engine):
        return on
    if not isinstance(on, str) or not (on in (IN_THIS_PROCESS, "ray") or _ADDRESS.fullmatch(on)):
        raise InvalidInput("on", validate.describe(on), EXPECTED)
    return on


def elsewhere(on: On) -> bool:
    """Whether work is to be divided among processes, and not done in this one."""
    return checked_on(on) != IN_THIS_PROCESS


@contextmanager
def opened(
    on: On = IN_THIS_PROCESS, *, workers: int | None = None, hear: Callable[[Any], None] | None = None
) -> Iterator[Engine]:
    """The engine that `on` names, for the length of a block; one that is open already stays so.

    workers: how many processes, one a core by default; a running cluster has as many as it has. hear: is called, in this process,
    with what workers `tell`; an engine that is open already has its own.
    """
    checked = checked_on(on)
    if isinstance(checked, Engine):
        yield checked
    elif checked == IN_THIS_PROCESS:
        with local(workers, hear) as engine:
            yield engine
    else:
        from manyarms.engine.cluster import cluster

        with cluster(None if checked == "ray" else checked, workers, hear) as on_ray:
            yield on_ray


__all__ = ["IN_THIS_PROCESS", "On", "checked_on", "elsewhere", "opened"]
