"""The inspection as one HTML page."""

from __future__ import annotations

from manyarms._base import html as report
from manyarms._base.palette import colour
from manyarms._base.text import counted, decimals
from manyarms.logs.inspection.summary import Distribution, Histogram, Inspection

MOST_NAMED = 3  # findings in the answer


def page(found: Inspection) -> str:
    """A self-contained page: whether the log can be used, a picture of it, the findings, then the numbers behind them."""
    blocks = [_card(found)]
    drawn = [_bars(found.rewards.histogram, "reward")]
    if found.propensities is not None:
        drawn.insert(len(found.propensities.histogram.counts) == 1, _bars(found.propensities.histogram, "propensity"))
    blocks.append(drawn[0])
    blocks.append(report.heading("Findings"))
    if found.findings:
        rows: list[tuple[report.CellText, ...]] = [(f.level, f.what, f.advice) for f in found.findings]
        blocks.append(report.table(("", "what", "what to do"), rows))
    else:
        blocks.append(report.paragraph("None."))
    blocks += [report.heading("The log"), report.facts(overview(found))]
    blocks += [report.heading("Rewards"), report.facts(numbers(found.rewards))]
    if found.propensities is not None:
        blocks += [report.heading("Propensities"), report.facts(numbers(found.propensities)), *drawn[1:]]
    if found.overlap is not None:
        blocks += [report.heading("Overlap"), report.facts(overlap(found))]
    blocks += [report.heading("Actions"), _actions(found)]
    if found.missing:
        rows = [(m.column, f"{m.count:,}", f"{m.share:.2%}", str(m.first_row)) for m in found.missing]
        head = ("column", "missing", "share", "first row")
        blocks += [report.heading("Missing entries"), report.table(head, rows, numbers=head[1:])]
    if found.notes:
        blocks += [report.heading("Notes"), report.bullets(found.notes)]
    about = f"{counted(found.rows, 'round')}, {counted(found.actions_seen, 'action')} played."
    return report.page(f"Inspection of {found.source}", about, *blocks)


def _card(found: Inspection) -> str:
    """Whether the log can be used, and what to do first."""
    worst = [f.what for level in ("problem", "warning") for f in found.findings if f.level == level]
    firsts = [f"{text[0].upper()}{text[1:]}." for text in worst[:MOST_NAMED]]
    more = [f"And {len(worst) - MOST_NAMED} more: see the findings."] if len(worst) > MOST_NAMED else []
    if found.problems:
        return report.card(f"{counted(len(found.problems), 'problem')} to solve first", [*firsts, *more], "bad")
    if worst:
        return report.card("The log can be used, with care", [*firsts, *more], "open")
    return report.card("The log can be used", ["Nothing was found that stands in the way."], "good")


def overview(found: Inspection) -> dict[str, str]:
    """What is in the log, by name."""
    known = "" if found.action_count_is_known else " (as far as the log shows)"
    facts = {
        "rounds": f"{found.rows:,}",
        "actions": f"{found.action_count:,}{known}, {found.actions_seen:,} played, "
        f"{max(found.action_count - found.actions_seen, 0):,} never played",
        "effective number of actions": f"{found.effective_actions:,.1f}",
    }
    if found.unseen:
        facts["never played, for example"] = ", ".join(found.unseen)
    facts |= {f"column of {part}": names for part, names in found.parts.items()}
    facts["length of a context"] = f"{found.dim:,} before encoding"
    if found.groups is not None:
        facts["groups"] = f"{'' if found.groups_are_exact else 'about '}{found.groups:,}"
    if found.first_time is not None:
        facts["times"] = (
            f"{found.first_time} to {found.last_time}; {found.out_of_order:,} rows earlier than the one before"
        )
    for name, repeats in (("duplicate event ids", found.duplicate_events), ("duplicate rows", found.duplicate_rows)):
        if repeats is not None:
            facts[name] = f"{'' if repeats.exact else 'about '}{repeats.count:,}"
    return facts


