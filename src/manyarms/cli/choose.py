"""`manyarms choose POLICY... LOG`: the best of several policies, without being fooled by the luckiest."""

from __future__ import annotations

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
from manyarms.evaluation import Choice
from manyarms.evaluation.compare import KINDS
from manyarms.evaluation.estimate import training_rows_warnings
from manyarms.evaluation.readers import reader_of
from manyarms.evaluation.tables import finite

FILES = ("report.html", "choice.json")


@COMMANDS.register("choose")
def choose(
    words: Annotated[list[Path], typer.Argument(metavar="POLICY... LOG", help=f"{POLICY} Then a log file.")],
    probabilities: Probabilities = None,
    decisions: Decisions = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for report.html and choice.json.")] = Path(
        "out/choose"
    ),
    delta: Annotated[float, typer.Option(help="Probability with which any of the bounds may fail.")] = 0.05,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help=f"Kind of lower bound: {', '.join(KINDS)}. ls and bernstein hold for any number of rows, the others for many.",
            show_default="ls; normal where rows come in groups",
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Estimator, with an optional parameter (cips:0.01): {', '.join(options.estimator_names())}.",
            show_default="the one that fits --kind",
        ),
        StandsFor("estimators"),
    ] = None,
    low: options.Low = None,
    high: options.High = None,
    floor: options.Floor = None,
    seed: options.Seed = 0,
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
    """Choose among policies by the largest lower bound on their values; the bounds hold for all of them at once.

    The largest of many estimates is too good: it was chosen for its luck. A lower bound for each, at 1 - delta divided among
    them, allows for the choice: with probability 1 - delta the chosen policy is worth what is said of it.

    Examples:

      manyarms choose a/ b/ c/ log.csv
      manyarms choose policies/* uniform log.csv --delta 0.01
      manyarms choose a/ b/ log.csv --kind normal         many rows: tighter

    The log needs propensities, and must not be one that any of the policies was learned from.
    Writes OUT/report.html and OUT/choice.json.
    """
    named, log = divided(words, 2, None, probabilities, decisions)
    inputs = {f"POLICY {one.text}": one.folder for one in named} | {"LOG": log}
    require_apart("--out", out, inputs, *FILES)
    require_folder("--out", out, *FILES)
    options.require_logs({"LOG": log})
    limits = options.reward_range(low, high)
    how = options.reading(
        context, action=action, reward=reward, propensity=propensity, group=group, event_id=event_id,
        drop_missing=drop_missing, estimate_missing=estimate_missing, catalogue=catalogue,
    )  # fmt: skip
    read = Judged.read(named, log, how, on)
    kind = kind or ("ls" if read.log.columns.group is None else "normal")  # ls needs rows that are independent
    with working_on(on, read.log, "choose") as (source, engine):
        found = evaluation.choose(
            read.policies,
            source,
            delta=delta,
            kind=kind,
            estimator=estimator,
            reward_range=limits,
            propensity_floor=floor,
            seed=seed,
            on=engine,
        )
        with reader_of(source, engine) as reader:
            learned_here = [
                f"{name}: {text}"
                for name, one in read.policies.items()
                for text in training_rows_warnings(one, source, reader)  # type: ignore[arg-type]
            ]
    options.write_json(out / "choice.json", choice_data(found, learned_here))
    write_text_atomically(out / "report.html", _pages.of_choice(found, learned_here))
    options.say(*(f"warning: {text}" for text in learned_here), str(found), f"report: {out / 'report.html'}")
    best = next((one.words for one in named if found.best in (one.name, one.text)), found.best)
    options.say_next(f"manyarms compare {best} logging ANOTHER-LOG", f"manyarms certify {best} ANOTHER-LOG")


def choice_data(found: Choice, warnings: list[str]) -> dict[str, Any]:
    """A choice for JSON."""
    return {
        "best": found.best,
        "lower": finite(found.lower),
        "kind": found.kind,
        "delta": found.delta,
        "logged": found.logged,
        "policies": [
            {
                "policy": one.name,
                "lower": finite(one.lower),
                "estimator": one.estimate.label,
                "value": one.estimate.value,
                "standard_error": finite(one.estimate.standard_error),
                "effective_sample_size": one.estimate.effective_sample_size,
                "warnings": list(one.estimate.warnings),
            }
            for one in found.candidates
        ],
        "warnings": warnings,
        "note": found.note,
    }


__all__ = ["choose"]
