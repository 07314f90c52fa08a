"""A certificate as sentences and tables of text, and as plain data for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from manyarms._base.tables import Table
from manyarms._base.text import counted, number
from manyarms.certificates.certificate import Certificate, Ends, Improvement
from manyarms.evaluation import verdicts
from manyarms.evaluation.tables import finite, verdict_data

MEANINGS = {
    "contexts": "these contexts for all contexts",
    "divergence": "the KL divergence of what was learned from the prior",
    "confidence": "delta, and the grid it is spent on",
    "bias": "what the correction leaves out, or counts too often",
    "variance": "the weights' second moments",
    "simulation": "probabilities from Monte Carlo",
    "quadrature": "probabilities from quadrature",
}
"""What is paid for, by the name of a term."""


def claim(certificate: Certificate) -> str:
    """What is certified, in one sentence."""
    sure = f"{1 - certificate.delta:.4g}"
    value = "the policy's value" + ("" if certificate.unit == "row" else f" per {certificate.unit}")
    text = f"With probability at least {sure} {value} is {_range(certificate, certificate.lower, certificate.upper)}."
    if certificate.per_row is None:
        return text
    return f"{text} With the same probability its value per row is {_range(certificate, *certificate.per_row)}."


def _range(certificate: Certificate, lower: float, upper: float) -> str:
    if not certificate.two_sided:
        return f"at least {number(lower)}"
    return f"between {number(lower)} and {number(upper)}"


def emptiness(certificate: Certificate) -> str | None:
    """What a vacuous certificate does not say."""
    if not certificate.vacuous:
        return None
    top = number(certificate.largest_reward)
    if certificate.vacuous_below and certificate.vacuous_above and certificate.two_sided:
        said = f"it says no more than that rewards lie between 0 and {top}"
    elif certificate.vacuous_below:
        said = "its lower end says no more than that rewards are at least 0"
    else:
        said = f"its upper end says no more than that rewards are at most {top}"
    return f"The certificate is vacuous: {said}. More rows, a policy nearer to the prior, or another bound may help."


def verdict(improvement: Improvement) -> str:
    """Whether the improvement is certified."""
    sure = f"{1 - improvement.delta:.4g}"
    if improvement.certified:
        return (
            f"The improvement is certified: with probability at least {sure} the policy earns at least "
            f"{number(improvement.lower)} more per {improvement.unit} than the logging policy, which earned "
            f"{number(improvement.logged)}."
        )
    text = (
        f"The improvement is not certified: the estimate is {improvement.estimate:+.4g} per {improvement.unit}, and the bound "
        f"leaves room for {number(-improvement.lower)} less than the logging policy, which earned {number(improvement.logged)}."
    )
    if improvement.rows_needed is None:
        return f"{text} No number of {improvement.unit}s like these would certify one."
    return f"{text} About {improvement.rows_needed:,} {improvement.unit}s like these would, where there are {improvement.rows:,}."


def table(certificate: Certificate) -> list[tuple[str, float, float, float | str]]:
    """Bound, estimate, lower and upper end, the best lower end first."""
    rows: list[tuple[str, float, float, float | str]] = []
    for ends in sorted(certificate.candidates, key=lambda one: -one.lower):
        upper = ends.upper if certificate.two_sided and math.isfinite(ends.upper) else "-"
        rows.append((ends.label, ends.value, ends.lower, upper))
    return rows


def costs(ends: Ends) -> list[tuple[str, str, str, str]]:
    """Term, what it takes off the estimate below, what it adds above, and what is paid for."""
    below, above = ends.terms, ends.upper_terms

    def cell(side: Mapping[str, float], name: str) -> str:
        return number(side[name]) if name in side else "-"

    names = dict.fromkeys((*below, *above))
    return [(name, cell(below, name), cell(above, name), MEANINGS[name]) for name in names]


def as_table(certificate: Certificate) -> Table:
    """What is certified, every bound, and what each costs."""
    kind = f"KL to the prior {number(certificate.kl)}" if certificate.learned else "a policy fixed beforehand"
    counts = f"{counted(certificate.rows, certificate.unit)}, {counted(certificate.actions, 'action')}"
    below = [
        f"{counts}, delta = {certificate.delta:g}; {kind}",
        f"mean reward of the log: {number(certificate.logged)}",
    ]
    empty = emptiness(certificate)
    order = sorted(certificate.candidates, key=lambda one: -one.lower)
    return Table(
        claim(certificate),
        ("bound", "estimate", "lower", "upper"),
        table(certificate),
        [*([] if empty is None else [empty]), *below, *(f"note: {text}" for text in certificate.notes)],
        [
            Table(f"what {ends.label} costs", ("term", "below", "above", "what is paid for"), costs(ends))
            for ends in order
        ],
    )


def as_text(certificate: Certificate) -> str:
    """For the terminal."""
    return as_table(certificate).text()


def improvement_table(improvement: Improvement) -> Table:
    """Whether the improvement is certified, and the numbers."""
    return Table(
        verdict(improvement),
        rows=[
            ("estimate", f"{improvement.estimate:+.4g} per {improvement.unit}"),
            ("at least", f"{improvement.lower:+.4g}, with probability {1 - improvement.delta:.4g}"),
            ("logging policy", number(improvement.logged)),
            ("from", counted(improvement.rows, improvement.unit)),
        ],
        notes=[f"note: {text}" for text in improvement.notes],
    )


def as_data(certificate: Certificate, improvement: Improvement | None = None) -> dict[str, Any]:
    """What JSON can hold."""
    found: dict[str, Any] = {
        "claim": claim(certificate),
        "lower": certificate.lower,
        "upper": certificate.upper,
        "value": certificate.value,
        "terms": {name: finite(cost) for name, cost in certificate.terms.items()},
        "bound": certificate.bound,
        "delta": certificate.delta,
        "two_sided": certificate.two_sided,
        "vacuous": certificate.vacuous,
        "kl": finite(certificate.kl),
        "rows": certificate.rows,
        "unit": certificate.unit,
        "per_row": None if certificate.per_row is None else list(certificate.per_row),
        "actions": certificate.actions,
        "logged": certificate.logged,
        "largest_reward": certificate.largest_reward,
        "grid": {name: list(values) for name, values in certificate.grid.items()},
        "candidates": [
            {
                "bound": one.family, "label": one.label, "value": one.value, "lower": finite(one.lower),
                "upper": finite(one.upper), "terms": {name: finite(cost) for name, cost in one.terms.items()},
            }
            for one in certificate.candidates
        ],
        "notes": list(certificate.notes),
    }  # fmt: skip
    if improvement is not None:
        found["improvement"] = {
            "certified": improvement.certified,
            "lower": finite(improvement.lower),
            "estimate": improvement.estimate,
            "rows_needed": improvement.rows_needed,
            "words": verdict(improvement),
        }
        found["verdict"] = verdict_data(verdicts.verdict(None, improvement, certificate))
    return found


__all__ = [
    "MEANINGS",
    "as_data",
    "as_table",
    "as_text",
    "claim",
    "costs",
    "emptiness",
    "improvement_table",
    "table",
    "verdict",
]
