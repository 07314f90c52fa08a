"""Policies as they are named on the command line, and a log read as theirs.

FOLDER      a policy or an agent that was saved
uniform     every action of the log alike
logging     the policy that wrote the log
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manyarms._base.storage import load
from manyarms.agents.agent import Agent
from manyarms.errors import InvalidInput, StorageError
from manyarms.logs import Columns, Schema, open_log
from manyarms.logs.schema import NOTHING
from manyarms.logs.table_log import TableLog
from manyarms.policies import Policy, UniformPolicy

UNIFORM, LOGGING = "uniform", "logging"
WORDS = (UNIFORM, LOGGING)
POLICY = "A folder with a saved policy or agent; or uniform, or logging."


@dataclass(frozen=True)
class SavedPolicy:
    """A policy from a folder, with the schema that turns a table into its contexts and actions."""

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
            catalogue=schema.catalogue, encoder=schema.encoder, drop_missing=drop_missing, spool=True,
        )  # fmt: skip

    def require_actions(self, count: int) -> None:
        """Refuse a logging policy that is not over the actions of the log."""
        if self.policy.action_count != count:
            came = f"a policy over {self.policy.action_count} actions"
            raise InvalidInput("--logging", came, f"one over the log's {count}")


@dataclass(frozen=True)
class Named:
    """A policy as it was named: a folder or a word."""

    text: str

    @property
    def folder(self) -> Path | None:
        """The folder, where it is one; a folder that is called as a word is meant before the word."""
        return None if self.text in WORDS and not Path(self.text).exists() else Path(self.text)

    @property
    def name(self) -> str:
        """What reports call it."""
        return Path(self.text).name or self.text


def divided(words: Sequence[Path], least: int, most: int | None) -> tuple[list[Named], Path]:
    """The words of a command line: policies, and the log behind them."""
    found = len(words) - 1
    if found < least or (most is not None and found > most):
        number = str(least) if least == most else f"at least {least}"
        came = " ".join(shlex.quote(str(word)) for word in words)
        expected = f"{number} {'policy' if most == 1 else 'policies'} (folders, uniform, logging), and then a log"
        raise InvalidInput("POLICY, LOG", came or "nothing", expected)
    return [Named(str(word)) for word in words[:-1]], words[-1]


@dataclass(frozen=True)
class Judged:
    """Policies by name, None for the logging policy; and the log as they see it, from a file that is read once."""

    policies: dict[str, Policy | None]
    log: TableLog

    def only(self, why: str) -> tuple[str, Policy]:
        """The one policy; why: there is nothing to be found out about the logging policy."""
        ((name, policy),) = self.policies.items()
        if policy is None:
            raise InvalidInput("POLICY", "logging", f"another policy: {why}")
        return name, policy

    def as_read(self, path: Path, columns: Columns, *, drop_missing: bool) -> TableLog:
        """Another file, with the encoder and the ids of this log: its rows can be compared with those here."""
        catalogue = self.log.catalogue
        return open_log(
            path, columns, action_count=self.log.action_count if catalogue is None else None, catalogue=catalogue,
            encoder=self.log.encoder, drop_missing=drop_missing, spool=True,
        )  # fmt: skip

    @classmethod
    def read(cls, named: Sequence[Named], log: Path, columns: Columns, *, drop_missing: bool) -> Judged:
        """The policies, and the log with their encoder and ids, which all must share."""
        saved = {one: SavedPolicy.load(one.folder) for one in named if one.folder is not None}
        first = next(iter(saved), None)
        if first is None:
            source = open_log(log, columns, drop_missing=drop_missing, spool=True)
        else:
            for one, other in saved.items():
                _require_same(first, saved[first], one, other)
            source = saved[first].open_log(log, columns, drop_missing=drop_missing)
        policies: dict[str, Policy | None] = {}
        for one in named:
            name = one.name if one.name not in policies else one.text
            if name in policies:
                raise InvalidInput("POLICY", f"{one.text} twice", "different policies")
            found = saved.get(one)
            policies[name] = (
                found.policy
                if found is not None
                else UniformPolicy(source.action_count)
                if one.text == UNIFORM
                else None
            )
        return cls(policies, source)


def _require_same(one: Named, first: SavedPolicy, two: Named, second: SavedPolicy) -> None:
    """Refuse policies that read a table in different ways."""
    ours, theirs = first.schema, second.schema
    if ours.catalogue != theirs.catalogue or first.policy.action_count != second.policy.action_count:
        raise InvalidInput(
            "POLICY", f"other actions in {two.text}", f"the same actions in the same order as in {one.text}"
        )
    if _encoding(ours) != _encoding(theirs):
        raise InvalidInput("POLICY", f"another encoding of contexts in {two.text}", f"the encoding of {one.text}")


def _encoding(schema: Schema) -> object:
    """What tells two encodings apart."""
    if schema.encoder is None:
        return None
    spec, arrays = schema.encoder.state()
    return spec, {name: array.tolist() for name, array in arrays.items()}


__all__ = ["LOGGING", "POLICY", "UNIFORM", "WORDS", "Judged", "Named", "SavedPolicy", "divided"]
