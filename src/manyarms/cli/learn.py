"""`manyarms learn LOG`: a policy learned from a log, and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console

from manyarms.cli import options
from manyarms.cli._learn_inputs import Inputs
from manyarms.cli._learn_setup import POTEC, Choices, Pessimism, pessimism_lines
from manyarms.cli.commands import COMMANDS
from manyarms.errors import InvalidInput
from manyarms.logs import read_embeddings

if TYPE_CHECKING:
    from manyarms.learning.settings import Precision, Towards

POTEC_LINE = "offcem on a policy in two stages: a cluster, then its best action by the reward model"
HELP = """Learn a policy from a log, for catalogues of up to millions of actions.

Shows objective, validation reward, rows a second and the time left. Writes to the folder OUT the policy (plain arrays; it decides
without PyTorch), learning.json and [bold]report.html[/bold]. Needs the extra torch.

After Ctrl-C or a kill the same command goes on from OUT/checkpoint, to the same policy as if it had never stopped; the checkpoint
is removed when all is done.

[bold]Examples[/bold]

  manyarms learn rounds.parquet --out policy/

  manyarms learn clicks.csv.gz --action item --reward click --context user_ --actions items.parquet --tau 0.001

  manyarms learn rounds.parquet --actions items.npy --parametrisation light --patience 3 --epochs 50

  manyarms learn rounds.parquet --objective ips --support logging --logging old-policy/

  manyarms learn rounds.parquet --pessimism es-bound --logging old-policy/ --prior old-policy/ --learning-rate 0.1

[bold]Objectives[/bold]

{objectives}

[bold]With a certificate[/bold]: --pessimism learns a randomised policy by a lower bound on its value, and writes
OUT/certificate.json: between which ends its value lies with probability 1 - delta, what each term of the bound costs, and
whether it is shown to beat the policy that wrote the log. The prior must not depend on the rows of LOG.

{bounds}

[bold]Next[/bold]: manyarms evaluate OUT ANOTHER-LOG; docs/learning.md says which objective when, docs/safe-to-ship.md which
bound. manyarms certify OUT ANOTHER-LOG, or OUT LOG --prior OUT/prior after --pessimism.
"""


def learn(
    log: options.Log,
    objective: Annotated[
        str | None, typer.Option(help="What to maximise; the list is above.", show_default="clpi")
    ] = None,
    pessimism: Annotated[
        str | None,
        typer.Option(help="In place of an objective: learn by a bound, and certify.", show_default="no certificate"),
    ] = None,
    delta: Annotated[float, typer.Option(help="The certificate may be wrong with this probability.")] = 0.05,
    prior: Annotated[
        Path | None,
        typer.Option(
            help="Of --pessimism: a folder with a softmax, Gaussian or mixed-logit policy to start from, which did not see LOG.",
            show_default="none: N(0, 1), or around --actions",
        ),
    ] = None,
    prior_log: Annotated[
        Path | None, typer.Option(help="The rounds that the prior was learned from; refused if LOG has any of them.")
    ] = None,
    family: Annotated[str, typer.Option(help="Of --pessimism: gaussian or mixed-logit.")] = "gaussian",
    independent: Annotated[
        bool, typer.Option("--independent", help="Of --pessimism: rows of a group are independent all the same.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the policy and its report.")] = Path("out/learn"),
    action: options.Action = None,
    reward: options.Reward = None,
    propensity: options.Propensity = None,
    context: options.Context = None,
    group: options.Group = None,
    drop_missing: options.DropMissing = False,
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
    tau: Annotated[
        float | None, typer.Option(help="Of clpi, cips, dr, london, sakhi1, sakhi2: where propensities are clipped.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Of es, es-lpi, es-bound, heuristic: the power of propensities.")
    ] = None,
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
            help="Stop after this many epochs without a better validation, and keep the best. Half of the held-out rows "
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
    from manyarms.cli import _learn_run
    from manyarms.learning import TrainingSettings

    given = {
        "tau": tau, "alpha": alpha, "beta": beta, "gamma": gamma, "smoothing": smoothing, "negatives": negatives,
    }  # fmt: skip
    parameters = {name: value for name, value in given.items() if value is not None}
    careful = None
    if pessimism is None:
        _only_with_pessimism(prior, prior_log, independent)
    else:
        _not_with_pessimism(objective, parametrisation, support, model, towards)
        careful = Pessimism(pessimism, delta, family, parameters, independent)
    choices = Choices(
        objective or options.USUAL_OBJECTIVE, {} if careful is not None else parameters, parametrisation, support, clusters,
        neighbours, model, seed,
    )  # fmt: skip
    inputs = Inputs(
        log, options.columns_of(action, reward, propensity, context, group), drop_missing,
        None if actions is None else read_embeddings(actions, "--actions"), logging, prior, prior_log,
    )  # fmt: skip
    settings = TrainingSettings(
        epochs=epochs, batch=batch, learning_rate=learning_rate, schedule=schedule, optimiser=optimiser, l2=l2,
        towards=cast("Towards", towards), precision=cast("Precision", precision), patience=patience, seed=seed,
    )  # fmt: skip
    outcome = _learn_run.run(
        inputs, out, choices, settings, pessimism=careful, validation=validation, device=device,
        checkpoint_seconds=checkpoint_seconds, keep_checkpoint=keep_checkpoint, console=Console(stderr=True),
    )  # fmt: skip
    console = Console()
    console.print(_learn_run.table(outcome))
    if (told := _learn_run.certificate_text(outcome)) is not None:
        options.say(f"\n{told}\n")
    for text in _learn_run.warnings(outcome):
        console.print(f"beware: {text}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    options.say(f"policy: {outcome.folder}", f"report: {outcome.page}")


def _only_with_pessimism(prior: Path | None, prior_log: Path | None, independent: bool) -> None:
    given = {"--prior": prior is not None, "--prior-log": prior_log is not None, "--independent": independent}
    for name, there in given.items():
        if there:
            raise InvalidInput(name, "no --pessimism", "one beside it, whose prior and rows this is about")


def _not_with_pessimism(
    objective: str | None, parametrisation: str, support: str, model: Path | None, towards: str
) -> None:
    """Refuse what learning by a bound would pass over in silence."""
    given = {
        "--objective": objective is not None, "--parametrisation": parametrisation != "heavy", "--support": support != "all",
        "--model": model is not None, "--towards": towards == "logging",
    }  # fmt: skip
    for name, there in given.items():
        if there:
            raise InvalidInput(
                name, "it and --pessimism", "one of the two: a bound is for policies with a vector for every action"
            )


def _help() -> str:
    """The help with a line for each objective and each bound there is."""
    objectives = options.objective_lines() | {POTEC: POTEC_LINE}
    width = max(map(len, objectives))
    bounds = pessimism_lines()

    def lines(named: dict[str, str]) -> str:
        return "\n\n".join(f"  {name:{width}}  {line}" for name, line in named.items())

    return HELP.format(objectives=lines(objectives), bounds=lines(bounds))


learn.__doc__ = _help()
COMMANDS.register("learn")(learn)

__all__ = ["learn"]
