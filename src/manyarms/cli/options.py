"""What commands have in common: options, the names that they offer, and what they print and write."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from manyarms._base.files import write_text_atomically
from manyarms._base.tables import Table
from manyarms.bounds import BOUNDS
from manyarms.cli import _text
from manyarms.cli._flags import StandsFor, spoken
from manyarms.cli._reading import Reading
from manyarms.errors import InvalidInput
from manyarms.estimators import OBJECTIVES, summaries
from manyarms.estimators.base import Estimator, Range
from manyarms.estimators.naming import parameters_of
from manyarms.evaluation.intervals import KINDS
from manyarms.items import Catalogue as Items
from manyarms.logs import Actions, Columns
from manyarms.logs.formats.base import format_of, suffixes
from manyarms.weights import CORRECTIONS

USUAL_OBJECTIVE = "clpi"

# ---- names, each from the registry of its kind


def objective_lines() -> dict[str, str]:
    """The objectives that a policy can be learned by, and what they are in a line: the usual one first, estimators last."""
    lines = summaries(learnable=True)
    plain = [name for name in lines if name in OBJECTIVES and not issubclass(OBJECTIVES[name], Estimator)]
    return {name: lines[name] for name in dict.fromkeys((USUAL_OBJECTIVE, *plain, *lines))}


def estimator_names() -> tuple[str, ...]:
    """The estimators that need no reward model."""
    return ("snips", *CORRECTIONS)


def model_estimator_names() -> tuple[str, ...]:
    """The estimators that need one."""
    empty = inspect.Parameter.empty
    wanted = {name: parameters_of(name) for name, kind in OBJECTIVES.items() if issubclass(kind, Estimator)}
    return tuple(name for name, known in wanted.items() if [k for k, v in known.items() if v is empty] == ["model"])


def bound_names() -> tuple[str, ...]:
    """The bounds that can certify a policy."""
    return tuple(name for name, bound in BOUNDS.items() if not bound.of_gain)


def listed(names: str | None) -> list[str] | None:
    """Names with commas between."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a value that an option does not have."""
    if value not in allowed:
        raise InvalidInput(option, repr(value), "one of " + ", ".join(allowed))


# ---- logs


def _suffixes() -> str:
    """What log files may end in; .csv(.gz) for .csv and .csv.gz."""
    known = set(suffixes())
    plain = [
        f"{one}(.gz)" if f"{one}.gz" in known else one
        for one in suffixes()
        if one.removesuffix(".gz") not in known - {one}
    ]
    return ", ".join(plain)


LOG_FILES = f"A log file: {_suffixes()}."
COLUMNS = "Columns of the log (guessed unless given; or none)"
NONE = "none"


def _column(about: str) -> Any:
    return typer.Option(metavar="COLUMN", help=about, rich_help_panel=COLUMNS)


Log = Annotated[Path, typer.Argument(metavar="LOG", help=LOG_FILES, show_default=False)]
Action = Annotated[str | None, _column("The action.")]
Reward = Annotated[str | None, _column("The reward.")]
Propensity = Annotated[str | None, _column("The propensity: how likely the action was when it was chosen.")]
Context = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="A column of the context, or what the names of several begin with.",
        rich_help_panel=COLUMNS,
    ),
]
EventId = Annotated[str | None, _column("The event id, which tells rows apart.")]
Timestamp = Annotated[str | None, _column("The time of the decision.")]
Group = Annotated[str | None, _column("What rows have in common that are not independent: a user, a session.")]
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing",
        help="Leave out rows without an action, a reward or a propensity.",
        rich_help_panel=COLUMNS,
    ),
]

Catalogue = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="All items that could be shown: a table with a column of ids (id, item_id, sku, ...). Or the word build: integers "
        "in the action column are ids, and the items are those of the log.",
        show_default="what the log shows",
        rich_help_panel=COLUMNS,
    ),
]
EstimateMissing = Annotated[
    bool,
    typer.Option(
        "--estimate-missing",
        help="Estimate propensities where they are missing, by how often each action was played; results say how much rests on "
        "estimates.",
        rich_help_panel=COLUMNS,
    ),
]

# ---- estimates

