"""The sketch of a log's rows, by whoever reads the log."""

from __future__ import annotations

from manyarms.evaluation.readers import Divided, Pass, Reader
from manyarms.logs.data import LoggedData, LogSource
from manyarms.logs.row_sketch import RowSketch


class Sketched:
    """The sketch of some rows of a log, which others come before and after."""

    def __init__(self, first_row: int) -> None:
        self.sketch = RowSketch(first_row)

    def merge(self, later: Sketched) -> None:
        """The rows that come after these."""
        self.sketch.join(later.sketch)


class _SketchPass(Pass[Sketched]):
    def start(self, first_row: int) -> Sketched:
        return Sketched(first_row)

    def add(self, sums: Sketched, part: LoggedData, row: int) -> None:
        sums.sketch.add(part)


def row_sketch(log: LogSource, reader: Reader | None = None) -> RowSketch:
    """Of all rows; a log in memory is sketched here, where it is."""
    if isinstance(log, LoggedData) or not isinstance(reader, Divided):
        return RowSketch.of(log)
    found = reader.read(_SketchPass(), log).sketch
    found.end_of_log()
    return found


__all__ = ["row_sketch"]
