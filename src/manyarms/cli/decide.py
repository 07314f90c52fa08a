"""`manyarms decide POLICY COLUMN=VALUE ...`: what a saved policy or agent would do."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from manyarms._base.files import require_apart, require_file, write_text_atomically
from manyarms._base.storage import load
from manyarms._base.tables import Table
from manyarms._base.typing import AnyArray
from manyarms.agents.agent import Agent
from manyarms.cli import options
from manyarms.cli._flags import StandsFor
from manyarms.cli.commands import COMMANDS
from manyarms.errors import InvalidInput, StorageError
from manyarms.logs import CHUNK
from manyarms.logs.actions import ActionId
from manyarms.logs.encoding import TextPart
from manyarms.logs.formats.base import tables_in
from manyarms.logs.tables import TableSource
from manyarms.policies.base import StreamedPolicy


@COMMANDS.register("decide")
def decide(
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help="A folder with a saved policy or agent.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="COLUMN=VALUE...", help="A context, column by column.", show_default=False),
        StandsFor("x"),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="JSON", help="A context: an object with the columns, or a list of numbers.", show_default="none"
        ),
        StandsFor("x"),
    ] = None,
    contexts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Contexts in a table, a row each; the answers are a CSV.", show_default="none"
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", min=1, help="How many actions, the best first.")] = 1,
    candidates: Annotated[
        str | None, typer.Option(metavar="ID,...", help="The only actions on offer.", show_default="all")
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(metavar="ID,...", help="Actions that are not on offer.", show_default="none")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --contexts: the CSV file to write.", show_default="printed"),
    ] = None,
) -> None:
    """Print what a saved policy or agent would do in a context: the ids of the best actions.

    A policy gives its most probable actions, with their probabilities. An agent that explores draws, as it would online; nothing
    is learned or saved.

    Examples:

      manyarms decide policy/ age=31 device=phone
      manyarms decide policy/ age=31 device=phone -k 5 --exclude SKU-1,SKU-2
      manyarms decide policy/ --context '{"age": 31, "device": "phone"}' --json
      manyarms decide policy/ --contexts tomorrow.csv -k 3 --out decisions.csv
    """
    given = [bool(values), context is not None, contexts is not None]
    if sum(given) != 1:
        came = "nothing" if not any(given) else "several of them"
        raise InvalidInput("COLUMN=VALUE, --context, --contexts", came, "one of them: a context, or a file of contexts")
    if out is not None:
        if contexts is None:
            raise InvalidInput("--out", str(out), "--contexts as well: one context is answered in the terminal")
        require_apart("--out", out, {"--contexts": contexts})
        require_file("--out", out)
    options.require_logs({"--contexts": contexts})
    decider: Any = load(policy)
    if not isinstance(decider, StreamedPolicy | Agent):
        raise StorageError(f"{policy}: holds a {type(decider).__name__}, expected a policy or an agent")
    schema = decider.schema
    filters = {
        name: ids
        for name, text in (("candidates", candidates), ("exclude", exclude))
        if (ids := _ids(text, schema.catalogue))
    }
    if contexts is not None:
        rows = _decisions(decider, _encoded(contexts, schema.encoder, getattr(decider, "dim", None)), k, filters)
        names = ["action"] if k == 1 else [f"action_{place}" for place in range(1, k + 1)]
        _write(names, rows, out, as_json=as_json)
        return
    x = _json(str(context)) if context is not None else _pairs(values or [], schema.encoder)
    found = _best(decider, x, k, filters).tolist()
    chances = [_chance(decider, x, action, filters) for action in found]
    if as_json:
        shown = [{"action": a} | ({} if p is None else {"probability": p}) for a, p in zip(found, chances, strict=True)]
        typer.echo(json.dumps(shown))
        return
    table = [
        (str(place), str(action), "" if chance is None else f"{chance:.4g}")
        for place, (action, chance) in enumerate(zip(found, chances, strict=True), 1)
    ]
    options.say(Table("", ("", "action", "probability" if chances[0] is not None else ""), table).text().lstrip("\n"))


def _best(decider: Any, x: Any, k: int, filters: Mapping[str, Any]) -> AnyArray:
    """The ids of the k best actions, (k,) or (n, k)."""
    found: AnyArray = np.asarray(decider.decide(x, k=k, **filters))
    return found


def _chance(decider: Any, x: Any, action: ActionId, filters: Mapping[str, Any]) -> float | None:
    """How likely a policy is to play an action; an agent's draw has a probability that would have to be estimated."""
    return float(decider.propensity(x, action, **filters)) if isinstance(decider, StreamedPolicy) else None


