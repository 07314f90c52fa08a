"""The page of the book: chapter by chapter question, setting, answer, picture and every statement with its verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from manyarms._base.text import duration, in_words
from manyarms_thesis.book.answers import filled
from manyarms_thesis.book.chapters import BookChapter
from manyarms_thesis.harness.claims import Claim, Measured
from manyarms_thesis.harness.experiments import Experiment
from manyarms_thesis.harness.part import PANEL
from manyarms_thesis.harness.store import Record
from manyarms_thesis.harness.verdicts import VERDICTS, Statement, below_zero_here, figure_of, statements, tally

MADE_BY = "<!-- Made by `make book` from the results in results/. Change those, or src/manyarms_thesis/book, not this page. -->"
MOST_WORLDS = 10  # of a statement, with their figures; the others are in its record
INTRODUCTION = """\
# What the thesis states, and what came out

The experiments of the thesis that manyarms implements, run again with independent code, in the worlds that the thesis prints:
each of its statements became a difference that should be above zero, measured over runs on the same problems.

- **held**: the difference is above zero by two standard errors (more where there are few runs: Student's quantile);
- **refuted**: it is below zero by as much, in worlds of the thesis's own sizes (of ours, where it prints none) or by formulas
  alone;
- **undecided**: neither; or there is no standard error; or it is below zero by as much, but in worlds that are smaller than
  the thesis's, which refute nothing: these are counted by themselves, and marked ▽;
- **held in part**: some of the differences, or of the worlds, that the statement is about hold, and others do not.

What the thesis does not state or print (scaled links, a context for each action where its text has one for all, rules of our
own) stands apart, and does not count. [Errata](errata.md) has what is wrong in formulas and settings; [Running the
experiments](results.md) how to repeat one. Figures are differences ± one standard error; where a statement compares several, the
figure is that of the *least clear* one, the fewest standard errors above zero, which need not be the smallest. Every number on
this page comes from the records in the folder `results` of the repository, each with the command that made it.
"""
# which of several comparisons a figure is of, in a detail
LEAST = re.compile(r"; least convincing(?: step)?: (?P<one>[^;]+)|least convincing lead, over (?P<lead>.+?) in ")
WORLDS = {"held": "✓", "held in part": "◐", "refuted": "✗", "undecided": "?"}
BELOW_ZERO_HERE = "▽"
LARGER = " ◆"  # of the part that was run at larger sizes
IN_PART = (
    "What is marked ◆ is of a part that was run by itself, and stands in the place of what the other run has; it speaks of the "
    "panels and methods that it has, and others might make it “held in part”:"
)


def page_of(
    records: Mapping[str, Record],
    experiments: Mapping[str, Experiment],
    chapters: Sequence[BookChapter],
    picture_of: Callable[[BookChapter], tuple[str, str] | None],
) -> str:
    """The whole page as Markdown; picture_of: a chapter's picture by its address, and its caption."""
    blocks = [INTRODUCTION, *_overview(records, experiments, chapters)]
    for chapter in chapters:
        own = [one for one in experiments.values() if one.place[0] == chapter.number]
        blocks += _chapter(chapter, own, records, picture_of(chapter))
    return "\n".join(blocks).rstrip() + f"\n\n{MADE_BY}\n"


def _overview(
    records: Mapping[str, Record], experiments: Mapping[str, Experiment], chapters: Sequence[BookChapter]
) -> Iterator[str]:
    yield "| chapter | statements | " + " | ".join(VERDICTS) + " | of these below zero, in smaller worlds |"
    yield "| --- |" + " ---: |" * (2 + len(VERDICTS))

    def row(title: str, found: Iterable[Statement]) -> str:
        told = [one for one in found if one.of_thesis]
        verdicts = [sum(one.verdict == verdict for one in told) for verdict in VERDICTS]
        return f"| {title} | {' | '.join(map(str, [len(told), *verdicts, sum(one.against for one in told)]))} |"

    found = {name: statements(record.claims) for name, record in records.items()}
    for chapter in chapters:
        names = [one.name for one in experiments.values() if one.place[0] == chapter.number and one.name in records]
        yield row(f"[{chapter.title}](#{chapter.anchor})", chain.from_iterable(found[name] for name in names))
    yield row("together", chain.from_iterable(found.values()))
    for words, kind in (("… of these, in worlds of the full sizes", True), ("… in smaller ones", False)):
        yield row(words, (one for name in found for one in found[name] if records[name].is_full(one.claims) is kind))
    yield ""
    full = [one for one in records.values() if not one.about["smaller_than_the_thesis"]]
    some = sum(bool(one.about["fewer_than_the_thesis"]) for one in full)
    parts = sum(one.part is not None for one in records.values() if one not in full)
    yield (
        f"Of {len(experiments)} experiments {len(records)} have a stored result, {len(full)} of them in worlds of the full sizes "
        f"({some} with some of these alone)"
        + (f", {parts} more in part" if parts else "")
        + "; each says below what it was run with"
        + (", and the others that they have not been run.\n" if len(records) < len(experiments) else ".\n")
    )


def _chapter(
    chapter: BookChapter, own: Sequence[Experiment], records: Mapping[str, Record], picture: tuple[str, str] | None
) -> Iterator[str]:
    yield f"## {chapter.title}\n"
    yield f"**Question.** {chapter.question}\n"
    yield f"**Setting.** {chapter.setting}\n"
    yield f"**Answer.** {filled(chapter.answer, records)}\n"
    if picture is not None:
        address, caption = picture
        yield f"![{caption}]({address})\n"
        yield f"*{caption}*\n"
    for experiment in own:
        yield from _experiment(experiment, records.get(experiment.name))


def _experiment(experiment: Experiment, record: Record | None) -> Iterator[str]:
    yield f"### {experiment.title}\n"
    if record is None:
        yield f"{experiment.question} Not run yet: `manyarms reproduce {experiment.name}`.\n"
        return
    yield f"{experiment.question} {record.about['setting']}\n"
    yield f"{how(record.about)}\n"
    if record.part is not None:
        yield f"{IN_PART} {how(record.part.about)}\n"
    for note in record.about["notes"]:
        yield f"**Note.** {note}\n"
    found = statements(record.claims)
    of_thesis, beyond = ([one for one in found if one.of_thesis is kind] for kind in (True, False))
    if of_thesis:
        yield f"The thesis's statements: {tally(of_thesis)}.\n"
        yield from _table(of_thesis, record)
    if beyond:
        yield f"Beyond the thesis: {tally(beyond)}.\n"
        yield from _table(beyond, record)


def how(about: Mapping[str, Any]) -> str:
    """How a result came about: command, sizes where they are not the thesis's, versions and time."""
    sizes = [
        f"{word}: " + ", ".join(_instead(name, own, full) for name, (own, full) in about[key].items())
        for word, key in (("fewer", "fewer_than_the_thesis"), ("other sizes", "smaller_than_the_thesis"))
        if about[key]
    ]
    if "--runs" in about["command"]:  # of a scale that has more: the same worlds
        sizes.append(f"fewer runs: {about['sizes']['runs']}")
    said = "; ".join(sizes) or "the thesis's sizes"
    spent = about["processor_seconds"]
    took = f", {duration(spent)} of one core" if spent is not None else ""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    return f"`{about['command']}` (seed {about['seed']}; {said}{took}; {about['finished']}; {versions})."


def _instead(name: str, own: Any, full: Any) -> str:
    """A size in the place of the thesis's."""
    if name == PANEL:
        return f"{len(own)} panels for {len(full)}"
    return f"{name} {in_words(own) or 'none'} for {'all' if full is None else in_words(full) or 'none'}"


def _table(found: Sequence[Statement], record: Record) -> Iterator[str]:
    yield "| statement | section | verdict | difference ± standard error |"
    yield "| --- | --- | --- | --- |"
    for one in found:
        verdict = f"**{one.verdict}**" + (f" {BELOW_ZERO_HERE}" if one.against else "")
        yield f"| {_cell(one.text)} | {one.sections or '–'} | {verdict} | {_measurements(one, record)} |"
    yield ""


def _measurements(one: Statement, record: Record) -> str:
    """One figure, or those of every world."""
    if len(one.claims) == 1 and not one.claims[0].panel:
        return figure_of(one.claims[0])
    shown = [
        f"{_mark(claim)} {_cell(_world(claim))}{LARGER if record.is_of_part(claim) else ''}: {figure_of(claim)}"
        for claim in one.claims[:MOST_WORLDS]
    ]
    left = one.claims[MOST_WORLDS:]
    where = " and ".join(dict.fromkeys(f"results/{record.file_of(claim)}" for claim in left))
    return "<br>".join([*shown, f"and {len(left)} more in {where}"] if left else shown)


def _mark(claim: Claim) -> str:
    return BELOW_ZERO_HERE if below_zero_here(claim) else WORLDS[claim.verdict]


def _world(claim: Claim) -> str:
    parts, held, _ = claim.parts
    if parts == 1:
        return claim.panel or "all"
    least = LEAST.search(claim.detail)
    which = f", least clear: {least['one'] or least['lead']}" if least else ""
    return f"{claim.panel or 'all'} ({held} of {parts} comparisons{which})"


def _cell(text: str) -> str:
    """A text that does not end a table's cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def verdict_follows(claim: Claim, *, smaller: bool) -> bool:
    """Whether the verdict of a claim is the one that its stored figures give; smaller: of sizes below the thesis's."""
    parts, held, refuted = claim.parts
    if parts == 1:
        alone = Measured(claim.figure, claim.standard_error, claim.degrees)
        if (held, refuted) != (int(alone.above_zero), int(alone.below_zero)):
            return False
    if held:
        return claim.verdict == ("held" if held == parts else "held in part")
    spared = smaller and claim.thesis_lines and not claim.of_formulas
    return claim.verdict == ("refuted" if refuted and not spared else "undecided")


__all__ = ["how", "page_of", "verdict_follows"]
