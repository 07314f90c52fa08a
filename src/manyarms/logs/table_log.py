"""TableLog: from tables to a log. Columns are mapped, ids looked up, contexts encoded and rows checked, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Literal

import numpy as np

from manyarms._base import tables as shown
from manyarms._base import validate
from manyarms._base.text import counted
from manyarms._base.typing import Array
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput
from manyarms.logs.action_columns import CatalogueOption, are_ids, as_catalogue, built, ids_note
from manyarms.logs.actions import Actions
from manyarms.logs.columns import GUESS, Columns, Resolved
from manyarms.logs.data import CHUNK, LoggedData, concatenate
from manyarms.logs.encoding import (
    Encoder,
    EncoderLike,
    Encoding,
    TableEncoder,
    TextPart,
    as_codes,
    as_encoder,
    encoder_of_json,
)
from manyarms.logs.gaps import EstimateOption, Gaps, as_estimates, without_gaps
from manyarms.logs.gathering import gathered
from manyarms.logs.propensity_models import PropensityModel, action_frequencies
from manyarms.logs.schema import Schema
from manyarms.logs.splitting import SplitBy
from manyarms.logs.spool import SpooledTables
from manyarms.logs.table_columns import TableColumns, labels_in
from manyarms.logs.tables import Column, Kind, MemoryTables, Table, TableSource, as_times

MOST_IDS = 50_000_000
EncoderOption = EncoderLike | Encoding | None
SpoolOption = bool | Literal["fit"]
Ids = Actions | Literal["build"] | None


class TableLog(TableColumns, shown.Shown):
    """A LogSource over tables: nothing is held but the catalogue and the encoder.

    columns       which column is what; guessed where not said, and the notes repeat the guesses
    action_count  K; otherwise what the file states, or the largest action seen + 1
    catalogue     the ids of the actions: Actions, a list of ids, or a Catalogue. Texts get one by themselves, in order of first
                  appearance; "build" makes one of integers that are ids rather than rows. So do integers that can hardly be rows
                  (`manyarms.logs.action_columns` says which), with a note, unless action_count is given
    encoder       a fitted encoder, or a fitted scikit-learn transformer; or an Encoding, to be fitted on this log; otherwise
                  numbers stay as they are, and texts are encoded one entry a category
    drop_missing  leave out rows whose action, reward or propensity is missing; they are refused otherwise
    estimate_missing   propensities that are missing are estimated, by how often each action was played (True) or by a model
                  (estimate_propensities(...).model), and marked row by row (`LoggedData.estimated`); the others stay
    spool         keep what was decoded of a file, so that it is read once (see `manyarms.logs.spool`): True for all passes,
                  "fit" where a pass is needed before the first chunk, to find ids, K or the encoder. Without, every pass
                  reads the columns that it needs
    keep_columns  keep all columns of the table beside what was made of them (`LoggedData.original`), for functions of columns;
                  those of a frame are kept in any case
    """

    def __init__(
        self,
        source: TableSource,
        columns: Columns | None = None,
        *,
        action_count: int | None = None,
        catalogue: CatalogueOption = None,
        encoder: EncoderOption = None,
        drop_missing: bool = False,
        estimate_missing: EstimateOption = False,
        spool: SpoolOption = False,
        keep_columns: bool = False,
    ) -> None:
        self.drop_missing = validate.flag("drop_missing", drop_missing)
        estimates = as_estimates(estimate_missing)
        if not isinstance(source, TableSource):
            raise InvalidInput("source", describe(source), "tables of a file or of a frame (open_log, from_frame)")
        if not isinstance(columns, Columns | None):
            raise InvalidInput("columns", describe(columns), "Columns(...), or None")
        encoder = encoder if isinstance(encoder, Encoding) else as_encoder("encoder", encoder)
        ids = as_catalogue(catalogue)
        if not isinstance(spool, bool) and not (isinstance(spool, str) and spool == "fit"):
            raise InvalidInput("spool", describe(spool), 'True, False or "fit"')
        stated = source.stated
        wanted = Columns() if columns is None else columns
        if encoder is not None and not isinstance(encoder, Encoding) and wanted.context == GUESS:
            wanted = replace(wanted, context=tuple(encoder.columns))
        if source.row_count == 0:  # before columns are looked for: of one without entries nobody knows what it holds
            raise InvalidInput(source.name, "no row", "at least one round")
        self.columns = wanted.resolve(source)
        self._numbered = source.kinds()[self.columns.action].name == "number"
        self.source: TableSource = source.as_texts(self._named(source.kinds(), ids, encoder))
        self._unspooled = self.source
        self.kinds = self.source.kinds()
        for name in self.columns.all:
            if self.kinds[name].name in ("mixed", "unsupported"):
                raise source.complaint(name)
        # the columns of a frame are kept at no cost; those of a file where they are asked for
        self._keeps = validate.flag("keep_columns", keep_columns) or isinstance(source, MemoryTables)
        self._further = self._further_columns()
        self._own_ids = stated.catalogue_ids
        if ids is None and stated.catalogue_ids is not None:
            ids = Actions(stated.catalogue_ids)
        if ids is None and self.kinds[self.columns.action].name == "text":
            ids = "build"
        given = None if action_count is None else validate.count("action_count", action_count)
        known = given if given is not None else stated.action_count
        # an encoder that the file states has made its vectors already: it is for new rows, not for these
        ours = encoder is None and stated.encoder is not None and self.columns.context == ("context",)
        made = encoder_of_json(stated.encoder) if ours and stated.encoder is not None else None
        self._model: PropensityModel | None = None
        plan = self._plan(encoder) if made is None else None
        self._actions_note = ""
        self._fit(plan, ids, known, spool)
        self.encoder: Encoder | None = self._applied or made or self._unchanged()
        if self.catalogue is not None:
            if given is not None and given != len(self.catalogue):
                expected = f"{len(self.catalogue)}, the number of ids; give catalogue= to name the others"
                raise InvalidInput("action_count", given, expected)
            self.action_count = len(self.catalogue)
        self.notes = self._notes(plan)
        if estimates is not False:
            self._estimate(estimates)

    def __getstate__(self) -> dict[str, object]:
        """What is sent to other processes: they read the file by themselves, and a spool stays where it is."""
        return {**vars(self), "source": self._unspooled}

    def __copy__(self) -> TableLog:
        """Here, with its spool."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def with_original_columns(self) -> TableLog:
        """The same log with all columns of the table in its chunks (`LoggedData.original`), read beside the others."""
        other = copy(self)
        if not self._keeps and self._further:  # a spool has decoded those alone that the log itself needs
            other.source = self._unspooled
        other._keeps = True
        return other

    @property
    def schema(self) -> Schema:
        """Encoder and ids, for what is learned from the log."""
        return Schema.of(self)

    @property
    def dim(self) -> int:
        """d, the length of a context."""
        if self._applied is not None:
            return self._applied.dim
        widths = [self.kinds[name].width for name in self.columns.context]
        if None in widths:
            return next(iter(self.chunks())).dim
        return sum(width for width in widths if width is not None)

    @property
    def row_count(self) -> int | None:
        """How many rows the source has, where it knows without reading them."""
        return self.source.row_count

    def chunks(self, rows: int = CHUNK) -> Iterator[LoggedData]:
        """The rounds in parts of at most `rows`; one part is in memory at a time."""
        found = False
        for table in self.source.tables(self._read, validate.count("rows", rows)):
            complete = self._complete(table)
            if complete.rows:
                found = True
                yield self._log(complete)
        if not found:
            came = "no row" if not self.drop_missing else "no row that is complete"
            raise InvalidInput(self.source.name, came, "at least one round")

    @property
    def row_groups(self) -> tuple[int, ...] | None:
        """The rows, those to be left out among them, of each part that can be read without the others; None: there are none."""
        return self._unspooled.row_groups()

    def group_chunks(self, group: int, rows: int = CHUNK) -> Iterator[LoggedData]:
        """The rounds of one of the `row_groups`, in parts of at most `rows`; nothing where all of them are left out."""
        if (sizes := self.row_groups) is not None:
            group = validate.count("group", group, 0, len(sizes) - 1)
        for table in self._unspooled.group_tables(group, self._read, validate.count("rows", rows)):
            complete = self._complete(table)
            if complete.rows:
                yield self._log(complete)

    def collect(self) -> LoggedData:
        """All rounds in memory."""
        if isinstance(self.source, MemoryTables) and self._keeps:  # whose columns are there already, in one piece
            plain = copy(self)
            plain._keeps = False
            log = plain.collect()
            log._set("original", self._complete(self.source.table))
            return log
        total = self.source.row_count
        log = concatenate(self.chunks(), chunks=True) if total is None else gathered(self.chunks(), total)
        if self.drop_missing and total is not None and total > len(log):
            return log.with_notes(f"{total - len(log):,} rows with missing entries were left out")
        return log

    def with_action_count(self, count: int) -> TableLog:
        """The same log over a longer catalogue, whose further actions were never played."""
        other = copy(self)
        other.action_count = validate.count("count", count, least=self.action_count)
        return other

    def split(
        self, fraction: float, seed: int | np.random.Generator | None = 0, *, by: SplitBy | None = None
    ) -> tuple[LoggedData, LoggedData]:
        """All rounds in memory, in two parts; see `LoggedData.split`."""
        return self.collect().split(fraction, seed, by=by)

    def with_gaps(self) -> tuple[LoggedData, Array | None]:
        """All rounds in memory, without propensities; and those that there are, NaN where they are missing."""
        name = self.columns.propensity
        log = self._without_propensities().collect()
        if name is None:
            return log, None
        parts = [np.empty(0)]
        for table in self._without_gaps():
            values = self._numbers(name, without_gaps(table[name]), table).astype(np.float64)
            parts.append(np.where(table[name].absent, np.nan, values))
        return log, np.concatenate(parts)

    def _without_propensities(self) -> TableLog:
        bare = copy(self)
        bare.columns = replace(self.columns, propensity=None, estimated=None, propensities_are_estimates=False)
        bare._model = None
        return bare

    def _without_gaps(self) -> Iterator[Table]:
        """What a log without propensities is made from, with the propensities beside."""
        bare = self._without_propensities()
        needed = (
            [*bare.columns.all, str(self.columns.propensity)] if self.drop_missing else [str(self.columns.propensity)]
        )
        for table in self.source.tables(needed, CHUNK):
            yield bare._complete(table)

    def _estimate(self, given: EstimateOption) -> None:
        """Find out what to put in place of missing propensities, in a pass over the actions."""
        bare, gaps = self._without_propensities(), Gaps()
        if self.columns.propensity is None:
            gaps.see(1, None)
        else:
            for table in self._without_gaps():
                gaps.see(table.rows, table[self.columns.propensity])
        if gaps.missing:
            how = "how often each action was played" if isinstance(given, bool) else "the model that was given"
            self._model = action_frequencies(bare) if isinstance(given, bool) else given
            said = f"propensities are estimates from {how}" if self.columns.propensity is None else gaps.note(how)
            self.notes = (*self.notes, said)

    # ---- what must be known before the first chunk

    @property
    def _read(self) -> list[str]:
        """The columns that chunks are made of."""
        return [*self.columns.all, *(self._further if self._keeps else ())]

    def _further_columns(self) -> tuple[str, ...]:
        """Columns that are no part of the log, and can be read."""
        mapped = set(self.columns.all)
        return tuple(
            name for name, kind in self.kinds.items()
            if name not in mapped and kind.name not in ("mixed", "unsupported")
        )  # fmt: skip

    def _named(self, kinds: dict[str, Kind], ids: Ids, encoder: Encoder | Encoding | None) -> set[str]:
        """Columns whose entries are names, also where they look like numbers."""
        c = self.columns
        texts = {c.action} if ids is not None else set()
        texts |= {n for n in (c.action, c.event_id, c.group, *c.support) if n is not None and kinds[n].name == "mixed"}
        if isinstance(encoder, Encoding):
            texts |= set(encoder.categorical)
        elif isinstance(encoder, TableEncoder):
            texts |= {part.column for part in encoder.parts if isinstance(part, TextPart)}
        return texts

    def _plan(self, encoder: Encoder | Encoding | None) -> Encoder | Encoding | None:
        if encoder is not None:
            return encoder
        if self.source.stated.encoding is not None:
            return self.source.stated.encoding
        if not self.columns.context:
            return Encoding(standardise=False, intercept=True)
        texts = any(self.kinds[name].name == "text" for name in self.columns.context)
        return Encoding(standardise=False, intercept=False) if texts else None

    def _unchanged(self) -> TableEncoder | None:
        """Contexts that are columns of numbers have no encoding, but names: a later row may be given by them."""
        kinds = {name: self.kinds[name] for name in self.columns.context}
        named = any(kind.name == "number" for kind in kinds.values())
        widths = {name: kind.width for name, kind in kinds.items() if kind.width is not None}
        return TableEncoder.unchanged(widths) if named and len(widths) == len(kinds) else None

    def _fit(self, plan: Encoder | Encoding | None, ids: Ids, known: int | None, spool: SpoolOption) -> None:
        """One pass, over the columns that something must still be learned from; another one where integers turn out to be ids."""
        context = list(self.columns.context) if isinstance(plan, Encoding) else []
        action, count = self.columns.action, ids is None and known is None
        limits = self.source.limits(action) if count else None
        rounds = self.source.row_count
        if limits is not None and rounds is not None and are_ids(*limits, rounds):
            ids, self._actions_note = "build", ids_note(action, *limits, rounds)
        build, count = ids == "build", count and limits is None
        names = list(dict.fromkeys(context + ([action] if build or count else [])))
        if self.source.rereads and (spool is True or (spool == "fit" and names)):
            self.source = SpooledTables(self.source, self._read, CHUNK)
        found: dict[str, None] = {}
        ends: list[int] = []
        rounds = 0

        def tables(columns: list[str]) -> Iterator[Table]:
            nonlocal rounds
            for table in (
                self.source.tables(self.columns.all if self.drop_missing else columns, CHUNK) if columns else ()
            ):
                part = self._complete(table) if self.drop_missing else table
                rounds += part.rows
                column = part.columns.get(action)
                if column is not None and build:
                    self._note_ids(column, found, part)
                elif column is not None and count:
                    ends.extend(self._limits(column, part))
                yield part

        seen = tables(names)
        # what makes contexts of these tables; None where they are contexts already
        self._applied: Encoder | None = plan.fit(seen, context) if isinstance(plan, Encoding) else plan
        for _ in seen:  # what no encoder was fitted on
            pass
        if ends:
            limits = min(ends), max(ends)
            if are_ids(*limits, rounds):
                self._actions_note, build = ids_note(action, *limits, rounds), True
                self.source = self.source.as_texts({action})
                self._unspooled = self._unspooled.as_texts({action})
                for _ in tables([action]):
                    pass
        self.catalogue: Actions | None = (
            built(found, numbers=self._numbered) if build else ids if isinstance(ids, Actions) else None
        )
        self.action_count = known if known is not None else 0 if limits is None else max(limits[1] + 1, 0)

    def _note_ids(self, column: Column, ids: dict[str, None], table: Table) -> None:
        texts, codes = as_codes(self.columns.action, column)
        if (codes < 0).any():
            self._complain_missing(self.columns.action, column, table)
        used, first = np.unique(codes, return_index=True)
        ids.update(dict.fromkeys(texts[code] for code in used[np.argsort(first)].tolist()))
        if len(ids) > MOST_IDS:
            raise InvalidInput(f"column {self.columns.action!r}", f"more than {MOST_IDS:,} ids", "ids of actions")

    def _limits(self, column: Column, table: Table) -> list[int]:
        values = self._numbers(self.columns.action, column, table)
        if not len(values):
            return []
        if values.dtype.kind == "f" and not np.abs(values).max() < 2**63:
            row = table.where.row(int(np.argmax(~(np.abs(values) < 2**63))))
            raise InvalidInput(f"column {self.columns.action!r}", f"a number beyond all ids at {row}", "ids of actions")
        return [int(values.min()), int(values.max())]

    def _notes(self, plan: Encoder | Encoding | None) -> tuple[str, ...]:
        notes = list(self.source.stated.notes)
        if not self.source.stated.action_count:  # in a file of ours nothing is a guess
            guesses = "; ".join(self.columns.guesses)
            notes += [f"guessed from the names in {self.source.name}: {guesses}"] if guesses else []
        notes += [self._actions_note] if self._actions_note else []
        if not self.columns.context:
            notes.append("the log has no contexts: each is the number 1")
        elif isinstance(plan, Encoding) and self._applied is not None:
            notes.append(
                f"contexts were encoded from {counted(len(self.columns.context), 'column')} "
                f"to {counted(self._applied.dim, 'number')}"
            )
        return tuple(notes)

    # ---- one chunk

    def _complete(self, table: Table) -> Table:
        """Without the rows that drop_missing leaves out."""
        if not self.drop_missing:
            return table
        keep = np.ones(table.rows, dtype=np.bool_)
        propensity = None if self._model is not None else self.columns.propensity
        for name in (self.columns.action, self.columns.reward, propensity):
            if name is not None and table[name].missing is not None:
                keep &= ~table[name].absent
        return table if keep.all() else table.part(keep)

    def _log(self, table: Table) -> LoggedData:
        c: Resolved = self.columns
        rewards = self._numbers(c.reward, table[c.reward], table)
        support = self._support_ids(table) if c.support else None
        contexts = self._matrix(c.context, table) if self._applied is None else self._applied.apply(table)
        actions = self._action_rows(c.action, table[c.action], table)
        propensities, estimated = self._propensities(table, contexts, actions)
        return LoggedData(
            contexts=contexts,
            actions=actions,
            rewards=rewards,
            action_count=self.action_count,
            propensities=propensities,
            propensities_are_estimates=c.propensities_are_estimates,
            estimated=estimated,
            support=support,
            support_probabilities=self._matrix(c.support_probabilities, table) if c.support_probabilities else None,
            event_ids=None if c.event_id is None else table[c.event_id].texts(),
            timestamps=None if c.timestamp is None else as_times(c.timestamp, table[c.timestamp], table.where),
            groups=None if c.group is None else labels_in(table[c.group]),
            catalogue=self.catalogue,
            encoder=self.encoder,
            notes=self.notes,
            original=self._original(table) if self._keeps else None,
            first_row=table.first_row,
            row_unit=table.unit,
            column_names=c.names() | self._entry_names(),
        )

    def _original(self, table: Table) -> Table:
        """All columns but vectors that are contexts as they are: these are in the log already."""
        vectors = [name for name in self.columns.context if self.kinds[name].name == "vector"]
        columns = {name: column for name, column in table.columns.items() if name not in vectors}
        return table if not vectors else Table(columns, table.rows, table.first_row)

    def _complain_missing(self, name: str, column: Column, table: Table) -> None:
        row = table.where.row(int(np.argmax(column.absent)))
        if name == self.columns.propensity:
            gaps = Gaps()
            for part in self._without_gaps():
                gaps.see(part.rows, part[name])
            ways = "estimate_missing=True estimates the missing ones, drop_missing=True leaves such rows out"
            came = f"a missing entry at {row} ({gaps.share:.1%} of the rows have none)"
            raise InvalidInput(f"column {name!r}", came, f"an entry in every row ({ways})")
        required = name in (self.columns.action, self.columns.reward)
        advice = "drop_missing=True leaves such rows out" if required else "an Encoding can take missing entries"
        raise InvalidInput(f"column {name!r}", f"a missing entry at {row}", f"an entry in every row ({advice})")

    def _table(self) -> shown.Table:
        from manyarms.logs.printing import table_log_table

        return table_log_table(self)

    def _line(self) -> str:
        return self._table().title


__all__ = ["CatalogueOption", "EncoderOption", "SpoolOption", "TableLog"]
