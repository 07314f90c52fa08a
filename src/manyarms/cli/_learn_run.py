"""Learning as a command: learn, judge on rows that were held out, save, report.

OUT/manifest.json, arrays-*.npz     the policy; OUT/encoder and OUT/actions beside it where the log has them
OUT/learning.json, OUT/report.html  what was done and what came out
OUT/certificate.json, OUT/prior     with a bound: the certificate, and the prior that it is relative to
OUT/checkpoint/                     where an unfinished run stands: the same command goes on from it to the same policy
"""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from rich.console import Console

from manyarms._base import charts
from manyarms._base import html as report
from manyarms._base.devices import usable_device
from manyarms._base.files import require_folder, write_text_atomically, writing
from manyarms._base.storage import MANIFEST
from manyarms._base.text import counted, duration, number
from manyarms.certificates import Certificate, Improvement, PolicyPrior, text
from manyarms.certificates import page as certificate_page
from manyarms.cli import options
from manyarms.cli._learn_inputs import Inputs
from manyarms.cli._learn_setup import Choices, Pessimism
from manyarms.cli._progress import following
from manyarms.engine import IN_THIS_PROCESS
from manyarms.errors import Contradiction, InvalidInput
from manyarms.evaluation import Difference, Evaluation, difference, evaluate
from manyarms.evaluation import page as evaluation_page
from manyarms.evaluation.tables import as_data, finite
from manyarms.learning import Learned, TrainingSettings, learn
from manyarms.learning.trainable import Learnable
from manyarms.logs import LoggedData, Schema
from manyarms.logs.row_groups import SMALLER, RowGroups

if TYPE_CHECKING:
    from manyarms.logs.splitting import SplitBy

CHECKPOINT, PRIOR, CERTIFICATE = "checkpoint", "prior", "certificate.json"
FILES = (MANIFEST, "learning.json", "report.html", CERTIFICATE)
USUAL_SHARE = 0.1
JUDGE = "snips"
Rows = LoggedData | RowGroups
"""Rounds in memory, or in files that are read as they are learned from."""


@dataclass(frozen=True)
class Parts:
    """Rows to learn from, rows to watch (they decide when to stop), and rows for the closing estimate, which decide nothing."""

    train: Rows
    watched: Rows | None
    judged: Rows | None


@dataclass(frozen=True)
class Outcome:
    """What a run left."""

    source: str
    folder: Path
    learned: Learned
    parts: Parts
    evaluation: Evaluation | None
    gain: Difference | None
    seconds: float
    notes: tuple[str, ...]
    certified: tuple[Certificate, Improvement] | None  # of a policy learned with --pessimism

    @property
    def page(self) -> Path:
        """The closing report."""
        return self.folder / "report.html"

    @property
    def best_epoch(self) -> int | None:
        """The epoch that was kept, where one was chosen by its validation."""
        if self.learned.settings.get("patience") is None:
            return None
        # the first of equals, as learning takes it
        return max(self.learned.history, key=lambda epoch: (epoch.validation or 0.0, -epoch.epoch)).epoch


