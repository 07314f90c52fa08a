"""The pipeline from end to end on real logs: the value of Open Bandit's Thompson sampling policy from the log of its random one.

The random policy's log says what each item earns; the other policy is known only by its own log, so that its probabilities are
estimated there, item by item and position by position, and are marked as estimates. Its own clicks tell what it really
earned. With 38 to 69 clicks in 10,000 rounds this is a test of the pipeline and not of the policy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyarms.estimators import DM, DR, Estimator
from manyarms.estimators.naming import as_estimator
from manyarms.evaluation import evaluate
from manyarms.logs import LoggedData
from manyarms.logs.formats.open_bandit import (
    POSITIONS,
    OpenBandit,
    find_open_bandit,
    read_open_bandit,
    write_made_up_open_bandit,
)
from manyarms.logs.propensity_models import action_frequencies
from manyarms.policies import SoftmaxPolicy, UniformPolicy
from manyarms.rewards.bayesian import dm_frequentist
from manyarms_thesis.harness.claims import Claim, Measured, claim
from manyarms_thesis.harness.data import MADE_UP, flagged, is_readable, made_up_folder
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import BLACK, GREY, Drawn, draw_grid
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, Run
from manyarms_thesis.sdm.common import SDM
from manyarms_thesis.sdm.figures import look_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REAL = "obd"
SMOOTHING = 1.0  # rows spread evenly over a position's items, so that no item has probability 0
RIDGE = 1.0


def source() -> str:
    """The real samples where they are found, else made-up ones."""
    return REAL if is_readable(find_open_bandit, "random", "all") else MADE_UP


def write_samples(folder: str) -> None:
    """Made-up samples of both policies."""
    write_made_up_open_bandit(folder, rows=4_000, items=12, click_rate=0.05)


@cache
def samples(campaign: str, data: str) -> tuple[OpenBandit, OpenBandit]:
    """The logs of both policies."""
    folder = made_up_folder(write_samples) if data == MADE_UP else None
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


def both_logs(*, seed: int, campaign: str, data: str) -> tuple[LoggedData, LoggedData]:
    """Both logs, positions as contexts; the random one with its policy."""
    random, bts = samples(campaign, data)
    log = by_position(random)
    return replace(log, logging=UniformPolicy(log.action_count)), by_position(bts)


def estimate_ips(*, log: LoggedData, name: str) -> Estimator:
    """IPS with a correction by name."""
    return as_estimator(name)


def estimate_dm(*, log: LoggedData) -> Estimator:
    """DM; its model is fitted on the same log, as Open Bandit Pipeline's examples do."""
    return DM(dm_frequentist(log, RIDGE))


def estimate_dr(*, log: LoggedData) -> Estimator:
    """DR; its model is fitted on the same log."""
    return DR(dm_frequentist(log, RIDGE))


ESTIMATORS: dict[str, Call] = {
    **{name: Call(estimate_ips, {"name": name.lower()}) for name in ("IPS", "snIPS", "cIPS", "ES")},
    "DM (Freq)": Call(estimate_dm),
    "DR": Call(estimate_dr),
}


def estimated_value(run: Run) -> Columns:
    """The estimate of one estimator, and what the policy's own log says."""
    random, bts = run.draw_problem()
    random, bts = random.rows(slice(0, run.rounds)), bts.rows(slice(0, run.rounds))
    policy = estimated_policy(bts)
    chosen = run.method(log=random)
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
    }


def _cells(sizes: Sizes) -> list[Cell]:
    data = source()
    campaigns = ["all"] if data == MADE_UP else sizes["campaigns"]
    rows = min(sizes["rows"], 4_000) if data == MADE_UP else sizes["rows"]
    return [
        Cell(
            f"campaign {campaign}", {"campaign": campaign, "data": data},
            Call(both_logs, {"campaign": campaign, "data": data}), ESTIMATORS, rows, 1, estimated_value,
        )
        for campaign in campaigns
    ]  # fmt: skip


def _number(results: Results, panel: str, method: str, column: str) -> float:
    return float(results.final(panel, method, column)[0])


def _claims(results: Results) -> list[Claim]:
    return flagged(results, _found(results), "made-up rounds, not Open Bandit")


def _found(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        truth = Measured(_number(results, panel, "IPS", "on_policy"), _number(results, panel, "IPS", "on_policy_error"))
        for agent in ("IPS", "snIPS", "DR"):
            estimate = Measured(*(_number(results, panel, agent, column) for column in ("value", "standard_error")))
            difference = estimate - truth
            yield claim(
                f"Pipeline: {agent} from the random policy's log is off by less than what the other policy earned", "",
                Measured(truth.mean - abs(difference.mean), difference.standard_error), panel=panel,
                detail=f"estimate {estimate}, on its own log {truth} "
                f"({_number(results, panel, agent, 'clicks'):.0f} and {_number(results, panel, agent, 'on_policy_clicks'):.0f} "
                f"clicks), random policy {_number(results, panel, agent, 'logged'):.4g}; the figure is what was earned less the "
                "size of the difference, with the error of the difference. Few clicks: this is no evidence about the policy",
            )  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Drawn]:
    def draw(axis: Axes, panel: str) -> None:
        names = results.methods(panel)
        for place, method in enumerate(names):
            value, low, high = (_number(results, panel, method, column) for column in ("value", "low", "high"))
            ends = np.array([[max(value - low, 0.0)], [max(high - value, 0.0)]])
            axis.errorbar([place], [value], ends, fmt="o", color=look_of(method, place)[0], capsize=3)
        truth, error, logged = (_number(results, panel, "IPS", c) for c in ("on_policy", "on_policy_error", "logged"))
        axis.axhline(truth, color=BLACK, linewidth=1.2, label="BTS, its own log ± 2 errors")
        axis.axhspan(truth - 2 * error, truth + 2 * error, color=BLACK, alpha=0.12, linewidth=0)
        axis.axhline(logged, color=GREY, linestyle="--", label="random policy, its log")
        axis.set_xticks(range(len(names)), names, rotation=35, ha="right")
        axis.set_ylabel("clicks a round")
        axis.set_ylim(bottom=0)

    title = "Value of BTS from the random policy's log (bootstrap, 95 %)"
    caption = (
        "What each estimator says, from the random policy's log, that Bernoulli Thompson sampling (BTS) earns: estimates and "
        "their 95 % bootstrap intervals. The black line is what BTS earned in its own log, its band two standard errors on "
        "each side; the dashed line is what the random policy earned."
    )
    return [draw_grid({panel: panel for panel in results.panels}, draw, folder, "values", title, caption=caption)]


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


OBD = SDM.experiment(
    "ope-obd",
    order=8,
    title="Off-policy evaluation on the Open Bandit samples",
    thesis_lines="",
    question="Does the pipeline, from reading a real log to an estimate with its interval, find what a policy earned from the "
    "log of another one?",
    setting="Open Bandit's samples of {rows} rounds by a random policy and by Bernoulli Thompson sampling (campaigns: "
    "{campaigns}), 38 to 69 clicks each. Six estimators value the second policy from the log of the "
    "first; its own log tells what it earned.",
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
        "No experiment of the thesis: the statements are this project's checks of its pipeline. An estimate that is off by as "
        "much as the policy earned would be that of wrong propensities, as of a forgotten position.",
    ],
    warnings=_warnings,
    numbers={
        "value": "estimate",
        "standard_error": "standard error",
        "low": "95 % from",
        "high": "to",
        "effective_rows": "effective rows",
    },
)

__all__ = ["OBD", "both_logs", "by_position", "estimated_policy", "estimated_value", "samples", "source"]
