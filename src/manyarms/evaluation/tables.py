"""An evaluation as text for the terminal and as plain data for JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from manyarms.evaluation.diagnostics import PolicyOverlap
from manyarms.evaluation.results import Estimate, Evaluation

HEAD = ("estimator", "value", "error", "interval", "eff. n")
LEGEND = "error: standard error; eff. n: the effective sample size"


def number(value: float) -> str:
    """Four digits that count."""
    return f"{value:.4g}"


def cells(estimate: Estimate, usual: str) -> tuple[str, ...]:
    """One row of the table; the interval's kind is named where it is not the usual one."""
    low, high = number(estimate.interval.low), number(estimate.interval.high)
    mark = "" if estimate.interval_is_for.startswith("the policy's") or estimate.name == "logged" else " *"
    kind = "" if estimate.kind == usual else f" {estimate.kind}"
    return (
        estimate.label,
        number(estimate.value),
        f"{estimate.standard_error:.3g}",
        f"[{low}, {high}]{kind}{mark}",
        f"{estimate.effective_sample_size:,.0f}",
    )


def as_text(evaluation: Evaluation) -> str:
    """A table in plain text, with what to beware of under it."""
    usual = Counter(estimate.kind for estimate in evaluation.estimates).most_common(1)[0][0]
    rows = [cells(estimate, usual) for estimate in (evaluation.logged, *evaluation.estimates)]
    lines = [
        f"{evaluation.policy}: {evaluation.rows:,} rows, {evaluation.actions:,} actions; "
        f"intervals are {usual}, at {evaluation.level:.4g}",
        *aligned([HEAD, *rows]),
    ]
    if any(" *" in row[3] for row in rows):
        lines.append("* an interval for the estimator's mean; its bias is not in it")
    lines.append(LEGEND)
    overlap = evaluation.overlap
    if overlap is not None and overlap.zero < overlap.rows:
        lines.append(f"weights: as much information as {_rows(overlap)}; Pareto k {tail_words(overlap)}")
    lines += [f"warning: {text}" for text in evaluation.warnings]
    lines += [f"warning, {', '.join(names)}: {text}" for text, names in shared_warnings(evaluation).items()]
    lines += [f"note: {text}" for text in evaluation.notes]
    return "\n".join(lines)


def tail_words(overlap: PolicyOverlap) -> str:
    """The shape of the weights' tail, and what so many rows can bear."""
    if overlap.pareto_k is None:
        return "unknown: too few weights differ for a tail"
    return f"{overlap.pareto_k:.2f}, reliable up to {overlap.largest_reliable_k:.2f}"


def _rows(overlap: PolicyOverlap) -> str:
    return f"{overlap.effective_sample_size:,.0f} of {overlap.rows:,} rows"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines of text, every column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


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
        "rows": evaluation.rows,
        "actions": evaluation.actions,
        "level": evaluation.level,
        "logged": _estimate(evaluation.logged),
        "estimates": [_estimate(estimate) for estimate in evaluation.estimates],
        "weights": None if evaluation.overlap is None else _weights(evaluation.overlap),
        "warnings": list(evaluation.warnings),
        "notes": list(evaluation.notes),
    }


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
        "warnings": list(estimate.warnings),
        "note": estimate.note,
    }


def finite(value: float) -> float | None:
    """What JSON has for a number: none for an infinite one."""
    return value if math.isfinite(value) else None


__all__ = ["HEAD", "aligned", "as_data", "as_text", "cells", "finite", "number", "shared_warnings", "tail_words"]
