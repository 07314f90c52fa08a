"""An experiment, and the registry that finds it: a module of a chapter makes one with `CHAPTER.experiment(...)`.

    METS = Chapter("mets", 1)
    ACTIONS = METS.experiment("mets-actions", order=4, title=..., scales=..., build=..., claims=..., figures=...)

What builds, judges and draws returns a list, or yields one thing after the other. No other file is touched.
Another distribution names its module under the entry point group `manyarms.experiments`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from manyarms._base.registry import Registry
from manyarms._base.text import in_words
from manyarms.errors import InvalidInput, ManyArmsError
from manyarms_thesis.harness.spec import METHOD, VARIANT, Cell
from manyarms_thesis.harness.thesis import sections

if TYPE_CHECKING:
    from manyarms_thesis.harness.claims import Claim
    from manyarms_thesis.harness.figures import Drawn
    from manyarms_thesis.harness.results import Results

SCALES = ("smoke", "quick", "paper")
# what a page shows of every method at its last checkpoint, unless the experiment names other columns
ONLINE_NUMBERS: Mapping[str, str] = {
    "regret": "final regret",
    "milliseconds_a_round": "ms a round",
    "agent_bytes": "agent, MB",
}
ACCURACY = ("runs", "scaled_runs", "preparations")
TOLD = "told"  # among the sizes: what a setting says of the others in words, and no size itself
SMALLER = (
    "with these sizes the difference goes the other way, which does not decide about those of the full experiment; "
)

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
    claims          results -> what the thesis states (or we do, where it is silent), measured; called for each variant
    figures         results, folder -> what is drawn, each with its caption, the main one first; called for each variant
    question        what it asks, in a sentence or two
    setting         world, sizes, who is compared; fields such as {K} are filled from the sizes of the scale
    across          results of all variants -> claims that compare variants
    remarks         settings that the thesis leaves open
    warnings        what a reader of the results must not overlook (made-up data)
    numbers         columns of the results for the page's table, with their headings
    accuracy        sizes that set how accurate results are, and not what they are of
    full            the thesis's sizes, where the scale "paper" has only a part of them
    part, chosen    of a part of an experiment: the options that chose it; by column, the values of its panels and those of all
    place           of its chapter among the chapters, and its own in the chapter: the order in which they are listed
    """

    name: str
    title: str
    thesis_lines: str
    scales: Mapping[str, Sizes]
    build: Callable[[Sizes], list[Cell]]
    claims: Callable[[Results], list[Claim]]
    figures: Callable[[Results, Path], list[Drawn]]
    question: str = ""
    setting: str = ""
    across: Callable[[Results], list[Claim]] = lambda results: []
    remarks: Sequence[str] = ()
    warnings: Warn = list
    numbers: Mapping[str, str] | None = None
    accuracy: Sequence[str] = ACCURACY
    place: tuple[int, int] = (0, 0)
    full: Sizes | None = None
    part: str = ""
    chosen: Mapping[str, tuple[list[Any], list[Any]]] = field(default_factory=dict)

    @property
    def sections(self) -> str:
        """The sections of the thesis that it comes from; none for an experiment that is not in it."""
        return sections(self.thesis_lines)

    def setting_at(self, scale: str) -> str:
        """The setting with the sizes of a scale, of a part those that it has."""
        sizes = dict(self.sizes(scale))
        sizes |= {name: own for name, (own, every) in self.chosen.items() if sizes.get(name) == every}
        return self.setting.format(**{name: in_words(value) for name, value in sizes.items()})

    def sizes(self, scale: str) -> Sizes:
        """The sizes of a scale."""
        if scale not in self.scales:
            raise InvalidInput("scale", repr(scale), "one of " + ", ".join(self.scales))
        return self.scales[scale]

    @property
    def full_sizes(self) -> Sizes | None:
        """The thesis's sizes."""
        return self.full or self.scales.get("paper")

    def smaller(self, scale: str) -> dict[str, tuple[Any, Any]]:
        """In what the worlds of a scale are not the thesis's: the size there, and the thesis's."""
        return {name: pair for name, pair in self._different(scale).items() if not _is_part(*pair)}

    def fewer(self, scale: str) -> dict[str, tuple[Any, Any]]:
        """Of which sizes a scale has some of the thesis's and not all: its worlds are the thesis's, and fewer."""
        of_scale = {name: pair for name, pair in self._different(scale).items() if _is_part(*pair)}
        return of_scale | {name: pair for name, pair in self.chosen.items() if pair[0] != pair[1]}

    def _different(self, scale: str) -> dict[str, tuple[Any, Any]]:
        own = self.sizes(scale)
        full = self.full_sizes or own
        names = [name for name in dict.fromkeys((*own, *full)) if name not in (*self.accuracy, TOLD)]
        return {name: (own.get(name), full.get(name)) for name in names if own.get(name) != full.get(name)}

    def judge(self, results: Results) -> list[Claim]:
        """All claims with their verdicts; those about worlds that the thesis does not print are none of its own."""
        found = []
        for variant in results.variants:
            of_variant = self._as_far_as_it_goes(self.claims, results.variant(variant))
            found += of_variant if not variant else [_beyond(one, variant) for one in of_variant]
        found += self._as_far_as_it_goes(self.across, results)
        return [_at_smaller_sizes(one) if self._is_open(one, results) else one for one in found]

    def _is_open(self, one: Claim, results: Results) -> bool:
        """Whether worlds that were not run have a say: those of the thesis's sizes, or the panels that a part leaves out.

        A claim that is said of each panel and method alone is false where one of them goes against it, whatever the others do; a
        claim about one panel with all of its methods is that of the whole. The thesis says nothing of variants: without them
        nothing is left out.
        """
        if self.smaller(results.scale):
            return True
        cut = [name for name, (own, every) in self.chosen.items() if own != every and name != VARIANT]
        alone = one.of_each or (one.panel in results.panels and METHOD not in cut)
        return bool(cut) and not alone

    def draw(self, results: Results, folder: Path) -> list[Drawn]:
        """All figures: those of worlds as printed in folder/figures, those of a variant under its own name."""
        drawn = []
        for variant in results.variants:
            place = folder / "variants" / slug(variant) if variant else folder
            for one in self._as_far_as_it_goes(self.figures, results.variant(variant), place / "figures"):
                drawn.append(replace(one, caption=f"{_first_capital(variant)}. {one.caption}") if variant else one)
        return drawn

    def _as_far_as_it_goes(self, tell: Callable[..., Iterable[One]], *told: Any) -> list[One]:
        """All that it tells; where only some panels are there, what comes before the first that needs others."""
        found = []
        try:
            for one in tell.one_by_one(*told) if isinstance(tell, _AllAtOnce) else tell(*told):
                found.append(one)
        except (ManyArmsError, ValueError, LookupError, ArithmeticError):
            if not self.chosen:
                raise
        return found

    def cells(self, scale: str) -> list[Cell]:
        """The cells at a scale; every panel has its own name."""
        cells = self.build(self.sizes(scale))
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
        figures: Callable[[Results, Path], Iterable[Drawn]],
        question: str,
        setting: str,
        across: Callable[[Results], Iterable[Claim]] | None = None,
        remarks: Sequence[str] = (),
        warnings: Warn | None = None,
        numbers: Mapping[str, str] | None = None,
        accuracy: Sequence[str] = ACCURACY,
    ) -> Experiment:
        """Make an experiment and register it. Its remarks follow the chapter's; the rest replaces what the chapter has."""
        made = Experiment(
            name, title, thesis_lines, scales, _AllAtOnce(build), _AllAtOnce(claims), _AllAtOnce(figures),
            question, setting, _AllAtOnce(across or (lambda results: [])), (*self.remarks, *remarks),
            warnings or self.warnings, numbers or self.numbers, accuracy, (self.number, order),
        )  # fmt: skip
        return EXPERIMENTS.register(name)(made)