def numbers(found: Distribution) -> dict[str, str]:
    """A distribution, by name."""
    if not found.count:
        return {"count": "0"}
    facts = {"count": f"{found.count:,}", "missing": f"{found.missing:,}"}
    facts |= {"mean ± standard deviation": f"{found.mean:.6g} ± {found.standard_deviation:.4g}"}
    facts["minimum, maximum"] = f"{found.minimum:.6g}, {found.maximum:.6g}"
    if found.values is None or len(found.values) > 2:
        which = " (from a sample of 100,000 rows)" if found.sampled else ""
        facts[f"quantiles{which}"] = ", ".join(f"{q:.0%}: {v:.4g}" for q, v in found.quantiles.items())
    return facts


def overlap(found: Inspection) -> dict[str, str]:
    """LogOverlap, by name."""
    o = found.overlap
    if o is None:
        return {}
    rows = found.propensities.count if found.propensities is not None else found.rows
    facts = {
        "effective sample size, uniform policy": f"{o.effective_sample_size:,.1f} of {rows:,} "
        f"({o.effective_sample_size / rows:.1%})",
        "mean weight, uniform policy": f"{decimals(o.mean_weight, 4)} ± {decimals(o.mean_weight_error, 4)} (1 if all is well)",
        "largest weight, uniform policy": f"{o.largest_weight:,.4g}",
        "propensity below": ", ".join(f"{t:g}: {share:.2%}" for t, share in o.below.items()),
    }
    if o.best is not None and o.best.effective_sample_size is not None:
        facts["always the best action"] = (
            f"{o.best.name}: value {o.best.value:.4g} from {o.best.rows:,} rows, "
            f"effective sample size {o.best.effective_sample_size:,.1f}"
        )
    return facts


def _actions(found: Inspection) -> str:
    head = ["action", "rows", "share", "mean reward"]
    weighted = any(row.effective_sample_size is not None for row in found.most_played)
    head += ["value if always played", "effective sample size"] if weighted else []
    rows: list[list[report.CellText]] = []
    for a in found.most_played:
        row: list[report.CellText] = [a.name, f"{a.rows:,}", f"{a.share:.2%}", f"{a.mean_reward:.4g}"]
        if weighted:
            row += ["" if a.value is None else f"{a.value:.4g}"]
            row += ["" if a.effective_sample_size is None else f"{a.effective_sample_size:,.1f}"]
        rows.append(row)
    most = report.paragraph(f"The {len(rows)} most played.")
    return most + report.table(head, rows, numbers=head[1:])


def _bars(histogram: Histogram, name: str) -> str:
    """A histogram as horizontal bars."""
    if not histogram.counts:
        return ""
    height, left, right = 24.0, 150.0, 80.0
    largest, total = max(histogram.counts) or 1, sum(histogram.counts) or 1

    def drawing(width: float) -> str:
        parts = []
        for place, (label, count) in enumerate(zip(histogram.labels, histogram.counts, strict=True)):
            y, length = place * height + 3, (width - left - right) * count / largest
            parts.append(report.svg_text(left - 10, y + 14, label, "end"))
            box = f'x="{left:g}" y="{y:g}" width="{length:.1f}" height="{height - 5:g}"'
            parts.append(f'<rect {box} style="fill: {colour(0)}"/>')
            parts.append(report.svg_text(left + length + 6, y + 14, f"{count:,}", "start"))
        return report.svg(width, height * len(histogram.counts) + 6, f"{name}: rows by value", parts)

    which = "rows" if histogram.exact else "rows of a sample"
    most = histogram.counts.index(max(histogram.counts))
    share = f"{max(histogram.counts) / total:.0%}"
    seen = f"How many {which} have which {name}; the longest bar, {histogram.labels[most]}, has {share} of them."
    if name == "propensity":
        seen += " The smaller the propensity of what was played, the more weight its row gets in an evaluation."
    return report.figure(drawing, seen)


__all__ = ["numbers", "overlap", "overview", "page"]
