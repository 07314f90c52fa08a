"""Hostile bundles of the edge, files of keys and files of settings: what a service, or who decides for it, reads."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hard_use import mutations

START = struct.Struct("<8sIIQ")  # as docs/edge.md has it: "MANYEDGE", format, bytes of the header, bytes of the arrays
SIGNATURE = 64
SETTINGS = """
[store]
address = "shop.db"

[rewards]
default = 0.0
wait = "30d"
range = [0, 1]

[server]
port = 8080
names = ["decide.example.org"]
threads = 2

[limits]
rate = 100.0

[logs]
level = "info"
requests = true

[retention]
keep = "90d"
"""
TOML = (
    "nan", "inf", "-1", "0", "1e400", "99999999999999999999", "9" * 5000, '""', '"x"', '"~x/y"', '"a\\u0000b"', "[]", "{}",
    "[[[1]]]", "[" * 10_000, "[0, nan]", "[1, 0]", "2020-01-01", "true", "'\udc80'", '"' + "x" * 10_000 + '"', "[1, 2]",
)  # fmt: skip

Mutated = tuple[Callable[[], Any], str, str]
"""What reads it, what it is, and what was done to it."""


def mutated(rng: np.random.Generator, material: Any, folder: Path) -> Mutated:
    """One of them, changed somewhere."""
    return (bundle, bundle, keys, settings)[int(rng.integers(4))](rng, material, folder)


# ---- bundles


def bundle(rng: np.random.Generator, material: Any, folder: Path) -> Mutated:
    """Bytes changed anywhere; or a header or arrays that say something else, with checksums, lengths and a signature that fit."""
    from manyarms.edge import EdgePolicy

    data, key = material.bundle, material.signing_key
    if rng.random() < 0.3:
        changed, did = mutations.of_bytes(rng, data)
        if rng.random() < 0.5 and len(changed) > SIGNATURE:
            changed, did = _signed(changed[:-SIGNATURE], key), f"{did}, signed"
        return lambda: EdgePolicy.read(changed, key.public), "bundle", did
    header, arrays = _read(data)
    did = (_in_the_header, _in_the_header, _in_the_arrays)[int(rng.integers(3))](rng, header, arrays)
    whole = _signed(_written(header, arrays, listed="listed" not in did), key)
    return lambda: EdgePolicy.read(whole, key.public, expired=True), "bundle", did


def _signed(content: bytes, key: Any) -> bytes:
    return content + bytes(key.sign(content))


def _read(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    _, _, told, _ = START.unpack_from(data)
    header = json.loads(data[START.size : START.size + told])
    at, arrays = START.size + told + -(START.size + told) % 64, {}
    for name, kind, shape in header["arrays"]:
        size = int(np.prod(shape))
        arrays[name] = np.frombuffer(data, kind, size, at).reshape(shape).copy()
        at += size * np.dtype(kind).itemsize
    return header, arrays


def _written(header: dict[str, Any], arrays: dict[str, np.ndarray], listed: bool) -> bytes:
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values() if array.dtype != object)
    if listed:
        header["arrays"] = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    if "sha256" in header:
        header["sha256"] = hashlib.sha256(content).hexdigest()
    told = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")
    return START.pack(b"MANYEDGE", 1, len(told), len(content)) + told + bytes(-(START.size + len(told)) % 64) + content


def _in_the_header(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    key = sorted(header)[int(rng.integers(len(header)))]
    labels = [*mutations.JSON_VALUES, "gone"]
    label = labels[int(rng.integers(len(labels)))]
    if label == "gone":
        del header[key]
    else:
        header[key] = mutations.JSON_VALUES[label]
    return f"header {key}={label}{', listed' if key == 'arrays' else ''}"


def _in_the_arrays(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    return mutations.in_the_arrays(rng, {}, arrays)


# ---- files of a service


def keys(rng: np.random.Generator, material: Any, folder: Path) -> Mutated:
    """A file of keys whose JSON says something else, or whose bytes are others."""
    from manyarms.service.keys import Keys

    content = Path(material.keys_file).read_bytes()
    if rng.random() < 0.3:
        changed, did = mutations.of_bytes(rng, content)
    else:
        manifest = {"spec": json.loads(content)}
        did = mutations.in_the_spec(rng, manifest, {})
        changed = json.dumps(manifest["spec"]).encode()
    path = folder / "hostile-keys.json"
    path.write_bytes(changed)
    path.chmod(0o600)
    return lambda: Keys.open(path), "keys", did


def settings(rng: np.random.Generator, material: Any, folder: Path) -> Mutated:
    """A file of settings with another value somewhere, or other bytes."""
    from manyarms.service import read_config

    lines = SETTINGS.strip().split("\n")
    if rng.random() < 0.3:
        changed, did = mutations.of_text(rng, SETTINGS.encode())
    else:
        at = [place for place, line in enumerate(lines) if "=" in line][
            int(rng.integers(sum("=" in line for line in lines)))
        ]
        name, value = lines[at].split(" = ")[0], TOML[int(rng.integers(len(TOML)))]
        lines[at] = f"{name} = {value}"
        changed, did = "\n".join(lines).encode(errors="surrogatepass"), f"{name}={value[:20]!r}"
    path = folder / "hostile.toml"
    path.write_bytes(changed)
    return lambda: read_config(path), "settings", did


# ---- what was read


def wrong_with(thing: Any) -> str | None:
    """A policy gives chances that add up to one, keys can be asked, settings are finite."""
    from manyarms.edge import EdgePolicy
    from manyarms.service.keys import Keys

    str(thing), repr(thing)
    if isinstance(thing, EdgePolicy):
        chances = np.array(list(thing.law(np.full(thing.header.dim, 0.5)).values()))
        if not (np.isfinite(chances).all() and (chances >= 0).all() and abs(chances.sum() - 1) < 1e-6):
            return f"the chances are {chances}"
        if not thing.expired:
            thing.decide(np.full(thing.header.dim, 0.5), "event")
        return None
    if isinstance(thing, Keys):
        thing.find("ma_" + "0" * 16 + "_" + "x" * 43)
        return (
            None if all(key.scopes is not None and key.state(0.0) for key in thing.all()) else "a key without a state"
        )
    numbers = [value for value in vars(thing).values() if isinstance(value, float)] + list(thing.reward_range or ())
    return None if np.isfinite(numbers).all() else f"settings with {numbers}"
