"""Hostile folders, logs, bundles, files of keys and settings: `make fuzz` ends with them, or in tests/:

    python -m hard_use.loads --calls 5000 --seed 0

Agents of every kind, policies, encoders, catalogues of ids and pre-trained priors are saved; each is then mutated (mutations.py),
with checksums that fit, and loaded. Logs are mutated as text and as bytes, opened, read and inspected; so are bundles of the
edge, with and without a signature that fits, and the files that a service is started with (served.py). Either a ManyArmsError is
raised, within the limits of time and memory, or what was loaded is sound: finite, positive definite, and able to go on.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import manyarms as ma
from hard_use import mutations, served, sound
from hard_use.fuzz import tell
from hard_use.limits import limit_memory
from hard_use.material import K, Material
from hard_use.one_call import Notes
from hard_use.targets import call_correctly, context_of, is_agent_maker, targets, variants

ROOM = 1 << 30  # bytes that a load may take: no good folder here has a megabyte
MANIFESTS = (mutations.in_the_arrays, mutations.in_the_arrays, mutations.in_the_spec, mutations.in_the_manifest)
DSJSON = {
    "_label_cost": -1.0, "_label_probability": 0.5, "_label_Action": 1, "_labelIndex": 0, "Timestamp": "2020-01-01T00:00:00Z",
    "EventId": "e", "a": [1, 2], "p": [0.5, 0.5], "c": {"u": {"age": 1.0}, "_multi": [{"i": {"id": "x"}}, {"i": {"id": "y"}}]},
}  # fmt: skip


def agents(material: Material) -> dict[str, Callable[[], Any]]:
    """Everything that can be saved as an agent."""
    found = targets(material)
    out: dict[str, Callable[[], Any]] = {}
    for target in found.calls:
        if is_agent_maker(target.function) and target.name != "load":
            plain = {name: a.value for name, a in target.arguments.items()}
            out[target.name] = lambda t=target: call_correctly(t)
            for label, changes in variants(material, target).items():
                out[f"{target.name} {label}"] = lambda t=target, p=plain, c=changes: t.function(**{**p, **c})
    return out


def lived(agent: Any) -> Any:
    """An agent that has learned something, and has lost an action."""
    x = context_of(agent)
    for action in (1, 2, 1):
        agent.observe(x, action, 1.0)
    agent.retire([3])
    return agent


def policies(material: Material) -> dict[str, Callable[[], Any]]:
    """Every policy that can be saved."""
    return {
        target.name: lambda t=target: call_correctly(t)
        for target in targets(material).calls
        if isinstance(target.function, type) and issubclass(target.function, ma.policies.StreamedPolicy)
    }


def save_all(material: Material, folder: Path) -> dict[str, Path]:
    """A good folder of every kind."""
    made: dict[str, Callable[[], Any]] = {n: lambda m=m: lived(m()) for n, m in agents(material).items()}
    made |= policies(material)
    made["Actions"] = lambda: ma.logs.Actions(["a", "b", "c"])
    made["TableEncoder"] = lambda: ma.logs.Encoding().fit(
        {"x_0": material.X[:, 0], "x_1": np.where(material.ids > 5, "a", "b")}, ["x_0", "x_1"]
    )
    made["Catalogue"] = lambda: ma.Catalogue(material.items)
    made["Schema"] = lambda: ma.logs.Schema(made["TableEncoder"](), made["Actions"]())
    made["TransformerEncoder"] = lambda: _transformer(material)
    made["LinTS with ids"] = lambda: ma.LinTS(material.action_prior, seed=0, catalogue=[f"i{a}" for a in range(K)])
    made["UniformPolicy with ids"] = lambda: _with_ids(ma.policies.UniformPolicy(K))
    made["Pretrained"] = lambda: ma.pretrain(material.X, depth=2, hidden=4, epochs=1, batch=16, seed=0)
    out: dict[str, Path] = {}
    for name, maker in made.items():
        place = folder / f"good-{len(out)}"
        try:
            maker().save(place)
            ma.load(place)
        except ma.ManyArmsError:  # policies of functions are not saved; without PyTorch nothing is pre-trained
            continue
        out[name] = place
    return out


def _transformer(material: Material) -> Any:
    try:
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise ma.errors.MissingExtra("sklearn", "sklearn", "a transformer") from error
    return ma.logs.TransformerEncoder(StandardScaler().fit(material.X), [f"x_{i}" for i in range(material.X.shape[1])])


def _with_ids(policy: Any) -> Any:
    policy.schema = ma.logs.Schema(catalogue=ma.logs.Actions(range(100, 100 + policy.action_count)))
    return policy


def write_logs(material: Material, folder: Path) -> dict[str, Path]:
    """A good log of every format."""
    out = {ending: Path(material.file(ending)) for ending in ("csv", "parquet")}
    out["csv.gz"], out["dsjson"] = folder / "log.csv.gz", folder / "log.dsjson"
    out["csv.gz"].write_bytes(gzip.compress(out["csv"].read_bytes(), mtime=0))
    out["dsjson"].write_text("\n".join(json.dumps({**DSJSON, "EventId": f"e{i}"}) for i in range(8)), encoding="utf-8")
    return out


def wrong_with_loaded(thing: Any) -> str | None:
    """Sound, and finite in every action; what belongs to a service does what it is for."""
    if type(thing).__module__.startswith(("manyarms.edge", "manyarms.service")):
        return served.wrong_with(thing)
    if isinstance(thing, ma.Agent):
        for action in thing.catalogue or range(thing.actions):
            try:
                mean, covariance = thing.posterior(action)
            except ma.errors.UnknownAction:  # retired
                continue
            if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
                return f"the posterior of action {action} is not finite"
            values = np.linalg.eigvalsh(covariance)
            if values.min() < -1e-9 * values.max():
                return f"the covariance of action {action} has the eigenvalue {values.min():g}"
        with tempfile.TemporaryDirectory() as folder:
            thing.save(folder)
        return sound.wrong_after_a_row(thing) if thing.actions else None
    return sound.wrong_with_result(thing)


class Loader(Notes):
    """Loads, and what became of them."""

    def __init__(self, folder: Path, seconds: float) -> None:
        super().__init__(folder, seconds)
        self.material = material = Material(folder)
        self.saved, self.logs = save_all(material, folder), write_logs(material, folder)
        self.hanging: list[str] = []

    def run(self, calls: int, seed: int) -> None:
        """So many loads; every fifth is of a log, every fifth of what belongs to a service."""
        for number, stream in enumerate(np.random.default_rng(seed).integers(2**62, size=calls)):
            self.one(int(stream), ("folder", "folder", "folder", "service", "log")[number % 5])

    def one(self, stream: int, what: str) -> None:
        """The load number `stream`."""
        rng = np.random.default_rng(stream)
        self.counts["loads"] += 1
        again = f"python -m hard_use.loads --again {what} {stream}"
        if what == "folder":
            self.load_folder(rng, again)
        elif what == "service":
            self.judge(*served.mutated(rng, self.material, self.folder), again)
        else:
            self.load_log(rng, again)

    def load_folder(self, rng: np.random.Generator, again: str) -> None:
        name = list(self.saved)[int(rng.integers(len(self.saved)))]
        there = self.folder / "hostile" / "it"
        shutil.rmtree(there.parent, ignore_errors=True)
        if rng.random() < 0.15:
            shutil.copytree(self.saved[name], there)
            did = mutations.of_the_files(rng, there)
        else:
            manifest, arrays = mutations.read_folder(self.saved[name])
            did = MANIFESTS[int(rng.integers(len(MANIFESTS)))](rng, manifest, arrays)
            mutations.write_folder(there, manifest, arrays)
        self.judge(lambda: ma.load(there), f"load {name}", did, again)

    def load_log(self, rng: np.random.Generator, again: str) -> None:
        ending = list(self.logs)[int(rng.integers(len(self.logs)))]
        content = self.logs[ending].read_bytes()
        if ending == "csv.gz" and rng.random() < 0.7:
            changed, did = mutations.of_text(rng, gzip.decompress(content))
            changed = gzip.compress(changed, mtime=0)
        else:
            changed, did = (mutations.of_text if ending in ("csv", "dsjson") else mutations.of_bytes)(rng, content)
        path = self.folder / f"hostile.{ending}"
        path.write_bytes(changed)
        read = (ma.logs.read_log, ma.inspect, lambda p: ma.logs.collect(ma.open_log(p)))[int(rng.integers(3))]
        self.judge(lambda: read(path), f"log {ending}", did, again)

    def judge(self, call: Callable[[], Any], name: str, did: str, again: str) -> None:
        """What is wrong with a load, and with what it gave."""
        thing, error = self.attempt(call)
        place = f"{name}({did})"
        if error is not None:
            fault = self.fault_of(error, place)
            if fault is None and not isinstance(error, ma.ManyArmsError):
                fault = "exception", f"load {type(error).__name__}", f"{type(error).__name__}: {error}"
            if fault:
                self.note(*fault[:2], place, fault[2], again)
            else:
                self.counts["refused"] += 1
            return
        self.counts["accepted"] += 1
        said, failed = self.attempt(lambda: wrong_with_loaded(thing))
        if failed is not None:
            self.note("poisoned", place, place, f"loaded, then {type(failed).__name__}: {failed}", again)
        elif said:
            self.note("nan", place, place, f"loaded, then {said}", again)


def main() -> int:
    """Load, and print each site once."""
    parser = argparse.ArgumentParser(description="Hostile folders and logs.")
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of processor time; what takes longer is a violation"
    )
    parser.add_argument("--again", nargs=2, metavar=("WHAT", "STREAM"), help="one load, as a violation printed it")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            loader = Loader(Path(folder), options.seconds)
            limit_memory(ROOM)
            if options.again:
                loader.tell = True
                loader.one(int(options.again[1]), options.again[0])
            else:
                loader.run(options.calls, options.seed)
        finally:
            os.chdir(before)
    return int(tell(loader.report(), options.seed) > 0)


if __name__ == "__main__":
    sys.exit(main())
