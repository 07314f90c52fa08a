"""A policy as people have it: whatever says what it would have done in the rounds of a log.

given_for(what, log)    what was given, ready to be asked about the chunks of the log
    .on(part, start)    the policy at the rows of a chunk, the first of which is row `start`
    .policy             the policy itself, where it is one and speaks the log's own actions and contexts
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import AnyArray
from manyarms.agents.deciding import Decider
from manyarms.errors import InvalidInput
from manyarms.estimators.inputs import is_policy, require_log
from manyarms.estimators.logging_policy import full_propensities, logged_propensities
from manyarms.evaluation.estimated import EstimatedAgent
from manyarms.evaluation.forms import Classifier, FrameOfProbabilities, InColumn, OfColumns, Ranked
from manyarms.evaluation.functions import LOOKED_AT, FromClassifier, FromFunction
from manyarms.evaluation.given import Given
from manyarms.evaluation.told import as_told, is_frame, told_policy
from manyarms.evaluation.translation import Translation, translation_for
from manyarms.logs.data import LoggedData, LogSource
from manyarms.logs.original import column_in, original_columns, plain
from manyarms.policies.base import Policy
from manyarms.policies.row_policy import ListedByRow, LoggedProbabilities, OwnContexts, WithLogged
from manyarms.policies.simple import UniformPolicy

PolicyLike = (
    Policy
    | Decider
    | str
    | InColumn
    | OfColumns
    | Ranked
    | npt.ArrayLike
    | Callable[..., object]
    | Classifier
    | FrameOfProbabilities
)
"""Whatever says what a policy would have done in the rounds of a log (`FORMS`)."""

FORMS = (
    'a policy or an agent, "uniform" or "logging", the probabilities of the logged actions (floats), an action id for each row '
    "(integers or texts), a matrix of probabilities (n, K), a column of the log (InColumn), Ranked lists, a function of "
    "contexts or OfColumns, or a classifier with predict_proba"
)


def given_for(what: object, log: LogSource, argument: str = "policy") -> Given:
    """What was given, by its form; refused with the list of right ones where it has none."""
    require_log(log)
    if isinstance(what, Given):
        return what
    if isinstance(what, type):
        raise InvalidInput(argument, validate.describe(what), FORMS)
    if isinstance(what, str):
        return _named(what, log, argument)
    if isinstance(what, InColumn):
        return _FromColumn(what, log, argument)
    if isinstance(what, OfColumns):
        return FromFunction(what.function, log, argument, of_columns=True)
    if isinstance(what, Decider):
        return _agent(what, log, argument)
    if is_policy(what):
        return _from_policy(what, log, argument, validate.describe(what) if not _own_repr(what) else repr(what))
    if callable(getattr(what, "predict_proba", None)):
        return FromClassifier(what, log, argument)
    if isinstance(what, Ranked) or is_frame(what):
        return _Rows(what, log, argument)
    if isinstance(what, np.ndarray | Sequence) or hasattr(what, "__array__"):
        return _Rows(as_told(argument, what), log, argument)
    if callable(what):
        return FromFunction(what, log, argument, of_columns=False)
    raise InvalidInput(argument, validate.describe(what), FORMS)


def _own_repr(what: object) -> bool:
    return type(what).__repr__ is not object.__repr__


# ---- policies and agents


def _named(what: str, log: LogSource, argument: str) -> Given:
    if what == "uniform":
        return _Known(argument, what, UniformPolicy(log.action_count))
    if what == "logging":
        return _Logging(argument, what, log.action_count)
    raise InvalidInput(argument, validate.describe(what), f"{FORMS}; a column is named by InColumn({what[:40]!r})")


class _Known(Given):
    def __init__(self, argument: str, name: str, policy: Policy) -> None:
        super().__init__(argument, name, policy.action_count)
        self.policy, self.training_rows = policy, getattr(policy, "training_rows", None)

    def on(self, part: LoggedData, start: int) -> Policy:
        assert self.policy is not None
        return self.policy


def _from_policy(policy: Any, log: LogSource, argument: str, name: str) -> Given:
    """A policy in its own words: over actions in another order, or contexts of another encoder."""
    words = translation_for(policy, log, argument)
    inside: Policy = words.renumbered(policy)
    return _Known(argument, name, inside) if words.encoder is None else _OtherContexts(argument, name, inside, words)


class _OtherContexts(Given):
    """A policy whose contexts are those of its own encoder, made from the log's original columns."""

    columns_for = "the policy's own encoder"

    def __init__(self, argument: str, name: str, policy: Policy, words: Translation) -> None:
        super().__init__(argument, name, policy.action_count)
        self._policy, self._words, self.training_rows = policy, words, getattr(policy, "training_rows", None)
        self.notes = ("contexts were encoded by the policy's own encoder, which is not the log's",)

    def on(self, part: LoggedData, start: int) -> Policy:
        return OwnContexts(self._policy, self._words.contexts(part))


