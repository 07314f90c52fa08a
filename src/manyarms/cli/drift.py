"""`manyarms drift LOG`: whether rewards drift, and how fast."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from manyarms._base import durations
from manyarms._base.files import require_apart
from manyarms._base.html import require_page
from manyarms._base.text import number
from manyarms.beliefs.drift.clock import CLOCKS
from manyarms.beliefs.likelihoods.base import LIKELIHOODS, Likelihood
from manyarms.cli import options
from manyarms.cli._live import reporting
from manyarms.cli._standardised import Standardised
from manyarms.cli.commands import COMMANDS
from manyarms.errors import InvalidInput
from manyarms.priors import HierarchicalPrior
from manyarms.rewards import DriftChoice, choose_drift


@COMMANDS.register("drift")
def drift(
    log: options.Log,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The HTML page.", show_default="out/drift-LOG.html")
    ] = None,
    half_lives: Annotated[
        str | None,
        typer.Option(
            metavar="X,X,...",
            help="Half-lives to try, with commas between: times (90min, 6h, 1d); numbers are seconds, or rounds.",
            show_default="from a thousandth of the log's length to four times that",
        ),
    ] = None,
    clock: Annotated[
        str | None,
        typer.Option(
            metavar="CLOCK",
            help="What half-lives are measured in: time, by the log's timestamps, or rounds, every row being one.",
            show_default="time, where there are timestamps",
        ),
    ] = None,
    likelihood: Annotated[
        str,
        typer.Option(metavar="NAME", help="How rewards come about: linear, logistic (clicks), poisson (counts)."),
    ] = "linear",
    noise: Annotated[
        float | None,
        typer.Option(help="Standard deviation of linear rewards' noise; with --spread.", show_default="fitted"),
    ] = None,
    spread: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of the actions' parameters around their common mean; with --noise.",
            show_default="fitted",
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=2, help="Use only the first so many rows.", show_default="all")
    ] = None,
    action: options.Action = None,
    reward: options.Reward = None,
    context: options.Context = None,
    timestamp: options.Timestamp = None,
    drop_missing: options.DropMissing = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Whether rewards drift, and how fast: the half-life under which a log is predicted best, row after row.

    Catalogues age and tastes change. An agent that knows the half-life of what it has learned (drift=ma.Drift(...)) forgets at
    that pace: neither too soon, which wastes rows, nor too late, which keeps what is no longer true.

    For each half-life, and for no drift, a model learns the log in the order of its timestamps, and tells how likely each reward
    was before it sees it. The best half-life has the largest log-likelihood; those within two standard errors of it are
    plausible as well. Propensities are not needed.

    The model: actions that vary around a common mean, which is learned; contexts with a 1 in front and numbers of mean 0 and
    deviation 1. The actions' spread and the noise are fitted to the first 10,000 rows, unless they are given.

    Examples:

      manyarms drift log.csv                                 by the clock, where the log has timestamps
      manyarms drift log.csv --clock rounds --rows 20000
      manyarms drift log.csv --half-lives 6h,1d,7d,30d       what you would believe
      manyarms drift clicks.parquet --likelihood logistic    slower, and right for rare clicks

    Writes a page with a picture of the log-likelihoods. A row takes some 30 microseconds for each half-life,
    and three times that where rewards are not linear.
    """
    target = out if out is not None else Path("out") / f"drift-{log.name.split('.')[0]}.html"
    require_apart("--out", target, {"LOG": log})
    require_page("--out", target)
    options.require_logs({"LOG": log})
    model = _likelihood(likelihood, noise, spread)
    lengths, clock = _lengths(half_lives, clock)
    how = options.reading(
        context, action=action, reward=reward, timestamp=timestamp, propensity=options.NONE, drop_missing=drop_missing,
        catalogue=catalogue,
    )  # fmt: skip
    source = Standardised(how.open(log))
    size = 1.0 if spread is None else spread
    dim = source.dim
    prior = HierarchicalPrior(source.action_count, np.zeros(dim), size**2 * np.eye(dim), size**2 * np.eye(dim))
    with reporting("drift") as progress:
        found = choose_drift(
            source, prior, model, half_lives=lengths, clock=clock, fit=spread is None, rows=rows, progress=progress
        )
    found.write_page(target, log.name)
    options.say(str(found), f"model: {_model(found)}", f"report: {target}")
    if found.drift is not None and found.clock == "time":
        options.say(
            "such an agent goes by the time of its decisions: decide(..., at=) and observe(..., at=), in seconds"
        )
    options.say_next(f"ma.HierTS(prior, likelihood{f', {found.code}' if found.drift is not None else ''})")


def _likelihood(name: str, noise: float | None, spread: float | None) -> Likelihood:
    """The likelihood by its name; what is not given is fitted later."""
    options.one_of("--likelihood", name, tuple(LIKELIHOODS))
    if name != "linear" and noise is not None:
        raise InvalidInput("--noise", noise, f"none with --likelihood {name}")
    if name == "linear" and (noise is None) != (spread is None):
        raise InvalidInput("--noise, --spread", "one of them", "both, or neither, to be fitted")
    for option, value in (("--noise", noise), ("--spread", spread)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InvalidInput(option, value, "a number above 0")
    return LIKELIHOODS[name]() if noise is None else LIKELIHOODS[name](noise)  # type: ignore[call-arg]


def _lengths(text: str | None, clock: str | None) -> tuple[list[float] | None, str | None]:
    """Half-lives as numbers, and the clock, which is time where any of them has a unit."""
    if clock is not None:
        options.one_of("--clock", clock, CLOCKS)
    if text is None:
        return None, clock
    found = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        seconds = durations.seconds(word)
        if seconds is not None and clock == "rounds":
            raise InvalidInput("--half-lives", repr(word), "numbers, with --clock rounds")
        try:
            found.append(float(word) if seconds is None else seconds)
        except ValueError:
            expected = "numbers, or times with their units, with commas between: 500,2000 or 6h,1d"
            raise InvalidInput("--half-lives", repr(word), expected) from None
        clock = clock if seconds is None else "time"
    return found, clock


def _model(found: DriftChoice) -> str:
    """What all half-lives had in common."""
    prior = found.prior
    assert isinstance(prior, HierarchicalPrior)
    own, common = (math.sqrt(float(np.ravel(one)[0])) for one in (prior.action_covariance, prior.covariance))
    variance = found.likelihood.noise_variance
    noise = "" if variance is None else f"noise {number(math.sqrt(variance))}, "
    return f"{noise}actions within {number(own)} of a common mean, which is within {number(common)} of 0 (standard deviations)"


__all__ = ["drift"]
