"""A live log as a Parquet file that `open_log` reads with nothing to add: one row for every event whose reward is known.

The file has what any log has (context, action, reward, propensity, event_id, timestamp, group) and, beside it, what only a live
log knows. Actions are written by their ids. What the file says about itself (the actions, the encoder, whether any propensity is
an estimate) is written last, when it is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from manyarms._base import files, validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted
from manyarms.errors import InvalidInput, LiveError
from manyarms.live import log, snapshots
from manyarms.live.agent_arm import AgentArm
from manyarms.live.cutting import settings_changed
from manyarms.live.policy_arm import PolicyArm
from manyarms.live.progress import Progress, to_whom
from manyarms.live.propensities import PropensityWorker
from manyarms.live.records import DecisionRecord
from manyarms.live.settings import SettingsInTime
from manyarms.live.state import State
from manyarms.live.stores.database import Database, Reader, Transaction
from manyarms.live.stores.opening import opened
from manyarms.logs import Actions, arrow
from manyarms.logs.actions import ActionId

STEP = 4096  # positions at a time
COMPUTED_AT_ONCE = 256  # propensities between two reports of progress


@dataclass(repr=False)
class Exported(Shown):
    """What was written, and what was left out, by reason."""

    path: Path
    rows: int
    estimated: int
    left_out: dict[str, int]

    def _table(self) -> Table:
        estimates = f", {self.estimated:,} with estimated propensities" if self.estimated else ""
        left = [f"left out: {number:,} {why}" for why, number in self.left_out.items() if number]
        return Table(f"{self.path}: {counted(self.rows, 'row')}{estimates}", notes=left)


NOT_DUE = "events that may still be rewarded"
NO_REWARD = "events without a reward, where the store has no default"
ERASED = "events that were erased"
NOT_SHOWN = "events that were never activated"
UNKNOWN = "events whose propensity cannot be known any more"
ESTIMATED = "events whose propensity is an estimate"
OTHER_LENGTH = "events with a context of another length"
REASONS = (NOT_DUE, NO_REWARD, ERASED, NOT_SHOWN, UNKNOWN, ESTIMATED, OTHER_LENGTH)


def export(
    store: str | Path | Database,
    path: str | Path,
    *,
    unsettled: bool = False,
    exact_only: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write the events of a store whose rewards are known to a Parquet file, which appears when it is complete, or not at all.

    An event is written when its waiting time is over, with the reward that it has now: those that came, as the store's
    `aggregate` says, or the store's `default`, by the settings that held when it was decided. unsettled: write those as well that
    have a reward and still wait; a log with the rewards that came quickly, and without those that come slowly, flatters whatever
    is rewarded quickly. exact_only: leave out events whose propensity is an estimate; which those are does not depend on
    rewards. What was decided with `active=False` and never activated is no event.

    Propensities that are missing are computed first, and kept in the store. progress: called now and then with how much is done,
    of how much, and what it is.
    """
    target = files.as_path("path", path)
    if target.suffix not in (".parquet", ".pq"):  # what `open_log` knows a Parquet file by
        raise InvalidInput("path", validate.describe(str(target)), "a name that ends in .parquet")
    unsettled, exact_only = validate.flag("unsettled", unsettled), validate.flag("exact_only", exact_only)
    told = to_whom(progress)
    arrow.pyarrow("exporting a live log")
    files.require_file("path", target)
    with opened(store) as database:
        return _Export(database, target, unsettled, exact_only, told).run()


