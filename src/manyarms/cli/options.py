"""What commands have in common: options, the names that they offer, and how they read logs and policies."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table

from manyarms._base.files import write_text_atomically
from manyarms._base.storage import load
from manyarms.agents.agent import Agent
from manyarms.bounds import BOUNDS
from manyarms.cli import _text
from manyarms.cli._text import plain
from manyarms.errors import InvalidInput, StorageError
from manyarms.estimators import OBJECTIVES, summaries
from manyarms.estimators.base import Estimator
from manyarms.estimators.naming import parameters_of
from manyarms.logs import Columns, Schema, TableEncoder, open_log
from manyarms.logs.columns import GUESS
from manyarms.logs.formats.base import format_of, suffixes
from manyarms.logs.schema import NOTHING
from manyarms.logs.table_log import TableLog
from manyarms.policies import Policy
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


Log = Annotated[Path, typer.Argument(metavar="LOG", help=f"A log file: {_suffixes()}.", show_default=False)]
Action = Annotated[str | None, typer.Option(help="Column with the action.", show_default="guessed by name")]
Reward = Annotated[str | None, typer.Option(help="Column with the reward.", show_default="guessed by name")]
Propensity = Annotated[str | None, typer.Option(help="Column with the propensity.", show_default="guessed by name")]
Context = Annotated[
    list[str] | None,
    typer.Option(help="A context column, or a common prefix of several; repeatable.", show_default="guessed by name"),
]
EventId = Annotated[
    str | None, typer.Option(help="Column with the event id, which tells rows apart.", show_default="guessed by name")
]
Group = Annotated[str | None, typer.Option(help="Column with the group (e.g. a user).", show_default="guessed by name")]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Drop rows without an action, a reward or a propensity.")
]
Delta = Annotated[float, typer.Option(help="Probability with which the certificate may fail.")]
PriorLog = Annotated[
    Path | None, typer.Option(help="The log that the prior was learned from; refused if it shares rows with LOG.")
]


def require_logs(paths: Mapping[str, Path | None]) -> None:
    """Refuse what is no log file before anything else is read, by the word or the option that it was given as."""
    for option, path in paths.items():
        if path is not None:
            format_of(path, option)


def columns_of(context: list[str] | None, **parts: str | None) -> Columns:
    """Columns as they were named; the others are looked for by their usual names."""
    named: dict[str, Any] = {part: name for part, name in parts.items() if name}
    return Columns(GUESS if not context else context[0] if len(context) == 1 else context, **named)


# ---- saved policies


@dataclass(frozen=True)
class SavedPolicy:
    """A policy from a folder, with its schema, which turns a table into its contexts and actions."""

    policy: Policy
    schema: Schema

    @classmethod
    def load(cls, folder: Path) -> SavedPolicy:
        """A saved policy, or a saved agent that decides without drawing."""
        found = load(folder)
        policy = found.as_policy() if isinstance(found, Agent) else found
        if not isinstance(policy, Policy):
            raise StorageError(f"{folder}: holds a {type(policy).__name__}, expected a policy or an agent")
        return cls(policy, getattr(policy, "schema", NOTHING))

    def open_log(self, path: Path, columns: Columns, *, drop_missing: bool) -> TableLog:
        """The rounds in a file as the policy's contexts and actions; the file is read once."""
        schema = self.schema
        return open_log(
            path, columns, action_count=self.policy.action_count if schema.catalogue is None else None,
            catalogue=schema.catalogue, encoder=cast("TableEncoder | None", schema.encoder), drop_missing=drop_missing, spool=True,
        )  # fmt: skip

    def require_actions(self, count: int) -> None:
        """Refuse a logging policy that is not over the actions of the log."""
        if self.policy.action_count != count:
            came = f"a policy over {self.policy.action_count} actions"
            raise InvalidInput("--logging", came, f"one over the log's {count}")


# ---- what comes out


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write plain data, complete or not at all."""
    write_text_atomically(path, json.dumps(data, indent=1) + "\n")


def facts_table(title: str, facts: Mapping[str, str]) -> Table:
    """Names and values for a terminal."""
    table = Table(title=plain(title), title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(plain(name), plain(value))
    return table


def say(*lines: str) -> None:
    """Print lines as they are: nothing in them is markup, and nothing is cut to the terminal's width."""
    _text.say(Console(), *lines)


__all__ = [
    "Action", "Context", "Delta", "DropMissing", "Group", "Log", "PriorLog", "Propensity", "Reward", "SavedPolicy", "bound_names",
    "columns_of", "estimator_names", "facts_table", "listed", "model_estimator_names", "objective_lines", "one_of",
    "require_logs", "say", "write_json",
]  # fmt: skip
