"""Columns: which column of a table plays which part in a log, said outright or guessed from the names.

A guess is only made where a name is as good as a statement and no other is as good (`usual_names.py`), and the log's notes repeat
what was guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manyarms._base.validate import describe
from manyarms.errors import InvalidInput
from manyarms.logs.tables import Kind, TableSource
from manyarms.logs.usual_names import ESTIMATE, guessed, some_usual

GUESS = "?"  # as a column's name: look for it by its usual names

USUAL_VECTORS = ("context", "contexts", "features", "x")
USUAL_PREFIXES = ("context_", "user_feature_", "feature_", "x_")
# what tools add to a table without being asked, and what is never known before an action is chosen
NO_CONTEXT = re.compile(r"|Unnamed: \d+|index|__index_level_\d+__|row|id", re.IGNORECASE)
SEVERAL = ("context", "support", "support_probabilities")  # parts that may have several columns
EXPECTED = dict.fromkeys(SEVERAL, "the name of a column, names of several, or None")
EXPECTED |= dict.fromkeys(("action", "reward"), "the name of a column")
EXPECTED |= {"propensities_are_estimates": "True, False or None"}


@dataclass(frozen=True)
class Columns:
    """The mapping from columns to the parts of a log.

    context     names of columns, or the name of one column of vectors, or what several names begin with; numbers and
                texts may be mixed; () for a log without contexts, whose context is then the number 1
    action      rows 0 .. K-1, or ids
    the others  one column each; None where there is none. support and support_probabilities are vectors, or the
                beginnings of numbered columns. estimated: 1 in rows whose propensity is an estimate, 0 in others.
    Each is looked for by its usual names unless given.
    """

    context: str | Sequence[str] | None = GUESS
    action: str = GUESS
    reward: str = GUESS
    propensity: str | None = GUESS
    event_id: str | None = GUESS
    timestamp: str | None = GUESS
    group: str | None = GUESS
    support: str | Sequence[str] | None = GUESS
    support_probabilities: str | Sequence[str] | None = GUESS
    propensities_are_estimates: bool | None = None  # None: unless the file or the column's name says so, they are not
    estimated: str | None = GUESS

    def __post_init__(self) -> None:
        for part, given in vars(self).items():
            if part == "propensities_are_estimates":
                fits = isinstance(given, bool | None)
            elif part in SEVERAL and isinstance(given, Sequence) and not isinstance(given, str | bytes):
                fits = all(isinstance(name, str) for name in given)
                object.__setattr__(self, part, tuple(given))
            else:
                fits = isinstance(given, str) or (given is None and part not in ("action", "reward"))
            if not fits:
                raise InvalidInput(
                    f"columns.{part}", describe(given), EXPECTED.get(part, "the name of a column, or None")
                )

    def resolve(self, tables: TableSource) -> Resolved:
        """Find every part among the columns of a source, or say what is there."""
        kinds, source, stated = tables.kinds(), tables.name, tables.stated
        wanted = {
            part: getattr(stated.columns or self, part) if given == GUESS else given
            for part, given in vars(self).items()
        }
        lists = {part: _listed(given, part, kinds, source) for part in SEVERAL if (given := wanted[part]) != GUESS}
        said = {name for names in lists.values() for name in names} | {
            given for given in wanted.values() if isinstance(given, str)
        }
        found: dict[str, str | None] = {}
        guesses: list[str] = []
        for part in ("action", "reward", "propensity", "event_id", "timestamp", "group", "estimated"):
            given = wanted[part]
            if given == GUESS:
                found[part] = guessed(part, kinds, source, said)
                if found[part] is not None and found[part] != part and part != "estimated":
                    guesses.append(f"{part} is the column {found[part]!r}")
            elif given is not None and given not in kinds:
                raise _absent(source, part, given, kinds)
            else:
                found[part] = given
        for part in ("action", "reward"):
            if found[part] is None:
                raise _absent(source, part, None, kinds)
        for part in ("support", "support_probabilities"):
            lists.setdefault(part, _guess_list(part, kinds))
        if found["propensity"] is None:
            found["estimated"] = None
        used = {name for name in found.values() if name is not None} | {n for names in lists.values() for n in names}
        if "context" not in lists:
            context = lists["context"] = _guess_context(kinds, used)
            guesses.append("contexts are the columns " + _some(context) if context else "there are no contexts")
        _refuse_twice(source, {**{k: (v,) for k, v in found.items() if v is not None}, **lists})
        estimates = self.propensities_are_estimates
        if estimates is None:
            estimates = found["propensity"] == ESTIMATE or stated.propensities_are_estimates
        return Resolved(
            context=lists["context"], action=str(found["action"]), reward=str(found["reward"]), propensity=found["propensity"],
            estimated=found["estimated"], event_id=found["event_id"], timestamp=found["timestamp"], group=found["group"],
            support=lists["support"],
            support_probabilities=lists["support_probabilities"],
            propensities_are_estimates=estimates and found["propensity"] is not None, guesses=tuple(guesses),
        )  # fmt: skip


@dataclass(frozen=True)
class Resolved:
    """A mapping whose every column is there."""

    context: tuple[str, ...]
    action: str
    reward: str
    propensity: str | None
    event_id: str | None
    timestamp: str | None
    group: str | None
    support: tuple[str, ...]
    support_probabilities: tuple[str, ...]
    propensities_are_estimates: bool
    estimated: str | None
    guesses: tuple[str, ...]

    @property
    def all(self) -> list[str]:
        """Every column that is needed, once."""
        single = [self.action, self.reward, self.propensity, self.event_id, self.timestamp, self.group, self.estimated]
        several = [*self.context, *self.support, *self.support_probabilities]
        return list(dict.fromkeys([name for name in single if name is not None] + several))

    def names(self) -> dict[str, str]:
        """What the table calls the fields of a log, for messages."""
        pairs = {
            "contexts": self.context[0] if len(self.context) == 1 else None, "actions": self.action,
            "rewards": self.reward, "propensities": self.propensity, "event_ids": self.event_id,
            "timestamps": self.timestamp, "groups": self.group, "estimated": self.estimated,
        }  # fmt: skip
        return {field: name for field, name in pairs.items() if name is not None}


def _listed(given: str | Sequence[str] | None, part: str, kinds: Mapping[str, Kind], source: str) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        if given in kinds:
            return (given,)
        names = _numbered(given, kinds) or tuple(name for name in kinds if given and name.startswith(given))
        if not names:
            raise _absent(source, part, given, kinds)
        return names
    for name in given:
        if name not in kinds:
            raise _absent(source, part, name, kinds)
    return tuple(given)


def _numbered(prefix: str, kinds: Mapping[str, Kind]) -> tuple[str, ...]:
    """prefix0, prefix1, ... in the order of their numbers."""
    found = {int(name[len(prefix) :]): name for name in kinds if re.fullmatch(re.escape(prefix) + r"\d+", name)}
    return tuple(found[number] for number in sorted(found))


def _guess_list(part: str, kinds: Mapping[str, Kind]) -> tuple[str, ...]:
    if part in kinds and kinds[part].name == "vector":
        return (part,)
    return _numbered(part + "_", kinds) or _numbered(part.removesuffix("ies") + "y_", kinds)


def _guess_context(kinds: Mapping[str, Kind], used: set[str]) -> tuple[str, ...]:
    free = {name: kind for name, kind in kinds.items() if name not in used}
    for name in free:
        if name.lower() in USUAL_VECTORS and free[name].name == "vector":
            return (name,)
    for prefix in USUAL_PREFIXES:
        if names := _numbered(prefix, free):
            return names
    for prefix in USUAL_PREFIXES:
        if names := tuple(name for name in free if name.startswith(prefix)):
            return names
    return tuple(
        name for name, kind in free.items() if kind.name in ("number", "text") and not NO_CONTEXT.fullmatch(name)
    )


def _refuse_twice(source: str, parts: Mapping[str, Sequence[str]]) -> None:
    owner: dict[str, str] = {}
    for part, names in parts.items():
        for name in names:
            if name in owner:
                came = f"the column {name!r} as {owner[name]} and as {part}"
                raise InvalidInput("columns", came, f"a column of {source} for one part only")
            owner[name] = part


def _absent(source: str, part: str, name: str | None, kinds: Mapping[str, Kind]) -> InvalidInput:
    there = f"the columns {_some(tuple(kinds), 12)}" if kinds else "no column at all"
    if name is None:
        expected = f"the name of a column of {source} (none is called {some_usual(part)}); it has {there}"
        return InvalidInput(f"columns.{part}", "nothing", expected)
    return InvalidInput(f"columns.{part}", describe(name), f"a column of {source}, which has {there}")


def _some(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


__all__ = ["GUESS", "Columns", "Resolved"]
