"""The tables of docs/sizing.md, from docs/sizing.json and what benchmarks/README.md reports: nothing is measured here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from _scaling_page import _rounded as rounded
from _scaling_page import shown
from _sizing import (
    SHARD,
    Assumed,
    Costs,
    Epoch,
    Fold,
    Stored,
    bytes_of_belief,
    bytes_of_table,
    checks,
    machines_for,
    network,
)

ASSUMED = Assumed()
DIM = 64  # of the policies of the examples
LISTED = 100  # actions in a list, as benchmarks/softmax.py has it
REPORTED = Path(__file__).with_name("README.md")


def published(text: str) -> dict[str, float]:
    """The figures that benchmarks/README.md reports, by name."""
    found: dict[str, float] = {}
    for line in re.findall(r"^\{.*\}$", text, re.MULTILINE):
        found |= json.loads(line)
    return found


def table(head: str, *lines: str) -> str:
    """Lines of cells under a head, all of them with bars between."""
    columns = head.count("|") + 1
    return "\n".join(f"| {line} |" for line in (head, " | ".join(["---"] * columns), *lines))


def time_of(seconds: float) -> str:
    """Two digits, in the unit that suits them.

    >>> time_of(0.002), time_of(7200.0), time_of(4e5), time_of(1e9)
    ('2.0 ms', '2.0 hours', '4.6 days', '32 years')
    """
    for size, name in ((365.25 * 86400, "years"), (2 * 86400, "days"), (3600, "hours"), (120, "minutes")):
        if seconds >= size:
            unit = {"years": 365.25 * 86400, "days": 86400, "hours": 3600, "minutes": 60}[name]
            value = seconds / unit
            return f"{value:,.1f} {name}" if value < 10 else f"{rounded(value)} {name}"
    return shown(seconds, "s")


def bytes_of(number: float) -> str:
    """Two digits, up to terabytes."""
    return f"{number / 1e12:.1f} TB" if number >= 0.995e12 else shown(number, "B")


# ---- what was measured ------------------------------------------------------------------------------------------------


def measured_on(stored: Stored) -> str:
    """What was measured, and on what."""
    versions = ", ".join(f"{name} {version}" for name, version in stored["versions"].items())
    return f"`{stored['command']}`, {stored['cores']} cores of: {stored['processor']}. {versions}."


def rows_table(stored: Stored) -> str:
    """Folding by rows."""
    rows = stored["studies"]["fold-rows"]
    lines = zip(*(rows[name] for name in ("n", "seen", "local", "ray", "ray_over_local")), strict=True)
    return table(
        "rows | actions in them | one process | Ray, two workers | quotient",
        *(f"{n:,} | {seen:,} | {shown(a, 's')} | {shown(b, 's')} | {c:.2f}" for n, seen, a, b, c in lines),
    )


def division_table(stored: Stored) -> str:
    """Folding by workers and by shards, and evaluating."""
    workers, shards, judged = (stored["studies"][name] for name in ("fold-workers", "fold-shards", "evaluate"))
    rows = stored["studies"]["fold-rows"]["n"][-1]
    lines = [
        f"{rows:,} rows folded, {n} worker{'s' if n > 1 else ''} | {shown(s, 's')} | {shown(p, 'B')}, {shown(i, 'B')} of it "
        "before"
        for n, s, p, i in zip(*workers.values(), strict=True)
    ]
    lines += [
        f"{rows:,} rows folded, 2 workers, {n} shards | {shown(s, 's')} | "
        for n, s in zip(*shards.values(), strict=True)
    ]
    lines += [
        f"{n:,} rows evaluated, 2 workers | {shown(b, 's')}, in one process {shown(a, 's')} | "
        for n, a, b, _ in zip(*judged.values(), strict=True)
    ]
    return table("on Ray | time | most memory of a worker", *lines)


def costs_table(stored: Stored) -> str:
    """The slopes that everything else is computed with."""
    costs, batch = Costs.of(stored), 256
    return table(
        "symbol | what | one core",
        f"s_row | a row, read, checked and folded, d = 10 | {shown(costs.row, 's')}",
        f"s_add | an action in the sums of a shard, added to another's, d = 10 | {shown(costs.action_added, 's')}",
        f"s_learn | an action in all sums, learned by the belief, d = 10 | {shown(costs.action_learned, 's')}",
        f"s_eval | a row evaluated, a softmax policy over 100 actions, nine estimates | {shown(costs.evaluated, 's')}",
        f"c | an action in a step of learning, {batch} rows, d = 64 | {shown(costs.step_action, 's')}",
    )


def reductions_table(stored: Stored) -> str:
    """Latency and bandwidth of reductions."""
    reduced, lines = stored["studies"]["reduce"], []
    for workers in (2, 4):
        latency, each = network(stored, workers)
        least, most = (reduced[f"seconds_{workers}"][at] for at in (0, -1))
        lines.append(
            f"{workers} | {shown(least, 's')} | {shown(most, 's')} | {shown(latency, 's')} | {rounded(8e-9 / each)} Gbit/s"
        )
    last = reduced["numbers"][-1]
    return table(f"processes | one number | {last:,} numbers | latency | bandwidth", *lines)


def checks_table(stored: Stored) -> str:
    """The model beside runs."""
    lines = [
        f"{one.workers} | {one.actions:,}{', encoder' if one.encoder else ''} | {shown(one.bytes_sent, 'B')} | "
        f"{shown(one.own, 's')} | "
        f"{shown(one.sending, 's')} | {shown(one.predicted, 's')} | {shown(one.measured, 's')} | {one.error:+.0%}"
        for one in checks(stored)
    ]
    return table(
        "processes | actions | each sends | own share | sending | predicted | measured | error of the prediction",
        *lines,
    )


def counted(stored: Stored) -> str:
    """What a step reduced, in words."""
    steps = stored["studies"]["steps"]
    pairs = sorted(set(zip(steps["encoder"], steps["reduced"], steps["modelled"], steps["messages"], strict=True)))
    said = [
        f"{reduced:,} numbers in {messages} reductions{' where an encoder is learned as well' if encoder else ''}, and the "
        f"model says {model:,}"
        for encoder, reduced, model, messages in pairs
    ]
    return f"Counted in these runs: {'; '.join(said)}; with any number of actions."


# ---- what is computed -------------------------------------------------------------------------------------------------


def assumptions_table(stored: Stored) -> str:
    """The machines of the examples."""
    return table(
        "assumed | value",
        f"rows of the log | {ASSUMED.rows:,.0f}, actions played by Zipf's law, all with a reward",
        f"actions | {ASSUMED.actions:,.0f}",
        f"a machine | {ASSUMED.cores} cores as quick as the one measured, {ASSUMED.memory / 1e9:.0f} GB, of which tables fill "
        f"{ASSUMED.usable:.0%}",
        f"network | {ASSUMED.gbit:g} Gbit/s for each machine, {shown(ASSUMED.latency, 's')} from one to the next",
        f"shards | {SHARD:,} rows",
    )


def fold_table(stored: Stored) -> str:
    """Folding a billion rows."""
    costs, lines, machines = Costs.of(stored), [], 8
    for actions in (1e6, 1e7, ASSUMED.actions):
        for dim in (10, DIM):
            found = Fold.of(ASSUMED.rows, actions, dim, costs)
            computing, sending, learning = found.hours(machines, ASSUMED)
            belief = found.seen * bytes_of_belief(dim)
            lines.append(
                f"{actions:,.0f} | {dim} | {rounded(found.seen)} | {bytes_of(found.bytes_read)} | {bytes_of(found.bytes_sent)} | "
                f"{time_of(computing * 3600)} | {time_of(sending * 3600)} | {time_of(learning * 3600)} | {bytes_of(belief)}"
            )
    return table(
        f"actions | d | of these played | the files | sums sent in all | computing, {machines} machines | network, {machines} "
        "machines | learning the sums | the belief",
        *lines,
    )


def table_memory(stored: Stored) -> str:
    """What a divided table takes."""
    held = bytes_of_table(ASSUMED.actions, DIM)
    lines = [
        f"{workers} | {rounded(ASSUMED.actions / workers)} | {bytes_of(held / workers)} | {bytes_of(held / workers / 3)}"
        for workers in (1, 2, 4, 8, 16, 64)
    ]
    return table("processes | actions each | table and Adam's moments, each | a checkpoint's table, each", *lines)


def learning_table(stored: Stored) -> str:
    """An epoch over a billion rows, in several ways."""
    costs, known = Costs.of(stored), published(REPORTED.read_text(encoding="utf-8"))
    batch, n, K, lines = ASSUMED.gpu_batch, ASSUMED.rows, ASSUMED.actions, []

    def line(what: str, epoch: Epoch, source: str) -> None:
        total = epoch.steps * epoch.bytes_sent
        step = shown(epoch.own, "s") if epoch.own < 120 else time_of(epoch.own)
        sending = shown(epoch.latency + epoch.sending, "s") if epoch.bytes_sent else "none"
        sent = bytes_of(total) if total else "none"
        lines.append(f"{what} | {step} | {sending} | {time_of(epoch.hours * 3600)} | {sent} | {source}")

    for machines in (1, 8, 32):
        workers = machines * ASSUMED.cores
        own = costs.step_action * batch / 256 * K / workers
        what = f"all actions, {machines} machine{'s' if machines > 1 else ''}, {workers:,} processes"
        line(
            what,
            Epoch.of(n, batch, own, 3 * batch, 2, workers, ASSUMED),
            "extrapolated from 200,000 actions, 4 processes",
        )
    seconds_of_row = 2 * known["support_epoch_s"] / 400_000  # two threads
    for machines in (1, 8):
        workers = machines * ASSUMED.cores
        epoch = Epoch.of(n, batch, seconds_of_row * batch / workers, LISTED * batch, 1, workers, ASSUMED)
        what = f"lists of {LISTED} actions, {machines} machine{'s' if machines > 1 else ''}, {workers:,} processes"
        line(what, epoch, "`support_epoch_s`, by proportion; not run divided at this size")
    own = known["gpu_d64_ms"] / 1e3 * K / 1e6
    line("all actions, one GPU", Epoch.of(n, batch, own, 3 * batch, 2, 1, ASSUMED), "`gpu_d64_ms`, by proportion to K")
    own = known["gpu_plain_d64_ms"] / 1e3 * K / 1e6 / ASSUMED.workers
    line(
        f"all actions, {ASSUMED.workers} GPUs, a process each", Epoch.of(n, batch, own, 3 * batch, 2, ASSUMED.workers, ASSUMED),
        "`gpu_plain_d64_ms`, by proportion; not run",
    )  # fmt: skip
    return table(
        f"way, batches of {batch:,} | own share of a step | sending | an epoch | each sends in an epoch | from", *lines
    )


def answer(stored: Stored) -> str:
    """The question of the page, in three lines."""
    costs, known = Costs.of(stored), published(REPORTED.read_text(encoding="utf-8"))
    K, n, batch = ASSUMED.actions, ASSUMED.rows, ASSUMED.gpu_batch
    fold, tables = Fold.of(n, K, 10, costs), bytes_of_table(K, DIM)
    computing, sending, learning = fold.hours(8, ASSUMED)
    gpu = Epoch.of(n, batch, known["gpu_d64_ms"] / 1e3 * K / 1e6, 3 * batch, 2, 1, ASSUMED)
    cpu = Epoch.of(n, batch, costs.step_action * batch / 256 * K / 256, 3 * batch, 2, 256, ASSUMED)
    one = ASSUMED.cores
    lists = Epoch.of(n, batch, 2 * known["support_epoch_s"] / 4e5 * batch / one, LISTED * batch, 1, one, ASSUMED)
    return table(
        "what | machines | hours | network",
        f"fold into a belief, d = 10 | 8; the one that learns needs {bytes_of(fold.seen * bytes_of_belief(10))} | "
        f"{time_of(3600 * (computing + sending + learning))} | {bytes_of(fold.bytes_sent + fold.bytes_read)} in all",
        f"hold the table of a policy, d = {DIM} | {machines_for(tables, ASSUMED)} of {ASSUMED.memory / 1e9:.0f} GB for "
        f"{bytes_of(tables)}; or one GPU of {ASSUMED.gpu_gib} GiB, whose kernels take {ASSUMED.kernels_gib} | | ",
        f"an epoch over all actions | one such GPU | {time_of(gpu.hours * 3600)} | none",
        f"an epoch over all actions | 8 of {ASSUMED.cores} cores | {time_of(cpu.hours * 3600)} | "
        f"{bytes_of(cpu.steps * cpu.bytes_sent)} from each process",
        f"an epoch over lists of {LISTED} actions | 1 of {ASSUMED.cores} cores | {time_of(lists.hours * 3600)} | none: all "
        "processes are on it",
    )


BLOCKS: dict[str, Callable[[Stored], str]] = {
    "measured": measured_on, "answer": answer, "rows": rows_table, "division": division_table, "costs": costs_table,
    "reductions": reductions_table, "checks": checks_table, "counted": counted, "assumptions": assumptions_table,
    "fold": fold_table, "memory": table_memory, "learning": learning_table,
}  # fmt: skip


def filled(page: str, stored: Stored) -> str:
    """The page with its tables made anew, between the comments that name them."""
    for name, made in BLOCKS.items():
        text = made(stored)
        pattern = re.compile(rf"(<!-- sizing: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, number = pattern.subn(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)  # type: ignore[misc]
        if number != 1:
            raise SystemExit(f"docs/sizing.md has {number} places for {name!r}, not one")
    return page


__all__ = ["BLOCKS", "filled", "published"]
