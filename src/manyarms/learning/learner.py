"""`learn`: a log, a policy to start from, an objective; out comes a better policy.

The arguments are checked here, and what is certified of the result is added; the training itself, which needs PyTorch, is
imported when it is called (`loop.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import getattr_static
from pathlib import Path
from typing import TYPE_CHECKING, cast

from manyarms._base import files, validate
from manyarms.certificates import PolicyPrior, certify
from manyarms.engine import IN_THIS_PROCESS, On
from manyarms.errors import Contradiction, InvalidInput, MissingExtra
from manyarms.estimators.base import Objective
from manyarms.estimators.pessimism import PACBayes
from manyarms.learning.defaults import EPOCHS, USUAL_RATE, epochs_of, is_linear, rate_of
from manyarms.learning.processes import Job, in_several, learn_together, require_divisible
from manyarms.learning.projecting import projected
from manyarms.learning.results import Learnable, Learned, Moment, require_learnable
from manyarms.learning.rising import STILL_RISING, still_rising
from manyarms.learning.settings import Precision, Towards, Train, TrainingSettings
from manyarms.learning.survey import StreamedRows, divided, opened, require_buffer, survey
from manyarms.logs.data import LoggedData, LogSource, a_log
from manyarms.logs.row_sketch import RowSketch, refuse, sketch_of
from manyarms.logs.schema import Schema
from manyarms.policies.base import Policy, fitting

if TYPE_CHECKING:
    from manyarms.learning.sampled import Sampler

NO_CERTIFICATE = (
    "{} is a heuristic and no bound: its value says nothing of the policy, and there is no certificate. The policy itself can be "
    "certified with the prior that learning started from"
)


def learn(
    log: LoggedData | LogSource,
    policy: Learnable,
    objective: Objective,
    *,
    epochs: int | None = None,
    batch: int = 256,
    learning_rate: float | None = None,
    schedule: str | None = None,
    optimiser: str = "adam",
    l2: float = 0.0,
    towards: Towards = "zero",
    train: Train | None = None,
    precision: Precision = "fp32",
    patience: int | None = None,
    seed: int = 0,
    sampler: Sampler | None = None,
    learn_sigma: bool = True,
    draws: int | None = None,
    validation: LogSource | float = 0.0,
    score: Callable[[Policy], float] | None = None,
    folder: str | Path | None = None,
    device: str | None = None,
    progress: Callable[[Moment], None] | None = None,
    checkpoint_seconds: float = 60.0,
    prior_learned_from: LogSource | None = None,
    certified: bool = True,
    buffer: int | None = None,
    on: On = IN_THIS_PROCESS,
    workers: int | None = None,
) -> Learned:
    """A policy that maximises an objective on a log.

    log: rounds in memory, or a Parquet file or folder (`open_log`), which may be larger than memory: it is read once before the
    first epoch, and then window by window in an order of its own every epoch (`manyarms.logs.shuffled`).

    policy: where to start, and what is learned: a SoftmaxPolicy (all actions; with an encoder, the encoder), a
    SupportSoftmaxPolicy (the logging support or candidates alone) or a TwoStagePolicy (clusters). The embeddings of a
    SoftmaxPolicy may be of another length than the contexts: a projection between them is then learned, and a note says so.

    epochs to draws: how it is learned, see `TrainingSettings`. epochs: ten, and more for small logs, unless given. learning_rate:
    chosen by the length of the contexts unless given, and then it falls to 0 (`manyarms.learning.defaults`). The result's notes
    say where the objective was still rising at the end.

    validation: a held-out log, or the share of rows to hold out (of a file: whole row groups); its self-normalised estimate of
    the policy's reward is in the history, and decides early stopping (`patience`).
    score: any number of a policy, such as a world's true value, taken after every epoch (and preferred for early stopping).
    folder: keep checkpoints there, and go on from what is found there. device: "cpu", "cuda", ...; a GPU where there is one.
    progress: called with a `Moment` after every batch, on a GPU after every few.
    prior_learned_from: the log that the start was learned from, for a
    PACBayes objective, whose prior is the start; its rows must be others than those of `log`. certified: whether the result of
    such an objective comes with its certificate, from bounds that do not depend on what was adapted while learning.
    buffer: of a log that is read from files, the rows of a window, two or three of which are in memory; as many as make 128 MB
    unless given. A log that has no more rows is read into memory.
    on, workers: who learns. "local", this process, or `workers` processes of this machine; "ray", "ray://host:port", or an open
    engine (`manyarms.engine`), whose processes learn together, as many as it has unless given. A table of parameters that is
    learned is divided among them by actions, with the exact softmax over all, and so are its checkpoints; where an encoder alone
    is learned, the rows of a batch are. The result is that of one process, to rounding. A process that dies is replaced, and the
    run goes on from its last checkpoint to the same result; `folder`, and files of a log, have one path on all machines.
    """
    settings = TrainingSettings(
        EPOCHS if epochs is None else epochs, batch, USUAL_RATE if learning_rate is None else learning_rate,
        "constant" if schedule is None else schedule, optimiser, l2, towards, train, precision, patience, seed, sampler,
        learn_sigma, draws,
    )  # fmt: skip
    several = in_several(on, workers)
    source = log if isinstance(log, LoggedData) else opened(log, settings, buffer)
    require_learnable(policy)
    if not isinstance(objective, Objective):
        raise InvalidInput(
            "objective", validate.describe(objective), "an objective of manyarms.estimators, such as cLPI()"
        )
    for name, function in (("score", score), ("progress", progress)):
        if function is not None and not callable(function):
            raise InvalidInput(name, validate.describe(function), "a function, or None")
    certified = validate.flag("certified", certified)
    checkpoint_seconds = validate.not_negative("checkpoint_seconds", checkpoint_seconds)
    if prior_learned_from is not None:
        a_log("prior_learned_from", prior_learned_from)
    held, share = None, 0.0
    if getattr_static(validation, "chunks", None) is not None:
        held = a_log("validation", cast(LogSource, validation))
    else:
        share = validate.number("validation", validation, least=0, below=1)
    if settings.patience is not None and held is None and not share and score is None:
        raise InvalidInput("patience", settings.patience, "validation= or score= as well, to compare epochs by")
    start, between = projected(policy, source, settings)
    if several:
        require_divisible(start, settings, workers)
    rows: LoggedData | StreamedRows
    chosen_by: LoggedData | StreamedRows
    if isinstance(source, LoggedData):
        chosen_by = rows = source
        if share:
            rows, held = source.split(1.0 - share, settings.seed)
    else:
        source, held = (source, held) if not share else divided(source, share, settings.seed)
        chosen_by = rows = survey(source, objective, require_buffer(buffer, source.dim, settings.batch))
    if start.dim == rows.dim:
        settings = _chosen(
            settings, chosen_by, start, epochs=epochs is None, rate=learning_rate is None, schedule=schedule is None
        )
    if held is not None:
        first = held if isinstance(held, LoggedData) else next(iter(held.chunks()))
        first.require("propensities", purpose="a validation of the learned policy")
    prior = _prior(objective, start, rows, settings, prior_learned_from, certified)
    try:
        from manyarms.learning.loop import TrainingRun
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtra("torch", "torch", "learning policies from logs") from error
    if several:
        tells = progress is not None
        if folder is not None:  # other processes may work elsewhere
            folder = files.require_folder("folder", folder).absolute()
        job = Job(rows, start, objective, settings, held, score, folder, checkpoint_seconds, device, tells)
        result = learn_together(job, on, workers, progress)
    else:
        run = TrainingRun(rows, start, objective, settings, device)
        found = run.go(held, score, run.checkpoints(start, folder, checkpoint_seconds), progress)
        assert found is not None  # there is no other process
        result = found
    result = replace(result, notes=(*between, *result.notes))
    chose = held is not None and settings.patience is not None and score is None
    seen = _sketch(
        rows, *([held] if held is not None and chose else [])
    )  # rows that chose the epoch were learned from, too
    if policy.training_rows is not None:
        seen.include(policy.training_rows)
    result.policy.training_rows = seen
    result.policy.schema = fitting(Schema.of(source).beside(policy.schema), result.policy)
    if len(result.history) == settings.epochs and still_rising(result.history):
        result = replace(result, notes=(*result.notes, STILL_RISING))
    if rows.propensities_are_estimates:
        said = f"propensities are estimates in {rows.estimated_share:.1%} of the rows that were learned from"
        result = replace(result, notes=(*result.notes, said))
    if isinstance(objective, PACBayes) and not objective.certifies:
        return replace(result, notes=(*result.notes, NO_CERTIFICATE.format(objective.label)))
    if prior is None or not certified:
        return result
    delta = objective.delta if isinstance(objective, PACBayes) else 0.05
    prior = replace(prior, encoder=result.policy.encoder)  # the start's, in whatever form: it was not learned
    learned_from = rows if isinstance(rows, LoggedData) else rows.source
    try:
        made = certify(result.policy, learned_from, prior=prior, delta=delta, trust_estimates=True)
        return replace(result, certificate=made)
    except Contradiction as error:  # what was learned is not lost with its certificate
        return replace(result, notes=(*result.notes, f"no certificate: {error}"))


def _sketch(rows: LoggedData | StreamedRows, *more: LogSource) -> RowSketch:
    """Of the rows that were learned from."""
    if isinstance(rows, LoggedData):
        return RowSketch.of(rows, *more)
    if more:
        rows.sketch.include(RowSketch.of(*more))
    return rows.sketch


def _chosen(
    settings: TrainingSettings,
    log: LoggedData | StreamedRows,
    policy: Learnable,
    *,
    epochs: bool,
    rate: bool,
    schedule: bool,
) -> TrainingSettings:
    """The settings with what was left open chosen."""
    if epochs:
        settings = replace(settings, epochs=epochs_of(len(log), settings.batch))
    if rate:
        some, informative = (log, None) if isinstance(log, LoggedData) else (log.sample, log.informative)
        found = rate_of(some, policy, settings.train, settings.optimiser, informative)
        settings = replace(settings, learning_rate=found)
        if schedule and is_linear(policy, settings.train) and settings.optimiser != "sgd":
            settings = replace(settings, schedule="linear")
    return settings


def _prior(
    objective: Objective,
    policy: Learnable,
    log: LoggedData | StreamedRows,
    settings: TrainingSettings,
    learned_from: LogSource | None,
    certified: bool,
) -> PolicyPrior | None:
    """The distribution that a PACBayes objective measures its distance from, once it is known to have seen other rows."""
    if not isinstance(objective, PACBayes):
        return None
    in_groups = log.groups is not None if isinstance(log, LoggedData) else log.grouped
    if certified and objective.certifies and in_groups:
        raise InvalidInput(
            "log", "rows in groups", "independent rows for a certificate; certified=False learns without one, and "
            "certify(policy, other_log, largest_group=) certifies on other groups",
        )  # fmt: skip
    if settings.train in ("encoder", "both") or (policy.encoder is not None and settings.train is None):
        raise InvalidInput(
            "train", repr(settings.train), "'actions': a bound does not count what an encoder learns from the log"
        )
    if learned_from is not None:
        refuse("prior_learned_from", _sketch(log).overlap(sketch_of(learned_from)))
    elif policy.training_rows is not None:
        refuse("policy", _sketch(log).overlap(policy.training_rows))
    return PolicyPrior.of(policy, learned_from)


__all__ = ["learn"]
