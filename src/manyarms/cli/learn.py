"""`manyarms learn LOG`: a policy learned from a log, and a report."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from manyarms._base.files import require_apart
from manyarms.cli import options
from manyarms.cli._flags import StandsFor
from manyarms.cli._items import read_items
from manyarms.cli._learn_inputs import Inputs
from manyarms.cli._learn_setup import POTEC, Choices, Pessimism, pessimism_lines
from manyarms.cli.commands import COMMANDS
from manyarms.errors import InvalidInput
from manyarms.estimators.naming import parameters_of
from manyarms.learning.settings import TrainingSettings

if TYPE_CHECKING:
    from manyarms.learning.settings import Precision, Towards

PARAMETERS, ACTIONS, TRAINING = "Parameters of objectives", "Actions", "Training"
CERTIFIED = "With a certificate"
SPLITS = ("time", "group", "row")
USUAL = TrainingSettings()
POTEC_LINE = "offcem on a policy in two stages: a cluster, then its best action by the reward model"
HELP = """Learn a policy from a log, for catalogues of up to millions of actions.

Shows the objective, the validation reward, rows per second and the time left. Writes the policy (plain arrays, usable without
PyTorch), learning.json and report.html to the folder OUT. Requires the extra torch.

After an interruption, the same command resumes from OUT/checkpoint and ends with the same policy as an uninterrupted run; the
checkpoint is removed at the end.

Examples:

  manyarms learn rounds.parquet --out policy/
  manyarms learn clicks.csv.gz --action item --reward click --context user_ --actions items.csv --id sku
  manyarms learn rounds.parquet --actions items.npy --parametrisation light --patience 3 --epochs 50
  manyarms learn rounds.parquet --objective ips --support logging --logging old-policy/
  manyarms learn rounds/ --objective ips --buffer 1000000
  manyarms learn rounds/ --objective ips --on ray --workers 8
  manyarms learn rounds.parquet --pessimism es --logging old-policy/ --prior old-policy/ --learning-rate 0.1

Objectives:

{objectives}

With a certificate: --pessimism learns a randomised policy by maximising a lower bound on its value, and writes
OUT/certificate.json: bounds on its value that hold with probability 1 - delta, the cost of each term, and whether the improvement
over the logging policy is certified. The prior must not depend on the rows of LOG. es-authors alone comes without one.

{bounds}