def run(
    inputs: Inputs,
    folder: Path,
    choices: Choices,
    settings: TrainingSettings,
    *,
    left_open: Collection[str] = (),
    pessimism: Pessimism | None = None,
    validation: float | None = None,
    split_by: str | None = None,
    buffer: int | None = None,
    device: str | None = None,
    checkpoint_seconds: float = 60.0,
    keep_checkpoint: bool = False,
    on: str = IN_THIS_PROCESS,
    workers: int | None = None,
    console: Console,
) -> Outcome:
    """Learn a policy from a file of rounds and save it to a folder.

    pessimism: learn a randomised policy by a bound, in place of what `choices` says, and certify it. validation: the share of
    rows to hold out; a tenth, or none where the log has no propensities or the policy is certified on the rows that it was
    learned from, unless given. left_open: the settings that were not given, and are for `learn` to choose. buffer: the rows of a
    folder, or of a Parquet file, that are in memory at a time. on, workers: who learns, as in `learn`.
    """
    started = time.monotonic()
    require_folder("--out", folder, *FILES, folders=(CHECKPOINT, PRIOR))
    usable_device(device, "--device")
    options.require_logs({"LOG": inputs.log, "--prior-log": inputs.prior_log})
    start: Learnable
    prior: PolicyPrior | None = None
    log: Rows
    if pessimism is None:
        streamed = inputs.streamed(settings.batch, buffer)
        log = inputs.read() if streamed is None else streamed
        parts = divide(log, validation, settings, split_by)
        objective, start = choices.build(parts.train, inputs.embeddings)
    else:
        log = pessimism.checked(inputs.read(), inputs)
        parts = divide(log, validation or 0.0, settings, split_by)
        objective, (start, prior) = pessimism.objective(len(parts.train)), pessimism.start(log, inputs)
        settings = replace(settings, train="actions")
    if not isinstance(parts.train, LoggedData):
        console.print(
            f"{len(parts.train):,} rows are read once before the first epoch, and then as they are learned from"
        )
    with following(console, objective.label) as tell:
        learned = learn(
            parts.train, start, objective, validation=0.0 if parts.watched is None else parts.watched,
            folder=folder / CHECKPOINT, device=device, progress=tell, checkpoint_seconds=checkpoint_seconds,
            certified=False, buffer=buffer, on=on, workers=workers,
            **{name: value for name, value in vars(settings).items() if name not in left_open},
        )  # fmt: skip
    evaluation = gain = None
    if parts.judged is not None:
        evaluation = evaluate(learned.policy, parts.judged, name="the learned policy", seed=choices.seed)
        gain = difference(learned.policy, None, parts.judged, seed=choices.seed)
    certified = None
    if pessimism is not None and prior is not None:
        start.schema = Schema.of(log)
        start.save(folder / PRIOR)  # for `manyarms certify OUT LOG --prior OUT/prior`
        if pessimism.certifies:
            try:
                assert isinstance(parts.train, LoggedData)
                certified = pessimism.certified(learned.policy, parts.train, prior)
                options.write_json(folder / CERTIFICATE, text.as_data(*certified))
            except Contradiction as error:  # what was learned is not lost with its certificate
                learned = replace(learned, notes=(*learned.notes, f"no certificate: {error}"))
    if certified is None:
        with writing(folder):
            (folder / CERTIFICATE).unlink(missing_ok=True)  # of another policy that was here before
    learned.policy.save(folder)
    took = time.monotonic() - started
    notes = (*log.notes, *learned.notes)
    outcome = Outcome(str(inputs.log), folder, learned, parts, evaluation, gain, took, notes, certified)
    options.write_json(folder / "learning.json", described(outcome))
    write_text_atomically(outcome.page, html(outcome))
    if not keep_checkpoint:  # only now: killed any earlier, the same command finds its way back
        shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    return outcome


