"""`manyarms restore BACKUP STORE`: a live store from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyarms.cli import _live, options
from manyarms.cli._flags import StandsFor
from manyarms.cli.commands import COMMANDS


@COMMANDS.register("restore")
def restore(
    backup: Annotated[
        Path,
        typer.Argument(metavar="BACKUP", help="The file that backup has written.", show_default=False),
        StandsFor("path"),
    ],
    store: _live.Store,
) -> None:
    """Make a live store of a backup: a new SQLite file, or a PostgreSQL database in which there is no store yet.

    The store is there wholly or not at all, and the backup stays as it is. Where there is a store already, nothing is changed:
    move the old file away first (with its -wal and -shm), when no process has it open. What was decided and
    rewarded after the backup was made is not in it.

    A store moves from SQLite to PostgreSQL, and back, by backup and restore.

    Examples:

      manyarms restore backups/shop-monday.db shop.db
      manyarms restore monday.db postgresql://shop@localhost/live

    Afterwards: manyarms replay STORE
    """
    from manyarms.live.backup import restore as put_back

    with _live.reporting("restore") as progress:
        found = put_back(backup, store, progress=progress)
    options.say(str(found))
    if "://" not in store:  # an address may have a password in it
        options.say_next(f"manyarms replay {store}")


__all__ = ["restore"]
