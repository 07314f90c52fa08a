"""Verdicts: of differences, of statements over several worlds, of worlds that the thesis does not print, of smaller sizes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms_thesis.harness.claims import Claim, Measured, claim, measured, standard_errors, verdict_on
from manyarms_thesis.harness.experiments import Experiment, slug
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, items_of, solve, variant_of
from manyarms_thesis.harness.verdicts import answer, below_zero_here, figure_of, statements, tally

UP, DOWN, OPEN = Measured(3.0, 1.0), Measured(-3.0, 1.0), Measured(1.0, 1.0)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([UP], "held"),
        ([UP, UP], "held"),
        ([UP, OPEN], "held in part"),
        ([UP, DOWN], "held in part"),
        ([OPEN, DOWN], "refuted"),
        ([DOWN], "refuted"),
        ([OPEN], "undecided"),
        ([Measured(5.0, math.nan)], "undecided"),
        ([Measured(-5.0, math.nan)], "undecided"),
        ([Measured(0.0, 0.0)], "undecided"),
    ],
)
def test_the_verdict_on_differences(parts: list[Measured], verdict: str) -> None:
    assert verdict_on(parts) == verdict
    made = claim("s", "1", parts[0], parts=parts)
    assert made.verdict == verdict and made.holds is (verdict == "held")
    assert Claim.of_plain(json.loads(json.dumps(made.plain()))).plain() == made.plain()


def test_few_runs_need_more_standard_errors() -> None:
    """Student's quantiles: with normal noise around zero, few runs must not decide more often than many."""
    assert standard_errors(math.inf) == 2.0
    assert standard_errors(2) == pytest.approx(4.53, abs=0.01) and standard_errors(49) == pytest.approx(2.05, abs=0.01)
    assert standard_errors(0) == math.inf
    rng = np.random.default_rng(0)
    for runs in (3, 6):
        decided = np.mean([verdict_on([measured(rng.standard_normal(runs))]) != "undecided" for _ in range(4_000)])
        # 4.55 % on both sides together; four standard errors of 4,000 draws are 1.3 %
        assert decided == pytest.approx(0.0455, abs=0.014)


def test_what_is_below_zero_in_smaller_worlds_is_told_from_what_is_open() -> None:
    """Both are undecided; a reader wants to know which."""
    below = replace(
        claim("s", "1", DOWN, panel="p"), verdict="undecided"
    )  # as smaller worlds than the thesis's leave it
    still, against, refuted = (statements([one])[0] for one in (claim("s", "1", OPEN), below, claim("s", "1", DOWN)))
    assert [one.against for one in (still, against, refuted)] == [False, True, False]
    assert [below_zero_here(one.claims[0]) for one in (still, against, refuted)] == [False, True, False]
    assert tally([still, against, refuted]) == "1 refuted, 2 undecided (1 below zero here)"
    assert not statements([below, claim("s", "1", UP, panel="q")])[0].against  # held in part


def test_degrees_of_freedom_are_carried() -> None:
    few, many = measured(np.arange(3.0)), measured(np.arange(50.0))
    assert (few - many).degrees == 2 and (-few).degrees == 2 and few.times(-2).standard_error == 2 * few.standard_error


def of(verdict: Any, statement: str = "s", lines: str = "1", panel: str = "p") -> Claim:
    return Claim(statement, lines, 1.0, 0.5, verdict, panel)


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        (["held", "held"], "held"),
        (["held", "refuted"], "held in part"),
        (["held in part", "undecided"], "held in part"),
        (["refuted", "undecided"], "refuted"),
        (["undecided", "undecided"], "undecided"),
    ],
)
def test_a_statement_over_several_worlds(verdicts: list[str], together: str) -> None:
    (one,) = statements([of(verdict, panel=f"p{place}") for place, verdict in enumerate(verdicts)])
    assert one.verdict == together
    assert one.counts == f"in {verdicts.count('held')} of 2 worlds"


def test_statements_of_the_thesis_come_first_and_alone_count() -> None:
    claims = [of("held", "ours", lines=""), of("held", "theirs"), of("refuted", "theirs too")]
    found = statements(claims)
    assert [one.text for one in found] == ["theirs", "theirs too", "ours"]
    assert tally(found) == "2 held, 1 refuted"
    texts = answer(claims)
    assert texts[0] == "Of 2 statements of the thesis: 1 held, 1 refuted." and "1 statement of this project" in texts[1]
    assert any(text.startswith("Refuted: theirs too") for text in texts)
    assert not any("own" in text for text in texts)
    texts = answer([*claims, of("refuted", "ours too", lines="")])
    assert texts[-1].startswith("Refuted, of this project's own: ours too")
    assert figure_of(Claim("s", "1", 2.0, math.nan, "undecided")) == "2 (no standard error)"


