"""An experiment, and the registry that finds it: a module of a chapter makes one with `CHAPTER.experiment(...)`.

    METS = Chapter("mets", 1)
    ACTIONS = METS.experiment("mets-actions", order=4, title=..., scales=..., build=..., claims=..., figures=...)

What builds, judges and draws returns a list, or yields one thing after the other. No other file is touched.
Another distribution names its module under the entry point group `manyarms.experiments`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from manyarms._base.registry import Registry
from manyarms.errors import InvalidInput
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.harness.thesis import sections

if TYPE_CHECKING:
    from manyarms_thesis.harness.claims import Claim
    from manyarms_thesis.harness.results import Results

SCALES = ("smoke", "quick", "paper")
# what a page shows of every method at its last checkpoint, unless the experiment names other columns
ONLINE_NUMBERS: Mapping[str, str] = {
    "regret": "final regret",
    "milliseconds_a_round": "ms a round",
    "agent_bytes": "agent, MB",
}
ONLINE_CAPTION = "Mean over runs; the bands and bars are one standard error wide on each side."

Sizes = Mapping[str, Any]
Warn = Callable[[], list[str]]
Told = ParamSpec("Told")
One = TypeVar("One")


@dataclass(frozen=True)
class Experiment:
    """A named experiment, of the thesis unless it cites no lines of it.

    thesis_lines    where it stands in the thesis's source; "" for an experiment that the thesis does not have
    scales          plain sizes for "smoke", "quick" and "paper"
    build           sizes -> cells
    claims          results -> what the thesis states (or we do, where it is silent), measured
    figures         results, folder -> the files drawn (each as SVG and PNG; the SVG is returned)
    remarks         settings that the thesis leaves open
    warnings        what a reader of the results must not overlook (made-up data)
    caption         what the figures show
    numbers         columns of the results for the page's table, with their headings
    place           of its chapter among the chapters, and its own in the chapter: the order in which they are listed
    """

    name: str
    title: str
    thesis_lines: str
    scales: Mapping[str, Sizes]
    build: Callable[[Sizes], list[Cell]]
    claims: Callable[[Results], list[Claim]]
    figures: Callable[[Results, Path], list[Path]]
    remarks: Sequence[str] = ()
    warnings: Warn = list
    caption: str = ONLINE_CAPTION
    numbers: Mapping[str, str] | None = None
    place: tuple[int, int] = (0, 0)

    @property
    def sections(self) -> str:
        """The sections of the thesis that it comes from; none for an experiment that is not in it."""
        return sections(self.thesis_lines)

    def cells(self, scale: str) -> list[Cell]:
        """The cells at a scale; every panel has its own name."""
        if scale not in self.scales:
            raise InvalidInput("scale", repr(scale), "one of " + ", ".join(self.scales))
        cells = self.build(self.scales[scale])
        panels = [cell.panel for cell in cells]
        if len(set(panels)) != len(panels):
            raise InvalidInput("cells", "two panels of the same name", "one name a panel")
        return cells


EXPERIMENTS: Registry[Experiment] = Registry("experiment", group="manyarms.experiments", package="manyarms_thesis")


@dataclass(frozen=True)
class Chapter:
    """What the experiments of a chapter have in common; `number` orders the chapters."""

    name: str
    number: int
    remarks: Sequence[str] = ()
    warnings: Warn = list
    caption: str = ONLINE_CAPTION
    numbers: Mapping[str, str] | None = None

    def experiment(
        self,
        name: str,
        *,
        order: int,
        title: str,
        thesis_lines: str,
        scales: Mapping[str, Sizes],
        build: Callable[[Sizes], Iterable[Cell]],
        claims: Callable[[Results], Iterable[Claim]],
        figures: Callable[[Results, Path], Iterable[Path]],
        remarks: Sequence[str] = (),
        warnings: Warn | None = None,
        caption: str | None = None,
        numbers: Mapping[str, str] | None = None,
    ) -> Experiment:
        """Make an experiment and register it. Its remarks follow the chapter's; the rest replaces what the chapter has."""
        made = Experiment(
            name, title, thesis_lines, scales, _all_at_once(build), _all_at_once(claims), _all_at_once(figures),
            (*self.remarks, *remarks), warnings or self.warnings, caption or self.caption, numbers or self.numbers,
            (self.number, order),
        )  # fmt: skip
        return EXPERIMENTS.register(name)(made)


def _all_at_once(function: Callable[Told, Iterable[One]]) -> Callable[Told, list[One]]:
    return lambda *arguments, **more: list(function(*arguments, **more))


__all__ = ["EXPERIMENTS", "ONLINE_NUMBERS", "SCALES", "Chapter", "Experiment", "Sizes"]
