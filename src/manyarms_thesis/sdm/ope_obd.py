"""The whole pipeline on real logs: the value of Open Bandit's Thompson sampling policy from the log of its random one.

The random policy's log says what each item earns; the other policy is known only by its own log, so that its probabilities are
estimated there, item by item and position by position, and are marked as estimates. Its own clicks tell what it really
earned. With 38 to 69 clicks in 10,000 rounds this is a test of the pipeline and not of the policy.
"""

from __future__ import annotations

import atexit
import math
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import Array
from manyarms.errors import DataError
from manyarms.estimators import DM, DR, Estimator
from manyarms.estimators.naming import as_estimator
from manyarms.evaluation import evaluate
from manyarms.logs.data import LoggedData
from manyarms.logs.formats.open_bandit import (
    POSITIONS,
    OpenBandit,
    find_open_bandit,
    read_open_bandit,
    write_made_up_open_bandit,
)
from manyarms.logs.propensity_models import action_frequencies
from manyarms.policies.simple import UniformPolicy
from manyarms.policies.softmax import SoftmaxPolicy
from manyarms.rewards.bayesian import dm_frequentist
from manyarms_thesis.harness.claims import Claim, Measured, claim
from manyarms_thesis.harness.figures import drawing, finish
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Experiment
from manyarms_thesis.sdm.figures import look_of

HERE = "manyarms_thesis.sdm.ope_obd"
MADE_UP, REAL = "made-up", "obd"
SMOOTHING = 1.0  # rows spread evenly over a position's items, so that no item has probability 0
RIDGE = 1.0


def source() -> str:
    """The real samples where they are found, else made-up ones."""
    try:
        find_open_bandit("random", "all")
    except DataError:
        return MADE_UP
    return REAL