def cells(sizes: Any) -> list[Cell]:
    cell = Cell("world", {"K": 3}, Call(dict), {"a": Call(dict), "b": Call(dict)}, 10, sizes["runs"], solve)
    return [cell, variant_of(cell, "links scaled", parameters={"scaled": True})]


def lower(results: Results) -> list[Claim]:
    assert results.panels == ["world"]  # whatever the variant
    found = measured(results.final("world", "b") - results.final("world", "a"))
    return [claim("a is lower", "916-920", found, panel="world")]


MADE = Experiment(
    "made", "Made", "916-920", {"quick": {"runs": 4, "K": 3}, "paper": {"runs": 9, "K": 3}, "smoke": {"runs": 4, "K": 2}},
    cells, lower, lambda results, folder: [Drawn(folder / "one.svg", "What is seen.")], setting="{K} actions, {runs} runs.",
)  # fmt: skip


def outcome(scale: str, gap: float) -> Results:
    """b is worse by `gap` in the printed world, and better by as much in the variant."""
    made = MADE.cells(scale)
    rng = np.random.default_rng(1)
    runs: dict[tuple[str, str, int], Any] = {}
    for cell in made:
        sign = -1 if cell.variant else 1
        for run in range(cell.runs):
            noise = 0.01 * rng.standard_normal()
            runs[cell.panel, "a", run] = {"regret": np.array([0.0, 5.0 + noise])}
            runs[cell.panel, "b", run] = {"regret": np.array([0.0, 5.0 + sign * gap])}
    return Results("made", scale, made, runs)


def test_variants_are_judged_by_themselves_and_do_not_count() -> None:
    printed, variant = MADE.judge(outcome("paper", 1.0))
    assert (printed.verdict, printed.thesis_lines, printed.panel) == ("held", "916-920", "world")
    assert (variant.verdict, variant.thesis_lines, variant.panel) == ("refuted", "", "world, links scaled")


def test_a_variant_has_work_of_its_own_and_leaves_the_printed_world_alone() -> None:
    printed, variant = MADE.cells("paper")
    assert variant.panel == "world, links scaled" and variant.parameters["scaled"] is True
    keys = {item.key("1") for item in items_of("made", [printed], 0)}
    assert keys == {item.key("1") for item in items_of("made", [replace(printed, variant="other words")], 0)}
    assert not keys & {item.key("1") for item in items_of("made", [variant], 0)}


def test_smaller_worlds_do_not_refute() -> None:
    assert MADE.smaller("quick") == {} and MADE.smaller("smoke") == {"K": (2, 3)}
    assert MADE.judge(outcome("quick", -1.0))[0].verdict == "refuted"  # the thesis's sizes, with fewer runs
    against = MADE.judge(outcome("smoke", -1.0))[0]
    assert against.verdict == "undecided" and "other way" in against.detail
    assert MADE.judge(outcome("smoke", 1.0))[0].verdict == "held"
    assert (
        MADE.judge(outcome("smoke", 1.0))[1].verdict == "refuted"
    )  # a statement that is not the thesis's has no other sizes


def test_figures_of_variants_have_folders_of_their_own(tmp_path: Path) -> None:
    drawn = MADE.draw(outcome("paper", 1.0), tmp_path)
    assert [one.path.relative_to(tmp_path).as_posix() for one in drawn] == [
        "figures/one.svg",
        "variants/links-scaled/figures/one.svg",
    ]
    assert drawn[1].caption == "Links scaled. What is seen."


def test_some_of_the_sizes_are_fewer_and_not_smaller() -> None:
    made = replace(
        MADE,
        scales={"quick": {"K": [10, 20], "d": 2}, "paper": {"K": [10, 20, 30], "d": 2}, "smoke": {"K": [5], "d": 1}},
    )
    assert made.fewer("quick") == {"K": ([10, 20], [10, 20, 30])} and made.smaller("quick") == {}
    told = replace(made, scales={name: {**sizes, "told": name} for name, sizes in made.scales.items()})
    assert told.fewer("quick") == made.fewer("quick") and told.smaller("quick") == {}  # words are no size
    assert made.fewer("smoke") == {} and made.smaller("smoke") == {"K": ([5], [10, 20, 30]), "d": (1, 2)}


def test_settings_are_filled() -> None:
    assert MADE.setting_at("paper") == "3 actions, 9 runs."
    assert slug("Many actions: K = 10") == "many-actions-k-10"
