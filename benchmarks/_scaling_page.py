"""The tables of docs/costs.md, from what benchmarks/scaling.py has stored: nothing is measured here."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _scaling import STUDIES, Study

Stored = dict[str, Any]  # studies by name: the values of the size, and a list of numbers for each series
CROOKED = 0.2  # a line with a point that is so far from it, as a share, is called not straight
MEMORY = 24e9
BEYOND = 30  # times the largest size that was measured: no line is followed further


# ---- exponents --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """number ~ size^exponent, by least squares of logarithms over the largest sizes."""

    exponent: float
    error: float  # standard error, from what the points leave over
    low: int  # the smallest size that took part
    high: int
    last: float  # the number at the largest size
    deviation: float  # the largest relative distance of a point from the line

    def size_at(self, number: float) -> float:
        """The size at which the line reaches a number."""
        return float(self.high * (number / self.last) ** (1 / self.exponent))


def fit(sizes: Sequence[int], numbers: Sequence[float | None], decades: float) -> Fit | None:
    """The exponent over the upper decades; None from less than three points.

    >>> found = fit([1, 10, 100], [2.0, 20.0, 200.0], 2)
    >>> round(found.exponent, 9), found.low
    (1.0, 1)
    """
    pairs = [(size, number) for size, number in zip(sizes, numbers, strict=True) if number is not None]
    if not pairs:
        return None
    high = pairs[-1][0]
    some = [(size, number) for size, number in pairs if size >= high / 10**decades * (1 - 1e-9)]
    if len(some) < 3:
        return None
    x, y = np.log(np.array(some, dtype=float).T)
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    rest = y - y.mean() - slope * centred
    error = math.sqrt(float(rest @ rest) / (len(x) - 2) / float(centred @ centred))
    return Fit(slope, error, some[0][0], high, some[-1][1], float(np.expm1(np.abs(rest).max())))


def fits(stored: Stored) -> dict[tuple[str, str], Fit]:
    """Of every series that was measured at three sizes or more."""
    found = {}
    for name, study in STUDIES.items():
        columns = stored["studies"].get(name, {})
        for series in study.series:
            one = fit(columns[study.variable], columns[series], study.decades) if series in columns else None
            if one is not None:
                found[name, series] = one
    return found


# ---- tables -----------------------------------------------------------------------------------------------------------


def measured_on(stored: Stored) -> str:
    """What was measured, and on what."""
    versions = ", ".join(f"{name} {version}" for name, version in stored["versions"].items())
    return f"`{stored['command']}`, one thread of: {stored['processor']}. {versions}."


def exponents_table(stored: Stored) -> str:
    """One line for each operation and size: time or bytes at the largest, exponent with its error, theory."""
    lines = [
        "| operation | grows with | fitted over | at the end | exponent | theory |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    found = fits(stored)
    for name, study in STUDIES.items():
        for key, series in study.series.items():
            if (name, key) not in found:
                continue
            one = found[name, key]
            crooked = " (not straight)" if one.deviation > CROOKED else ""
            lines.append(
                f"| {series.title} | {_variable(study)} | {one.low:,} to {one.high:,} | {shown(one.last, series.unit)} | "
                f"{round(one.exponent, 2) + 0.0:.2f} ± {one.error:.2f}{crooked} | {series.theory} |"
            )
    return "\n".join(lines)


def settings_table() -> str:
    """What else was fixed while one size grew."""
    lines = ["| size | from | to | beside it |", "| --- | --- | --- | --- |"]
    for study in STUDIES.values():
        what = next(iter(study.series.values())).title.split(":")[0] if len(study.series) == 1 else ""
        beside = f"{what}: {study.setting}" if what else study.setting
        lines.append(f"| {_variable(study)} | {study.values[0]:,} | {study.values[-1]:,} | {beside} |")
    return "\n".join(lines)


def limits_table(stored: Stored) -> str:
    """Where memory or patience ends, from the fitted lines."""
    found, studies = fits(stored), stored["studies"]
    lines = ["| what ends | at | from |", "| --- | --- | --- |"]

    def line(what: str, at: float, source: str) -> None:
        lines.append(f"| {what} | {_rounded(at)} | {source} |")

    for study, series, limit, what, unit in (
        ("played", "lints", 0.01, "a LinTS decision stays below 10 ms up to", "played actions"),
        ("played", "hierts", 0.01, "a HierTS decision stays below 10 ms up to", "played actions"),
        ("actions", "mets_weights", 0.01, "a meTS decision with distinct weights stays below 10 ms up to", "actions"),
        ("policy-actions", "decide", 0.1, "a softmax policy's decision stays below 100 ms up to", "actions"),
        ("step-actions", "step", 1.0, "a learning step of 256 rows stays below 1 s up to", "actions"),
        ("rows", "sdm", 60.0, "sDM learns within a minute logs of up to", "rows"),
        ("dim", "mets_categories_observe", 0.01, "a row of meTS, 5 effects, is learned within 10 ms up to d =", ""),
    ):
        one = found.get((study, series))
        if one is None or one.exponent < 0.1:
            continue
        at = one.size_at(limit)
        beyond = at / one.high
        if beyond > BEYOND:
            line(what, BEYOND * one.high, f"{unit} and more: a line is not followed further".strip())
        else:
            reason = "measured" if beyond <= 1 else f"by its line, {beyond:.2g} times beyond what was measured"
            line(what, at, f"{unit}, {reason}" if unit else reason)
    if "lints_bytes" in studies.get("dim", {}):
        for d, held in zip(studies["dim"]["d"], studies["dim"]["lints_bytes"], strict=True):
            if d in (16, 64, 128):
                line(f"24 GB hold, at d = {d}, up to", MEMORY / held, f"played actions of {_rounded(held)} bytes each")
    if "mets_weights_bytes" in studies.get("actions", {}):
        held = studies["actions"]["mets_weights_bytes"][-1] / studies["actions"]["K"][-1]
        line(
            "24 GB hold, with 5 weights each, up to",
            MEMORY / held,
            f"actions of {_rounded(held)} bytes each, search tables included",
        )
    return "\n".join(lines)


def shown(number: float, unit: str) -> str:
    """Seconds or bytes, to two digits, in the unit that suits them.

    >>> shown(0.00123, "s"), shown(2.5e9, "B"), shown(61.0, "s")
    ('1.2 ms', '2.5 GB', '61 s')
    """
    steps = (
        [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")] if unit == "s" else [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]
    )
    size, name = next((step for step in steps if number >= step[0] * 0.995), steps[-1])
    value = number / size
    digits = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{min(digits, 2)}f} {name}"


def _rounded(number: float) -> str:
    """Two digits, with commas."""
    power = math.floor(math.log10(number)) - 1
    value = round(number / 10**power) * 10.0**power
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _variable(study: Study) -> str:
    return {
        "K": "actions K",
        "P": "played actions P",
        "d": "length of a context d",
        "L": "effects L",
        "rows": "rows of a batch",
    }.get(study.variable, "contexts n" if "at once" in study.setting else "rows n")


def filled(page: str, stored: Stored) -> str:
    """The page with its tables made anew, between the comments that name them."""
    blocks = {
        "measured": measured_on(stored),
        "exponents": exponents_table(stored),
        "limits": limits_table(stored),
        "settings": settings_table(),
    }
    for name, text in blocks.items():
        pattern = re.compile(rf"(<!-- costs: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, number = pattern.subn(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)  # type: ignore[misc]
        if number != 1:
            raise SystemExit(f"docs/costs.md has {number} places for {name!r}, not one")
    return page