def slug(text: str) -> str:
    """A text as the name of a folder or of an anchor."""
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))


def _beyond(one: Claim, variant: str) -> Claim:
    """A claim about a world that the thesis does not print, which its panel says."""
    panel = one.panel if variant in one.panel else ", ".join(filter(None, (one.panel, variant)))
    return replace(one, thesis_lines="", panel=panel)


def _at_smaller_sizes(one: Claim) -> Claim:
    """What goes against a statement of the thesis in smaller worlds than its own does not refute it; what formulas say does."""
    if one.verdict != "refuted" or not one.thesis_lines or one.of_formulas:
        return one
    return replace(one, verdict="undecided", detail=SMALLER + one.detail)


def _is_part(own: Any, full: Any) -> bool:
    """Whether a list of sizes is a part of another."""
    return isinstance(own, list) and isinstance(full, list) and all(one in full for one in own)


def _first_capital(text: str) -> str:
    return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class _AllAtOnce(Generic[Told, One]):
    """A function whose results are wanted as a list, though it may yield one after the other."""

    one_by_one: Callable[Told, Iterable[One]]

    def __call__(self, *told: Told.args, **more: Told.kwargs) -> list[One]:
        return list(self.one_by_one(*told, **more))


__all__ = ["EXPERIMENTS", "ONLINE_NUMBERS", "SCALES", "Chapter", "Experiment", "Sizes", "slug"]
