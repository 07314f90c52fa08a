"""`manyarms compact STORE`: delete what an old state of a live store has folded."""

from __future__ import annotations

from typing import Annotated

import typer

from manyarms.cli import _blocks, _live, options
from manyarms.cli.commands import COMMANDS
from manyarms.errors import InvalidInput


@COMMANDS.register("compact")
def compact(
    store: _live.Store,
    keep: Annotated[str, typer.Option(help="What is younger stays: 30d, 12h, 90min, 600s.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would go.")] = False,
) -> None:
    """Delete old events of a live store. What was learned from them stays, to the last bit.

    The newest version that is older than KEEP becomes the origin of the log, and decisions, rewards, operations and snapshots
    that it has folded are deleted. Decisions stay that still wait for a reward there, or had one later.

    Deleted events cannot be exported any more, and are unknown: late rewards and erasures of them are refused. Export first.
    The store may be in use. A file does not become smaller: what is free in it is used again.

    Examples:

      manyarms compact shop.db --keep 30d --dry-run
      manyarms compact postgresql://shop@localhost/live --keep 12w

    Before: manyarms export STORE OUT.parquet
    """
    from manyarms.live import compaction

    seconds = _blocks.seconds(keep)
    if seconds is None:
        raise InvalidInput("--keep", repr(keep), "a time with its unit, such as 30d, 12h, 90min or 600s")
    with _live.reporting("compact") as progress:
        found = compaction.compact(store, seconds, dry_run=dry_run, progress=progress)
    options.say(str(found))


__all__ = ["compact"]
