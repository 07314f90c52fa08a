"""What the commands on logs have in common: the log itself, and which of its columns is what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from manyarms.logs import Columns

Log = Annotated[Path, typer.Argument(help="A .parquet, .csv, .tsv, .dsjson, .json or .jsonl file; text may be .gz.")]
Action = Annotated[str | None, typer.Option(help="Column of the action.", show_default="by name")]
Reward = Annotated[str | None, typer.Option(help="Column of the reward.", show_default="by name")]
Propensity = Annotated[str | None, typer.Option(help="Column of the propensity.", show_default="by name")]
Context = Annotated[
    list[str] | None,
    typer.Option(help="A context column, or what several begin with; repeat for more.", show_default="by name"),
]
Group = Annotated[str | None, typer.Option(help="Column of the group (a user).", show_default="by name")]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows without an action, a reward or a propensity.")
]


def columns_of(
    action: str | None,
    reward: str | None,
    propensity: str | None,
    context: list[str] | None,
    group: str | None,
    event_id: str | None = None,
    timestamp: str | None = None,
) -> Columns:
    """Columns as they were named; the others are looked for by their usual names."""
    from manyarms.logs.columns import GUESS, Columns

    return Columns(
        context=GUESS if not context else (context[0] if len(context) == 1 else context),
        action=action or GUESS,
        reward=reward or GUESS,
        propensity=propensity or GUESS,
        event_id=event_id or GUESS,
        timestamp=timestamp or GUESS,
        group=group or GUESS,
    )


__all__ = ["Action", "Context", "DropMissing", "Group", "Log", "Propensity", "Reward", "columns_of"]
