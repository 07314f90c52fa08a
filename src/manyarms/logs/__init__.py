"""Logs: what happened, read from and written to files and frames, and checked on the way.

LoggedData       rounds in memory; LogSource: anything that gives rounds in chunks
inspect          what is in a log, and what is wrong with it
open_log         any file as a source of chunks; read_log: in memory. Formats: manyarms.logs.formats
RowGroups        some row groups of a Parquet file or folder, and the policy that wrote them
Columns          which column is what;  Actions: ids and rows
Encoding         from columns to context vectors; a fitted one is a TableEncoder, or a TransformerEncoder of scikit-learn's
Schema           encoder and ids, which travel with what was learned from a log
read_*, to_*     Parquet, CSV, frames of pandas, polars and Arrow, the Open Bandit samples, Vowpal Wabbit's dsjson
estimate_propensities, action_frequencies        for logs without propensities
"""

from __future__ import annotations

from manyarms.logs.actions import Actions
from manyarms.logs.calibration import PropensityCalibration
from manyarms.logs.columns import Columns
from manyarms.logs.data import CHUNK, LoggedData, LoggingPolicy, LogSource, collect, concatenate
from manyarms.logs.embeddings import Embeddings, read_embeddings
from manyarms.logs.encoding import Encoder, Encoding, TableEncoder
from manyarms.logs.formats.base import FORMATS, LogFormat, MemoryFormat
from manyarms.logs.formats.csv import read_csv, to_csv
from manyarms.logs.formats.dsjson import read_dsjson
from manyarms.logs.formats.open_bandit import OpenBandit, read_open_bandit, write_made_up_open_bandit
from manyarms.logs.formats.parquet import read_parquet, to_parquet
from manyarms.logs.frames import from_frame, to_arrow, to_pandas, to_polars
from manyarms.logs.inspection import Finding, Inspection, inspect
from manyarms.logs.propensities import EstimatedPropensities, FrequencyTable, action_frequencies, estimate_propensities
from manyarms.logs.reading import open_log, read_log
from manyarms.logs.row_groups import RowGroups
from manyarms.logs.schema import Schema
from manyarms.logs.table_log import TableLog
from manyarms.logs.transformers import TransformerEncoder

__all__ = [
    "CHUNK", "FORMATS", "Actions", "Columns", "Embeddings", "Encoder", "Encoding", "EstimatedPropensities", "Finding",
    "FrequencyTable", "Inspection", "LogFormat", "LogSource", "LoggedData", "LoggingPolicy", "MemoryFormat",
    "OpenBandit", "PropensityCalibration", "RowGroups", "Schema", "TableEncoder", "TableLog", "TransformerEncoder",
    "action_frequencies", "collect", "concatenate", "estimate_propensities", "from_frame", "inspect", "open_log",
    "read_csv", "read_dsjson", "read_embeddings", "read_log", "read_open_bandit", "read_parquet", "to_arrow", "to_csv",
    "to_pandas", "to_parquet", "to_polars", "write_made_up_open_bandit",
]  # fmt: skip
