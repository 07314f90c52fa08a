"""The command that learns: `manyarms learn`. `register` adds it to the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from manyarms.command_options import Action, Context, DropMissing, Group, Log, Propensity, Reward, columns_of
from manyarms.objectives.naming import LINES

POTEC = "offcem on a policy in two stages: a cluster, then its best action by the reward model"
EXPLAINED = """Learn a policy from a log, for catalogues of up to millions of actions.

Shows objective, validation reward, rows a second and the time left. Writes to the folder OUT the policy (plain arrays; it decides
without PyTorch), learning.json and [bold]report.html[/bold]. Needs the extra torch.

After Ctrl-C or a kill the same command goes on from OUT/checkpoint, to the same policy as if it had never stopped; the checkpoint
is removed when all is done.

[bold]Examples[/bold]

  manyarms learn rounds.parquet --out policy/

  manyarms learn clicks.csv.gz --action item --reward click --context user_ --actions items.parquet --tau 0.001

  manyarms learn rounds.parquet --actions items.npy --parametrisation light --patience 3 --epochs 50

  manyarms learn rounds.parquet --objective ips --support logging --logging old-policy/

[bold]Objectives[/bold]

{objectives}

[bold]Next[/bold]: manyarms evaluate OUT ANOTHER-LOG; docs/learning.md says which objective when.
"""


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    width = max(map(len, LINES))
    lines = [f"  {name:{width}}  {line}" for name, line in (LINES | {"potec": POTEC}).items()]
    # rich keeps line ends inside a paragraph, which then breaks twice
    paragraphs = [text.replace("\n", " ") for text in EXPLAINED.strip().split("\n\n")]
    app.command(help="\n\n".join(paragraphs).format(objectives="\n\n".join(lines)))(learn)


def learn(
    log: Log,
    objective: Annotated[str, typer.Option(help="What to maximise; the list is above.")] = "clpi",
    out: Annotated[Path, typer.Option(help="Folder for the policy and its report.")] = Path("out/learn"),
    action: Action = None,
    reward: Reward = None,
    propensity: Propensity = None,
    context: Context = None,
    group: Group = None,
    drop_missing: DropMissing = False,
    actions: Annotated[
        Path | None,
        typer.Option(
            help="Embeddings of the actions: .npy, .npz or .parquet, a row an action, in the catalogue's order or with ids.",
            show_default="none: every action starts at zero",
        ),
    ] = None,
    parametrisation: Annotated[
        str, typer.Option(help="heavy: a vector for every action. light: a projection onto given embeddings.")
    ] = "heavy",
    support: Annotated[str, typer.Option(help="all actions, or those that the policy of --logging plays.")] = "all",
    logging: Annotated[
        Path | None, typer.Option(help="A folder with the saved policy that wrote the log.", show_default="unknown")
    ] = None,
    tau: Annotated[float | None, typer.Option(help="Of clpi, cips, dr: where propensities are clipped.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Of es, es-lpi: the power of propensities.")] = None,
    beta: Annotated[float | None, typer.Option(help="Of regkl (at least 0.1), regkl-lin, es-beta.")] = None,
    gamma: Annotated[float | None, typer.Option(help="Of ix: what is added to propensities.")] = None,
    smoothing: Annotated[float | None, typer.Option(help="Of ls.")] = None,
    negatives: Annotated[int | None, typer.Option(help="Of bpr: random actions a row.")] = None,
    clusters: Annotated[int, typer.Option(help="Of mips, offcem, potec: clusters of the embeddings.")] = 2000,
    neighbours: Annotated[int, typer.Option(help="Of pc: neighbours of an action.")] = 10,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Of dm, dr, offcem: a folder with a saved agent.", show_default="a ridge regression an action"
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the log.")] = 10,
    batch: Annotated[int, typer.Option(help="Rows in a step.")] = 256,
    learning_rate: Annotated[float, typer.Option(help="Of a step, at the start.")] = 1e-3,
    schedule: Annotated[
        str, typer.Option(help="How the learning rate moves: constant, linear, cosine, exponential, one-cycle.")
    ] = "constant",
    optimiser: Annotated[str, typer.Option(help="adam, sgd or adagrad.")] = "adam",
    l2: Annotated[float, typer.Option("--l2", help="Weight of the squared distance to --towards.")] = 0.0,
    towards: Annotated[str, typer.Option(help="zero, start or logging.")] = "zero",
    validation: Annotated[
        float | None,
        typer.Option(help="Share of rows to hold out; 0 for none.", show_default="0.1; 0 without propensities"),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            help="Stop after so many epochs without a better validation, and keep the best. Half of the held-out rows "
            "decide, the others are for the closing estimate.",
            show_default="never",
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ...", show_default="a GPU where there is one")] = None,
    precision: Annotated[str, typer.Option(help="Of products on a GPU: fp32, tf32 or bf16.")] = "fp32",
    checkpoint_seconds: Annotated[float, typer.Option(min=0.0, help="Between two checkpoints.")] = 60.0,
    keep_checkpoint: Annotated[
        bool, typer.Option("--keep-checkpoint", help="Keep OUT/checkpoint: more --epochs then go on from it.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the split, the order of rows, and random draws.")] = 0,
) -> None:
    from manyarms import learning_command
    from manyarms.learning_command import page

    given = {
        "tau": tau, "alpha": alpha, "beta": beta, "gamma": gamma, "smoothing": smoothing, "negatives": negatives,
    }  # fmt: skip
    choices = learning_command.Choices(
        objective, {name: value for name, value in given.items() if value is not None}, parametrisation, support,
        clusters, neighbours, model, seed,
    )  # fmt: skip
    inputs = learning_command.Inputs(
        log, columns_of(action, reward, propensity, context, group), drop_missing,
        None if actions is None else learning_command.read_embeddings(actions), logging,
    )  # fmt: skip
    outcome = learning_command.run(
        inputs, out, choices, validation=validation, device=device, checkpoint_seconds=checkpoint_seconds,
        keep_checkpoint=keep_checkpoint, console=Console(stderr=True), epochs=epochs, batch=batch,
        learning_rate=learning_rate, schedule=schedule, optimiser=optimiser, l2=l2, towards=towards, patience=patience,
        precision=precision,
    )  # fmt: skip
    console = Console()
    console.print(page.table(outcome))
    for text in page.warnings(outcome):
        console.print(f"beware: {text}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    console.print(f"policy: {outcome.folder}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"report: {outcome.page}", markup=False, highlight=False, soft_wrap=True)


__all__ = ["learn", "register"]
