"""The closing report of a run as a page, and as a table for the terminal."""

from __future__ import annotations

import numpy as np
from rich.markup import escape
from rich.table import Table

from manyarms._base import html as report
from manyarms._base.text import duration
from manyarms.certificates import page as certificate_page
from manyarms.certificates import words
from manyarms.cli.learning.running import Outcome
from manyarms.evaluation import page as evaluation_page
from manyarms.evaluation.tables import number

JUDGE = "snips"


def html(outcome: Outcome) -> str:
    """The whole document."""
    learned = outcome.learned
    blocks = [report.facts(summary(outcome))]
    if outcome.certified is not None:
        blocks.append(report.heading("What is certified"))
        blocks += certificate_page.blocks(outcome.certified.certificate, outcome.certified.gain)
    blocks += _curves(outcome)
    if outcome.evaluation is not None:
        which = "that decided nothing" if outcome.best_epoch else "that nothing was learned from"
        blocks += [
            report.heading("What it would have earned"),
            report.paragraph(f"On {outcome.evaluation.rows:,} held-out rows {which}."),
            *evaluation_page.blocks(outcome.evaluation),
        ]
    elif outcome.certified is None:
        blocks.append(report.warning("No rows were held out: nothing here says what the policy is worth."))
    blocks += [report.heading("How to use it"), report.code(_code(outcome))]
    blocks += [report.heading("Settings"), report.facts({name: str(value) for name, value in learned.settings.items()})]
    if outcome.notes:
        blocks += [report.heading("Notes"), report.bullets(list(outcome.notes))]
    lead = f"{learned.objective} on {outcome.source}, {duration(outcome.seconds)}."
    return report.page("A policy learned from a log", lead, *blocks)


def summary(outcome: Outcome) -> dict[str, str]:
    """The outcome in a few lines."""
    learned, train, found, gain = outcome.learned, outcome.parts.train, outcome.evaluation, outcome.gain
    history = learned.history
    lines = {
        "policy": repr(learned.policy),
        "objective": f"{learned.objective}: {history[0].objective:.4g} in the first epoch, "
        f"{history[-1].objective:.4g} in the last",
        "learned from": f"{len(train):,} rows, {train.action_count:,} actions, contexts of length {train.dim}",
        "epochs": _epochs(outcome),
        "speed": f"{history[-1].rows_per_second:,.0f} rows a second",
    }
    if outcome.certified is not None:
        made, shown = outcome.certified.certificate, outcome.certified.gain
        lines["estimate and certificate"] = _interval(made.value, made.lower, made.upper)
        lines["logging policy"] = f"{number(made.logged)}, the mean reward of the log"
        lines["improvement"] = "certified" if shown.certified else "not certified"
    if found is not None and gain is not None:
        ours = found[JUDGE]
        lines["logging policy"] = _interval(found.logged.value, found.logged.interval.low, found.logged.interval.high)
        lines[f"learned policy ({JUDGE})"] = _interval(ours.value, ours.interval.low, ours.interval.high)
        certain = "0 is outside" if gain.significant else "0 is inside: no difference is shown"
        lines["difference"] = f"{_interval(gain.value, gain.interval.low, gain.interval.high)}, {certain}"
        lines["effective rows"] = f"{ours.effective_sample_size:,.0f} of {found.rows:,} held out"
    return lines


def table(outcome: Outcome) -> Table:
    """The same for a terminal."""
    made = Table(title="learned", title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in summary(outcome).items():
        made.add_row(escape(name), escape(value))
    return made


def certificate_text(outcome: Outcome) -> str | None:
    """The certificate with what each term costs, and whether the improvement is certified, for a terminal."""
    made = outcome.certified
    return None if made is None else f"{made.certificate}\n\n{words.verdict(made.gain)}"


def warnings(outcome: Outcome) -> list[str]:
    """What must not be overlooked about the estimate."""
    found = outcome.evaluation
    return [] if found is None else [*found.warnings, *found[JUDGE].warnings]


def _interval(value: float, low: float, high: float) -> str:
    return f"{number(value)} [{number(low)}, {number(high)}]"


def _epochs(outcome: Outcome) -> str:
    done, wanted = len(outcome.learned.history), outcome.learned.settings["epochs"]
    words = f"{done} of {wanted}" + (", stopped early" if done < wanted else "")
    return words if outcome.best_epoch is None else f"{words}; the best by validation, {outcome.best_epoch}, was kept"


def _curves(outcome: Outcome) -> list[str]:
    history = outcome.learned.history
    epochs = np.array([0.0, *(epoch.epoch for epoch in history)])[1:]
    blocks = [report.heading("Epoch by epoch")]
    curves = {"objective": [epoch.objective for epoch in history]}
    if history[0].validation is not None:
        curves["validation"] = [np.nan if epoch.validation is None else epoch.validation for epoch in history]
    said = {
        "objective": "The objective, a mean over the batches of an epoch, each before its step; it is maximised.",
        "validation": "The self-normalised estimate of the policy's mean reward on held-out rows.",
    }
    for name, values in curves.items():
        y = np.array(values)
        if len(epochs) > 1 and np.isfinite(y).all():
            drawn = report.Series(name, epochs, y, np.zeros(len(y)))
            chart = report.line_chart([drawn], "epoch", name, title=f"{name} by epoch", from_zero=False)
            blocks.append(report.figure(chart, said[name]))
    rows = [
        (
            str(epoch.epoch),
            f"{epoch.objective:.5g}",
            "" if epoch.validation is None else f"{epoch.validation:.5g}",
            f"{epoch.learning_rate:.3g}",
            f"{epoch.rows_per_second:,.0f}",
        )
        for epoch in history
    ]
    columns = ("epoch", "objective", "validation", "learning rate", "rows a second")
    return [*blocks, report.table(columns, rows, numbers=columns)]


def _code(outcome: Outcome) -> str:
    train = outcome.parts.train
    lines = ["from manyarms.evaluation import open_policy", "", f"saved = open_policy({str(outcome.folder)!r})"]
    if train.encoder is not None:
        lines.append('x = saved.encoder.apply({"column": [value], ...})[0]     # a new row, encoded as the log was')
    lines.append(
        f"best = saved.policy.decide(x, k=10)                      # x: {train.dim} numbers; no PyTorch needed"
    )
    if train.catalogue is not None:
        lines.append("saved.catalogue.ids(best)")
    return "\n".join(lines)


__all__ = ["certificate_text", "html", "summary", "table", "warnings"]
