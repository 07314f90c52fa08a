"""The optional fields of a log, each checked where it comes in, as the log will keep it: private, read-only, of one type."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.private import kept, locked
from manyarms._base.typing import AnyArray
from manyarms.errors import InvalidInput
from manyarms.logs import checks
from manyarms.logs.actions import Actions
from manyarms.logs.encoding import Encoder
from manyarms.logs.labels import labels_of
from manyarms.logs.tables import Table

if TYPE_CHECKING:
    from manyarms.logs.data import LoggedData


def checked(log: LoggedData, where: checks.Where) -> dict[str, object]:
    """The fields of a log, whose contexts, actions and rewards are checked already, as they are to be kept."""
    found = _propensities(log, where) | _support(log, where) | _labels(log, where) | _history(log, where)
    if log.logging is not None:
        _check_logging(log)
    if log.catalogue is not None:
        validate.instance("catalogue", log.catalogue, Actions, "manyarms.logs.Actions, or None")
        if len(log.catalogue) != log.action_count:
            raise InvalidInput("catalogue", f"{len(log.catalogue)} ids", f"action_count = {log.action_count} ids")
    if log.encoder is not None:
        validate.instance("encoder", log.encoder, Encoder, "an encoder, such as a TableEncoder, or None")
        if log.encoder.dim != log.dim:
            raise InvalidInput("encoder", f"an encoder to length {log.encoder.dim}", f"one to the contexts' {log.dim}")
    if log.original is not None:
        validate.instance("original", log.original, Table, "the table that the rounds were read from, or None")
        if log.original.rows != len(log):
            raise InvalidInput("original", f"{log.original.rows} rows", f"one for each of the {len(log)} rounds")
    return found


def _propensities(log: LoggedData, where: checks.Where) -> dict[str, object]:
    estimates = validate.flag("propensities_are_estimates", log.propensities_are_estimates)
    if log.propensities is None:
        if estimates or log.estimated is not None:
            name = "propensities_are_estimates" if estimates else "estimated"
            raise InvalidInput(name, "estimates without propensities", "propensities as well")
        return {"propensities_are_estimates": estimates}
    _refuse_gaps(log.propensities, where)
    values = checks.numbers("propensities", log.propensities, 1, where, checks.PROBABILITIES)
    checks.length_of("propensities", values, len(log), where)
    checks.propensities("propensities", values, where)
    values = locked(np.minimum(values, 1.0)) if values.max() > 1 else values
    if log.estimated is None:
        return {"propensities": values, "propensities_are_estimates": estimates}
    estimated = checks.flags("estimated", log.estimated, where)
    checks.length_of("estimated", estimated, len(log), where)
    return {"propensities": values, "propensities_are_estimates": bool(estimated.any()), "estimated": estimated}


def _refuse_gaps(values: npt.ArrayLike, where: checks.Where) -> None:
    """Propensities that are missing in some rounds have two ways out, which are named."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and values.ndim == 1 and len(values):
        missing = np.isnan(values)
        if missing.any():
            came = f"nan at {where.row(int(np.argmax(missing)))} ({missing.mean():.1%} of the rounds have none)"
            raise InvalidInput(
                where.name("propensities"), came, "a probability in every round: leave the others out, or make the log without "
                "propensities and let manyarms.logs.estimate_propensities(log, known=propensities) fill in what is missing",
            )  # fmt: skip


def _support(log: LoggedData, where: checks.Where) -> dict[str, object]:
    if log.support is None:
        if log.support_probabilities is not None:
            raise InvalidInput("support_probabilities", "probabilities without ids", "support as well")
        return {}
    ids = checks.integers("support", log.support, 2, where)
    checks.length_of("support", ids, len(log), where)
    if ids.shape[1] == 0:
        raise InvalidInput(where.name("support"), "no action in any round", "at least one action per round")
    chances = log.support_probabilities
    if chances is not None:
        chances = checks.numbers("support_probabilities", chances, 2, where)
    checks.support(ids, chances, log.action_count, where)
    return {"support": ids, "support_probabilities": chances}


def _check_logging(log: LoggedData) -> None:
    count = getattr(log.logging, "action_count", None)
    if not isinstance(count, Integral) or not callable(getattr(log.logging, "probabilities_of", None)):
        raise InvalidInput("logging", validate.describe(log.logging), "a policy, such as UniformPolicy")
    if count != log.action_count:
        expected = f"a policy over action_count = {log.action_count} actions"
        raise InvalidInput("logging", f"a policy over {count} actions", expected)


def _labels(log: LoggedData, where: checks.Where) -> dict[str, object]:
    """Event ids as texts, times as they are, groups as integers or texts."""
    found: dict[str, object] = {}
    if log.timestamps is not None:
        found["timestamps"] = kept(checks.times("timestamps", log.timestamps, where), log.timestamps)
    for field, value in (("event_ids", log.event_ids), ("groups", log.groups)):
        if value is not None:
            found[field] = _label_column(field, value, where)
    for field, array in found.items():
        checks.length_of(field, np.asarray(array), len(log), where)
    return found


def _label_column(field: str, value: npt.ArrayLike, where: checks.Where) -> AnyArray:
    array = labels_of(where.name(field), value)
    fits = array.dtype.kind == "i" or (array.dtype.kind == "u" and array.max(initial=0) <= validate.MOST)
    if array.dtype.kind != "U" and not (field == "groups" and fits):
        array = array.astype(np.str_)
    return kept(array, value)


def _history(log: LoggedData, where: checks.Where) -> dict[str, object]:
    """Where the rounds come from: notes, and the logs that they are a part of."""
    notes = log.notes
    if not isinstance(notes, list | tuple) or not all(isinstance(note, str) for note in notes):
        raise InvalidInput("notes", validate.describe(notes), "a tuple of sentences")
    found: dict[str, object] = {"notes": tuple(notes)}
    if (log.origin is None) != (log.positions is None):
        raise InvalidInput("positions", validate.describe(log.positions), "positions together with their origin")
    if log.origin is not None and log.positions is not None:
        validate.instance("origin", log.origin, type(log), "LoggedData, or None")
        positions = checks.integers("positions", log.positions, 1, where)
        checks.length_of("positions", positions, len(log), where)
        if positions.min() < 0 or positions.max() >= len(log.origin):
            expected = f"rows of the origin, from 0 to {len(log.origin) - 1}"
            raise InvalidInput("positions", f"{positions.min()} to {positions.max()}", expected)
        found["positions"] = positions
    expected = "pairs of a log's fingerprint and positions in it"
    if not isinstance(log.sources, tuple):
        raise InvalidInput("sources", validate.describe(log.sources), expected)
    for pair in log.sources:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], Integral):
            raise InvalidInput("sources", validate.describe(pair), expected)
        validate.integers("sources", pair[1], expected=expected)
    return found


__all__ = ["checked"]
