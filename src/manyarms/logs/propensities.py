"""Missing propensities, estimated from the log itself; the log then says that they are estimates.

    frequencies    the share of the action among all rows, or among the rows of its group (a position, a segment)
    multinomial    logistic regression of the action on the context; time grows with rows × actions seen
    nearest        the action's share among the rows with the nearest contexts, or its mean probability in their supports

None of this brings back what the log does not hold: an action that was never played where a policy wants to play it
stays unknown. So a log in which nothing was ever left to chance is refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.logs import checks
from manyarms.logs.calibration import MOST_PAIRS, PropensityCalibration, Reliability, calibration
from manyarms.logs.data import LoggedData
from manyarms.logs.gaps import SMALLEST
from manyarms.logs.labels import labels_of
from manyarms.logs.multinomial import fit_multinomial
from manyarms.logs.propensity_models import (
    FrequencyTable,
    NearestModel,
    PropensityModel,
    action_frequencies,
    fit_nearest,
    own_groups,
)
from manyarms.logs.table_log import TableLog

Method = Literal["frequencies", "multinomial", "nearest"]
CERTAIN = 0.99  # a typical held-out propensity above: the action follows from the context, nothing was explored
BYTES_AN_ACTION = 64  # of shares and counts of every action, and of a row of claims


@dataclass(frozen=True, eq=False, repr=False)
class EstimatedPropensities(Shown):
    """The log with propensities, the model behind them, and how it did on rows that it had not seen."""

    log: LoggedData
    model: PropensityModel
    calibration: PropensityCalibration

    def _table(self) -> Table:
        from manyarms.logs.printing import estimated_table

        return estimated_table(self)


def estimate_propensities(
    log: LoggedData | TableLog,
    method: Method = "frequencies",
    *,
    known: npt.ArrayLike | None = None,
    by: str | AnyArray | None = None,
    smoothing: float | None = None,
    ridge: float = 1.0,
    neighbours: int = 100,
    reference: LoggedData | None = None,
    folds: int = 5,
    seed: int = 0,
    replace: bool = False,
) -> EstimatedPropensities:
    """Estimate π₀(a_i | x_i) for every row, or for those whose propensity is missing.

    log         with its rows in memory; or what open_log gives, which is read into memory and whose propensities are kept where
                they are there
    known       of a log without propensities: those that are known, NaN where they are missing; only these are estimated, and
                `estimated` of the log says which. The model is fitted to all rows
    by          frequencies: the groups to count in (an array, or "groups" for the log's own)
    smoothing   frequencies (0) and nearest (1): this many more rows, spread over all actions or by their shares
    ridge       multinomial: the penalty of the weights
    neighbours  nearest: how many rows to look at, in `reference` if given (a log with supports, say), else in the log
                itself, the row itself left out
    folds       for the diagnostics, the model is fitted this many times, each time without the rows it is then asked
                about (`nearest` always leaves the row itself out and needs none); rows of one group stay together
    replace     propensities that the log has already stay unless this is True
    """
    validate.one_of("method", method, get_args(Method))
    replacing = validate.flag("replace", replace)
    if isinstance(log, TableLog):
        log, there = log.with_gaps()
        if there is not None and known is not None:
            raise InvalidInput("known", validate.describe(known), "None: the log has a column of propensities")
        known = None if replacing else there if known is None else known
        if known is not None and not np.isnan(np.asarray(known)).any():
            raise InvalidInput("log", "a log whose propensities are all there", "replace=True to estimate them anew")
    validate.instance("log", log, LoggedData, "LoggedData, with its rows in memory, or what open_log gives")
    gaps = None if known is None else _gaps(log, known)
    if reference is not None:
        validate.instance("reference", reference, LoggedData, "LoggedData, with its rows in memory, or None")
    if not replacing and log.propensities is not None:
        raise InvalidInput("log", "a log that has propensities", "replace=True to estimate them anew")
    folds, neighbours = validate.count("folds", folds, least=2), validate.count("neighbours", neighbours)
    seed, ridge = validate.seed(seed), validate.positive("ridge", ridge)
    validate.room("log", log.action_count, BYTES_AN_ACTION, "actions")
    labels = _labels(log, by)
    _refuse_hopeless(log, labels)
    strength = validate.not_negative(
        "smoothing", (1.0 if method == "nearest" else 0.0) if smoothing is None else smoothing
    )
    found: PropensityModel
    if method == "nearest":
        found, own, checked = _by_neighbours(log, reference, neighbours, strength, seed)
        what = f"the {neighbours} nearest rows" + ("" if reference is None else " of another log")
    else:

        def fit(rows: AnyArray) -> PropensityModel:
            part = log.rows(rows)
            if method == "multinomial":
                return fit_multinomial(part.contexts, part.actions, log.action_count, ridge)
            return action_frequencies(part, None if labels is None else labels[rows], smoothing=strength)

        found = fit(np.arange(len(log)))
        own = found.own(log.contexts, log.actions, labels)
        checked = _cross_checked(log, labels, fit, folds, seed)
        groups = f" within {len(found.labels):,} groups" if isinstance(found, FrequencyTable) and found.grouped else ""
        what = f"frequencies{groups}" if method == "frequencies" else "a multinomial logistic model of the context"
    _refuse_certain(checked)
    note = f"propensities are estimates from {what}; held out: " + "; ".join(checked.sentences())
    own = np.clip(own, SMALLEST, 1.0)
    missing = None
    if gaps is not None:
        missing = np.isnan(gaps)
        note = f"{missing.mean():.1%} of the {note}" + _against_known(own, gaps)
        own = np.where(missing, own, gaps)
    if method != "frequencies" and not checked.better_than_constant:
        note += "; the context adds nothing here: frequencies would do as well"
    estimated = log.with_notes(note, propensities=own, propensities_are_estimates=True, estimated=missing, logging=None)
    return EstimatedPropensities(estimated, found, checked)


def _gaps(log: LoggedData, known: npt.ArrayLike) -> Array:
    """Propensities with NaN where they are missing, of a log that has none itself."""
    if log.propensities is not None:
        raise InvalidInput("known", validate.describe(known), "None: the log has propensities already")
    expected = "probabilities above 0 and at most 1, or NaN, one for each round"
    try:
        found = np.array(known, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput("known", validate.describe(known), expected) from error
    if np.ma.is_masked(known) or found.shape != (len(log),):
        raise InvalidInput("known", validate.describe(known), expected)
    there = ~np.isnan(found)
    checks.Where().refuse("known", there & ~((found > 0) & (found <= 1 + 1e-6)), found, expected)
    return np.minimum(found, 1.0)


def _against_known(own: Array, known: Array) -> str:
    """How the estimates do where the truth is known."""
    there = ~np.isnan(known)
    if not there.any():
        return ""
    factor = float(np.exp(np.median(np.abs(np.log(own[there] / known[there])))))
    return f"; where propensities are known, the estimates are off by a factor of {factor:.3g} (median)"


def _labels(log: LoggedData, by: str | AnyArray | None) -> AnyArray | None:
    if by is None:
        return None
    return own_groups(log, by) if isinstance(by, str) else labels_of("by", by, len(log), "rows")


def _refuse_hopeless(log: LoggedData, labels: AnyArray | None) -> None:
    if (log.actions == log.actions[0]).all():
        raise InvalidInput(
            "log", f"{len(log)} rows that all play action {log.actions[0]}",
            "at least two actions played: one alone says nothing about the others",
        )  # fmt: skip
    if labels is not None:
        _, member = np.unique(labels, return_inverse=True)
        pairs = np.unique(member.astype(np.int64) * log.action_count + log.actions)
        if len(pairs) == member.max() + 1:
            raise InvalidInput(
                "log", f"one and the same action in each of the {len(pairs)} groups",
                "groups in which something was left to chance; here the group decides, and no weight can undo that",
            )  # fmt: skip


def _refuse_certain(checked: PropensityCalibration) -> None:
    typical = float(np.exp(-checked.log_loss))
    if typical > CERTAIN:
        raise InvalidInput(
            "log", f"actions that follow from the context (typical probability {typical:.4f} on held-out rows)",
            "a log in which something was left to chance; use a direct method, which needs no propensities",
        )  # fmt: skip


def _cross_checked(
    log: LoggedData, labels: AnyArray | None, fit: Callable[[AnyArray], PropensityModel], folds: int, seed: int
) -> PropensityCalibration:
    rng = np.random.default_rng(seed)
    if log.groups is not None and labels is None and len(np.unique(log.groups)) >= folds:
        _, member = np.unique(log.groups, return_inverse=True)
        fold = rng.permutation(np.arange(member.max() + 1) % folds)[member]
    else:
        fold = rng.permutation(np.arange(len(log)) % folds)
    own, constant = np.zeros(len(log)), np.zeros(len(log))
    bins = Reliability()
    for number in range(folds):
        held = np.flatnonzero(fold == number)
        train = np.flatnonzero(fold != number)
        if not len(held) or not len(train):
            continue
        model = fit(train)
        own[held] = model.own(log.contexts[held], log.actions[held], None if labels is None else labels[held])
        constant[held] = (np.bincount(log.actions[train], minlength=log.action_count) / len(train))[log.actions[held]]
        shown = _sampled(held, log.action_count, folds, rng)
        bins.see(log.actions[shown], _claims(model, log, shown, labels), log.action_count)
    return calibration(own, constant, len(np.unique(log.actions)), bins)


def _by_neighbours(
    log: LoggedData, reference: LoggedData | None, neighbours: int, smoothing: float, seed: int
) -> tuple[NearestModel, Array, PropensityCalibration]:
    base = log if reference is None else reference
    if (base.action_count, base.dim) != (log.action_count, log.dim):
        came = f"{base.action_count} actions and contexts of length {base.dim}"
        raise InvalidInput("reference", came, f"{log.action_count} actions and length {log.dim}, as the log")
    model = fit_nearest(base, neighbours, smoothing, leave_out_self=reference is None)
    numbers = np.arange(len(log)) if reference is None else None
    own = model.own(log.contexts, log.actions, numbers=numbers)
    if (never := own <= 0).any():
        row = int(np.argmax(never))
        expected = "more neighbours, or smoothing above 0: what was played was not impossible"
        raise InvalidInput("neighbours", f"none that plays action {log.actions[row]} of row {row}", expected)
    shown = _sampled(np.arange(len(log)), log.action_count, 1, np.random.default_rng(seed))
    bins = Reliability()
    bins.see(log.actions[shown], _claims(model, log, shown, None, reference is None), log.action_count)
    constant = np.maximum(model.shares[log.actions], 0.5 / len(log))
    return model, own, calibration(own, constant, len(np.unique(log.actions)), bins)


def _claims(
    model: PropensityModel, log: LoggedData, rows: Ints, labels: AnyArray | None, leave_out: bool = False
) -> Callable[[int, int], Array]:
    def claims(start: int, stop: int) -> Array:
        part = rows[start:stop]
        return model.every(log.contexts[part], None if labels is None else labels[part], part if leave_out else None)

    return claims


def _sampled(rows: Ints, action_count: int, parts: int, rng: np.random.Generator) -> Ints:
    """All rows where rows × actions are few enough, else some at random."""
    most = max(50, MOST_PAIRS // parts // action_count)
    return rows if len(rows) <= most else np.sort(rng.choice(rows, size=most, replace=False))


__all__ = ["EstimatedPropensities", "FrequencyTable", "Method", "action_frequencies", "estimate_propensities"]