def divide(log: Rows, share: float | None, settings: TrainingSettings, by: str | None = None) -> Parts:
    """The rows in parts; where rows decide when to stop, others are kept for the closing estimate.

    by: how, as `LoggedData.split` has it. In time the last rows make the closing estimate, those before them decide. Rows
    in files are held out by whole row groups.
    """
    some = log if isinstance(log, LoggedData) else next(log.chunks())
    if share is None:
        share = USUAL_SHARE if some.propensities is not None else 0.0
    if not 0 <= share < 1:
        raise InvalidInput("--validation", share, "a fraction of the rows, at least 0 and below 1")
    if not share:
        if settings.patience is not None:
            raise InvalidInput("--patience", settings.patience, "a --validation above 0 as well, and propensities")
        return Parts(log, None, None)
    some.require("propensities", purpose="--validation (0 disables it)")
    if not isinstance(log, LoggedData) and (by is not None or some.groups is not None):
        came = "rows in groups" if by is None else f"--split-by {by}"
        raise InvalidInput(
            "--validation", f"{share:g}, of {came}, in files larger than the buffer", "0, and other files to evaluate on; or a "
            "--buffer that holds all rows",
        )  # fmt: skip
    if not isinstance(log, LoggedData) and len(log.row_groups) < 2:
        raise InvalidInput("--validation", f"{share:g} of a log of one row group", f"0; {SMALLER}")
    train, held = _split(log, 1.0 - share, settings.seed, by)
    if settings.patience is None:
        return Parts(train, held, held)
    if not isinstance(held, LoggedData) and len(held.row_groups) < 2:
        came = f"{share:g} of the rows, which is one row group"
        raise InvalidInput("--validation", came, f"with --patience two row groups at least; {SMALLER}")
    return Parts(train, *_split(held, 0.5, settings.seed + 1, by))


def _split(log: Rows, fraction: float, seed: int, by: str | None) -> tuple[Rows, Rows]:
    if not isinstance(log, LoggedData):
        return log.split(1.0 - fraction, seed)
    return log.split(fraction, seed) if by is None else log.split(fraction, seed, by=cast("SplitBy", by))


def described(outcome: Outcome) -> dict[str, Any]:
    """The outcome as plain data."""
    learned, gain, parts = outcome.learned, outcome.gain, outcome.parts
    return {
        "log": outcome.source,
        "policy": repr(learned.policy),
        "objective": learned.objective,
        "settings": learned.settings,
        "rows": {
            "learned from": len(parts.train), "watched": len(parts.watched or ()), "judged": len(parts.judged or ()),
        },
        "history": [asdict(epoch) for epoch in learned.history],
        "kept_epoch": outcome.best_epoch,
        "evaluation": None if outcome.evaluation is None else as_data(outcome.evaluation),
        "gain": None
        if gain is None
        else {
            "value": gain.value, "standard_error": finite(gain.standard_error), "low": finite(gain.interval.low),
            "high": finite(gain.interval.high),
        },
        "certificate": None if outcome.certified is None else text.as_data(*outcome.certified),
        "seconds": outcome.seconds,
        "notes": list(outcome.notes),
    }  # fmt: skip


# ---- the report


def html(outcome: Outcome) -> str:
    """The whole document: what the policy is worth, a picture of it, the outcome in a table, and how it came about."""
    learned, found, certified = outcome.learned, outcome.evaluation, outcome.certified
    curves, epochs = _curves(outcome)
    if certified is not None:
        top = [certificate_page.card(*certified), *certificate_page.bounds_figure(certified[0])]
    elif found is not None:
        top = [evaluation_page.verdict_card(found.verdict()), evaluation_page.estimates_figure(found)]
    else:
        unknown = "No rows were held out: nothing here says what the policy is worth."
        top = [report.card("Learned, but not judged", [unknown], "open"), *curves[:1]]
        curves = curves[1:]
    blocks = [*top, report.facts(summary(outcome))]
    if certified is not None:
        blocks += [report.heading("What is certified"), *certificate_page.blocks(*certified)]
    blocks += [report.heading("Epoch by epoch"), *curves, epochs]
    if found is not None:
        which = "that were not used for early stopping" if outcome.best_epoch else "that nothing was learned from"
        blocks += [
            report.heading("What it would have earned"),
            report.paragraph(f"On {counted(found.rows, 'held-out row')} {which}."),
            *evaluation_page.blocks(found),
        ]
    blocks += [report.heading("How to use it"), report.code(_code(outcome))]
    blocks += [report.heading("Settings"), report.facts({name: str(value) for name, value in learned.settings.items()})]
    if outcome.notes:
        blocks += [report.heading("Notes"), report.bullets(list(outcome.notes))]
    about = f"{learned.objective} on {outcome.source}, {duration(outcome.seconds)}."
    return report.page("A policy learned from a log", about, *blocks)


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
        "speed": f"{history[-1].rows_per_second:,.0f} rows per second",
    }
    if outcome.certified is not None:
        made, shown = outcome.certified
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


