"""How a log file is read: its columns, and what becomes of rows with something missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from manyarms.logs import Actions, Columns, Schema, TableLog
from manyarms.logs.formats.base import tables_in
from manyarms.logs.schema import NOTHING
from manyarms.logs.table_log import SpoolOption


@dataclass(frozen=True)
class Reading:
    """What the options of a command say about its log."""

    columns: Columns
    drop_missing: bool = False
    estimate_missing: bool = False
    catalogue: Actions | Literal["build"] | None = None  # where no policy brings its own
    words: str = ""  # the options themselves, for a command that follows

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
        known = self.catalogue if schema.catalogue is None and action_count is None else schema.catalogue
        return TableLog(
            tables_in(path), self.columns, action_count=action_count, catalogue=known, encoder=schema.encoder,
            drop_missing=self.drop_missing, estimate_missing=self.estimate_missing, spool=spool, keep_columns=keep_columns,
        )  # fmt: skip


__all__ = ["Reading"]
