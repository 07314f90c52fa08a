"""Logs: what happened, read from and written to files and frames, and checked on the way.

LoggedData       rounds in memory; LogSource: anything that gives rounds in chunks, such as ParquetLog
Columns          which column is what;  Actions: ids and rows;  Encoding, Encoder: from columns to context vectors
read_*, to_*     Parquet, CSV, frames of pandas, polars and Arrow, the Open Bandit samples, Vowpal Wabbit's dsjson
estimate_propensities, action_frequencies        where nobody wrote down how likely the actions were
"""

from __future__ import annotations

from manyarms.logs.actions import Actions
from manyarms.logs.assemble import TableLog
from manyarms.logs.calibration import Calibration
from manyarms.logs.columns import Columns
from manyarms.logs.data import CHUNK, LoggedData, LoggingPolicy, LogSource, collect, concatenate
from manyarms.logs.encoding import Encoder, Encoding
from manyarms.logs.formats.csv import CsvLog, read_csv, to_csv
from manyarms.logs.formats.dsjson import read_dsjson
from manyarms.logs.formats.frames import from_frame, to_arrow, to_pandas, to_polars
from manyarms.logs.formats.open_bandit import OpenBandit, read_open_bandit, write_made_up_open_bandit
from manyarms.logs.formats.parquet import ParquetLog, read_parquet, to_parquet
from manyarms.logs.opening import open_log
from manyarms.logs.propensities import EstimatedPropensities, FrequencyTable, action_frequencies, estimate_propensities

__all__ = [
    "CHUNK", "Actions", "Calibration", "Columns", "CsvLog", "Encoder", "Encoding", "EstimatedPropensities",
    "FrequencyTable", "LogSource", "LoggedData", "LoggingPolicy", "OpenBandit", "ParquetLog", "TableLog",
    "action_frequencies", "collect", "concatenate", "estimate_propensities", "from_frame", "open_log", "read_csv", "read_dsjson",
    "read_open_bandit", "read_parquet", "to_arrow", "to_csv", "to_pandas", "to_parquet", "to_polars",
    "write_made_up_open_bandit",
]  # fmt: skip