class _Export:
    """One export: of everything up to a position of the log, whatever comes meanwhile."""

    def __init__(self, database: Database, path: Path, unsettled: bool, exact_only: bool, progress: Progress) -> None:
        self._database, self._unsettled, self._exact_only, self._progress = database, unsettled, exact_only, progress
        self._found = Exported(path, 0, 0, dict.fromkeys(REASONS, 0))
        self._upto, self._now = database.do(_now)
        state = snapshots.state_of(database)
        with database.reading() as reader:
            self._origin = log.get(reader, "origin")
            # decided after a change of the settings that no chunk has: how it counts is not known yet
            self._known = settings_changed(reader, state.chunk.upto)
            self._grouped = bool(reader.execute("SELECT 1 FROM decisions WHERE unit IS NOT NULL LIMIT 1"))
            self._edge = bool(reader.execute("SELECT 1 FROM decisions WHERE details LIKE ? LIMIT 1", ('%"edge":%',)))
            self._total = reader.execute("SELECT COUNT(*) FROM decisions WHERE position <= ?", (self._upto,))[0][0]
            self._width = _width(state, reader)
        self._agreed: SettingsInTime = state.agreed
        self._largest = _actions_of(state) - 1
        self._names, self._encoder = state.schema.catalogue, state.schema.encoder
        self._per_action = False

    def run(self) -> Exported:
        self._compute_missing()
        files.write_atomically(self._found.path, self._write)
        return self._found

    def _compute_missing(self) -> None:
        worker, done = PropensityWorker(self._database), 0
        while number := worker.work(COMPUTED_AT_ONCE, share=False):
            done += number
            self._progress(done, 0, f"{done:,} propensities computed")

    def _write(self, stream: BinaryIO) -> None:
        import pyarrow.parquet as parquet

        schema = _schema(self._width, self._grouped, self._edge, self._names)
        with parquet.ParquetWriter(stream, schema, compression="zstd", compression_level=1) as writer:
            for rows in self._batches():
                if rows:
                    writer.write_table(_table(rows, schema), row_group_size=len(rows))
            self._require_rows()
            writer.add_key_value_metadata({arrow.METADATA: self._told()})

    def _require_rows(self) -> None:
        with self._database.reading() as reader:
            if log.get(reader, "origin") != self._origin:
                raise LiveError("the store was compacted while it was exported: export it again")
        if not self._found.rows:
            reasons = ", ".join(f"{number:,} {why}" for why, number in self._found.left_out.items() if number)
            raise LiveError(f"nothing to export: {reasons or 'no decisions yet'}")

    def _told(self) -> str:
        notes = [
            "exported from a live store: propensities are those of the agents of that time, with their shares of the traffic"
        ]
        if self._per_action:
            notes.append("actions had contexts of their own: `context` is that of the action taken")
        estimates = self._found.estimated > 0
        encoder = getattr(self._encoder, "as_json", lambda: None)()  # what made the vectors, for rows to come
        if self._names is None:
            return arrow.told(self._largest + 1, estimates, notes, None, encoder)
        return arrow.told(len(self._names), estimates, notes, list(self._names), encoder)

    def _called(self, rows: list[int] | None) -> list[ActionId] | None:
        """The ids of actions."""
        return rows if rows is None or self._names is None else self._names.ids(rows)  # type: ignore[return-value]

    def _batches(self) -> Iterator[list[dict[str, Any]]]:
        after = done = 0
        while after < self._upto:
            with self._database.reading() as reader:
                records = [r for r in log.decisions_from(reader, after, STEP) if r.position <= self._upto]
                if not records:
                    return
                positions = [record.position for record in records]
                rewards = log.rewards_of(reader, positions, self._upto)
                computed = log.propensities_of(reader, positions)
            after, done = positions[-1], done + len(records)
            rows = []
            for record in records:
                values = None
                if not record.erased:
                    came = rewards.get((record.position, record.actions[0]), [])
                    values = [reward.value for reward in came]
                row = self._row(record, values, computed.get(record.position))
                if isinstance(row, str):
                    self._found.left_out[row] += 1
                else:
                    rows.append(row)
            yield rows
            self._found.rows += len(rows)
            self._progress(done, self._total, f"{self._found.rows:,} rows written")

    def _row(
        self, record: DecisionRecord, rewards: list[float] | None, computed: tuple[float, ...] | None
    ) -> dict[str, Any] | str:
        """A row of the file, or why there is none."""
        if rewards is None or record.question is None:
            return ERASED
        if self._known is not None and record.position > self._known:
            return NOT_DUE
        settings, shown = self._agreed.of(record.position), record.active_at(self._upto)
        if record.at > self._now - settings.wait and not (self._unsettled and rewards and shown):
            return NOT_DUE
        if not shown:
            return NOT_SHOWN
        reward = settings.combined(rewards) if rewards else settings.default
        if reward is None:
            return NO_REWARD
        known: tuple[float | None, ...] = (record.propensity, record.arm_propensity, record.inclusion)
        kind = record.propensity_kind
        if record.propensity is None:
            if computed is None or computed[3] < 0:
                return UNKNOWN
            known, kind = computed[:3], "estimated" if computed[4] else "exact"
        if kind == "estimated" and self._exact_only:
            return ESTIMATED
        asked, action = record.question, record.actions[0]
        context = asked.context_of(action)
        if context is None or context.shape != (self._width,):
            return OTHER_LENGTH
        self._per_action |= asked.per_action
        self._largest = max(self._largest, *record.actions)
        self._found.estimated += kind == "estimated"
        return {
            "context": context, "action": action if self._names is None else self._names[action], "reward": reward,
            "propensity": known[0], "event_id": record.id,
            "timestamp": np.datetime64(round(record.at * 1e6), "us"),
            # an event without a unit is a group of its own
            "group": f"unit:{record.unit}" if record.unit is not None else f"event:{record.id}",
            "propensity_kind": kind, "propensity_given_arm": known[1], "inclusion": known[2], "arm": record.arm,
            "version": record.version, "unit": record.unit, "k": len(record.actions), "actions": self._called(record.actions),
            "candidates": self._called(asked.candidates), "excluded": self._called(asked.exclude), "rewards": len(rewards),
            "edge": record.details.get("edge"),
        }  # fmt: skip


