"""`manyarms compare POLICY POLICY LOG`: which of two policies is better, and is it more than luck?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from manyarms import evaluation
from manyarms._base.files import require_apart, require_folder, write_text_atomically
from manyarms.cli import _blocks, _pages, options
from manyarms.cli._flags import StandsFor
from manyarms.cli._policies import LOGGING, POLICY, Decisions, Judged, Probabilities, divided
from manyarms.cli._working import working_on
from manyarms.cli.commands import COMMANDS
from manyarms.evaluation import Difference, Evaluation, Verdict
from manyarms.evaluation.tables import as_data, finite, verdict_data
from manyarms.evaluation.verdicts import CANNOT_TELL, contradictions, doubts

FILES = ("report.html", "comparison.json")
FIRST, SECOND = "the first is better", "the second is better"


@COMMANDS.register("compare")
def compare(
    words: Annotated[list[Path], typer.Argument(metavar="POLICY POLICY LOG", help=f"{POLICY} Then a log file.")],
    probabilities: Probabilities = None,
    decisions: Decisions = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for report.html and comparison.json.")] = Path(
        "out/compare"
    ),
    estimator: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"Estimator, with an optional parameter (cips:0.01): {', '.join(options.estimator_names())}.",
        ),
        StandsFor("estimators"),
    ] = "snips",
    level: options.Level = 0.95,
    interval: options.Intervals = "normal",
    block: options.Block = None,
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
    timestamp: options.Timestamp = None,
    drop_missing: options.DropMissing = False,
    estimate_missing: options.EstimateMissing = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Compare two policies on the same log: the difference of their values, with an interval and a verdict.

    The difference is paired row by row. Both policies share the luck of the log, so that their difference is better known than
    either value: compare two policies this way, not by looking whether two intervals overlap.

    Examples:

      manyarms compare new/ old/ log.csv
      manyarms compare new/ logging log.csv      against the policy that wrote the log
      manyarms compare new/ uniform log.csv --estimator cips:0.01
      manyarms compare old/ log.csv --probabilities p_new

    The log needs propensities, and must not be one that either policy was learned from.
    Writes OUT/report.html and OUT/comparison.json.
    """
    named, log = divided(words, 2, 2, probabilities, decisions)
    inputs = {"POLICY": named[0].folder, "the second POLICY": named[1].folder, "LOG": log}
    require_apart("--out", out, inputs, *FILES)
    require_folder("--out", out, *FILES)
    options.require_logs({"LOG": log})
    limits, length = options.reward_range(low, high), _blocks.read(block)
    how = options.reading(
        context, action=action, reward=reward, propensity=propensity, group=group, event_id=event_id, timestamp=timestamp,
        drop_missing=drop_missing, estimate_missing=estimate_missing, catalogue=catalogue,
    )  # fmt: skip
    read = Judged.read(named, log, how, on)
    # the logging policy's value is the mean of the rewards, without an estimate: it is what the other is compared with
    (one, first), (other, second) = sorted(read.policies.items(), key=lambda item: item[1] == LOGGING)
    against = None if second == LOGGING else second
    settings: dict[str, Any] = {
        "level": level, "interval": interval, "reward_range": limits, "propensity_floor": floor, "seed": seed, "block": length,
    }  # fmt: skip
    with working_on(on, read.log, "compare") as (source, engine):
        found = evaluation.difference(first, against, source, estimator, on=engine, **settings)
        judged = {
            name: evaluation.evaluate(policy, source, [estimator], name=name, on=engine, **settings)
            for name, policy in ((one, first), (other, against))
            if policy is not None
        }
    verdict = judge(found, judged, (one, other))
    name = next(iter(judged.values())).estimates[0].name
    data = {
        "policies": [one, other],
        "estimator": name,
        "verdict": verdict_data(verdict),
        "difference": difference_data(found),
        "evaluations": {which: as_data(each) for which, each in judged.items()},
    }
    options.write_json(out / "comparison.json", data)
    write_text_atomically(out / "report.html", _pages.of_comparison(verdict, found, judged, name))
    options.say(str(verdict), "", f"{one} less {other}:", str(found))
    values = {which: each.estimates[0] for which, each in judged.items()}
    for which, each in values.items():
        options.say(f"{which}: {each.value:.4g} [{each.interval.low:.4g}, {each.interval.high:.4g}] by {each.label}")
    options.say(f"report: {out / 'report.html'}")


def judge(found: Difference, judged: dict[str, Evaluation], names: tuple[str, str]) -> Verdict:
    """Which is better, or that nobody can tell; as careful as the verdict on a single policy."""
    low, high = found.interval.low, found.interval.high
    rows = next(iter(judged.values())).rows
    estimate = next(iter(judged.values())).estimates[0]
    source = f"{estimate.label}, {found.interval.kind} interval"
    numbers = f"{found.value:+.4g} per round, [{low:.4g}, {high:.4g}] at {found.interval.level:.4g} ({source})"
    rest = (found.value, low, high, found.interval.level, source, rows)
    for name, one in judged.items():
        if one.on_training_rows:
            reason = f"{name} was learned from these rows, or from rows that look like them: no interval holds."
            return Verdict(CANNOT_TELL, reason, ("rows that neither policy was learned from",), *rest)
        wrong = next(contradictions(one), None)
        if wrong is not None:
            return Verdict(CANNOT_TELL, wrong, ("a look at the propensities, the rewards and their range",), *rest)
    if not found.interval.covers.startswith("the difference of the policies' values"):
        reason = f"The interval of {estimate.label} leaves its bias out: {numbers}."
        return Verdict(CANNOT_TELL, reason, ("--estimator snips",), *rest)
    doubtful = [
        (f"{name}: {why}", need) for name, one in judged.items() for why, need in doubts(one, one.estimates[0], found)
    ]
    needed = tuple(dict.fromkeys(need for _, need in doubtful))
    if not found.significant:
        enough = _rows_needed(found, rows)
        more = () if enough is None else (f"about {enough:,} rows like these, if the difference is what it seems",)
        return Verdict(
            CANNOT_TELL, f"The two may be worth the same: {numbers}.", more + needed or ("more rows",), *rest, enough
        )
    better, worse = names if found.value > 0 else names[::-1]
    if doubtful:
        return Verdict(CANNOT_TELL, f"{better} looks better, {numbers}, but {doubtful[0][0]}.", needed, *rest)
    return Verdict(FIRST if found.value > 0 else SECOND, f"{better} earns more than {worse}: {numbers}.", (), *rest)


def _rows_needed(found: Difference, rows: int) -> int | None:
    """About how many rows would show the difference that is seen."""
    half = (found.interval.high - found.interval.low) / 2
    return math.ceil(rows * (half / found.value) ** 2) if found.value and math.isfinite(half) else None


def difference_data(found: Difference) -> dict[str, Any]:
    """A difference for JSON."""
    return {
        "value": found.value,
        "standard_error": finite(found.standard_error),
        "correlation": finite(found.correlation),
        "significant": found.significant,
        "intervals": [
            {
                "kind": one.kind,
                "low": finite(one.low),
                "high": finite(one.high),
                "level": one.level,
                "covers": one.covers,
            }
            for one in found.intervals
        ],
        "warnings": list(found.warnings),
        "note": found.note,
    }


__all__ = ["compare", "judge"]
