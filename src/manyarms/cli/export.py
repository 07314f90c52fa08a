"""`manyarms export STORE OUT.parquet`: a live store as a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyarms.cli import _live, options
from manyarms.cli.commands import COMMANDS
from manyarms.errors import InvalidInput


@COMMANDS.register("export")
def export(
    store: _live.Store,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The Parquet file to write.", show_default=False)],
    unsettled: Annotated[
        bool,
        typer.Option("--unsettled", help="Write events, too, that have a reward and may still get more."),
    ] = False,
    exact_only: Annotated[
        bool, typer.Option("--exact-only", help="Leave out events whose propensity is an estimate.")
    ] = False,
) -> None:
    """Write the events of a live store to a Parquet file that every other command reads with nothing to add.

    One row per event whose waiting time is over: context, action, reward (as the store's settings say, the default where none
    came), propensity (the share of each arm included), event_id, timestamp, and group (the unit, if decisions had units);
    and propensity_kind, propensity_given_arm, inclusion, arm, version, k, actions, candidates, excluded, rewards.

    Propensities that are missing are computed first and kept in the store. A file with estimated ones says so, and so
    does a certificate that is made of it. The file appears when it is complete, or not at all.

    Examples:

      manyarms export shop.db log.parquet
      manyarms export postgresql://shop@localhost/live log.parquet --exact-only

    Next: manyarms inspect OUT
    """
    from manyarms.live import exporting

    if out.suffix not in (".parquet", ".pq"):
        raise InvalidInput("OUT", repr(str(out)), "a name that ends in .parquet")
    with _live.reporting("export") as progress:
        found = exporting.export(store, out, unsettled=unsettled, exact_only=exact_only, progress=progress)
    options.say(str(found))


__all__ = ["export"]