def _now(tx: Transaction) -> tuple[int, float]:
    position, at = tx.following()
    return position - 1, at


def _width(state: State, reader: Reader) -> int:
    """How long contexts are: those that the agents take, or that the newest decision had where there is no agent."""
    for arm in state.arms.values():
        if isinstance(arm, AgentArm):
            return int(arm.agent.belief.dim)
    newest = reader.execute("SELECT position FROM decisions WHERE erased = 0 ORDER BY position DESC LIMIT 1")
    if not newest:
        raise LiveError("nothing to export: no decisions yet")
    [record] = log.decisions_at(reader, newest[0]).values()
    assert record.question is not None
    return int(record.question.context.shape[-1])


def _actions_of(state: State) -> int:
    """How many actions the arms know."""
    known = [1]
    for arm in state.arms.values():
        if isinstance(arm, AgentArm):
            known.append(int(arm.agent.belief.catalogue.size))
        elif isinstance(arm, PolicyArm):
            known.append(int(arm.policy.action_count))
    return max(known)


def _schema(width: int, grouped: bool, edge: bool, names: Actions | None) -> Any:
    import pyarrow as pa

    called = pa.int64() if names is None or names.numbered else pa.string()
    ids = pa.list_(called)
    types = {
        "context": pa.list_(pa.float64(), width), "action": called, "reward": pa.float64(), "propensity": pa.float64(),
        "event_id": pa.string(), "timestamp": pa.timestamp("us"), "group": pa.string(), "propensity_kind": pa.string(),
        "propensity_given_arm": pa.float64(), "inclusion": pa.float64(), "arm": pa.string(), "version": pa.int64(),
        "unit": pa.string(), "k": pa.int64(), "actions": ids, "candidates": ids, "excluded": ids, "rewards": pa.int64(),
        "edge": pa.string(),
    }  # fmt: skip
    optional = ("unit", "candidates", "excluded", "edge")
    absent = (set() if grouped else {"group", "unit"}) | (set() if edge else {"edge"})
    wanted = {name: type_ for name, type_ in types.items() if name not in absent}
    return pa.schema([pa.field(name, type_, nullable=name in optional) for name, type_ in wanted.items()])


def _table(rows: list[dict[str, Any]], schema: Any) -> Any:
    import pyarrow as pa

    def entries(name: str, type_: Any) -> Any:
        values = [row[name] for row in rows]
        if name == "context":
            return pa.FixedSizeListArray.from_arrays(pa.array(np.concatenate(values)), type_.list_size)
        return pa.array(np.array(values) if name == "timestamp" else values, type_)

    return pa.Table.from_arrays([entries(one.name, one.type) for one in schema], schema=schema)


__all__ = ["Exported", "export"]
