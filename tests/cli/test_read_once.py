"""Every command reads its files once: counted where the formats read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from manyarms.cli import app as cli
from manyarms.logs import LoggedData, to_csv, to_parquet
from manyarms.logs.formats import csv as csv_format
from manyarms.logs.formats import dsjson as dsjson_format
from manyarms.logs.formats.parquet import ParquetTables
from manyarms.policies import GaussianPolicy, SoftmaxPolicy

ACTIONS, DIM = 4, 3
QUICK = ("--epochs", 1, "--device", "cpu")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was read from its beginning; of Parquet, its footer aside."""
    counts: Counter[str] = Counter()
    open_text, tables = csv_format.open_text, ParquetTables.tables

    @contextmanager
    def counted_text(path: Path) -> Iterator[Any]:
        counts[path.name] += 1
        with open_text(path) as stream:
            yield stream

    def counted_tables(self: ParquetTables, *arguments: Any) -> Any:
        counts[self.path.name] += 1
        return tables(self, *arguments)

    monkeypatch.setattr(csv_format, "open_text", counted_text)
    monkeypatch.setattr(dsjson_format, "open_text", counted_text)
    monkeypatch.setattr(ParquetTables, "tables", counted_tables)
    return counts


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Two parts of a log in both formats, with named actions and a text among the contexts, and the policies around it."""
    rng = np.random.default_rng(0)
    start, truth = rng.standard_normal((ACTIONS, DIM)), 2 * rng.standard_normal((ACTIONS, DIM))
    X = np.eye(DIM)[rng.integers(DIM, size=800)]
    logging = SoftmaxPolicy(start)
    actions = logging.sample(X, rng)
    rewards = (rng.random(len(X)) < 1 / (1 + np.exp(-np.einsum("nd,nd->n", X, truth[actions])))).astype(float)
    log = LoggedData(
        X, actions, rewards, ACTIONS, propensities=logging.probabilities_of(X, actions),
        event_ids=np.array([f"e{i}" for i in range(len(X))]),
    )  # fmt: skip
    found = {"logging": tmp_path / "logging", "learned": tmp_path / "learned"}
    logging.save(found["logging"])
    GaussianPolicy(start + 0.5 * truth).save(found["learned"])
    first, rest = log.split(0.2, seed=1)
    for name, part in (("first", first), ("rest", rest)):
        found[f"{name}.csv"], found[f"{name}.parquet"] = tmp_path / f"{name}.csv", tmp_path / f"{name}.parquet"
        to_csv(part, found[f"{name}.csv"])
        to_parquet(part, found[f"{name}.parquet"])
    lines = [f"{'abc'[int(x.argmax())]},item {a},{r:g},{float(p)!r}" for x, a, r, p in _rounds(log)]
    found["named.csv"] = tmp_path / "named.csv"
    found["named.csv"].write_text("\n".join(["place,item,click,propensity", *lines]) + "\n")
    found["foreign.parquet"] = tmp_path / "foreign.parquet"
    _foreign(log, found["foreign.parquet"])
    return found


def _rounds(log: LoggedData) -> Any:
    assert log.propensities is not None
    return zip(log.contexts, log.actions, log.rewards, log.propensities, strict=True)


def _foreign(log: LoggedData, path: Path) -> None:
    """A Parquet file as others write it: ids and categories must be found before the first round."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "place": ["abc"[int(x.argmax())] for x in log.contexts], "item": [f"item {a}" for a in log.actions],
        "click": log.rewards, "propensity": log.propensities,
    }  # fmt: skip
    parquet.write_table(pa.table(columns), path)


def run(*arguments: Any) -> None:
    result = CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "100"})
    assert result.exit_code == 0, (result.output, result.exception)


@pytest.mark.parametrize("log", ["rest.csv", "rest.parquet", "named.csv", "foreign.parquet"])
@pytest.mark.parametrize("command", ["inspect", "evaluate", "learn"])
def test_commands_on_one_log(
    command: str, log: str, files: dict[str, Path], reads: Counter[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    if command == "inspect":
        run("inspect", files[log], "--out", out / "page.html")
    elif command == "evaluate":
        run("evaluate", "uniform", files[log], "--out", out)
    else:
        run("learn", files[log], "--out", out, *QUICK)
    assert reads == {log: 1}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_certify_with_a_prior_and_its_log(
    kind: str, files: dict[str, Path], reads: Counter[str], tmp_path: Path
) -> None:
    first, rest = files[f"first.{kind}"], files[f"rest.{kind}"]
    run("certify", files["logging"], rest, "--out", tmp_path / "fixed")
    assert reads == {rest.name: 1}
    reads.clear()
    run(
        "certify", files["learned"], rest, "--prior", files["logging"], "--prior-log", first, "--logging",
        files["logging"], "--out", tmp_path / "learned-out",
    )  # fmt: skip
    assert reads == {rest.name: 1, first.name: 1}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_learn_by_a_bound_with_embeddings_or_a_prior(
    kind: str, files: dict[str, Path], reads: Counter[str], tmp_path: Path
) -> None:
    first, rest = files[f"first.{kind}"], files[f"rest.{kind}"]
    run(
        "learn", rest, "--pessimism", "ls", "--prior", files["logging"], "--prior-log", first, "--out", tmp_path / "bound",
        *QUICK,
    )  # fmt: skip
    assert reads == {rest.name: 1, first.name: 1}
    reads.clear()
    np.save(tmp_path / "items.npy", np.ones((ACTIONS + 2, DIM)) if kind == "csv" else np.ones((ACTIONS, DIM)))
    run("learn", rest, "--actions", tmp_path / "items.npy", "--out", tmp_path / "embedded", *QUICK)
    assert reads == {rest.name: 1}


def test_dsjson(reads: Counter[str], tmp_path: Path) -> None:
    line = (
        '{"_label_cost": %d, "_label_probability": 0.5, "_labelIndex": %d, "a": [%d, %d], "p": [0.5, 0.5], '
        '"c": {"age": %d, "_multi": [{"_tag": "x"}, {"_tag": "y"}]}}'
    )
    rows = [line % (-(i % 3 == 0), i % 2, i % 2 + 1, 2 - i % 2, 20 + i) for i in range(40)]
    (tmp_path / "log.dsjson").write_text("\n".join(rows) + "\n")
    run("evaluate", "uniform", tmp_path / "log.dsjson", "--out", tmp_path / "out")
    assert reads == {"log.dsjson": 1}
    run("inspect", tmp_path / "log.dsjson", "--out", tmp_path / "page.html")
    assert reads == {"log.dsjson": 2}
