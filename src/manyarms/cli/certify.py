"""The command that certifies: `manyarms certify`. `register` adds it to the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from manyarms.cli.options import Action, Context, DropMissing, Group, Log, Propensity, Reward, columns_of


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(certify)


def certify(
    policy: Annotated[Path, typer.Argument(help="A folder with a saved policy.")],
    log: Log,
    delta: Annotated[float, typer.Option(help="The certificate may be wrong with this probability.")] = 0.05,
    prior: Annotated[
        Path | None,
        typer.Option(
            help="A folder with the policy that learning started from; needed if LOG is what POLICY was learned from.",
            show_default="none: POLICY was fixed before LOG",
        ),
    ] = None,
    prior_log: Annotated[
        Path | None, typer.Option(help="The rounds that the prior was learned from; refused if LOG has any of them.")
    ] = None,
    logging: Annotated[
        Path | None,
        typer.Option(
            help="A folder with the policy that wrote LOG, for es, clip, ix, sakhi-2.", show_default="unknown"
        ),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between: es, ips, clip, ix, harmonic, any-lambda, any-alpha, london, sakhi-1, sakhi-2, ls, "
            "ix-tail, bernstein. Decide before you look.",
            show_default="es,ls; ls where --logging is unknown",
        ),
    ] = None,
    high: Annotated[float, typer.Option(help="Largest possible reward; the smallest is 0.")] = 1.0,
    lower_only: Annotated[bool, typer.Option("--lower-only", help="Spend all of delta on the lower end.")] = False,
    independent: Annotated[
        bool, typer.Option("--independent", help="Rows of a group are independent of each other all the same.")
    ] = False,
    action: Action = None,
    reward: Reward = None,
    propensity: Propensity = None,
    context: Context = None,
    group: Group = None,
    drop_missing: DropMissing = False,
    out: Annotated[Path, typer.Option(help="Where report.html and certificate.json go.")] = Path("out/certify"),
) -> None:
    """Is a policy safe to ship? A lower and an upper end for its value that hold with probability 1 - delta.

    Prints the certificate, what each term of the bound costs, and whether the policy is shown to beat the one that wrote the log;
    writes OUT/report.html and OUT/certificate.json.

    [bold]Examples[/bold]

      manyarms certify policy/ later-rounds.parquet

      manyarms certify policy/ rounds.parquet --prior start/ --prior-log first-rounds.parquet --logging old-policy/

      manyarms certify policy/ rounds.parquet --bound ls --delta 0.01 --lower-only

    [bold]Which form[/bold]: without --prior the policy must not have been learned from LOG. With --prior it may have been,
    and must be a Gaussian or a mixed-logit policy; the further it went from the prior, the more the certificate costs.
    """
    from manyarms.cli import certification as command

    names = None if bound is None else [name.strip() for name in bound.split(",") if name.strip()]
    made, gain, page = command.run(
        policy, log, out=out, delta=delta, prior=prior, prior_log=prior_log, logging=logging, bound=names,
        largest_reward=high, two_sided=not lower_only, independent=independent,
        columns=columns_of(action, reward, propensity, context, group), drop_missing=drop_missing,
    )  # fmt: skip
    console = Console()
    for text in (str(made), "", str(gain), f"report: {page}"):
        console.print(text, markup=False, highlight=False, soft_wrap=True)


__all__ = ["certify", "register"]