Level = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
Intervals = Annotated[str, typer.Option(metavar="KIND", help=f"Interval to report: {', '.join(KINDS)}.")]
Block = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help="With --interval block, for rows that depend on rows near in time: how long blocks are, as a number of rows or a "
        "time (90min, 6h, 1d).",
        show_default="as the autocorrelation asks",
    ),
]
Low = Annotated[
    float | None,
    typer.Option(help="Smallest possible reward; with --high.", show_default="0"),
    StandsFor("reward_range"),
]
High = Annotated[
    float | None,
    typer.Option(help="Largest possible reward; with --low.", show_default="1"),
    StandsFor("reward_range"),
]
Floor = Annotated[
    float | None,
    typer.Option(
        help="A lower bound on the logging policy's positive propensities; for bernstein.", show_default="unknown"
    ),
    StandsFor("propensity_floor"),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")]
On = Annotated[
    str,
    typer.Option(
        metavar="ENGINE",
        help="Where the work is done: local (here), ray (the cluster that RAY_ADDRESS names or that runs here, else one of this "
        "machine's own) or ray://host:port.",
    ),
]
Delta = Annotated[float, typer.Option(help="Probability with which the certificate may fail.")]
PriorLog = Annotated[
    Path | None,
    typer.Option(
        metavar="LOG", help="The log that the prior was learned from; refused if it shares rows with LOG.",
        show_default=False,
    ),
]  # fmt: skip


def reward_range(low: float | None, high: float | None) -> Range | None:
    """What rewards can be, where both ends are given."""
    if low is None and high is None:
        return None
    if low is None or high is None:
        raise InvalidInput("--low, --high", "one of them", "both, or neither")
    return low, high


def require_logs(paths: Mapping[str, Path | None]) -> None:
    """Refuse what is no log file before anything else is read, by the word or the option that it was given as."""
    for option, path in paths.items():
        if path is not None:
            format_of(path, option)


def reading(
    context: list[str] | None,
    *,
    drop_missing: bool = False,
    estimate_missing: bool = False,
    catalogue: str | None = None,
    **parts: str | None,
) -> Reading:
    """Columns as they were named, none where there is to be none; the others are looked for by their usual names."""
    named: dict[str, Any] = {part: None if name == NONE else name for part, name in parts.items() if name}
    if context:
        named["context"] = () if context == [NONE] else context[0] if len(context) == 1 else context
    given = [(f"--{part.replace('_', '-')}", name) for part, name in parts.items() if name]
    given += [("--context", name) for name in context or ()] + ([("--catalogue", catalogue)] if catalogue else [])
    words = "".join(f" {option} {shlex.quote(name)}" for option, name in given)
    words += " --drop-missing" * drop_missing + " --estimate-missing" * estimate_missing
    return Reading(Columns(**named), drop_missing, estimate_missing, _ids(catalogue), words)


def _ids(catalogue: str | None) -> Actions | Literal["build"] | None:
    """The ids of a table of items, or the word for those that the log has."""
    if catalogue is None or catalogue == "build":
        return "build" if catalogue else None
    try:
        return Items(Path(catalogue)).actions
    except InvalidInput as error:  # in the words of the command line
        raise type(error)("--catalogue", error.came, error.expected) from error


# ---- what comes out


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write plain data, complete or not at all."""
    write_text_atomically(path, json.dumps(data, indent=1) + "\n")


def facts(title: str, values: Mapping[str, str]) -> str:
    """Names and values for a terminal."""
    return Table(title, rows=list(values.items())).text()


def say(*lines: str) -> None:
    """Print lines: nothing in them is markup, and arguments of the library are called as the command line calls them."""
    _text.say(Console(), *(spoken().text(line) for line in lines))


def say_next(*commands: str) -> None:
    """The commands that usually follow, to be copied."""
    say("", *(f"next: {command}" for command in commands))


__all__ = [
    "COLUMNS", "LOG_FILES", "Action", "Block", "Catalogue", "Context", "Delta", "DropMissing", "EstimateMissing", "EventId",
    "Floor", "Group", "High", "Intervals", "Level", "Log", "Low", "On", "PriorLog", "Propensity", "Reward", "Seed", "Timestamp",
    "bound_names", "estimator_names", "facts", "listed", "model_estimator_names", "objective_lines", "one_of", "reading",
    "require_logs", "reward_range", "say", "say_next", "write_json",
]  # fmt: skip