Next: manyarms evaluate OUT ANOTHER-LOG; see docs/learning.md on choosing an objective,
docs/safe-to-ship.md on choosing a bound. manyarms certify OUT ANOTHER-LOG, or OUT LOG --prior OUT/prior after --pessimism.
"""


def _option(panel: str, metavar: str | None, about: str, default: bool | str = True) -> Any:
    return typer.Option(metavar=metavar, help=about, show_default=default, rich_help_panel=panel)


def learn(
    log: options.Log,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the policy and its report.")] = Path(
        "out/learn"
    ),
    objective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Objective to maximise, from the list above.", show_default="clpi"),
    ] = None,
    logging: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The saved logging policy.", show_default="unknown")
    ] = None,
    validation: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the rows to hold out; 0 for none.",
            show_default="0.1; 0 without propensities",
        ),
    ] = None,
    split_by: Annotated[
        str | None,
        typer.Option(
            metavar="WAY",
            help=f"How rows are held out: {', '.join(SPLITS)}. time: the last ones; group: whole groups; row: any.",
            show_default="group where rows have one, else row",
        ),
        StandsFor("by"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the split, the order of rows and all draws.")] = 0,
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
    actions: Annotated[
        Path | None,
        _option(
            ACTIONS,
            "FILE",
            "The actions: a table of items with a column of ids (.csv, .parquet, ...), or embeddings (.npy, "
            ".npz) in the catalogue's order or with ids.",
            "none: every action starts at zero",
        ),
        StandsFor("items"),
    ] = None,
    id: Annotated[
        str | None,
        _option(
            ACTIONS, "COLUMN", "With a table of items: the column of the ids.", "guessed by name: id, item_id, sku, ..."
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        _option(
            ACTIONS,
            "COLUMN",
            "With a table of items: a column that describes them.",
            "vectors, or else all numbers and categories",
        ),
    ] = None,
    parametrisation: Annotated[
        str, _option(ACTIONS, "NAME", "heavy: a vector for every action. light: a projection onto given embeddings.")
    ] = "heavy",
    support: Annotated[
        str, _option(ACTIONS, "NAME", "all: all actions. logging: the actions that the policy of --logging plays.")
    ] = "all",
    clusters: Annotated[
        int, _option(ACTIONS, None, "Number of clusters of the embeddings, for mips, offcem, potec.")
    ] = 2000,
    neighbours: Annotated[
        int, _option(ACTIONS, None, "Number of neighbours of each action, for pc."), StandsFor("k")
    ] = 10,
    tau: Annotated[
        float | None,
        _option(
            PARAMETERS, None, "Clipping threshold of propensities, for clpi, cips, dr, clip, london, sakhi-1, sakhi-2."
        ),
    ] = None,
    alpha: Annotated[
        float | None, _option(PARAMETERS, None, "Exponent of propensities, for es, es-lpi, heuristic, es-authors.")
    ] = None,
    beta: Annotated[
        float | None,
        _option(
            PARAMETERS, None, "Temperature of regkl (at least 0.1) and regkl-lin; exponent of weights, for es-beta."
        ),
    ] = None,
    gamma: Annotated[float | None, _option(PARAMETERS, None, "Constant added to propensities, for ix.")] = None,
    smoothing: Annotated[float | None, _option(PARAMETERS, None, "Parameter of logarithmic smoothing, for ls.")] = None,
    negatives: Annotated[
        int | None, _option(PARAMETERS, None, "Negative samples per row, for bpr."), StandsFor("count")
    ] = None,
    negatives_from: Annotated[
        str | None,
        _option(
            PARAMETERS,
            "NAME",
            "For bpr: uniform, all actions alike; logging, by --logging or the supports that LOG lists: learns "
            "what earns, and not what was shown.",
            "uniform",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        _option(
            PARAMETERS, "FOLDER", "A saved agent, the reward model of dm, dr, offcem.", "a ridge regression per action"
        ),
    ] = None,
    epochs: Annotated[
        int | None, _option(TRAINING, None, "Number of passes over the log.", "10, more for small logs")
    ] = None,
    batch: Annotated[int, _option(TRAINING, None, "Batch size.")] = USUAL.batch,
    buffer: Annotated[
        int | None,
        _option(
            TRAINING,
            "ROWS",
            "Read LOG as it is learned from, this many rows at a time: a Parquet file, or a folder of them, larger than memory.",
            "for a folder, 128 MB of rows; files are read into memory",
        ),
    ] = None,
    learning_rate: Annotated[
        float | None, _option(TRAINING, None, "Initial learning rate.", "by the length of the contexts")
    ] = None,
    schedule: Annotated[
        str | None,
        _option(
            TRAINING,
            "NAME",
            "Learning rate schedule: constant, linear, cosine, exponential, one-cycle.",
            "constant; linear if --learning-rate is not given",
        ),
    ] = None,
    optimiser: Annotated[str, _option(TRAINING, "NAME", "adam, sgd or adagrad.")] = USUAL.optimiser,
    l2: Annotated[
        float,
        typer.Option("--l2", help="Weight of the squared distance to --towards.", rich_help_panel=TRAINING),
    ] = USUAL.l2,
    towards: Annotated[
        str, _option(TRAINING, "NAME", "Centre of the L2 penalty: zero, start or logging.")
    ] = USUAL.towards,
    patience: Annotated[
        int | None,
        _option(
            TRAINING,
            None,
            "Early stopping: end after this many epochs without a better validation reward, and return the best "
            "policy. Half of the held-out rows are used for stopping, the other half for the final estimate.",
            "never",
        ),
    ] = None,
    device: Annotated[
        str | None, _option(TRAINING, "NAME", "PyTorch device: cpu, cuda, ...", "a GPU if available")
    ] = None,
    precision: Annotated[
        str, _option(TRAINING, "NAME", "Precision of matrix products on a GPU: fp32, tf32 or bf16.")
    ] = USUAL.precision,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0.0, help="Seconds between checkpoints.", rich_help_panel=TRAINING)
    ] = 60.0,
    on: options.On = "local",
    workers: Annotated[
        int | None,
        _option(
            TRAINING,
            None,
            "Number of processes that learn together: each has its share of the actions' vectors, or of a batch where these are "
            "given (light).",
            "one; with --on ray as many as the cluster has cores",
        ),
    ] = None,
    keep_checkpoint: Annotated[
        bool,
        typer.Option(
            "--keep-checkpoint",
            help="Keep OUT/checkpoint, so that a run with more --epochs, at --schedule constant, can continue from it.",
            rich_help_panel=TRAINING,
        ),
    ] = False,
    pessimism: Annotated[
        str | None,
        _option(
            CERTIFIED, "NAME", "Bound to maximise in place of an objective, from the list above.", "no certificate"
        ),
    ] = None,
    delta: Annotated[float, _option(CERTIFIED, None, "Probability with which the certificate may fail.")] = 0.05,
    prior: Annotated[
        Path | None,
        _option(
            CERTIFIED,
            "FOLDER",
            "A softmax, Gaussian or mixed-logit policy to start from, not learned from LOG.",
            "none: N(0, 1), or centred at --actions",
        ),
    ] = None,
    prior_log: Annotated[
        Path | None,
        _option(CERTIFIED, "LOG", "The log that the prior was learned from; refused if it shares rows with LOG."),
    ] = None,
    family: Annotated[str, _option(CERTIFIED, "NAME", "gaussian or mixed-logit.")] = "gaussian",
    independent: Annotated[
        bool,
        typer.Option("--independent", help="Treat rows of the same group as independent.", rich_help_panel=CERTIFIED),
    ] = False,
) -> None:
    from manyarms.certificates.text import verdict
    from manyarms.cli import _learn_run

    paths = {
        "LOG": log, "--actions": actions, "--logging": logging, "--model": model, "--prior": prior, "--prior-log": prior_log,
    }  # fmt: skip
    require_apart("--out", out, paths, *_learn_run.FILES)
    given = {"tau": tau, "alpha": alpha, "beta": beta, "gamma": gamma, "smoothing": smoothing}
    parameters: dict[str, float | int] = {name: value for name, value in given.items() if value is not None}
    pairs: dict[str, int | str | None] = {"--negatives": negatives, "--negatives-from": negatives_from}
    learned_by = pessimism or objective or options.USUAL_OBJECTIVE
    if pessimism is not None or "negatives" not in parameters_of(learned_by):
        there = {name: value is not None for name, value in pairs.items()}
        _refuse(there, f"given for {learned_by}", "none: it belongs to bpr")
    careful = None
    if pessimism is None:
        only = {"--prior": prior is not None, "--prior-log": prior_log is not None, "--independent": independent}
        _refuse(only, "no --pessimism", "--pessimism as well, which this option belongs to")
    else:
        # what learning by a bound would pass over in silence
        never = {
            "--objective": objective is not None, "--parametrisation": parametrisation != "heavy",
            "--support": support != "all", "--model": model is not None, "--towards": towards == "logging",
        }  # fmt: skip
        expected = "one of the two: a bound is for policies with a parameter vector for every action"
        _refuse(never, "both this and --pessimism", expected)
        in_memory = "one of the two: a bound is maximised on rows in memory"
        _refuse({"--buffer": buffer is not None}, "both this and --pessimism", in_memory)
        several = {"--on": on != "local", "--workers": workers is not None}
        _refuse(several, "both this and --pessimism", "one of the two: a randomised policy is learned by one process")
        careful = Pessimism(pessimism, delta, family, parameters, independent)
    of_pairs = {
        name: value for name, value in (("count", negatives), ("negatives", negatives_from)) if value is not None
    }
    choices = Choices(
        objective or options.USUAL_OBJECTIVE, {} if careful is not None else parameters | of_pairs, parametrisation, support,
        clusters, neighbours, model, seed,
    )  # fmt: skip
    how = options.reading(
        context, action=action, reward=reward, propensity=propensity, group=group, event_id=event_id, timestamp=timestamp,
        drop_missing=drop_missing, estimate_missing=estimate_missing, catalogue=catalogue,
    )  # fmt: skip
    inputs = Inputs(
        log, how,
        None if actions is None else read_items(actions, id, features), logging, prior, prior_log,
    )  # fmt: skip
    choosable = {"epochs": epochs, "learning_rate": learning_rate, "schedule": schedule}
    settings = TrainingSettings(
        **{name: value for name, value in choosable.items() if value is not None},  # type: ignore[arg-type]
        batch=batch, optimiser=optimiser, l2=l2, towards=cast("Towards", towards), precision=cast("Precision", precision),
        patience=patience, seed=seed,
    )  # fmt: skip
    if split_by is not None:
        options.one_of("--split-by", split_by, SPLITS)
    outcome = _learn_run.run(
        inputs, out, choices, settings, left_open=[name for name, value in choosable.items() if value is None],
        pessimism=careful, validation=validation, split_by=split_by, buffer=buffer, device=device,
        checkpoint_seconds=checkpoint_seconds, keep_checkpoint=keep_checkpoint, on=on, workers=workers,
        console=Console(stderr=True),
    )  # fmt: skip
    options.say(options.facts("learned", _learn_run.summary(outcome)))
    if outcome.certified is not None:
        certificate, gain = outcome.certified
        options.say(f"\n{certificate}\n\n{verdict(gain)}\n")
    options.say(*(f"warning: {text}" for text in _learn_run.warnings(outcome)))
    options.say(*(f"note: {text}" for text in outcome.learned.notes))
    options.say(*(f"hint: {text}" for text in _learn_run.hints(outcome)))
    options.say(f"policy: {outcome.folder}", f"report: {outcome.page}")
    folder = shlex.quote(str(out))
    options.say_next(
        f"manyarms evaluate {folder} ANOTHER-LOG", f"manyarms decide {folder} {_learn_run.example(outcome)}"
    )


def _refuse(given: dict[str, bool], came: str, expected: str) -> None:
    """Refuse the first option that was given."""
    for name, there in given.items():
        if there:
            raise InvalidInput(name, came, expected)


def _help() -> str:
    """The help with a line for each objective and each bound there is."""
    objectives = options.objective_lines() | {POTEC: POTEC_LINE}
    bounds = pessimism_lines()
    width = max(map(len, objectives | bounds))

    def lines(named: dict[str, str]) -> str:
        return "\n".join(f"  {name:{width}}  {line}" for name, line in named.items())

    return HELP.format(objectives=lines(objectives), bounds=lines(bounds))


learn.__doc__ = _help()
COMMANDS.register("learn")(learn)

__all__ = ["learn"]
