"""`manyarms replay STORE`: is a live store what its log says?"""

from __future__ import annotations

from typing import Annotated

import typer

from manyarms.cli import _live, options
from manyarms.cli.commands import COMMANDS

DIFFERENT = 1


@COMMANDS.register("replay")
def replay(
    store: _live.Store,
    from_snapshot: Annotated[
        bool,
        typer.Option("--from-snapshot", help="Begin with the newest snapshot: quick, and blind to what came before."),
    ] = False,
    decisions: Annotated[
        int | None, typer.Option(min=0, help="Make about so many decisions again.", show_default="all of them")
    ] = None,
    propensities: Annotated[int, typer.Option(min=0, help="Compute about so many propensities again.")] = 100,
) -> None:
    """Verify a live store: fold its log again, compare every snapshot, and make every decision again.

    Checked are positions (no gaps), times (not falling), chunks and their tokens; that snapshots are what the log folds to, bit
    for bit or, made elsewhere, to 1e-9; that each decision comes out as it was recorded; and propensities that were computed
    afterwards. Decisions made from what was erased since cannot be verified and are counted.

    Nothing is written, and the store may be in use. Ends with code 1 if anything differs, and names the first differences.

    Examples:

      manyarms replay shop.db
      manyarms replay shop.db --from-snapshot --decisions 1000

    Next: manyarms export STORE OUT.parquet
    """
    from manyarms.live import replaying

    with _live.reporting("replay") as progress:
        found = replaying.replay(
            store, from_snapshot=from_snapshot, decisions=decisions, propensities=propensities, progress=progress
        )
    options.say(str(found))
    if not found.ok:
        raise typer.Exit(DIFFERENT)


__all__ = ["replay"]
