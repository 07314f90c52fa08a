"""Any log file by its name: the one place that knows which ending means which format."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from manyarms.errors import DataError, InvalidInput
from manyarms.logs.assemble import CatalogueOption, EncoderOption, TableLog
from manyarms.logs.columns import Columns
from manyarms.logs.data import LoggedData
from manyarms.logs.formats.csv import CsvLog
from manyarms.logs.formats.dsjson import read_dsjson
from manyarms.logs.formats.parquet import ParquetLog

Format = Literal["parquet", "csv", "dsjson"]
ENDINGS: dict[str, Format] = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".dsjson": "dsjson", ".json": "dsjson",
    ".jsonl": "dsjson",
}  # fmt: skip


def format_of(path: Path | str) -> Format:
    """The format of a file that is there, from its name; texts may end in .gz besides."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file")
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    found = ENDINGS.get(plain.suffix.lower())
    if found is None or (found == "parquet" and plain != path):
        raise InvalidInput("LOG", str(path), "a file that ends in " + ", ".join(ENDINGS))
    return found


def open_log(
    path: Path | str,
    columns: Columns | None = None,
    *,
    action_count: int | None = None,
    catalogue: CatalogueOption = None,
    encoder: EncoderOption = None,
    drop_missing: bool = False,
) -> TableLog | LoggedData:
    """A log file as a LogSource: Parquet and CSV are streamed, dsjson is read whole (columns and action_count aside).

    The arguments are those of TableLog; for dsjson the catalogue must be one, or None.
    """
    kind = format_of(path)
    if kind == "dsjson":
        if catalogue == "build":
            catalogue = None
        return read_dsjson(path, catalogue=catalogue, encoder=encoder, ragged="drop")
    reader = ParquetLog if kind == "parquet" else CsvLog
    return reader(
        path, columns, action_count=action_count, catalogue=catalogue, encoder=encoder, drop_missing=drop_missing
    )


__all__ = ["Format", "format_of", "open_log"]
