"""What `manyarms learn` reads: the log, once or as it is learned from, with the ids of embeddings and saved policies in place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from manyarms.cli._policies import SavedPolicy
from manyarms.cli._reading import Reading
from manyarms.errors import InvalidInput
from manyarms.learning.survey import require_buffer
from manyarms.logs import CHUNK, Embeddings, LoggedData, LogSource, Schema, TableEncoder, TableLog
from manyarms.logs.encoding import TextPart
from manyarms.logs.row_groups import RowGroups, in_row_groups
from manyarms.logs.table_log import SpoolOption


@dataclass(frozen=True)
class Inputs:
    """Where everything comes from: the log, embeddings of the actions, saved policies; all speak of the same actions."""

    log: Path
    how: Reading
    embeddings: Embeddings | None = None
    logging: Path | None = None  # a folder with the policy that wrote the log
    prior: Path | None = None  # a folder with the policy that a prior stands around
    prior_log: Path | None = None  # the rounds that it was learned from

    @cached_property
    def logger(self) -> SavedPolicy | None:
        """The policy in the folder `logging`."""
        return None if self.logging is None else SavedPolicy.load(self.logging)

    @cached_property
    def prior_policy(self) -> SavedPolicy | None:
        """The policy in the folder `prior`."""
        if self.prior is None:
            return None
        if self.embeddings is not None:
            expected = "--prior alone: the prior's mean comes from one of them"
            raise InvalidInput("--actions", self.embeddings.source, expected)
        return SavedPolicy.load(self.prior)

    def streamed(self, batch: int, buffer: int | None) -> RowGroups | None:
        """A folder, or a file where a buffer was given, that is read as it is learned from; None where the buffer holds all."""
        if buffer is None and not self.log.is_dir():
            return None
        source = self._source(spool=False)
        in_row_groups("--buffer", source, "a Parquet file or folder as LOG; without it files are read into memory")
        if sum(source.row_groups or ()) <= require_buffer(buffer, source.dim, batch):
            return None
        policy = None
        if self.logger is not None:
            self.logger.require_actions(source.action_count)
            policy = self.logger.policy
        return RowGroups(source, logging=policy)

    def read(self) -> LoggedData:
        """All rounds in memory, with the ids of the embeddings and the logging policy in place; the file is read once."""
        log = self._source().collect()
        if self.logger is None:
            return log
        self.logger.require_actions(log.action_count)
        policy = self.logger.policy
        propensities = log.propensities
        if propensities is None:
            parts = [policy.probabilities_of(part.contexts, part.actions) for part in log.chunks(CHUNK)]
            propensities = np.concatenate(parts)
        return replace(log, logging=policy, propensities=propensities)

    def prior_rows(self, log: LoggedData) -> LogSource | None:
        """The rounds of `prior_log`, read as the log was, so that rows can be compared."""
        if self.prior_log is None:
            return None
        if self.prior is None:
            expected = "--prior as well, the policy that was learned from it"
            raise InvalidInput("--prior-log", str(self.prior_log), expected)
        actions = log.action_count if log.catalogue is None else None
        return self.how.open(self.prior_log, Schema.of(log), action_count=actions)

    def fits_encoder_to(self, log: LoggedData) -> bool:
        """Whether categories, means and scales of the contexts come from this log, and not with a saved policy."""
        if log.encoder is None or self._schema().encoder is not None:
            return False
        return isinstance(log.encoder, TableEncoder) and any(
            isinstance(p, TextPart) or p.tells_missing or p.mean.any() or (p.scale != 1).any()
            for p in log.encoder.parts
        )

    def _schema(self) -> Schema:
        """The encoder and the ids that the log is read with: the logging policy's, else the prior's."""
        saved = [one.schema for one in (self.logger, self.prior_policy) if one is not None]
        catalogues = [one.catalogue for one in saved if one.catalogue is not None]
        if len(catalogues) == 2 and catalogues[0] != catalogues[1]:
            expected = f"the same ids in the same order as those of --logging {self.logging}"
            raise InvalidInput("--prior", f"other ids in {self.prior}", expected)
        encoders = [one.encoder for one in saved if one.encoder is not None]
        return Schema(encoders[0] if encoders else None, catalogues[0] if catalogues else None)

    def _source(self, spool: SpoolOption = "fit") -> TableLog:
        schema, given = self._schema(), self.embeddings
        if given is None:
            saved = self.logger or self.prior_policy
            numbered = saved is not None and schema.catalogue is None
            return self._open(schema, spool, saved.policy.action_count if saved is not None and numbered else None)
        if schema.catalogue is None:
            source = self._open(Schema(schema.encoder, given.ids), spool)
            if given.ids is None:
                source = self._numbered(source, given)
        elif given.ids is None or given.ids == schema.catalogue:
            source = self._open(schema, spool)
        else:
            expected = "the same ids in the same order as the logging policy's"
            raise InvalidInput("--actions", f"ids in {given.source} that are not {self.logging}'s", expected)
        if source.action_count != len(given.vectors):
            came = f"{len(given.vectors):,} rows in {given.source}"
            raise InvalidInput("--actions", came, f"a row for each of the log's {source.action_count:,} actions")
        return source

    def _open(self, schema: Schema, spool: SpoolOption, action_count: int | None = None) -> TableLog:
        return self.how.open(self.log, schema, action_count=action_count, spool=spool)

    def _numbered(self, source: TableLog, given: Embeddings) -> TableLog:
        """Rows without ids: action a has row a, unless the log calls its actions by names and states no order of them."""
        stated = source.source.stated
        if stated.catalogue_ids is not None or stated.action_count is not None:
            return source
        if source.catalogue is not None:
            came = f"rows without ids in {given.source}, for a log that calls its actions by names"
            raise InvalidInput(
                "--actions", came, "ids beside the vectors (an .npz with ids, or a table with a column of ids)"
            )
        if source.action_count > len(given.vectors):
            came = f"{len(given.vectors):,} rows in {given.source}"
            raise InvalidInput("--actions", came, f"a row for action {source.action_count - 1:,}, which the log has")
        # actions at the end of the catalogue that were never played are known through their embeddings alone
        return source.with_action_count(len(given.vectors))


__all__ = ["Inputs"]
