"""Logs, inspections and estimated propensities as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyarms._base.tables import Cell, Table, text_of
from manyarms._base.text import counted, decimals, number, shortened

if TYPE_CHECKING:
    from manyarms.logs.calibration import PropensityCalibration
    from manyarms.logs.data import LoggedData
    from manyarms.logs.encoding import TableEncoder
    from manyarms.logs.inspection.summary import Inspection
    from manyarms.logs.propensities import EstimatedPropensities
    from manyarms.logs.table_log import TableLog

HEAD = 5  # rounds of a log that are shown
MOST_ACTIONS = 5
OPTIONAL = ("support", "logging", "event_ids", "timestamps", "groups", "encoder")


def log_table(log: LoggedData) -> Table:
    """What a log has, and its first rounds."""
    there = [name.replace("_", " ") for name in OPTIONAL if getattr(log, name) is not None]
    facts: list[tuple[str, str]] = [
        ("rewards", f"mean {number(log.rewards.mean())}, {number(log.rewards.min())} to {number(log.rewards.max())}"),
        ("propensities", _propensities(log)),
    ]
    if log.catalogue is not None:
        facts.append(
            ("ids of actions", f"{', '.join(str(one) for one, _ in zip(log.catalogue, range(3), strict=False))}, ...")
        )
    facts += [("also there", ", ".join(there))] if there else []
    named = None if log.catalogue is None else log.catalogue.named(log.actions[:HEAD])
    rows: list[tuple[Cell, ...]] = []
    for i in range(min(HEAD, len(log))):
        action = log.actions[i] if named is None else named[i]
        propensity = None if log.propensities is None else number(float(log.propensities[i]))
        rows.append((i, shortened(str(action), 24), number(float(log.rewards[i])), propensity, _context(log, i)))
    first = Table(f"the first {counted(len(rows), 'round')}", ("", "action", "reward", "propensity", "context"), rows)
    return Table(_size(len(log), log.action_count, log.dim), rows=facts, notes=_notes(log.notes), parts=[first])


def table_log_table(log: TableLog) -> Table:
    """What a log that is read in parts is made of; nothing is read for it."""
    columns = log.columns
    facts = [("action", columns.action), ("reward", columns.reward), ("propensity", columns.propensity)]
    facts += [("context", text_of(columns.context)), ("event id", columns.event_id), ("timestamp", columns.timestamp)]
    facts += [("group", columns.group)]
    rows = "rounds" if log.row_count is None else counted(log.row_count, "round")
    title = f"{log.source.name}: {rows}, {counted(log.action_count, 'action')}"
    return Table(title, ("part", "column"), [fact for fact in facts if fact[1] is not None], _notes(log.notes))


def encoder_table(encoder: TableEncoder) -> Table:
    """What becomes of each column."""
    rows = []
    for part in encoder.parts:
        categories = getattr(part, "categories", None)
        rows.append((part.column, "numbers" if categories is None else "categories", text_of(categories or "")))
    one = ", a 1 among them" if encoder.intercept else ""
    title = f"{counted(len(rows), 'column')} -> {counted(encoder.dim, 'number')}{one}"
    return Table(title, ("column", "taken as", "which"), rows)


def inspection_table(found: Inspection) -> Table:
    """What an inspection found: what to do first, then the numbers."""
    overlap = found.overlap
    facts = [
        (
            "rewards",
            f"mean {number(found.rewards.mean)}, {number(found.rewards.minimum)} to {number(found.rewards.maximum)}",
        ),
        ("actions", f"{found.actions_seen:,} of {found.action_count:,} played"),
    ]
    if found.propensities is not None and found.propensities.count:
        low, high = number(found.propensities.minimum), number(found.propensities.maximum)
        facts.append(("propensities", f"{'estimates, ' * found.propensities_are_estimates}{low} to {high}"))
    if overlap is not None:
        effective = f"{decimals(overlap.effective_sample_size)} of {counted(found.rows, 'row')}"
        facts.append(("effective rows, uniform policy", effective))
    parts = [Table("", rows=facts)]
    if found.most_played:
        rows = [(one.name, one.rows, f"{one.share:.1%}", one.mean_reward) for one in found.most_played[:MOST_ACTIONS]]
        parts.append(Table("most played", ("action", "rows", "share", "mean reward"), rows))
    return Table(
        f"{found.source}: {answer(found)}",
        ("", "what", "what to do") if found.findings else (),
        [(one.level, one.what, one.advice) for one in found.findings],
        _notes(found.notes),
        parts,
    )


def answer(found: Inspection) -> str:
    """What came of an inspection, in one sentence."""
    size = f"{counted(found.rows, 'round')} of {counted(found.actions_seen, 'action')}"
    if found.problems:
        return f"{size}; {counted(len(found.problems), 'problem')} to solve before the log can be used."
    warnings = sum(one.level == "warning" for one in found.findings)
    care = f", with care ({counted(warnings, 'warning')})" if warnings else ""
    return f"{size}; the log can be used{care}."


def calibration_table(found: PropensityCalibration) -> Table:
    """Claims against how often the actions came up."""
    rows = zip(found.lower, found.upper, found.claimed, found.observed, found.pairs, strict=True)
    first, *more = found.sentences()
    cells = [(f"{low:g} to {high:g}", float(said), float(seen), int(n)) for low, high, said, seen, n in rows]
    return Table(first, ("propensity", "claimed", "observed", "pairs"), cells, more)


def estimated_table(found: EstimatedPropensities) -> Table:
    """The model, and how it did on rows that it had not seen."""
    own = found.log.propensities
    span = "" if own is None else f": {number(float(own.min()))} to {number(float(own.max()))}"
    model = type(found.model).__name__
    title = f"propensities of {counted(len(found.log), 'round')}, estimated by {model}{span}"
    return Table(title, parts=[calibration_table(found.calibration)])


def _size(rows: int, actions: int, dim: int) -> str:
    return f"{counted(rows, 'round')}, {counted(actions, 'action')}, contexts of length {dim:,}"


def _propensities(log: LoggedData) -> str:
    if log.propensities is None:
        return "none"
    share = log.estimated_share if log.propensities_are_estimates else 0.0
    kind = "exact" if not share else "estimates" if share == 1 else f"{share:.1%} of them estimates"
    return f"{kind}, {number(log.propensities.min())} to {number(log.propensities.max())}"


def _context(log: LoggedData, row: int) -> str:
    shown = ", ".join(f"{x:.3g}" for x in log.contexts[row, :4])
    return f"[{shown}{', ...' if log.dim > 4 else ''}]"


def _notes(notes: tuple[str, ...]) -> list[str]:
    return [f"note: {text}" for text in notes]


__all__ = [
    "answer",
    "calibration_table",
    "encoder_table",
    "estimated_table",
    "inspection_table",
    "log_table",
    "table_log_table",
]
