"""An evaluation as text for the terminal and as plain data for JSON."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from manyarms._base.tables import Table
from manyarms._base.text import counted, interval_text, number
from manyarms.evaluation.diagnostics import PolicyOverlap
from manyarms.evaluation.results import Estimate, Evaluation
from manyarms.evaluation.verdicts import Verdict

HEAD = ("estimator", "value", "error", "interval", "eff. n")
LEGEND = "error: standard error; eff. n: the effective sample size"


def cells(estimate: Estimate, usual: str) -> tuple[str, float, float, str, str]:
    """One row of the table; the interval's kind is named where it is not the usual one."""
    ends = interval_text(estimate.interval.low, estimate.interval.high)
    mark = "" if estimate.interval_is_for.startswith("the policy's") or estimate.name == "logged" else " *"
    kind = "" if estimate.kind == usual else f" {estimate.kind}"
    return (
        estimate.label,
        estimate.value,
        estimate.standard_error,
        f"{ends}{kind}{mark}",
        f"{estimate.effective_sample_size:,.0f}",
    )


def as_table(evaluation: Evaluation) -> Table:
    """The estimates, and what to beware of under them."""
    usual = Counter(estimate.kind for estimate in evaluation.estimates).most_common(1)[0][0]
    rows = [cells(estimate, usual) for estimate in (evaluation.logged, *evaluation.estimates)]
    notes = [LEGEND]
    if any(" *" in row[3] for row in rows):
        notes.insert(0, "* an interval for the estimator's mean; its bias is not in it")
    overlap = evaluation.overlap
    if overlap is not None and overlap.zero < overlap.rows:
        notes.append(f"weights: as much information as {_rows(overlap)}; Pareto k {tail_words(overlap)}")
    notes += [f"warning: {text}" for text in evaluation.warnings]
    notes += [f"warning, {', '.join(names)}: {text}" for text, names in shared_warnings(evaluation).items()]
    notes += [f"note: {text}" for text in evaluation.notes]
    title = f"{evaluation.policy}: {size(evaluation)}; intervals are {usual}, at {evaluation.level:.4g}"
    return Table(title, HEAD, rows, notes)


def as_text(evaluation: Evaluation) -> str:
    """A table in plain text, with what to beware of under it."""
    return as_table(evaluation).text()


def size(evaluation: Evaluation) -> str:
    """What the estimates rest on: 1,000 rows in 12 groups, 5 actions."""
    grouped = "" if evaluation.groups is None else f" in {counted(evaluation.groups, 'group')}"
    return f"{counted(evaluation.rows, 'row')}{grouped}, {counted(evaluation.actions, 'action')}"


def estimate_table(estimate: Estimate) -> Table:
    """One estimator's answer, with all its intervals."""
    ends = interval_text(estimate.interval.low, estimate.interval.high)
    notes = [f"warning: {text}" for text in estimate.warnings] + ([f"note: {estimate.note}"] if estimate.note else [])
    return Table(
        f"{estimate.label}: {number(estimate.value)} {ends}, {estimate.kind} at {estimate.interval.level:.4g}",
        ("interval", "low", "high", "is for"),
        [(one.kind, one.low, one.high, one.covers) for one in estimate.intervals],
        [
            f"standard error {number(estimate.standard_error)}; effective sample size {estimate.effective_sample_size:,.0f}",
            *notes,
        ],
    )


def tail_words(overlap: PolicyOverlap) -> str:
    """The shape of the weights' tail, and what so many rows can bear."""
    if overlap.pareto_k is None:
        return "unknown: too few weights differ for a tail"
    return f"{overlap.pareto_k:.2f}, reliable up to {overlap.largest_reliable_k:.2f}"


def _rows(overlap: PolicyOverlap) -> str:
    return f"{overlap.effective_sample_size:,.0f} of {counted(overlap.rows, 'row')}"


def shared_warnings(evaluation: Evaluation) -> dict[str, list[str]]:
    """The estimators' own warnings, each with the names of those that it is about."""
    found: dict[str, list[str]] = {}
    for estimate in (evaluation.logged, *evaluation.estimates):
        for text in estimate.warnings:
            found.setdefault(text, []).append(estimate.name)
    return found


def as_data(evaluation: Evaluation) -> dict[str, Any]:
    """What JSON can hold, every interval among it."""
    return {
        "policy": evaluation.policy,
        "verdict": verdict_data(evaluation.verdict()),
        "rows": evaluation.rows,
        "groups": evaluation.groups,
        "actions": evaluation.actions,
        "level": evaluation.level,
        "logged": _estimate(evaluation.logged),
        "estimates": [_estimate(estimate) for estimate in evaluation.estimates],
        "weights": None if evaluation.overlap is None else _weights(evaluation.overlap),
        "warnings": list(evaluation.warnings),
        "notes": list(evaluation.notes),
    }


def verdict_data(found: Verdict) -> dict[str, Any]:
    """A verdict for JSON."""
    numbers = {name: finite(getattr(found, name)) for name in ("gain", "low", "high", "level")}
    return {
        "verdict": found.verdict, "reason": found.reason, "needed": list(found.needed), **numbers, "source": found.source,
        "rows": found.rows, "rows_needed": found.rows_needed,
    }  # fmt: skip


def _weights(overlap: PolicyOverlap) -> dict[str, Any]:
    return {
        "effective_sample_size": overlap.effective_sample_size,
        "mean": overlap.mean_weight,
        "largest": overlap.largest,
        "pareto_k": overlap.pareto_k,
        "largest_reliable_k": finite(overlap.largest_reliable_k),
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "name": estimate.name,
        "label": estimate.label,
        "value": estimate.value,
        "standard_error": finite(estimate.standard_error),
        "unbiased": estimate.unbiased,
        "effective_sample_size": estimate.effective_sample_size,
        "intervals": [
            {
                "kind": one.kind,
                "low": finite(one.low),
                "high": finite(one.high),
                "level": one.level,
                "covers": one.covers,
            }
            for one in estimate.intervals
        ],
        "gain": None
        if estimate.gain is None
        else {
            "value": estimate.gain.value,
            "low": finite(estimate.gain.interval.low),
            "high": finite(estimate.gain.interval.high),
            "kind": estimate.gain.interval.kind,
        },
        "warnings": list(estimate.warnings),
        "note": estimate.note,
    }


def finite(value: float) -> float | None:
    """What JSON has for a number: none for an infinite one."""
    return value if math.isfinite(value) else None


__all__ = [
    "HEAD",
    "as_data",
    "as_table",
    "as_text",
    "cells",
    "estimate_table",
    "finite",
    "number",
    "shared_warnings",
    "size",
    "tail_words",
    "verdict_data",
]
