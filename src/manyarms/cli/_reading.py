"""How a log file is read: its columns, and what becomes of rows with something missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from manyarms.logs import Columns, Schema, TableLog
from manyarms.logs.formats.base import tables_in
from manyarms.logs.schema import NOTHING
from manyarms.logs.table_log import SpoolOption


@dataclass(frozen=True)
class Reading:
    """What the options of a command say about its log."""

    columns: Columns
    drop_missing: bool = False
    estimate_missing: bool = False

    def open(
        self,
        path: Path,
        schema: Schema = NOTHING,
        *,
        action_count: int | None = None,
        keep_columns: bool = False,
        spool: SpoolOption = True,
    ) -> TableLog:
        """The rounds in a file, which is read once; schema: whose contexts and actions they become."""
        return TableLog(
            tables_in(path), self.columns, action_count=action_count, catalogue=schema.catalogue, encoder=schema.encoder,
            drop_missing=self.drop_missing, estimate_missing=self.estimate_missing, spool=spool, keep_columns=keep_columns,
        )  # fmt: skip


__all__ = ["Reading"]