def _ids(text: str | None, catalogue: Any) -> list[ActionId]:
    """Ids with commas between; integers where the catalogue's are, and where there are rows alone."""
    names = options.listed(text) or []
    if catalogue is not None and isinstance(next(iter(catalogue), ""), str):
        return list(names)
    try:
        return [int(name) for name in names]
    except ValueError:
        raise InvalidInput(
            "--candidates, --exclude", repr(text), "integers, as the actions of this policy are"
        ) from None


def _texts(encoder: Any) -> set[str]:
    """The columns that hold texts, also where they look like numbers."""
    return {part.column for part in getattr(encoder, "parts", ()) if isinstance(part, TextPart)}


def _pairs(words: list[str], encoder: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        name, mark, value = word.partition("=")
        if not mark or not name:
            raise InvalidInput("COLUMN=VALUE", repr(word), "a column and its value, such as age=31")
        if name in found:
            raise InvalidInput("COLUMN=VALUE", f"{name} twice", "each column once")
        found[name] = None if not value else value if name in _texts(encoder) else _value(value)
    if encoder is not None:
        unknown = [name for name in found if name not in encoder.columns]
        if unknown:
            raise InvalidInput("COLUMN=VALUE", repr(unknown[0]), "one of the columns " + ", ".join(encoder.columns))
    return found


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _json(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        raise InvalidInput("--context", repr(text), 'JSON, such as {"age": 31} or [0.5, 1]') from None
    if not isinstance(found, dict | list):
        raise InvalidInput("--context", repr(text), 'an object or a list, such as {"age": 31} or [0.5, 1]')
    return found


def _encoded(path: Path, encoder: Any, dim: int | None) -> Iterator[Any]:
    """The contexts in a file, some rows at a time."""
    source: TableSource = tables_in(path)
    if encoder is not None:
        source = source.as_texts(_texts(encoder))
        missing = [name for name in encoder.columns if name not in source.kinds()]
        if missing:
            raise InvalidInput(
                "--contexts", f"no column {missing[0]!r} in {path}", "the columns " + ", ".join(encoder.columns)
            )
        for table in source.tables(list(encoder.columns), CHUNK):
            yield encoder.apply(table)
        return
    names = [name for name, kind in source.kinds().items() if kind.name in ("number", "vector")]
    for table in source.tables(names, CHUNK):
        columns = [table[name].values.reshape(table.rows, -1) for name in names]
        found = np.concatenate(columns, axis=1) if columns else np.empty((table.rows, 0))
        if found.shape[1] != dim:
            expected = f"{dim} numbers a row, the length of the policy's contexts, and no other columns of numbers"
            raise InvalidInput("--contexts", f"{found.shape[1]} in {path}", expected)
        yield found


def _decisions(decider: Any, parts: Iterator[Any], k: int, filters: Mapping[str, Any]) -> Iterator[list[Any]]:
    for part in parts:
        yield from _best(decider, part, k, filters).tolist()


def _write(names: list[str], rows: Iterator[list[Any]], out: Path | None, *, as_json: bool) -> None:
    """The answers, a line a context, in the order of the file."""
    text = io.StringIO(newline="")
    if as_json:
        text.writelines(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    else:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    if out is None:
        sys.stdout.write(text.getvalue())
        return
    write_text_atomically(out, text.getvalue())
    options.say(f"decisions: {out}")


__all__ = ["decide"]
