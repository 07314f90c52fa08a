"""What is read: embeddings of the actions, the logging policy, and the log, all speaking of the same actions."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray
from manyarms.cli.evaluation import open_for
from manyarms.errors import DataError, InvalidInput
from manyarms.evaluation.saved import Saved, open_policy
from manyarms.logs import CHUNK, Actions, Columns, LoggedData, LogSource, collect, open_log
from manyarms.logs.assemble import TableLog
from manyarms.logs.encoding import TextPart
from manyarms.logs.files import reading
from manyarms.logs.formats.parquet import ParquetTables

IDS = ("id", "ids", "action", "action_id", "item", "item_id", "arm", "arm_id")
VECTORS = ("embedding", "embeddings", "vector", "vectors", "actions")
ARGUMENT = "--actions"


@dataclass(frozen=True)
class Embeddings:
    """Vectors (K, l) of the actions in float32, and their ids where the file has them; without, row a is action a."""

    vectors: AnyArray
    ids: Actions | None
    source: str


def read_embeddings(path: Path | str) -> Embeddings:
    """Embeddings from a file.

    .npy: an array (K, l). .npz: such an array, and one named `ids` beside it if there are any. .parquet: a column of vectors or
    columns of numbers, and a column of ids named id, item, action or the like.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (".npy", ".npz", ".parquet", ".pq"):
        raise InvalidInput(ARGUMENT, str(path), "a .npy, .npz or .parquet file")
    if ending in (".parquet", ".pq"):
        vectors, ids = _from_parquet(path)
    else:
        vectors, ids = _from_numpy(path)
    if vectors.ndim != 2:
        raise InvalidInput(ARGUMENT, f"an array of shape {vectors.shape} in {path}", "one vector a row: shape (K, l)")
    checked = np.asarray(validate.as_array(ARGUMENT, vectors, (None, None)), dtype=np.float32)
    if ids is not None and len(ids) != len(checked):
        raise InvalidInput(ARGUMENT, f"{len(ids)} ids for {len(checked)} vectors in {path}", "one id a vector")
    return Embeddings(checked, None if ids is None else Actions(ids), str(path))


@dataclass(frozen=True)
class Inputs:
    """Where everything comes from; `read` opens it."""

    log: Path
    columns: Columns | None = None
    drop_missing: bool = False
    embeddings: Embeddings | None = None
    logging: Path | None = None  # a folder with the policy that wrote the log
    prior: Path | None = None  # a folder with the policy that a prior stands around
    prior_log: Path | None = None  # the rounds that it was learned from

    def read(self) -> LoggedData:
        """All rounds in memory, with the ids of the embeddings and the logging policy in place."""
        logger = None if self.logging is None else open_policy(self.logging)
        known = self._agreeing(logger)
        log = collect(self._source(known))
        if logger is None:
            return log
        if logger.policy.action_count != log.action_count:
            came = f"a policy over {logger.policy.action_count} actions"
            raise InvalidInput("--logging", came, f"one over the log's {log.action_count}")
        propensities = log.propensities
        if propensities is None:
            parts = [logger.policy.probabilities_of(part.contexts, part.actions) for part in log.chunks(CHUNK)]
            propensities = np.concatenate(parts)
        return replace(log, logging=logger.policy, propensities=propensities)

    def encoding_is_the_logs_own(self, log: LoggedData) -> bool:
        """Whether categories, means and scales of the contexts came from this log, and not with a saved policy."""
        saved = [open_policy(folder) for folder in (self.logging, self.prior) if folder is not None]
        own = log.encoder is not None and all(one.encoder is None for one in saved)
        parts = log.encoder.parts if own and log.encoder is not None else ()
        return any(isinstance(p, TextPart) or p.tells_missing or p.mean.any() or (p.scale != 1).any() for p in parts)

    def prior_policy(self) -> Saved | None:
        """The policy in the folder `prior`."""
        if self.prior is None:
            return None
        if self.embeddings is not None:
            raise InvalidInput(
                ARGUMENT, self.embeddings.source, "--prior alone: the prior's mean comes from one of them"
            )
        return open_policy(self.prior)

    def prior_rows(self, log: LoggedData) -> LogSource | None:
        """The rounds of `prior_log`, read as the log was, so that rows can be compared."""
        if self.prior_log is None:
            return None
        if self.prior is None:
            raise InvalidInput(
                "--prior-log", str(self.prior_log), "--prior beside it, the policy that was learned from it"
            )
        count = log.action_count if log.catalogue is None else None
        return open_log(
            self.prior_log, self.columns, action_count=count, catalogue=log.catalogue, encoder=log.encoder,
            drop_missing=self.drop_missing,
        )  # fmt: skip

    def _agreeing(self, logger: Saved | None) -> Saved | None:
        """The saved policy whose ids and encoder the log is read with: the logging policy, else the prior's."""
        prior = self.prior_policy()
        if logger is None or prior is None:
            return logger or prior
        if None not in (logger.catalogue, prior.catalogue) and logger.catalogue != prior.catalogue:
            expected = f"the same ids in the same order as those of --logging {self.logging}"
            raise InvalidInput("--prior", f"other ids in {self.prior}", expected)
        encoder, catalogue = logger.encoder or prior.encoder, logger.catalogue or prior.catalogue
        return replace(logger, encoder=encoder, catalogue=catalogue)

    def _source(self, logger: Saved | None) -> LogSource:
        given = self.embeddings
        if given is None:
            return open_for(self.log, logger, self.columns, drop_missing=self.drop_missing)
        if logger is not None and logger.catalogue is not None:
            if given.ids is not None and given.ids != logger.catalogue:
                expected = "the same ids in the same order as the logging policy's"
                raise InvalidInput(ARGUMENT, f"ids in {given.source} that are not {self.logging}'s", expected)
            source = open_for(self.log, logger, self.columns, drop_missing=self.drop_missing)
        elif given.ids is not None:
            source = open_log(self.log, self.columns, catalogue=given.ids, drop_missing=self.drop_missing)
        else:
            source = self._numbered(given)
        if source.action_count != len(given.vectors):
            came = f"{len(given.vectors):,} rows in {given.source}"
            raise InvalidInput(ARGUMENT, came, f"a row for each of the log's {source.action_count:,} actions")
        return source

    def _numbered(self, given: Embeddings) -> LogSource:
        """Rows without ids: action a has row a, unless the log calls its actions by names and states no order of them."""
        source = open_log(self.log, self.columns, drop_missing=self.drop_missing)
        stated = source.source.stated if isinstance(source, TableLog) else None
        known = stated is not None and (stated.catalogue_ids is not None or stated.action_count is not None)
        if known:
            return source
        if source.catalogue is not None:
            came = f"rows without ids in {given.source}, for a log that calls its actions by names"
            raise InvalidInput(ARGUMENT, came, "ids beside the vectors (an .npz with `ids`, or a Parquet column `id`)")
        if source.action_count > len(given.vectors):
            came = f"{len(given.vectors):,} rows in {given.source}"
            raise InvalidInput(ARGUMENT, came, f"a row for action {source.action_count - 1:,}, which the log has")
        # actions at the end of the catalogue that were never played are known through their embeddings alone
        return open_log(self.log, self.columns, action_count=len(given.vectors), drop_missing=self.drop_missing)


