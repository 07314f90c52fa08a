"""A log format of one's own: one JSON object a line, its keys the columns."""

from __future__ import annotations

import json

from manyarms.errors import DataError
from manyarms.logs import FORMATS, MemoryFormat
from manyarms.logs.frame_columns import frame_tables
from manyarms.logs.tables import MemoryTables


@FORMATS.register("ndjson")
class RoundsAsJson(MemoryFormat):
    """Files that end in .ndjson, decoded into memory; a `LogFormat` would give tables in chunks."""

    suffixes = (".ndjson",)

    def read(self) -> MemoryTables:
        rows = []
        for number, line in enumerate(self.path.read_text().splitlines(), start=1):
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise DataError(f"{self.path}, line {number}: not JSON ({error})") from error
        if not rows:
            raise DataError(f"{self.path}: no round in it")
        return frame_tables({name: [row.get(name) for row in rows] for name in rows[0]})
