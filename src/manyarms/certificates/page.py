"""The page of a certificate: what is certified, what each term costs, next to the logging policy's value."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from manyarms._base import html as report
from manyarms._base.text import counted, number
from manyarms.certificates import text
from manyarms.certificates.certificate import Certificate, Ends, Improvement
from manyarms.certificates.pictures import waterfall
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.page import written
from manyarms.evaluation.pictures import whiskers
from manyarms.evaluation.readings import VALUE
from manyarms.evaluation.verdicts import DO_NOT_SHIP, SHIP, verdict


def write(certificate: Certificate, improvement: Improvement | None, path: Path, name: str = "the policy") -> Path:
    """Write the page; its path (report.html inside, if a folder was given)."""
    return written(html(certificate, improvement, name), path)


def html(certificate: Certificate, improvement: Improvement | None = None, name: str = "the policy") -> str:
    """The whole document: what is certified, the bounds drawn, the bounds in numbers, and what each term costs."""
    rows = counted(certificate.rows, certificate.unit)
    about = f"{rows}, {counted(certificate.actions, 'action')}, delta = {certificate.delta:g}."
    return report.page(
        f"Certificate for {name}", about, card(certificate, improvement), *blocks(certificate, improvement)
    )


def card(certificate: Certificate, improvement: Improvement | None = None) -> str:
    """The answer: whether it is certified to be better, or else what is known of its value."""
    if improvement is not None:
        found = verdict(None, improvement, certificate)
        tone = {SHIP: "good", DO_NOT_SHIP: "bad"}.get(found.verdict, "open")
        texts = [found.reason, *(f"Needed: {one}." for one in found.needed), text.claim(certificate)]
        return report.card(found.verdict.capitalize(), texts, tone)
    empty = text.emptiness(certificate)
    title = f"At least {number(certificate.lower)}" if empty is None else "Nothing is certified"
    texts = [text.claim(certificate), *([] if empty is None else [empty])]
    return report.card(title, texts, "good" if empty is None else "open")


def bounds_figure(certificate: Certificate) -> list[str]:
    """Where the bounds put the value, beside the mean reward of the log."""
    drawn = _estimates(certificate)
    if not drawn:
        return []
    seen = (
        f"Where the policy's value lies by each bound: the line is what is certified, the mark the estimate "
        f"that the bound starts from; dashed, the mean reward of the log, {number(certificate.logged)}."
    )
    return [report.figure(lambda width: whiskers(drawn, certificate.logged, title="bounds", width=width), seen)]


def blocks(certificate: Certificate, improvement: Improvement | None = None) -> list[str]:
    """What the page shows below the answer, for pages that show a certificate among other things."""
    columns = ("bound", "estimate", "lower", "upper")
    shown = [*bounds_figure(certificate), report.table(columns, text.table(certificate), numbers=columns[1:])]
    if len(certificate.candidates) > 1:
        together = "These bounds were declared together and hold together: the best of them may be read off."
        shown.append(report.paragraph(together))
    empty = text.emptiness(certificate)
    shown += [report.warning(empty)] if empty is not None else []
    if improvement is not None:
        shown += [
            report.heading("Is it better than the logging policy?"),
            report.paragraph(text.verdict(improvement)),
            report.paragraph(
                "This compares both policies on the same rows, and is a statement of its own: it and the certificate hold with "
                f"probability {1 - certificate.delta:.4g} each."
            ),
        ]
    shown += [report.heading("What is known of its value"), report.facts(_facts(certificate))]
    shown.append(report.heading("What each term of the bounds costs"))
    columns = ("term", "below", "above", "what is paid for")
    for ends in sorted(certificate.candidates, key=lambda one: -one.lower):
        picture = partial(_costs, ends, certificate.logged)
        dearest = max(ends.terms, key=lambda name: ends.terms[name], default=None)
        seen = f"From the estimate of {ends.label}, {number(ends.value)}, down to its lower end, {number(ends.lower)}"
        seen += "." if dearest is None else f"; {dearest} costs the most, {number(ends.terms[dearest])}."
        shown += [report.figure(picture, seen), report.table(columns, text.costs(ends), numbers=("below", "above"))]
    return [*shown, report.heading("What it rests on"), report.bullets([*ASSUMED, *certificate.notes])]


def _costs(ends: Ends, logged: float, width: float) -> str:
    return waterfall(ends.value, ends.terms, logged, title=f"costs of {ends.family}", width=width)


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


__all__ = ["blocks", "bounds_figure", "card", "html", "write"]
