"""The Open Bandit samples: rounds of a fashion shop's recommendations, logged by two policies in three campaigns.

Saito, Aihara, Matsutani and Narita, "Open Bandit Dataset and Pipeline" (2021). Files are looked for in `folder` or in
the folder obd of MANYARMS_DATA, as <policy>/<campaign>/<campaign>.csv, plain or gzipped, with item_context.csv beside.
A round shows one item at one of three positions; its propensity is the probability of the item *given the position*.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterable, Mapping
from csv import writer
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from manyarms._base import validate
from manyarms._base.files import as_path, write_bytes_atomically, write_text_atomically
from manyarms._base.typing import Array, Ints
from manyarms.errors import DataError, InvalidInput
from manyarms.logs.actions import Actions
from manyarms.logs.columns import Columns
from manyarms.logs.data import LoggedData
from manyarms.logs.encoding import Encoding, TableEncoder
from manyarms.logs.formats.csv import CsvTables
from manyarms.logs.table_log import TableLog
from manyarms.logs.tables import Table

VARIABLE = "MANYARMS_DATA"
FOLDER = "obd"
MADE_UP_NOTE = "MADE-UP.txt"
POSITIONS = 3

Campaign = Literal["all", "men", "women"]
BehaviourPolicy = Literal["random", "bts"]
ActionChoice = Literal["item", "item-position"]


@dataclass(frozen=True, eq=False)
class OpenBandit:
    """One sample.

    log                 contexts from the user features, actions, clicks as rewards, propensities as logged
    positions (n,)      where the item was shown, from 0
    items (n,)          the item's row in the campaign, whatever the log's actions are
    item_count          items in the campaign
    item_features       (item_count, m) the numbers and encoded hashes of item_context, as `item_encoder` makes them
    """

    log: LoggedData
    positions: Ints
    items: Ints
    item_count: int
    item_features: Array
    item_encoder: TableEncoder
    provenance: str


def read_open_bandit(
    policy: BehaviourPolicy = "random",
    campaign: Campaign = "all",
    *,
    folder: Path | str | None = None,
    action: ActionChoice = "item",
    affinity: bool = False,
    encoding: Encoding | None = None,
) -> OpenBandit:
    """Read a sample.

    action      "item": K items, the position is left to `positions`. "item-position": 3K actions `item@position`; the
                propensity is still the one given the position, so that a policy over these actions must put
                probability 1 on each position's items, not on all 3K together.
    affinity    add the user-item affinities (K numbers a round) to the contexts
    encoding    how user features become contexts; by default one entry a category and an intercept
    """
    choices = {"policy": (policy, BehaviourPolicy), "campaign": (campaign, Campaign), "action": (action, ActionChoice)}
    for name, (value, options) in choices.items():
        if value not in get_args(options):
            raise InvalidInput(name, validate.describe(value), "one of " + ", ".join(get_args(options)))
    path, item_path = find_open_bandit(policy, campaign, folder)
    features, item_encoder, item_ids = _read_items(item_path)
    source = CsvTables(path)
    kinds = source.kinds()
    context = [name for name in kinds if name.startswith("user_feature_")]
    context += [name for name in kinds if affinity and name.startswith("user-item_affinity_")]
    columns = Columns(
        context=context, action="item_id", reward="click", propensity="propensity_score", timestamp="timestamp",
        event_id=None, group=None, support=None, support_probabilities=None,
    )  # fmt: skip
    plan = encoding or Encoding(standardise=False, intercept=True)
    hashes = tuple(name for name in context if name.startswith("user_feature_"))  # some look like numbers
    plan = replace(plan, categorical=tuple(dict.fromkeys((*plan.categorical, *hashes))))
    log = TableLog(source, columns, catalogue=Actions(map(str, item_ids)), encoder=plan).collect()
    positions = _read_positions(source)
    items = log.actions
    made_up = (path.parent.parent.parent / MADE_UP_NOTE).is_file()
    provenance = (
        f"{'made-up data, not the ' if made_up else ''}Open Bandit sample, {policy} policy, campaign {campaign}"
    )
    if action == "item-position":
        names = [f"{item}@{position + 1}" for item in item_ids for position in range(POSITIONS)]
        log = log.with_notes(
            "an action is an item at a position; its propensity is the item's, given the position",
            actions=items * POSITIONS + positions, action_count=len(names), catalogue=Actions(names),
        )  # fmt: skip
    log = log.with_notes(provenance)
    return OpenBandit(log, positions, items, len(item_ids), features, item_encoder, provenance)


def find_open_bandit(policy: str, campaign: str, folder: Path | str | None = None) -> tuple[Path, Path]:
    """The files of a sample: the log, and the items."""
    base = Path(folder) if folder is not None else None
    if base is None:
        data = os.environ.get(VARIABLE)
        if not data:
            raise DataError(
                f"the Open Bandit samples are needed: set {VARIABLE} to the folder that holds the folder {FOLDER}, or "
                "give folder=; without them, manyarms.logs.write_made_up_open_bandit(folder) writes made-up files"
            )
        base = Path(data) / FOLDER
    found = []
    for name in (campaign, "item_context"):
        tried = [base / policy / campaign / f"{name}.csv{end}" for end in ("", ".gz")]
        path = next((path for path in tried if os.path.isfile(path)), None)
        if path is None:
            raise DataError(f"{tried[0]}: no such file, plain or gzipped")
        found.append(path)
    return found[0], found[1]


def _read_items(path: Path) -> tuple[Array, TableEncoder, list[int]]:
    source = CsvTables(path)
    names = list(source.kinds())
    features = [name for name in names if name.startswith("item_feature_")]
    if "item_id" not in names or not source.row_count:
        raise DataError(f"{path}: no column item_id, or no item")
    # the first feature is a number, the others are hashes, some of which look like numbers
    hashes = [name for name in features if source.kinds()[name].name != "number"]
    table: Table = next(source.as_texts(hashes).tables(["item_id", *features], source.row_count))
    ids = table["item_id"].values
    order = np.argsort(ids)
    if ids.dtype.kind != "i" or not np.array_equal(ids[order], np.arange(len(ids))):
        raise DataError(f"{path}: item_id must hold every number from 0 to {len(ids) - 1} once")
    encoder = Encoding(standardise=False, intercept=False).fit(table, features)
    return encoder.apply(table)[order], encoder, ids[order].tolist()


def _read_positions(source: CsvTables) -> Ints:
    """1, 2, 3 (left to right) as 0, 1, 2."""
    if "position" not in source.kinds():
        raise DataError(f"{source.path}: no column position")
    tables = list(source.tables(["position"], 65_536))
    values = np.concatenate([table["position"].values for table in tables])
    wrong = ~np.isin(values, np.arange(1, POSITIONS + 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        line = int(np.concatenate([table.row_numbers for table in tables])[row])
        raise InvalidInput("column 'position'", f"{values[row]} at line {line}", f"1 to {POSITIONS}")
    return values.astype(np.int64) - 1


def write_made_up_open_bandit(
    folder: Path | str, *, rows: int = 300, items: int = 8, click_rate: float = 0.1, seed: int = 0
) -> Path:
    """Write small made-up samples of both policies in the campaign `all`, and a note that says so; gives the folder.

    `random` plays uniformly; `bts` prefers items with a higher click rate, differently at each position, and both write
    the propensities that they play with. Hashes stand for user and item features.
    """
    rows, items = validate.count("rows", rows), validate.count("items", items, least=2)
    rng = np.random.default_rng(validate.seed(seed))
    quality = rng.normal(size=items)
    taste = rng.normal(scale=0.5, size=(2, items))
    target = as_path("folder", folder)
    for policy in get_args(BehaviourPolicy):
        preference = np.zeros((POSITIONS, items)) if policy == "random" else quality * np.array([[0.5], [1.0], [1.5]])
        shares = np.exp(preference) / np.exp(preference).sum(axis=1, keepdims=True)
        positions = rng.integers(POSITIONS, size=rows)
        users = rng.integers(2, size=(rows, 4))
        played = np.array([rng.choice(items, p=shares[position]) for position in positions])
        chance = click_rate * 2 / (1 + np.exp(-quality[played] - taste[users[:, 0], played]))
        clicks = (rng.random(rows) < chance).astype(int)
        seconds = [f"{i // 3600 % 24:02d}:{i // 60 % 60:02d}:{i % 60:02d}" for i in range(rows)]
        rounds: dict[str, Iterable[object]] = {
            "": range(rows), "timestamp": [f"2019-11-24 {second}.000000+00:00" for second in seconds], "item_id": played,
            "position": positions + 1, "click": clicks, "propensity_score": map(repr, shares[positions, played].tolist()),
        }  # fmt: skip
        rounds |= {f"user_feature_{j}": [_hash(j, user) for user in users[:, j]] for j in range(4)}
        rounds |= {f"user-item_affinity_{i}": [0.0] * rows for i in range(items)}
        _write(target / policy / "all" / "all.csv.gz", rounds)
        catalogue: dict[str, Iterable[object]] = {"": range(items), "item_id": range(items)}
        catalogue["item_feature_0"] = map(repr, quality.tolist())
        catalogue |= {f"item_feature_{j}": [_hash(j + 3, item % 3) for item in range(items)] for j in range(1, 4)}
        _write(target / policy / "all" / "item_context.csv.gz", catalogue)
    note = f"Made-up rounds (seed {seed}) in the format of the Open Bandit samples.\n"
    write_text_atomically(target / MADE_UP_NOTE, note)
    return target


def _hash(feature: int, value: int) -> str:
    return f"{feature:02x}{int(value) * 2654435761 % 2**32:08x}"


def _write(path: Path, columns: Mapping[str, Iterable[object]]) -> None:
    text = io.StringIO()
    writer(text, lineterminator="\n").writerows([columns, *zip(*columns.values(), strict=True)])
    # without a time stamp in it the file is the same, byte for byte, for the same arguments
    write_bytes_atomically(path, gzip.compress(text.getvalue().encode("ascii"), mtime=0))


__all__ = [
    "ActionChoice", "BehaviourPolicy", "Campaign", "OpenBandit", "find_open_bandit", "read_open_bandit",
    "write_made_up_open_bandit",
]  # fmt: skip
