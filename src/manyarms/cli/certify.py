"""`manyarms certify POLICY LOG`: is a policy safe to ship?"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from manyarms import certificates
from manyarms._base.files import require_apart, require_folder
from manyarms.certificates import PolicyPrior, page, text
from manyarms.cli import options
from manyarms.cli._flags import StandsFor
from manyarms.cli._policies import POLICY, Decisions, Judged, Probabilities, SavedPolicy, divided
from manyarms.cli._working import working_on
from manyarms.cli.commands import COMMANDS
from manyarms.errors import InvalidInput
from manyarms.evaluation import verdict
from manyarms.logs import LogSource, TableLog, collect

FILES = ("report.html", "certificate.json")


@COMMANDS.register("certify")
def certify(
    words: Annotated[list[Path], typer.Argument(metavar="POLICY LOG", help=f"{POLICY} Then a log file.")],
    probabilities: Probabilities = None,
    decisions: Decisions = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for report.html and certificate.json.")] = Path(
        "out/certify"
    ),
    delta: options.Delta = 0.05,
    prior: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The policy that learning started from; required if POLICY was learned from LOG.",
            show_default="none: POLICY was fixed before LOG",
        ),
    ] = None,
    prior_log: options.PriorLog = None,
    logging: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="The logging policy of LOG, for es, clip, ix, sakhi-2.", show_default="unknown"
        ),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help=f"Bounds: {', '.join(options.bound_names())}. Choose before looking at results.",
            show_default="es,ls; ls where --logging is unknown",
        ),
    ] = None,
    high: Annotated[
        float, typer.Option(help="Largest possible reward; the smallest is 0."), StandsFor("largest_reward")
    ] = 1.0,
    lower_only: Annotated[
        bool,
        typer.Option("--lower-only", help="One-sided: spend all of delta on the lower bound."),
        StandsFor("two_sided"),
    ] = False,
    largest_group: Annotated[
        int | None,
        typer.Option(
            help="With --group, and optional: the most rows that a group can have, known beforehand. Bounds the value per "
            "group, and that per row.",
            show_default="none",
        ),
    ] = None,
    independent: Annotated[
        bool, typer.Option("--independent", help="Treat rows of the same group as independent.")
    ] = False,
    trust_estimates: Annotated[
        bool, typer.Option("--trust-estimates", help="Take propensities that are estimates for exact.")
    ] = False,
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
    """Is a policy safe to ship? Bound its value from below and above with probability 1 - delta.

    Prints the certificate, the cost of each term of the bound, and whether the improvement over the logging policy is certified;
    writes OUT/report.html and OUT/certificate.json.

    Examples:

      manyarms certify policy/ later-rounds.parquet
      manyarms certify policy/ rounds.parquet --prior start/ --prior-log first-rounds.parquet --logging old-policy/
      manyarms certify policy/ rounds.parquet --bound ls --delta 0.01 --lower-only
      manyarms certify policy/ logs/ --on ray             a folder of Parquet files, on a cluster

    With or without a prior: without --prior the policy must not have been learned from LOG. With --prior it may have
    been, and must be a Gaussian or a mixed-logit policy; the further it is from the prior, the wider the certificate.
    """
    if prior is None and prior_log is not None:
        raise InvalidInput("--prior-log", str(prior_log), "--prior as well, the policy that was learned from it")
    (named,), log = divided(words, 1, 1, probabilities, decisions)
    inputs = {"POLICY": named.folder, "LOG": log, "--prior": prior, "--prior-log": prior_log, "--logging": logging}
    require_apart("--out", out, inputs, *FILES)
    require_folder("--out", out, *FILES)
    options.require_logs({"LOG": log, "--prior-log": prior_log})
    how = options.reading(
        context, action=action, reward=reward, propensity=propensity, group=group, event_id=event_id, timestamp=timestamp,
        drop_missing=drop_missing, estimate_missing=estimate_missing, catalogue=catalogue,
    )  # fmt: skip
    read = Judged.read([named], log, how, on)
    name, policy = read.only()
    source: LogSource = read.log
    if logging is not None:
        logger = SavedPolicy.load(logging)
        logger.require_actions(source.action_count)
        source = replace(collect(source), logging=logger.policy)
    around = None
    if prior is not None:
        # read with the policy's own schema: rows are compared by their contexts
        learned_from = (
            None if prior_log is None else how.open(prior_log, read.log.schema, action_count=_count(read.log))
        )
        around = PolicyPrior.of(SavedPolicy.load(prior).policy, learned_from)
    with working_on(on, source, "certify") as (followed, engine):
        made, gain = certificates.certify_with_improvement(
            policy, source if logging is not None else followed, prior=around, delta=delta, bound=options.listed(bound),
            largest_reward=high, two_sided=not lower_only, largest_group=largest_group, independent=independent,
            trust_estimates=trust_estimates, on=engine,
        )  # fmt: skip
    options.write_json(out / "certificate.json", text.as_data(made, gain))
    report = page.write(made, gain, out / "report.html", name)
    options.say(str(verdict(None, gain, made)), "", str(made), "", str(gain), f"report: {report}")
    options.say_next(f"manyarms evaluate {named.words} {shlex.quote(str(log))}{how.words}")


def _count(log: TableLog) -> int | None:
    """K, where no ids tell it."""
    return log.action_count if log.catalogue is None else None


__all__ = ["certify"]
