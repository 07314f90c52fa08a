"""`manyarms keys add|list|rotate|revoke FILE`: who may call the service."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from manyarms._base.tables import Table
from manyarms.cli import _blocks, _text, options
from manyarms.cli.commands import COMMANDS
from manyarms.errors import InvalidInput

VERBS = ("add", "list", "rotate", "revoke")


@COMMANDS.register("keys")
def keys(
    verb: Annotated[str, typer.Argument(metavar="VERB", help=f"{', '.join(VERBS)}.", show_default=False)],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file of keys; made by the first add.", show_default=False),
    ],
    name: Annotated[
        str | None,
        typer.Option(help="Whose key it is; for revoke also its id.", show_default=False),
    ] = None,
    scopes: Annotated[
        str | None,
        typer.Option(
            help="add: what the key is for, with commas between: decide, reward, read, admin, metrics, edge.",
            show_default=False,
        ),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="add: how long it lasts: 90d, 12h.", show_default="for ever")
    ] = None,
    overlap: Annotated[
        str, typer.Option(metavar="TIME", help="rotate: how long the old key still counts: 1d, 12h, 600s.")
    ] = "0s",
) -> None:
    """Make, list, rotate and revoke the API keys of the service.

    The file has names, scopes, times and a hash of each key, and only its owner may read it. A key is printed once, alone on
    stdout, and cannot be shown again. A service that runs takes a change up within a second.

    Scopes: decide and reward for an application, read for people who look (events, catalogue, dashboard), admin for
    agents, settings, erasure, compaction and backups, metrics for Prometheus, edge for clients that decide by themselves.

      add     a key for a name that has none
      list    all keys there ever were, and which are in use
      rotate  a new key with the same scopes and time to live; the old one ends after --overlap
      revoke  the keys of a name, or the key with an id, end now

    Examples:

      manyarms keys add keys.json --name web --scopes decide,reward
      manyarms keys add keys.json --name laptop --scopes read --expires 90d
      manyarms keys rotate keys.json --name web --overlap 1d
      manyarms keys revoke keys.json --name laptop
      manyarms keys list keys.json
    """
    from manyarms.service.keys import Keys

    options.one_of("VERB", verb, VERBS)
    given = {"--scopes": scopes, "--expires": expires, "--overlap": None if overlap == "0s" else overlap}
    fits = {"add": ("--scopes", "--expires"), "rotate": ("--overlap",)}.get(verb, ())
    for option, value in given.items():
        if value is not None and option not in fits:
            raise InvalidInput(option, repr(value), f"nothing: {verb} has no use for it")
    if verb == "list":
        options.say(_table(Keys.open(file)))
        return
    if not name:
        raise InvalidInput("--name", "none", "whose key it is")
    known = Keys.open(file, make=verb == "add")
    if verb == "revoke":
        ended = known.revoke(name)
        _tell(*(f"revoked: {key.name} (id {key.id})" for key in ended))
        return
    if verb == "add":
        if scopes is None:
            raise InvalidInput("--scopes", "none", "what the key is for, such as decide,reward")
        ends = None if expires is None else time.time() + _seconds("--expires", expires)
        text = known.add(name, options.listed(scopes) or (), ends)
        _tell(f"a key for {name}, told here once and never again:")
    else:
        text = known.rotate(name, _seconds("--overlap", overlap))
        _tell(f"a new key for {name}, told here once and never again; the old one ends in {overlap}:")
    typer.echo(text)


def _seconds(option: str, text: str) -> float:
    found = _blocks.seconds(text)
    if found is None:
        raise InvalidInput(option, repr(text), "a time with its unit, such as 90d, 12h or 600s")
    return found


def _tell(*lines: str) -> None:
    """To stderr: stdout is the key's alone."""
    _text.say(Console(stderr=True), *lines)


def _table(known: object) -> str:
    from manyarms.service.keys import Keys

    assert isinstance(known, Keys)
    now, every = time.time(), known.all()
    rows = [
        (key.name, key.id, ", ".join(key.scopes), key.state(now), _day(key.created), _date(key.revoked or key.expires))
        for key in every
    ]
    active = sum(key.state(now) == "active" for key in every)
    title = f"{known.path}: {len(every)} keys, {active} in use"
    return Table(title, ("name", "id", "scopes", "state", "made", "ends"), rows).text()


def _day(when: float) -> str:
    """Short, so that ids stay whole on a terminal of 80 columns."""
    return time.strftime("%Y-%m-%d", time.localtime(when))


def _date(when: float | None) -> str:
    return "never" if when is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(when))


__all__ = ["keys"]