def _agent(agent: Decider, log: LogSource, argument: str) -> Given:
    """An agent as the policy that it is now, or by estimates of its propensities where it draws from its belief."""
    try:
        policy = agent.as_policy()
    except InvalidInput:
        return EstimatedAgent(agent, log, argument)
    return _from_policy(policy, log, argument, repr(agent))


class _Logging(Given):
    """The logging policy: its weights are 1."""

    def look(self, first: LoggedData) -> None:
        if first.propensities is None and first.logging is None:
            first.require("propensities", purpose='the policy "logging"')
        self.logged_only = full_propensities(first) is None
        if first.propensities_are_estimates:
            self.notes = ("the logging policy's propensities are estimates",)

    def on(self, part: LoggedData, start: int) -> Policy:
        known, logged = full_propensities(part), logged_propensities(part, "evaluation")
        if known is None:
            return LoggedProbabilities(logged, part.actions, self.action_count)
        policy: Any = part.logging if known.listed is None else ListedByRow(*known.listed, self.action_count)
        return WithLogged(policy, logged, part.actions)


# ---- arrays and columns


class _Rows(Given):
    """An entry for each row of the log, as an array, a frame or ranked lists."""

    def __init__(self, said: AnyArray | Ranked | Any, log: LogSource, argument: str) -> None:
        what = "ranked lists" if isinstance(said, Ranked) else "a matrix of probabilities"
        if isinstance(said, np.ndarray) and said.ndim == 1:
            self.logged_only = said.dtype.kind == "f"
            what = "probabilities of the logged actions" if self.logged_only else "an action for each row"
        super().__init__(argument, what, log.action_count)
        self._said = said
        if isinstance(log, LoggedData):
            self.require_rows(len(log))

    def require_rows(self, rows: int) -> None:
        if len(self._said) != rows:
            raise InvalidInput(self.argument, f"{self.name}, {len(self._said):,} rows", f"the log's {rows:,} rows")

    def on(self, part: LoggedData, start: int) -> Policy:
        stop = start + len(part)
        if stop > len(self._said):
            raise InvalidInput(self.argument, f"{self.name}, {len(self._said):,} rows", "as many rows as the log has")
        here = slice(start, stop)
        said = self._said.part(here) if isinstance(self._said, Ranked) else self._said[here]
        return told_policy(self.argument, said, part, start)


class _FromColumn(Given):
    """A column of the log's own table."""

    def __init__(self, column: InColumn, log: LogSource, argument: str) -> None:
        super().__init__(argument, f"column {column.name!r}", log.action_count)
        self._column, self.columns_for = column, f"the column {column.name!r}"

    def look(self, first: LoggedData) -> None:
        self.logged_only = getattr(self.on(first.rows(slice(0, LOOKED_AT)), 0), "logged_only", False)

    def on(self, part: LoggedData, start: int) -> Policy:
        name = self._column.name
        table = original_columns(part, self.columns_for)
        found = column_in(table, name, self.argument)
        if found.missing is not None:
            came = f"a missing entry in the column {name!r} at {table.where.row(int(np.argmax(found.missing)))}"
            raise InvalidInput(self.argument, came, "an entry in every row")
        values = plain(found)
        if self._column.holds == "probabilities" and values.dtype.kind in "biu":
            values = values.astype(np.float64)
        return told_policy(self.argument, values, part, start, self._column.holds, table.where.row)


__all__ = ["FORMS", "PolicyLike", "given_for"]
