"""Vowpal Wabbit's decision-service JSON: one round a line.

    {"_label_cost": -1, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1, "EventId": "…",
     "Timestamp": "…", "a": [2, 1, 3], "p": [0.8, 0.1, 0.1], "c": {shared features, "_multi": [one object an action]}}

reward       -_label_cost
action       what `_labelIndex` (from 0), `_label_Action` (from 1) and a[0] (from 1) say in unison, looked up in _multi
propensity   _label_probability
support      `a` (from 1) and `p`: the actions that were offered, and how likely each was
contexts     the shared features in `c`: {"user": {"age": 30, "town": "Ulm"}} gives the columns user.age and user.town.
             A number that is not there is 0, as in Vowpal Wabbit; a text that is not there is missing. Columns are
             then encoded as everywhere (manyarms.logs.encoding).

Actions have no numbers of their own in this format, only features. An action is told by its `_tag`, or by `id` or by
`i.id` in its features, or else by all of its features together; that name is its id in the catalogue.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from manyarms._base import validate
from manyarms.errors import DataError, InvalidInput
from manyarms.logs.actions import Actions
from manyarms.logs.checks import SUM_TOLERANCE
from manyarms.logs.columns import Columns
from manyarms.logs.data import LoggedData
from manyarms.logs.encoding import Encoding
from manyarms.logs.files import open_text
from manyarms.logs.formats.base import FORMATS, MemoryFormat
from manyarms.logs.table_log import EncoderOption, TableLog
from manyarms.logs.tables import Column, MemoryTables, Stated, Table, number_column, text_column

Identity = Literal["auto", "tag", "features", "position"]
Ragged = Literal["refuse", "drop", "pad"]
NOT_ONE_ACTION = {
    "_outcomes": "several decisions per round",
    "_slots": "several decisions per round",
    "_ca": "a continuous action",
}
ACTION, REWARD, PROPENSITY = "_label_Action", "_label_cost", "_label_probability"
EVENT_ID, TIMESTAMP = "_EventId", "_Timestamp"
SUPPORT, CHANCES = "_a", "_p"
AGREE = 1e-4  # probabilities are written in single precision


@dataclass
class _Rounds:
    """What the lines said, one entry a round."""

    rewards: list[float] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    propensities: list[float] = field(default_factory=list)
    offered: list[list[int]] = field(default_factory=list)
    chances: list[list[float]] = field(default_factory=list)
    event_ids: list[str] = field(default_factory=list)
    stamps: list[str | None] = field(default_factory=list)
    features: list[dict[str, float | str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    drops: set[float] = field(default_factory=set)
    skipped: int = 0
    disagreeing: int = 0


@FORMATS.register("dsjson")
class DsjsonTables(MemoryFormat):
    """A file of such lines as tables; read into memory when this is made.

    The columns of a round are named after the format's own keys, which begin with _ as no feature does.
    """

    suffixes = (".dsjson", ".json", ".jsonl", ".dsjson.gz", ".json.gz", ".jsonl.gz")

    def __init__(
        self,
        path: Path | str,
        *,
        catalogue: Actions | None = None,
        identity: Identity = "auto",
        ragged: Ragged = "drop",
    ) -> None:
        for name, value, options in (("identity", identity, Identity), ("ragged", ragged, Ragged)):
            if value not in get_args(options):
                raise InvalidInput(name, validate.describe(value), "one of " + ", ".join(get_args(options)))
        self._catalogue, self._identity, self._ragged = catalogue, identity, ragged
        super().__init__(path)

    def read(self) -> MemoryTables:
        rounds = _Rounds(ids={str(name): row for row, name in enumerate(self._catalogue or ())})
        with open_text(self.path) as stream:
            for number, text in enumerate(stream, start=1):
                if text.strip():
                    line = _Line(self.path, number)
                    _read_line(line, text, rounds, self._identity, fixed=self._catalogue is not None)
        if not rounds.rewards:
            skipped = f" ({rounds.skipped} are marked _skipLearn)" if rounds.skipped else ""
            raise DataError(f"{self.path}: no round in it{skipped}")
        if len(rounds.drops) > 1:
            raise InvalidInput(
                str(self.path), "lines with different pdrop", "one rate at which rounds were dropped, in all lines"
            )
        notes = _notes(rounds)
        features = _feature_columns(self.path, rounds)
        support = _support_columns(self.path, rounds, len(rounds.ids), self._ragged, notes)
        stamps = text_column(rounds.stamps)
        columns = features | support | {
            ACTION: Column(np.array(rounds.actions), None, np.array(list(rounds.ids), dtype=np.str_)),
            REWARD: number_column(np.array(rounds.rewards)),
            PROPENSITY: number_column(np.array(rounds.propensities)),
            **({EVENT_ID: text_column(one or None for one in rounds.event_ids)} if any(rounds.event_ids) else {}),
            **({} if stamps.absent.all() else {TIMESTAMP: stamps}),
        }  # fmt: skip
        known = Columns(
            context=tuple(features), action=ACTION, reward=REWARD, propensity=PROPENSITY,
            event_id=EVENT_ID if EVENT_ID in columns else None, timestamp=TIMESTAMP if TIMESTAMP in columns else None, group=None,
            support=SUPPORT if support else None, support_probabilities=CHANCES if support else None,
        )  # fmt: skip
        stated = Stated(
            len(rounds.ids), catalogue_ids=tuple(rounds.ids), notes=tuple(notes), columns=known,
            encoding=Encoding(standardise=False, intercept=not features),
        )  # fmt: skip
        return MemoryTables(Table(columns, len(rounds.rewards), np.array(rounds.lines), "line"), self.name, stated)


def read_dsjson(
    path: Path | str,
    *,
    catalogue: Actions | None = None,
    encoder: EncoderOption = None,
    identity: Identity = "auto",
    ragged: Ragged = "refuse",
) -> LoggedData:
    """Read a file of such lines, plain or gzipped.

    catalogue   ids that are known already; an action that is not among them is refused
    encoder     as for other logs; by default numbers stay as they are and texts become one entry a category
    identity    what an action is called: see above; "tag" and "features" insist on one way, "position" takes the place
                in _multi, for lines that all list the same actions in the same order
    ragged      a support has the same number of actions in every round. Where the lines offer different numbers:
                "refuse"; "drop" leaves the support out; "pad" fills it up with other actions at probability 0
    """
    tables = DsjsonTables(path, catalogue=catalogue, identity=identity, ragged=ragged)
    return TableLog(tables, catalogue=catalogue, encoder=encoder).collect()


@dataclass(frozen=True)
class _Line:
    path: Path
    number: int

    def refuse(self, why: str) -> DataError:
        return DataError(f"{self.path}: line {self.number}: {why}")


def _read_line(line: _Line, text: str, rounds: _Rounds, identity: Identity, *, fixed: bool) -> None:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise line.refuse(f"not valid JSON ({error})") from None
    if not isinstance(told, dict):
        raise line.refuse("not a JSON object")
    for key, what in NOT_ONE_ACTION.items():
        if key in told or (isinstance(told.get("c"), dict) and key in told["c"]):
            raise line.refuse(f"{key}: {what}; a log has one action per round")
    if told.get("_skipLearn") is True:
        rounds.skipped += 1
        return
    context = told.get("c")
    if not isinstance(context, dict) or not isinstance(context.get("_multi"), list) or not context["_multi"]:
        raise line.refuse('no actions: expected "c" with a list "_multi" of at least one')
    actions = [_identity(line, action, place, identity) for place, action in enumerate(context["_multi"])]
    if len(set(actions)) < len(actions):
        twice = next(name for name in actions if actions.count(name) > 1)
        raise line.refuse(
            f"the action {validate.describe(twice)} is offered twice; identity= says how actions are told"
        )
    rows = []
    for name in actions:
        if fixed and name not in rounds.ids:
            raise line.refuse(f"the action {validate.describe(name)} is not in the catalogue")
        rows.append(rounds.ids.setdefault(name, len(rounds.ids)))
    order, chances = _policy(line, told, len(actions))
    chosen = _chosen(line, told, order, len(actions))
    propensity = _number(line, told, PROPENSITY)
    if not 0 < propensity <= 1 + 1e-6:
        raise line.refuse(f"_label_probability is {propensity:g}, expected above 0 and at most 1")
    rounds.rewards.append(-_number(line, told, REWARD))
    rounds.actions.append(rows[chosen])
    rounds.propensities.append(min(propensity, 1.0))
    rounds.disagreeing += bool(order) and abs(chances[order.index(chosen)] - propensity) > AGREE
    rounds.offered.append([rows[place] for place in order])
    rounds.chances.append(chances)
    rounds.event_ids.append(str(told.get("EventId", "")))
    rounds.stamps.append(told["Timestamp"] if isinstance(told.get("Timestamp"), str) else None)
    shared = {key: value for key, value in context.items() if key != "_multi"}
    rounds.features.append(dict(_flat(line, shared, "")))
    rounds.lines.append(line.number)
    rounds.drops.add(_number(line, told, "pdrop") if told.get("pdrop") is not None else 0.0)


def _number(line: _Line, told: dict[str, Any], key: str) -> float:
    value = told.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise line.refuse(f"{key} is {validate.describe(value)}, expected a number")
    return _as_float(line, key, value)


def _as_float(line: _Line, key: str, value: float) -> float:
    """A number that a float can hold: JSON has integers of any length, and Python reads NaN and Infinity in it."""
    if not abs(value) < validate.LARGEST:
        raise line.refuse(f"{key} is {validate.describe(value)}, expected a number below {validate.LARGEST:g} in size")
    return float(value)


def _policy(line: _Line, told: dict[str, Any], count: int) -> tuple[list[int], list[float]]:
    """The offered actions as places in _multi, and their probabilities; both empty where the line does not say."""
    order, chances = told.get("a"), told.get("p")
    if order is None and chances is None:
        return [], []
    if not isinstance(order, list) or not isinstance(chances, list) or len(order) != len(chances):
        raise line.refuse("a and p must be lists of the same length")
    whole = all(isinstance(place, int) and not isinstance(place, bool) for place in order)
    if not whole or sorted(order) != list(range(1, count + 1)):
        raise line.refuse(
            f"a must name each of the {count} actions of _multi once, from 1: got {validate.describe(order)}"
        )
    if not all(isinstance(chance, (int, float)) and 0 <= chance <= 1 + 1e-6 for chance in chances):
        raise line.refuse(f"p must hold probabilities: got {validate.describe(chances)}")
    if abs(sum(chances) - 1) > 10 * SUM_TOLERANCE:
        raise line.refuse(f"p sums to {sum(chances):g}, expected 1")
    total = sum(chances) if sum(chances) > 1 else 1.0  # single precision overshoots a little
    return [place - 1 for place in order], [chance / total for chance in chances]


def _chosen(line: _Line, told: dict[str, Any], order: list[int], count: int) -> int:
    said: dict[str, int] = {}
    for key, shift in (("_labelIndex", 0), ("_label_Action", 1)):
        if key in told:
            value = told[key]
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value - shift < count:
                raise line.refuse(
                    f"{key} is {validate.describe(value)}, expected one of the {count} actions, from {shift}"
                )
            said[key] = value - shift
    if order:
        said["a[0]"] = order[0]
    if not said:
        raise line.refuse("nothing says which action was played: no _labelIndex, _label_Action or a")
    if len(set(said.values())) > 1:
        raise line.refuse(
            "they do not name the same action: " + ", ".join(f"{k} (from 0: {v})" for k, v in said.items())
        )
    return next(iter(said.values()))


def _identity(line: _Line, action: object, place: int, identity: Identity) -> str:
    if not isinstance(action, dict):
        raise line.refuse(f"action {place} of _multi is no JSON object")
    if identity == "position":
        return str(place)
    if identity in ("auto", "tag"):
        tag = action.get("_tag")
        if tag not in (None, ""):
            return str(tag)
        if identity == "tag":
            raise line.refuse(f"action {place} of _multi has no _tag")
        for where in (action, action.get("i")):
            if isinstance(where, dict) and isinstance(where.get("id"), (str, int)):
                return str(where["id"])
    return json.dumps(action, sort_keys=True, separators=(",", ":"))


def _flat(line: _Line, value: object, name: str) -> Iterator[tuple[str, float | str]]:
    """Nested features by dotted names; names that begin with _ are the format's own."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not key.startswith("_"):
                yield from _flat(line, item, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _flat(line, item, f"{name}[{place}]")
    elif isinstance(value, (bool, int, float)):
        yield name, _as_float(line, f"the feature {name}", value)
    elif isinstance(value, str):
        yield name, value
    elif value is not None:
        raise line.refuse(f"the feature {name} is {validate.describe(value)}, expected a number or a text")


def _feature_columns(path: Path, rounds: _Rounds) -> dict[str, Column]:
    names = dict.fromkeys(name for features in rounds.features for name in features)
    columns: dict[str, Column] = {}
    for name in names:
        values = [features.get(name) for features in rounds.features]
        texts = [isinstance(value, str) for value in values if value is not None]
        if any(texts) and not all(texts):
            first = next(i for i, v in enumerate(values) if v is not None and isinstance(v, str) != texts[0])
            raise InvalidInput(
                f"feature {name!r}", f"{validate.describe(values[first])} at line {rounds.lines[first]} of {path}",
                "texts or numbers, not both",
            )  # fmt: skip
        if texts[0]:
            columns[name] = text_column(v if isinstance(v, str) else None for v in values)
        else:
            columns[name] = number_column(np.array([0.0 if v is None else float(v) for v in values]))
    return columns


def _support_columns(
    path: Path, rounds: _Rounds, action_count: int, ragged: Ragged, notes: list[str]
) -> dict[str, Column]:
    """The actions that were offered, as rows, and how likely each was; nothing where lines do not say or do not agree."""
    sizes = [len(offered) for offered in rounds.offered]
    width = max(sizes)
    if not width:
        return {}
    different = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
    if different is not None:
        if ragged == "refuse":
            raise InvalidInput(
                str(path), f"{sizes[different]} actions offered at line {rounds.lines[different]}",
                f'{sizes[0]}, as at line {rounds.lines[0]}; ragged="drop" leaves the support out, "pad" fills it up',
            )  # fmt: skip
        if ragged == "drop":
            notes.append(f"between {min(sizes)} and {width} actions were offered; the support was left out")
            return {}
        notes.append(
            f"between {min(sizes)} and {width} actions were offered; supports are filled up to {width} with actions that "
            "were not offered, at probability 0"
        )
        for offered, chances in zip(rounds.offered, rounds.chances, strict=True):
            own = set(offered)
            other = (row for row in range(action_count) if row not in own)
            while len(offered) < width:
                offered.append(next(other))
                chances.append(0.0)
    return {SUPPORT: Column(np.array(rounds.offered)), CHANCES: Column(np.array(rounds.chances))}


def _notes(rounds: _Rounds) -> list[str]:
    notes = []
    if rounds.skipped:
        notes.append(f"{rounds.skipped:,} rounds are marked _skipLearn and were left out")
    if rounds.disagreeing:
        notes.append(f"in {rounds.disagreeing:,} rounds _label_probability is not what p says; the former was taken")
    if rounds.drops and max(rounds.drops) > 0:
        notes.append(f"rounds were dropped at the rate pdrop = {max(rounds.drops):g} before they were written")
    if not any(rounds.event_ids):
        notes.append("the lines have no EventId")
    return notes


__all__ = ["DsjsonTables", "read_dsjson"]
