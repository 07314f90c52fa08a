"""`manyarms backup STORE OUT.db`: a live store as one file, while it is in use."""

from __future__ import annotations

from typing import Annotated

import typer

from manyarms.cli import _live, options
from manyarms.cli._flags import StandsFor
from manyarms.cli.commands import COMMANDS


@COMMANDS.register("backup")
def backup(
    store: _live.Store,
    out: Annotated[
        str, typer.Argument(metavar="OUT", help="The file to write; new.", show_default=False), StandsFor("path")
    ],
) -> None:
    """Copy a live store into one file while it is in use. Nobody waits for it.

    Everything that was told before the backup began is in it, and nothing of what came meanwhile. The file is an SQLite store
    itself, whichever database it was taken from: replay verifies it, export reads it, and restore makes a store of it again.

    It appears when it is complete, checked and on the disk, or not at all, and only its owner may read it: contexts and rewards
    are in it as they are. A file that is there already is not written over.

    Examples:

      manyarms backup shop.db backups/shop-monday.db
      manyarms backup postgresql://shop@localhost/live monday.db

    Is it good? manyarms replay OUT
    """
    from manyarms.live.backup import backup as copy

    with _live.reporting("backup") as progress:
        found = copy(store, out, progress=progress)
    options.say(str(found))
    options.say_next(f"manyarms replay {out}")


__all__ = ["backup"]