def _from_numpy(path: Path) -> tuple[AnyArray, list[str] | None]:
    try:
        with reading(path):
            loaded = np.load(path, allow_pickle=False)
    except (ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: no readable NumPy file ({str(error).splitlines()[0]})") from error
    if isinstance(loaded, np.ndarray):
        return loaded, None
    with loaded as archive:
        names = [name for name in archive.files if name != "ids"]
        named = [name for name in names if name in VECTORS] or names
        if len(named) != 1:
            raise InvalidInput(ARGUMENT, f"arrays {', '.join(names) or 'none'} in {path}", "one array named embeddings")
        ids = archive["ids"].astype(np.str_).tolist() if "ids" in archive.files else None
        return archive[named[0]], ids


def _from_parquet(path: Path) -> tuple[AnyArray, list[str] | None]:
    tables = ParquetTables(path)
    kinds = tables.kinds()
    id_column = next((name for name in kinds if name.lower() in IDS), None)
    vectors = [name for name, kind in kinds.items() if kind.name == "vector"]
    chosen = [name for name in vectors if name.lower() in VECTORS] or vectors
    if not chosen:
        chosen = [name for name, kind in kinds.items() if kind.name == "number" and name != id_column]
    if not chosen or (vectors and len(chosen) > 1):
        raise InvalidInput(
            ARGUMENT, f"columns {', '.join(kinds)} in {path}", "one column of vectors, or columns of numbers"
        )
    wanted = [*chosen, *([id_column] if id_column is not None else [])]
    blocks: list[AnyArray] = []
    ids: list[str] = []
    for table in tables.tables(wanted, CHUNK):
        parts = []
        for name in chosen:
            column = table[name]
            if column.missing is not None:
                row = int(np.argmax(column.missing)) + (table.first_row if isinstance(table.first_row, int) else 0)
                raise InvalidInput(
                    f"{ARGUMENT}, column {name!r}", f"a missing entry at row {row}", "numbers throughout"
                )
            parts.append(column.values.reshape(len(column), -1))
        blocks.append(np.concatenate(parts, axis=1))
        if id_column is not None:
            ids += table[id_column].texts().tolist()
    if not blocks:
        raise InvalidInput(ARGUMENT, f"no row in {path}", "one row an action")
    return np.concatenate(blocks), ids if id_column is not None else None


__all__ = ["Embeddings", "Inputs", "read_embeddings"]
