"""`manyarms tune POLICY LOG`: how strongly to correct importance weights."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from manyarms import evaluation
from manyarms._base.files import require_apart, require_folder, write_text_atomically
from manyarms.cli import _pages, options
from manyarms.cli._flags import StandsFor
from manyarms.cli._policies import POLICY, Decisions, Judged, Probabilities, divided
from manyarms.cli._working import working_on
from manyarms.cli.commands import COMMANDS
from manyarms.errors import InvalidInput
from manyarms.evaluation import Tuning
from manyarms.evaluation.tables import finite
from manyarms.evaluation.tuning import RULES
from manyarms.weights import CORRECTIONS

FILES = ("report.html", "tuning.json")
# parameters that `manyarms learn` has an option for
OPTIONS = ("tau", "alpha", "beta", "gamma", "smoothing")


def tunable() -> dict[str, str]:
    """The corrections that have a parameter, and what it is called."""
    return {name: str(kind.parameter) for name, kind in CORRECTIONS.items() if kind.parameter is not None}


@COMMANDS.register("tune")
def tune(
    words: Annotated[list[Path], typer.Argument(metavar="POLICY LOG", help=f"{POLICY} Then a log file.")],
    probabilities: Probabilities = None,
    decisions: Decisions = None,
    estimator: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Whose parameter to choose: "
            + ", ".join(f"{name} ({what})" for name, what in tunable().items())
            + ".",
        ),
        StandsFor("family"),
    ] = "es",
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="X,X,...", help="Values to try, with commas between.", show_default="a grid for the number of rows"
        ),
    ] = None,
    rule: Annotated[
        str,
        typer.Option(
            "--rule",
            metavar="RULE",
            help="mse: the smallest squared bias bound plus variance. slope: the strongest correction whose interval meets "
            "those of all weaker ones.",
        ),
    ] = "mse",
    width: Annotated[float, typer.Option(help="For slope: intervals are so many standard errors wide.")] = 0.5,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for report.html and tuning.json.")] = Path(
        "out/tune"
    ),
    on: options.On = "local",
    action: options.Action = None,
    reward: options.Reward = None,
    propensity: options.Propensity = None,
    context: options.Context = None,
    group: options.Group = None,
    event_id: options.EventId = None,
    drop_missing: options.DropMissing = False,
    estimate_missing: options.EstimateMissing = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Choose the parameter of an estimator from a log: how strongly importance weights are corrected.

    A strong correction has a small variance and a bias, a weak one the other way round. The parameter balances the two for a
    policy like POLICY on a log like LOG; the same parameter serves the objective of manyarms learn.

    Examples:

      manyarms tune policy/ log.csv                          alpha of exponential smoothing
      manyarms tune policy/ log.csv --estimator cips         tau, where propensities are clipped
      manyarms tune uniform log.csv --estimator ls --grid 0.001,0.01,0.1 --rule slope

    Then evaluate on other rows: intervals on the rows of the choice do not know of it.
    Writes OUT/report.html and OUT/tuning.json.
    """
    named, log = divided(words, 1, 1, probabilities, decisions)
    require_apart("--out", out, {"POLICY": named[0].folder, "LOG": log}, *FILES)
    require_folder("--out", out, *FILES)
    options.require_logs({"LOG": log})
    options.one_of("--estimator", estimator, tuple(tunable()))
    options.one_of("--rule", rule, RULES)
    values = None if grid is None else _numbers(grid)
    how = options.reading(
        context, action=action, reward=reward, propensity=propensity, group=group, event_id=event_id,
        drop_missing=drop_missing, estimate_missing=estimate_missing, catalogue=catalogue,
    )  # fmt: skip
    read = Judged.read(named, log, how, on)
    name, policy = read.only()
    with working_on(on, read.log, "tune") as (source, engine):
        found = evaluation.tune(policy, source, estimator, values, rule=rule, width=width, on=engine)
    options.write_json(out / "tuning.json", tuning_data(found, name, estimator))
    write_text_atomically(out / "report.html", _pages.of_tuning(found, name))
    options.say(str(found), f"report: {out / 'report.html'}")
    chosen = f"{found.parameter:.4g}"
    after = [f"manyarms evaluate {named[0].words} ANOTHER-LOG --estimators snips,{estimator}:{chosen}"]
    parameter = tunable()[estimator]
    if parameter in OPTIONS:
        after.append(
            f"manyarms learn {shlex.quote(str(log))}{how.words} --objective {estimator} --{parameter} {chosen}"
        )
    options.say_next(*after)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InvalidInput("--grid", repr(text), "numbers with commas between, such as 0.1,0.3,1") from None


def tuning_data(found: Tuning, policy: str, estimator: str) -> dict[str, Any]:
    """A choice of a parameter for JSON."""
    return {
        "policy": policy,
        "estimator": estimator,
        "parameter": found.correction.parameter,
        "value": found.parameter,
        "rule": found.rule,
        "trials": [
            {
                "value": one.parameter,
                "estimate": one.value,
                "standard_error": finite(one.standard_error),
                "bias_bound": finite(one.bias_bound),
            }
            for one in found.trials
        ],
        "note": found.note,
    }


__all__ = ["tune"]
