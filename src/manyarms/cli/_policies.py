"""Policies as they are named on the command line, and a log read as theirs.

FOLDER                    a policy or an agent that was saved
uniform                   every action of the log alike
logging                   the policy that wrote the log
--probabilities COLUMN    a column of the log: how likely the policy is to play the logged action
--decisions COLUMN        a column of the log: the id of the action that the policy takes
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from manyarms._base.storage import load
from manyarms.agents.agent import Agent
from manyarms.cli._flags import StandsFor
from manyarms.cli._reading import Reading
from manyarms.engine import IN_THIS_PROCESS, elsewhere
from manyarms.errors import InvalidInput, StorageError
from manyarms.evaluation import InColumn, PolicyLike
from manyarms.logs import Schema
from manyarms.logs.schema import NOTHING
from manyarms.logs.table_log import TableLog
from manyarms.policies import Policy

UNIFORM, LOGGING = "uniform", "logging"
WORDS = (UNIFORM, LOGGING)
POLICY = "A folder with a saved policy or agent, or the word uniform or logging; or none, with --probabilities or --decisions."
COLUMNS = "My own policy, as a column of the log"
Probabilities = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="In place of a POLICY: how likely it is to play the logged action.",
        rich_help_panel=COLUMNS,
    ),
    StandsFor("policy", "other"),
]
Decisions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="In place of a POLICY: the id of the action that it takes.", rich_help_panel=COLUMNS
    ),
    StandsFor("policy", "other"),
]


def load_policy(folder: Path) -> Any:
    """What was saved in a folder, where it can stand for a policy."""
    found = load(folder)
    if not isinstance(found, Policy | Agent):
        raise StorageError(f"{folder}: holds a {type(found).__name__}, expected a policy or an agent")
    return found


@dataclass(frozen=True)
class SavedPolicy:
    """A policy from a folder, with the schema that turns a table into its contexts and actions."""

    policy: Policy
    schema: Schema

    @classmethod
    def load(cls, folder: Path) -> SavedPolicy:
        """A saved policy, or a saved agent that decides without drawing."""
        found = load_policy(folder)
        policy: Policy = found.as_policy() if isinstance(found, Agent) else found
        return cls(policy, getattr(policy, "schema", NOTHING))

    def require_actions(self, count: int) -> None:
        """Refuse a logging policy that is not over the actions of the log."""
        if self.policy.action_count != count:
            came = f"a policy over {self.policy.action_count} actions"
            raise InvalidInput("--logging", came, f"one over the log's {count}")


@dataclass(frozen=True)
class Named:
    """A policy as it was named: a folder, a word, or a column of the log."""

    text: str
    holds: str | None = None  # of a column: probabilities or actions

    @property
    def folder(self) -> Path | None:
        """The folder, where it is one; a folder that is called as a word is meant before the word."""
        word = self.holds is not None or (self.text in WORDS and not Path(self.text).exists())
        return None if word else Path(self.text)

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.text if self.holds is not None else Path(self.text).name or self.text

    @property
    def words(self) -> str:
        """How it is named on a command line."""
        option = {None: "", "probabilities": "--probabilities ", "actions": "--decisions "}[self.holds]
        return option + shlex.quote(self.text)


def divided(
    words: Sequence[Path],
    least: int,
    most: int | None,
    probabilities: Sequence[str] | None = None,
    decisions: Sequence[str] | None = None,
) -> tuple[list[Named], Path]:
    """The policies of a command line, those in columns last, and the log, which is the last word."""
    columns = [Named(name, "probabilities") for name in probabilities or ()]
    columns += [Named(name, "actions") for name in decisions or ()]
    found = len(words) - 1 + len(columns)
    if not words or found < least or (most is not None and found > most):
        number = str(least) if least == most else f"at least {least}"
        came = " ".join(shlex.quote(str(word)) for word in words) + "".join(f" {one.words}" for one in columns)
        kinds = "folders, uniform, logging, --probabilities COLUMN, --decisions COLUMN"
        expected = f"{number} {'policy' if most == 1 else 'policies'} ({kinds}), and a log as the last word"
        raise InvalidInput("POLICY, LOG", came or "nothing", expected)
    return [*(Named(str(word)) for word in words[:-1]), *columns], words[-1]


@dataclass(frozen=True)
class Judged:
    """Policies by name, and the log as they see it, from a file that is read once."""

    policies: dict[str, PolicyLike]
    log: TableLog

    @classmethod
    def read(cls, named: Sequence[Named], log: Path, how: Reading, on: str = IN_THIS_PROCESS) -> Judged:
        """The policies, and the log with the encoder and the ids of the first that has any; others find their way to these.

        on: the engine whose workers will read the file by themselves, unless it is this process.
        """
        spool = not elsewhere(on)
        found: dict[str, Any] = {}
        for one in named:
            name = one.name if one.name not in found else one.text
            if name in found:
                raise InvalidInput("POLICY", f"{one.text} twice", "different policies")
            if one.folder is not None:
                found[name] = load_policy(one.folder)
            else:
                found[name] = one.text if one.holds is None else InColumn(one.text, one.holds)  # type: ignore[arg-type]
        saved = [one for one in found.values() if not isinstance(one, str | InColumn)]
        further = len(saved) > 1 or any(isinstance(one, InColumn) for one in found.values())
        schema = getattr(saved[0], "schema", NOTHING) if saved else NOTHING
        actions = saved[0].action_count if saved and schema.catalogue is None else None
        return cls(found, how.open(log, schema, action_count=actions, keep_columns=further, spool=spool))

    def only(self) -> tuple[str, PolicyLike]:
        """The one policy, by its name."""
        ((name, policy),) = self.policies.items()
        return name, policy


__all__ = [
    "LOGGING", "POLICY", "UNIFORM", "WORDS", "Decisions", "Judged", "Named", "Probabilities", "SavedPolicy", "divided",
    "load_policy",
]  # fmt: skip
