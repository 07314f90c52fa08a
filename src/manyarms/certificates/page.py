"""The page of a certificate: what is certified, what each term costs, next to the logging policy's value."""

from __future__ import annotations

import math
from pathlib import Path

from manyarms._base import html as report
from manyarms.certificates import text
from manyarms.certificates.certificate import Certificate, Improvement
from manyarms.certificates.pictures import waterfall
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.page import verdict_card, written
from manyarms.evaluation.pictures import whiskers
from manyarms.evaluation.readings import VALUE
from manyarms.evaluation.tables import number
from manyarms.evaluation.verdicts import verdict


def write(certificate: Certificate, improvement: Improvement | None, path: Path, name: str = "the policy") -> Path:
    """Write the page; its path (report.html inside, if a folder was given)."""
    return written(html(certificate, improvement, name), path)


def html(certificate: Certificate, improvement: Improvement | None = None, name: str = "the policy") -> str:
    """The whole document."""
    lead = f"{certificate.rows:,} {certificate.unit}s, {certificate.actions:,} actions, delta = {certificate.delta:g}."
    top = [] if improvement is None else [verdict_card(verdict(None, improvement, certificate))]
    return report.page(f"Certificate for {name}", lead, *top, *blocks(certificate, improvement))


def blocks(certificate: Certificate, improvement: Improvement | None = None) -> list[str]:
    """What the page shows, for pages that show a certificate among other things."""
    shown = [report.paragraph(text.claim(certificate))]
    empty = text.emptiness(certificate)
    shown += [report.warning(empty)] if empty is not None else []
    if improvement is not None:
        shown += [report.heading("Is it better than the logging policy?"), report.paragraph(text.verdict(improvement))]
        shown += [
            report.paragraph(
                "This compares both policies on the same rows, and is a statement of its own: it and the certificate hold with "
                f"probability {1 - certificate.delta:.4g} each."
            )
        ]
    shown += [report.heading("What is known of its value"), report.facts(_facts(certificate))]
    shown += [
        report.table(
            ("bound", "estimate", "lower", "upper"), text.table(certificate), numbers=("estimate", "lower", "upper")
        ),
        report.paragraph("These bounds were declared together and hold together: the best of them may be read off."),
    ]
    drawn = _estimates(certificate)
    if drawn:
        picture = whiskers(drawn, certificate.logged, title="bounds")
        shown.append(report.figure(picture, "Where the bounds put the policy's value, each with its estimate."))
    shown.append(report.heading("What each term of the bounds costs"))
    columns = ("term", "below", "above", "what is paid for")
    for ends in sorted(certificate.candidates, key=lambda one: -one.lower):
        picture = waterfall(ends.value, ends.terms, certificate.logged, title=f"costs of {ends.family}")
        shown += [
            report.paragraph(f"{ends.label}:"),
            report.table(columns, text.costs(ends), numbers=("below", "above")),
            report.figure(picture, "From the estimate down to the lower end."),
        ]
    return [*shown, report.heading("What it rests on"), report.bullets([*ASSUMED, *certificate.notes])]


ASSUMED = (
    "rounds are independent and alike: contexts to come are like those of the log",
    "propensities are what the logging policy really played with",
    "bounds and grids were decided on before the log was looked at; choosing them by what comes out undoes the certificate",
)


def _facts(certificate: Certificate) -> dict[str, str]:
    found = {
        "estimate": number(certificate.value),
        "lower end": number(certificate.lower),
        "upper end": number(certificate.upper) if certificate.two_sided else "not asked for",
        "logging policy, mean reward": number(certificate.logged),
        "largest reward": number(certificate.largest_reward),
    }
    if certificate.learned:
        found["KL divergence of what was learned from the prior"] = number(certificate.kl)
    for name, values in certificate.grid.items():
        found[f"declared {name}"] = ", ".join(f"{value:.3g}" for value in values)
    return found


def _estimates(certificate: Certificate) -> list[tuple[str, float, Interval]]:
    """The bounds as estimates with intervals, cut to where values can lie."""
    found = []
    for ends in certificate.candidates:
        if not (math.isfinite(ends.lower) and math.isfinite(ends.value)):
            continue
        top = certificate.largest_reward
        low, high = max(0.0, min(ends.lower, top)), max(0.0, min(ends.upper, top))
        found.append((ends.label, ends.value, Interval(low, high, "certificate", 1 - certificate.delta, VALUE)))
    return found


__all__ = ["blocks", "html", "write"]
