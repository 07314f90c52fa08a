"""Learn, judge on rows that were held out, save, report.

OUT/manifest.json, arrays-*.npz     the policy; OUT/encoder and OUT/actions beside it where the log has them
OUT/learning.json, OUT/report.html  what was done and what came out
OUT/certificate.json, OUT/prior     with a bound: the certificate, and the prior that it is relative to
OUT/checkpoint/                     where an unfinished run stands: the same command goes on from it to the same policy
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from manyarms._base import storage
from manyarms.certificates import PolicyPrior, text
from manyarms.cli.learning.choices import Choices
from manyarms.cli.learning.inputs import Inputs
from manyarms.cli.learning.pessimism import SUBFOLDER, Certified, Pessimism
from manyarms.cli.learning.progress import following
from manyarms.errors import InvalidInput
from manyarms.evaluation import Difference, Evaluation, difference, evaluate, save_policy
from manyarms.evaluation.tables import as_data
from manyarms.learning import Learned, TrainingSettings, learn
from manyarms.learning.trainable import Learnable
from manyarms.logs import LoggedData

CHECKPOINT = "checkpoint"
USUAL_SHARE = 0.1


@dataclass(frozen=True)
class Parts:
    """Rows to learn from, rows to watch (they decide when to stop), and rows for the closing estimate, which decide nothing."""

    train: LoggedData
    watched: LoggedData | None
    judged: LoggedData | None


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
    certified: Certified | None = None  # of a policy learned with --pessimism

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
    out: Path | str,
    choices: Choices,
    *,
    pessimism: Pessimism | None = None,
    validation: float | None = None,
    device: str | None = None,
    checkpoint_seconds: float = 60.0,
    keep_checkpoint: bool = False,
    console: Console | None = None,
    **settings: Any,
) -> Outcome:
    """Learn a policy from a file of rounds and save it to a folder.

    pessimism: learn a randomised policy by a bound, in place of what `choices` says, and certify it. validation: the share of
    rows to hold out; a tenth, or none where the log has no propensities or the policy is certified on the rows that it was
    learned from, unless given. settings: of `manyarms.learning.TrainingSettings`.
    """
    from manyarms.cli.learning.page import html

    started, folder, console = time.monotonic(), Path(out), console or Console(stderr=True)
    checked = TrainingSettings(seed=choices.seed, **settings)
    log = inputs.read()
    if pessimism is not None:
        log = pessimism.checked(log, inputs)
        validation = validation or 0.0
    parts = divide(log, validation, checked)
    start: Learnable
    prior: PolicyPrior | None = None
    if pessimism is None:
        objective, start = choices.build(parts.train, inputs.embeddings)
    else:
        objective, (start, prior) = pessimism.objective(len(parts.train)), pessimism.start(log, inputs)
        settings = {**settings, "train": "actions"}
    with following(console, objective.label) as tell:
        learned = learn(
            parts.train, start, objective, validation=0.0 if parts.watched is None else parts.watched,
            folder=folder / CHECKPOINT, device=device, progress=tell, checkpoint_seconds=checkpoint_seconds,
            seed=choices.seed, certified=False, **settings,
        )  # fmt: skip
    evaluation = gain = None
    if parts.judged is not None:
        evaluation = evaluate(learned.policy, parts.judged, name="the learned policy", seed=choices.seed)
        gain = difference(learned.policy, None, parts.judged, seed=choices.seed)
    certified = None
    if pessimism is not None and prior is not None:
        certified = pessimism.certified(learned.policy, parts.train, prior)
        save_policy(start, folder / SUBFOLDER, log)  # for `manyarms certify OUT LOG --prior OUT/prior`
        data = json.dumps(text.as_data(certified.certificate, certified.gain), indent=1)
        storage.write_text_atomically(folder / "certificate.json", data + "\n")
    save_policy(learned.policy, folder, log)
    took = time.monotonic() - started
    outcome = Outcome(str(inputs.log), folder, learned, parts, evaluation, gain, took, log.notes, certified)
    storage.write_text_atomically(folder / "learning.json", json.dumps(described(outcome), indent=1) + "\n")
    storage.write_text_atomically(outcome.page, html(outcome))
    if not keep_checkpoint:  # only now: killed any earlier, the same command finds its way back
        shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    return outcome


def divide(log: LoggedData, share: float | None, settings: TrainingSettings) -> Parts:
    """The rows in parts; where rows decide when to stop, others are kept for the closing estimate."""
    if share is None:
        share = USUAL_SHARE if log.propensities is not None else 0.0
    if not 0 <= share < 1:
        raise InvalidInput("--validation", share, "a share of the rows, at least 0 and below 1")
    if not share:
        if settings.patience is not None:
            raise InvalidInput("--patience", settings.patience, "a --validation above 0 beside it, and propensities")
        return Parts(log, None, None)
    log.require("propensities", purpose="--validation (0 learns without)")
    train, held = log.split(1.0 - share, settings.seed)
    if settings.patience is None:
        return Parts(train, held, held)
    return Parts(train, *held.split(0.5, settings.seed + 1))


def described(outcome: Outcome) -> dict[str, Any]:
    """The outcome as plain data."""
    learned, gain = outcome.learned, outcome.gain
    return {
        "log": outcome.source,
        "policy": repr(learned.policy),
        "objective": learned.objective,
        "settings": learned.settings,
        "rows": {
            name: 0 if part is None else len(part)
            for name, part in (
                ("learned from", outcome.parts.train), ("watched", outcome.parts.watched), ("judged", outcome.parts.judged)
            )
        },
        "history": [asdict(epoch) for epoch in learned.history],
        "kept_epoch": outcome.best_epoch,
        "evaluation": None if outcome.evaluation is None else as_data(outcome.evaluation),
        "gain": None
        if gain is None
        else {"value": gain.value, "standard_error": gain.standard_error, "low": gain.interval.low, "high": gain.interval.high},
        "certificate": None
        if outcome.certified is None
        else text.as_data(outcome.certified.certificate, outcome.certified.gain),
        "seconds": outcome.seconds,
        "notes": list(outcome.notes),
    }  # fmt: skip


__all__ = ["CHECKPOINT", "Outcome", "Parts", "described", "divide", "run"]
