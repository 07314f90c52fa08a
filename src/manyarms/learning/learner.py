"""`learn`: a log, a policy to start from, an objective; out comes a better policy.

The arguments are checked here, and what is certified of the result is added; the training itself, which needs PyTorch, is
imported when it is called (`loop.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from manyarms._base import validate
from manyarms.certificates import PolicyPrior, certify
from manyarms.errors import Contradiction, InvalidInput, MissingExtra
from manyarms.estimators.base import Objective
from manyarms.estimators.pessimism import PACBayes
from manyarms.learning.defaults import EPOCHS, USUAL_RATE, epochs_of, is_linear, rate_of
from manyarms.learning.projecting import projected
from manyarms.learning.results import Learnable, Learned, Moment, require_learnable
from manyarms.learning.rising import STILL_RISING, still_rising
from manyarms.learning.settings import Precision, Towards, Train, TrainingSettings
from manyarms.logs.data import LoggedData, LogSource, a_log
from manyarms.logs.row_sketch import RowSketch, require_other_rows
from manyarms.logs.schema import Schema
from manyarms.policies.base import Policy, fitting

if TYPE_CHECKING:
    from manyarms.learning.sampled import Sampler

NO_CERTIFICATE = (
    "{} is a heuristic and no bound: its value says nothing of the policy, and there is no certificate. The policy itself can be "
    "certified with the prior that learning started from"
)


def learn(
    log: LoggedData,
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
    validation: LoggedData | float = 0.0,
    score: Callable[[Policy], float] | None = None,
    folder: str | Path | None = None,
    device: str | None = None,
    progress: Callable[[Moment], None] | None = None,
    checkpoint_seconds: float = 60.0,
    prior_learned_from: LogSource | None = None,
    certified: bool = True,
) -> Learned:
    """A policy that maximises an objective on a log.

    policy: where to start, and what is learned: a SoftmaxPolicy (all actions; with an encoder, the encoder), a
    SupportSoftmaxPolicy (the logging support or candidates alone) or a TwoStagePolicy (clusters). The embeddings of a
    SoftmaxPolicy may be of another length than the contexts: a projection between them is then learned, and a note says so.

    epochs to draws: how it is learned, see `TrainingSettings`. epochs: ten, and more for small logs, unless given. learning_rate:
    chosen by the length of the contexts unless given, and then it falls to 0 (`manyarms.learning.defaults`). The result's notes
    say where the objective was still rising at the end.

    validation: a held-out log, or the share of rows to hold out; its self-normalised estimate of the policy's reward is in the
    history, and decides early stopping (`patience`).
    score: any number of a policy, such as a world's true value, taken after every epoch (and preferred for early stopping).
    folder: keep checkpoints there, and go on from what is found there. device: "cpu", "cuda", ...; a GPU where there is one.
    progress: called with a `Moment` after every batch. prior_learned_from: the log that the start was learned from, for a
    PACBayes objective, whose prior is the start; its rows must be others than those of `log`. certified: whether the result of
    such an objective comes with its certificate, from bounds that do not depend on what was adapted while learning.
    """
    settings = TrainingSettings(
        EPOCHS if epochs is None else epochs, batch, USUAL_RATE if learning_rate is None else learning_rate,
        "constant" if schedule is None else schedule, optimiser, l2, towards, train, precision, patience, seed, sampler,
        learn_sigma, draws,
    )  # fmt: skip
    if not isinstance(log, LoggedData):
        raise InvalidInput("log", validate.describe(log), "LoggedData, with its rows in memory")
    require_learnable(policy)
    start, between = projected(policy, log, settings)
    if start.dim == log.dim:
        settings = _chosen(
            settings, log, start, epochs=epochs is None, rate=learning_rate is None, schedule=schedule is None
        )
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
    held = validation if isinstance(validation, LoggedData) else None
    if not isinstance(validation, LoggedData) and (
        share := validate.number("validation", validation, least=0, below=1)
    ):
        log, held = log.split(1.0 - share, settings.seed)
    if settings.patience is not None and held is None and score is None:
        raise InvalidInput("patience", settings.patience, "validation= or score= as well, to compare epochs by")
    if held is not None:
        held.require("propensities", purpose="a validation of the learned policy")
    prior = _prior(objective, start, log, settings, prior_learned_from, certified)
    try:
        from manyarms.learning.loop import TrainingRun
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtra("torch", "torch", "learning policies from logs") from error
    run = TrainingRun(log, start, objective, settings, device)
    result = run.go(held, score, run.checkpoints(start, folder, checkpoint_seconds), progress)
    result = replace(result, notes=(*between, *result.notes))
    chose = held is not None and settings.patience is not None and score is None
    rows = RowSketch.of(
        log, *([held] if held is not None and chose else [])
    )  # rows that chose the epoch were learned from, too
    if policy.training_rows is not None:
        rows.include(policy.training_rows)
    result.policy.training_rows = rows
    result.policy.schema = fitting(Schema.of(log).beside(policy.schema), result.policy)
    if len(result.history) == settings.epochs and still_rising(result.history):
        result = replace(result, notes=(*result.notes, STILL_RISING))
    if log.propensities_are_estimates:
        said = f"propensities are estimates in {log.estimated_share:.1%} of the rows that were learned from"
        result = replace(result, notes=(*result.notes, said))
    if isinstance(objective, PACBayes) and not objective.certifies:
        return replace(result, notes=(*result.notes, NO_CERTIFICATE.format(objective.label)))
    if prior is None or not certified:
        return result
    delta = objective.delta if isinstance(objective, PACBayes) else 0.05
    prior = replace(prior, encoder=result.policy.encoder)  # the start's, in whatever form: it was not learned
    try:
        return replace(result, certificate=certify(result.policy, log, prior=prior, delta=delta, trust_estimates=True))
    except Contradiction as error:  # what was learned is not lost with its certificate
        return replace(result, notes=(*result.notes, f"no certificate: {error}"))


def _chosen(
    settings: TrainingSettings, log: LoggedData, policy: Learnable, *, epochs: bool, rate: bool, schedule: bool
) -> TrainingSettings:
    """The settings with what was left open chosen."""
    if epochs:
        settings = replace(settings, epochs=epochs_of(len(log), settings.batch))
    if rate:
        found = rate_of(log, policy, settings.train, settings.optimiser)
        settings = replace(settings, learning_rate=found)
        if schedule and is_linear(policy, settings.train) and settings.optimiser != "sgd":
            settings = replace(settings, schedule="linear")
    return settings


def _prior(
    objective: Objective,
    policy: Learnable,
    log: LoggedData,
    settings: TrainingSettings,
    learned_from: LogSource | None,
    certified: bool,
) -> PolicyPrior | None:
    """The distribution that a PACBayes objective measures its distance from, once it is known to have seen other rows."""
    if not isinstance(objective, PACBayes):
        return None
    if certified and objective.certifies and log.groups is not None:
        raise InvalidInput(
            "log", "rows in groups", "independent rows for a certificate; certified=False learns without one, and "
            "certify(policy, other_log, largest_group=) certifies on other groups",
        )  # fmt: skip
    if settings.train in ("encoder", "both") or (policy.encoder is not None and settings.train is None):
        raise InvalidInput(
            "train", repr(settings.train), "'actions': a bound does not count what an encoder learns from the log"
        )
    if learned_from is not None:
        require_other_rows("prior_learned_from", learned_from, log)
    elif policy.training_rows is not None:
        require_other_rows("policy", policy.training_rows, log)
    return PolicyPrior.of(policy, learned_from)


__all__ = ["learn"]