@cache
def made_up_folder() -> str:
    """A folder with made-up samples, the same in every process, gone when the process ends."""
    folder = tempfile.mkdtemp(prefix="manyarms-made-up-obd-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_made_up_open_bandit(folder, rows=4_000, items=12, click_rate=0.05)
    return folder


@cache
def samples(campaign: str, data: str) -> tuple[OpenBandit, OpenBandit]:
    """The logs of both policies."""
    folder = made_up_folder() if data == MADE_UP else None
    first, second = (read_open_bandit(policy, campaign, folder=folder) for policy in ("random", "bts"))  # type: ignore[arg-type]
    return first, second


def by_position(sample: OpenBandit, rows: int | None = None) -> LoggedData:
    """The log with the position as its context, one entry each: propensities are given the position."""
    log = sample.log.with_notes("contexts are positions", contexts=np.eye(POSITIONS)[sample.positions], encoder=None)
    log = replace(log, logging=None)
    return log if rows is None else log.rows(slice(0, rows))


def estimated_policy(log: LoggedData) -> SoftmaxPolicy:
    """p(item | position) from a policy's own log, as a softmax: with one-hot contexts its weights are log-probabilities."""
    positions = log.contexts.argmax(axis=1)
    table = action_frequencies(log, by=positions, smoothing=SMOOTHING)
    probabilities = np.tile(table.overall, (POSITIONS, 1))
    probabilities[table.labels.astype(np.int64)] = table.probabilities
    return SoftmaxPolicy(np.log(probabilities.T))


def setting(*, seed: int, campaign: str, data: str) -> tuple[LoggedData, LoggedData]:
    """Both logs, positions as contexts; the random one with its policy."""
    random, bts = samples(campaign, data)
    log = by_position(random)
    return replace(log, logging=UniformPolicy(log.action_count)), by_position(bts)


def estimator(*, name: str, log: LoggedData, parameter: float | None = None) -> Estimator:
    """An estimator by name; models are fitted on the same log, as Open Bandit Pipeline's examples do."""
    model = dm_frequentist(log, RIDGE)
    if name == "DM":
        return DM(model)
    if name == "DR":
        return DR(model)
    return as_estimator(name if parameter is None else f"{name}:{parameter!r}")


def evaluation_task(
    *, world: Call, agent: Call, rounds: int, world_seed: int, agent_seed: int
) -> dict[str, npt.ArrayLike]:
    """The estimate of one estimator, and what the policy's own log says."""
    random, bts = world(seed=world_seed)
    random, bts = random.rows(slice(0, rounds)), bts.rows(slice(0, rounds))
    policy = estimated_policy(bts)
    chosen = agent(log=random)
    # what bias may add is worst-case, and would hide everything else in the picture
    made = evaluate(policy, random, [chosen], interval="bootstrap", bias=False, name="bts, estimated from its own log")
    result = made.estimates[0]
    clicks = bts.rewards
    return {
        "value": result.value,
        "standard_error": result.standard_error,
        "low": result.interval.low,
        "high": result.interval.high,
        "effective_rows": result.effective_sample_size,
        "on_policy": float(clicks.mean()),
        "on_policy_error": float(clicks.std() / math.sqrt(len(clicks))),
        "logged": float(random.rewards.mean()),
        "clicks": int(random.rewards.sum()),
        "on_policy_clicks": int(clicks.sum()),
        "regret": abs(result.value - float(clicks.mean())),
        "milliseconds_a_round": 0.0,
        "agent_bytes": 0,
    }


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    data = source()
    names: dict[str, dict[str, Any]] = {
        "IPS": {"name": "ips"},
        "snIPS": {"name": "snips"},
        "cIPS": {"name": "cips"},
        "ES": {"name": "es"},
        "DM (Freq)": {"name": "DM"},
        "DR": {"name": "DR"},
    }
    agents = {label: Call(f"{HERE}:estimator", options) for label, options in names.items()}
    campaigns = ["all"] if data == MADE_UP else sizes["campaigns"]
    rows = min(sizes["rows"], 4_000) if data == MADE_UP else sizes["rows"]
    return [
        Cell(
            f"campaign {campaign}", {"campaign": campaign, "data": data},
            Call(f"{HERE}:setting", {"campaign": campaign, "data": data}), agents, rows, 1, f"{HERE}:evaluation_task",
        )
        for campaign in campaigns
    ]  # fmt: skip


def _number(results: Results, panel: str, agent: str, column: str) -> float:
    return float(results.final(panel, agent, column)[0])


def _claims(results: Results) -> list[Claim]:
    found = []
    for panel in results.panels:
        truth = Measured(_number(results, panel, "IPS", "on_policy"), _number(results, panel, "IPS", "on_policy_error"))
        for agent, lines in (("IPS", "1734-1737"), ("snIPS", "4752-4755"), ("DR", "2081-2083")):
            estimate = Measured(*(_number(results, panel, agent, column) for column in ("value", "standard_error")))
            difference = estimate - truth
            room = 2 * difference.standard_error - abs(difference.mean)
            made = claim(
                f"Pipeline: {agent} from the random policy's log agrees with what the other policy earned, to two errors",
                lines, Measured(room, 0.0), panel=panel,
                detail=f"estimate {estimate}, on its own log {truth} "
                f"({_number(results, panel, agent, 'clicks'):.0f} and {_number(results, panel, agent, 'on_policy_clicks'):.0f} "
                f"clicks), random policy {_number(results, panel, agent, 'logged'):.4g}; the figure is two standard errors of "
                "the difference less its size. Few clicks: this is no evidence about the policy",
            )  # fmt: skip
            found.append(replace(made, standard_error=math.nan))
    if results.parameter(results.panels[0], "data") == MADE_UP:
        found = [replace(one, statement=f"[made-up rounds, not Open Bandit] {one.statement}") for one in found]
    return found


def _figures(results: Results, folder: Path) -> list[Path]:
    with drawing(1, len(results.panels)) as (figure, axes):
        for axis, panel in zip(axes, results.panels, strict=True):
            names = results.agents(panel)
            for place, agent in enumerate(names):
                value, low, high = (_number(results, panel, agent, column) for column in ("value", "low", "high"))
                colour, _ = look_of(agent, place)
                ends = np.array([[max(value - low, 0.0)], [max(high - value, 0.0)]])
                axis.errorbar([place], [value], ends, fmt="o", color=colour, capsize=3)
            truth, error = (_number(results, panel, "IPS", column) for column in ("on_policy", "on_policy_error"))
            band: Array = np.array([truth - 2 * error, truth + 2 * error])
            axis.axhline(truth, color="#1a1a1a", linewidth=1.2, label="BTS, its own log ± 2 errors")
            axis.axhspan(band[0], band[1], color="#1a1a1a", alpha=0.12, linewidth=0)
            axis.axhline(
                _number(results, panel, "IPS", "logged"),
                color="#8a8a8a",
                linestyle="--",
                label="random policy, its log",
            )
            axis.set_xticks(range(len(names)), names, rotation=35, ha="right")
            axis.set_title(panel)
            axis.set_ylabel("clicks a round")
            axis.set_ylim(bottom=0)
        title = "Value of BTS from the random policy's log (bootstrap, 95 %)"
        return [finish(figure, axes[: len(results.panels)], folder, "values", title)]


def _warnings() -> list[str]:
    if source() == REAL:
        return [
            "A test of the pipeline: 38 to 69 clicks a sample say next to nothing about the policies. The propensities of the "
            "evaluated policy are estimates, from its own log by item and position."
        ]
    return [
        "THESE ARE NOT OPEN BANDIT RESULTS. The rounds are made up, because the samples were not found. Set MANYARMS_DATA to the "
        "folder that holds obd and run again."
    ]


OBD = Experiment(
    name="ope-obd",
    title="Off-policy evaluation on the Open Bandit samples",
    thesis_lines="1730-1737, 2061-2083",
    scales={
        "smoke": {"rows": 4_000, "campaigns": ["all"]},
        "quick": {"rows": 10_000, "campaigns": ["all", "men", "women"]},
        "paper": {"rows": 10_000, "campaigns": ["all", "men", "women"]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The evaluated policy is Bernoulli Thompson sampling as its own log shows it: the share of each item at each position, "
        f"with {SMOOTHING:g} row spread over the items. Contexts are positions; user features are not used. DM and DR use a "
        "ridge regression of clicks on the position for each item, fitted on the same rows. The "
        "intervals of cIPS, ES and DM are for their own means, without what bias may add; DM's is too narrow to be seen, "
        "since its model is taken as given and only positions vary.",
        "The thesis has no experiment on these data; the statements are this project's checks of its pipeline.",
    ],
    warnings=_warnings,
    caption="Estimates and their 95 % bootstrap intervals; the grey band is two standard errors wide on each side.",
    numbers={
        "value": "estimate",
        "standard_error": "standard error",
        "low": "95 % from",
        "high": "to",
        "effective_rows": "effective rows",
    },
)

__all__ = ["OBD", "by_position", "estimated_policy", "evaluation_task", "samples", "source"]