def warnings(outcome: Outcome) -> list[str]:
    """What must not be overlooked about the estimate."""
    found = outcome.evaluation
    return [] if found is None else [*found.warnings, *found[JUDGE].warnings]


def hints(outcome: Outcome) -> list[str]:
    """What to try where the learned policy ends below the logging policy."""
    gain, found = outcome.gain, outcome.evaluation
    if gain is None or found is None or gain.value >= 0:
        return []
    said = "earns less than the logging policy" if gain.significant else "may earn less than the logging policy"
    settings = outcome.learned.settings
    more = [
        f"more --epochs (now {settings['epochs']})",
        f"a larger --learning-rate (now {settings['learning_rate']:g})",
    ]
    if str(outcome.learned.objective).split()[0] == options.USUAL_OBJECTIVE:
        more.append("--objective snips or dr")
    return [f"on held-out rows the policy {said}: try {', '.join(more)}, or more rows"]


def example(outcome: Outcome) -> str:
    """A context as `manyarms decide` takes it, with the columns of this log."""
    encoder = outcome.parts.train.encoder
    columns = [] if encoder is None else list(encoder.columns)
    return " ".join(f"{shlex.quote(name)}=..." for name in columns) or "--contexts FILE"


def _interval(value: float, low: float, high: float) -> str:
    return f"{number(value)} [{number(low)}, {number(high)}]"


def _epochs(outcome: Outcome) -> str:
    done, wanted = len(outcome.learned.history), cast(int, outcome.learned.settings["epochs"])
    kept = "" if outcome.best_epoch is None else f"; epoch {outcome.best_epoch}, the best by validation, is returned"
    return f"{done} of {wanted}" + (", stopped early" if done < wanted else "") + kept


def _curves(outcome: Outcome) -> tuple[list[str], str]:
    """Figures of what was watched, epoch by epoch, and the table."""
    history = outcome.learned.history
    epochs = np.array([float(epoch.epoch) for epoch in history])
    said = {
        "validation": "the self-normalised estimate of the policy's mean reward on held-out rows",
        "objective": "the objective, which is maximised: a mean over the batches of an epoch, each before its step",
    }
    figures = []
    for name, about in said.items():
        y = np.array([getattr(epoch, name) for epoch in history], dtype=np.float64)  # NaN where there was no validation
        if len(epochs) > 1 and np.isfinite(y).all():
            drawn = charts.Series(name, epochs, y, np.zeros(len(y)))
            chart = partial(_curve, drawn)
            seen = f"From {number(y[0])} to {number(y[-1])}, the largest in epoch {int(epochs[y.argmax()])}: {about}."
            figures.append(report.figure(chart, seen))
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
    columns = ("epoch", "objective", "validation", "learning rate", "rows per second")
    return figures, report.table(columns, rows, numbers=columns)


def _curve(drawn: charts.Series, width: float) -> str:
    title = f"{drawn.name} by epoch"
    return charts.line_chart([drawn], "epoch", drawn.name, title=title, from_zero=False, width=width)


def _code(outcome: Outcome) -> str:
    train = outcome.parts.train
    folder = outcome.folder
    lines = ["import manyarms as ma", "", f"policy = ma.load({str(folder)!r})"]
    if train.encoder is not None:
        lines.append('x = {"column": value, ...}              # a new row, which is encoded as the log was')
    told = f"{train.dim} numbers; no PyTorch needed" if train.encoder is None else "ids of the ten best actions"
    lines.append(f"best = policy.decide(x, k=10)           # {told}")
    return "\n".join(lines)


__all__ = ["Outcome", "Parts", "divide", "html", "run", "summary", "warnings"]
