"""Hostile folders and files: what somebody else could send. A mutation knows the format, and puts the checksums right afterwards.

The format is written down here a second time on purpose: a reader that trusts its own writer would not be tested by it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

JSON_VALUES: dict[str, Any] = {
    "none": None, "true": True, "minus_one": -1, "zero": 0, "one": 1, "two": 2, "two_to_31": 2**31, "two_to_63": 2**63,
    "ten_to_12": 10**12, "ten_to_30": 10**30, "half": 0.5, "huge": 1e308, "nan": float("nan"), "inf": float("inf"),
    "text": "bogus",
    "test": "test", "empty": "", "up": "../../x", "markup": "[red]x[/]", "nul": "a\0b",
    "list": [], "dict": {}, "nested": [[[[1]]]],
    "long_list": [1.0] * 1000, "long": "x" * 10_000,
}  # fmt: skip


# ---- a saved folder as it lies on disk


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The manifest and the arrays of a good save."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    with np.load(folder / manifest["arrays"]["file"]) as archive:
        return manifest, dict(archive)


def npz_of(arrays: dict[str, np.ndarray], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive as a save writes it, but of anything: objects too."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=True)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), compress_type=compression)
    return out.getvalue()


def write_folder(folder: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray] | bytes) -> None:
    """A folder whose checksums, names, shapes and types all fit, whatever it holds."""
    content = npz_of(arrays) if isinstance(arrays, dict) else arrays
    digest = hashlib.sha256(content).hexdigest()
    told = manifest.get("arrays")
    file = f"arrays-{digest[:16]}.npz"
    if isinstance(told, dict):
        told["sha256"], told["file"] = digest, file
        if isinstance(arrays, dict) and isinstance(told.get("names"), dict):
            told["names"] = {n: {"shape": list(a.shape), "dtype": a.dtype.str} for n, a in arrays.items()}
    folder.mkdir(parents=True)
    (folder / file).write_bytes(content)
    write_manifest(folder, manifest)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """With a checksum that fits."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    manifest["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")


# ---- mutations of the manifest and of the arrays; each returns what it did


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a tree of dictionaries and lists: (container, key)."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        found.append((value, key))
        if isinstance(item, dict | list):
            found += _places(item)
    return found


def in_the_spec(rng: np.random.Generator, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    """Another value in some place of the spec, or a key that is gone."""
    places = _places(manifest["spec"])
    if not places:
        return "an empty spec"
    container, key = places[int(rng.integers(len(places)))]
    labels = [*JSON_VALUES, "gone", "other"]
    label = labels[int(rng.integers(len(labels)))]
    if label == "gone":
        container.pop(key)
    elif label == "other":
        there, name = places[int(rng.integers(len(places)))]
        container[key] = json.loads(json.dumps(there[name])) if name in there or isinstance(there, list) else None
    else:
        container[key] = JSON_VALUES[label]
    return f"spec {key}={label}"


def in_the_manifest(rng: np.random.Generator, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    """Another value in a field that says what the folder is."""
    key = ["format", "version", "kind", "library", "spec", "arrays"][int(rng.integers(6))]
    label = list(JSON_VALUES)[int(rng.integers(len(JSON_VALUES)))]
    manifest[key] = JSON_VALUES[label]
    return f"manifest {key}={label}"


def _entry(value: Any) -> Callable[[np.random.Generator, np.ndarray], np.ndarray]:
    def put(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
        out = array.copy()
        if out.size:
            with np.errstate(all="ignore"):
                out.reshape(-1)[int(rng.integers(out.size))] = np.asarray(value).astype(out.dtype)
        return out

    return put


ARRAYS: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "nan": _entry(np.nan), "inf": _entry(np.inf), "minus_one": _entry(-1), "huge": _entry(1e300), "large": _entry(1e9),
    "zero": _entry(0), "two_to_62": _entry(2**62), "zeros": lambda r, a: np.zeros_like(a),
    "negated": lambda r, a: ~a if a.dtype == bool else a if a.dtype.kind in "US" else -a,
    "transposed": lambda r, a: np.ascontiguousarray(a.T), "shorter": lambda r, a: a[:-1] if a.ndim else a,
    "longer": lambda r, a: np.concatenate([a, a]) if a.ndim else a, "narrower": lambda r, a: a[..., :-1] if a.ndim else a,
    "empty": lambda r, a: a[:0] if a.ndim else np.empty(0, a.dtype),
    "flat": lambda r, a: a.reshape(-1), "deeper": lambda r, a: a[None],
    "scalar": lambda r, a: a.reshape(-1)[0] if a.size else np.zeros(()), "float32": lambda r, a: _cast(a, np.float32),
    "int8": lambda r, a: _cast(a, np.int8), "uint64": lambda r, a: _cast(a, np.uint64),
    "float64": lambda r, a: _cast(a, np.float64),
    "complex": lambda r, a: _cast(a, np.complex128), "bool": lambda r, a: _cast(a, np.bool_), "text": lambda r, a: a.astype(str),
    "bytes": lambda r, a: a.astype(str).astype(np.bytes_), "dates": lambda r, a: np.zeros(a.shape, "M8[s]"),
    "record": lambda r, a: np.zeros(a.shape, [("f", float)]), "objects": lambda r, a: a.astype(object),
    "shuffled": lambda r, a: r.permutation(a.reshape(-1)).reshape(a.shape),
    "big_endian": lambda r, a: a.astype(a.dtype.newbyteorder(">")),
}  # fmt: skip


def _cast(array: np.ndarray, kind: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return array.astype(kind) if array.dtype.kind not in "USMO" else np.zeros(array.shape, kind)


def in_the_arrays(rng: np.random.Generator, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    """An array of other numbers, another shape or type, under another name, or none."""
    if not arrays:
        return "no arrays"
    names = sorted(arrays)
    name = names[int(rng.integers(len(names)))]
    labels = [*ARRAYS, "gone", "renamed", "swapped", "more"]
    label = labels[int(rng.integers(len(labels)))]
    other = names[int(rng.integers(len(names)))]
    if label == "gone":
        del arrays[name]
    elif label == "renamed":
        arrays["bogus"] = arrays.pop(name)
    elif label == "swapped":
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif label == "more":
        arrays["bogus"] = np.ones(3)
    else:
        arrays[name] = np.asarray(ARRAYS[label](rng, arrays[name]))
    return f"arrays {name}={label}"


# ---- mutations of the files


def _bomb(folder: Path, file: Path, content: bytes) -> None:
    """A small file that says, and inflates to, half a gigabyte."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w") as member,
    ):
        member.write(
            b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (67108864,), }".ljust(127) + b"\n"
        )
        for _ in range(64):
            member.write(bytes(1 << 23))
    _replace(folder, file, out.getvalue())


def _header(folder: Path, file: Path, content: bytes) -> None:
    """A header that promises a terabyte."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }".ljust(117) + b"\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00v\x00" + header + bytes(64))
    _replace(folder, file, out.getvalue())


def _twice(folder: Path, file: Path, content: bytes) -> None:
    """One name, two members."""
    out = io.BytesIO(content)
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "a") as archive:
        names = old.namelist()
        if names:
            archive.fp.seek(0, 2) if archive.fp else None
            info = zipfile.ZipInfo(names[0])
            archive.NameToInfo.pop(names[0], None)
            archive.writestr(info, old.read(names[0]))
    _replace(folder, file, out.getvalue())


def _replace(folder: Path, file: Path, content: bytes) -> None:
    """Other bytes in the arrays' file, which is named after them."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256(content).hexdigest()
    file.unlink()
    manifest["arrays"] |= {"sha256": digest, "file": f"arrays-{digest[:16]}.npz"}
    (folder / manifest["arrays"]["file"]).write_bytes(content)
    write_manifest(folder, manifest)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path) -> None:
    """To a copy outside of the folder."""
    outside = path.parent.parent / f"outside-{path.name}"
    path.replace(outside)
    path.symlink_to(outside)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _sparse(path: Path) -> None:
    """A file of a terabyte, all of it a hole."""
    with path.open("r+b") as stream:
        stream.truncate(1 << 40)


FILES: dict[str, Callable[[Path], None]] = {
    "fifo": _fifo, "link": _link, "folder": _folder, "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "sparse": _sparse, "device": lambda path: (path.unlink(), path.symlink_to("/dev/zero"))[0],
    "noise": lambda path: path.write_bytes(np.random.default_rng(0).bytes(2000)) and None,
    "deep": lambda path: path.write_text("[" * 100_000, encoding="utf-8") and None,
    "digits": lambda path: path.write_text('{"format": ' + "9" * 10_000 + "}", encoding="utf-8") and None,
}  # fmt: skip
ARCHIVES: dict[str, Callable[[Path, Path, bytes], None]] = {"bomb": _bomb, "header": _header, "twice": _twice}


def of_the_files(rng: np.random.Generator, folder: Path) -> str:
    """Something else than a regular file, or other bytes in it."""
    (file,) = folder.glob("arrays-*.npz")
    content = file.read_bytes()
    labels = [*(f"{which} {label}" for which in ("manifest", "arrays") for label in FILES), *ARCHIVES, "flipped", "cut"]
    label = labels[int(rng.integers(len(labels)))]
    if label in ARCHIVES:
        ARCHIVES[label](folder, file, content)
    elif label == "flipped":
        changed = bytearray(content)
        for _ in range(3):
            changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
        _replace(folder, file, bytes(changed))
    elif label == "cut":
        _replace(folder, file, content[: int(rng.integers(len(content)))])
    else:
        which, what = label.split()
        FILES[what](file if which == "arrays" else folder / "manifest.json")
    return f"files {label}"


# ---- a log's file


CELLS = (
    "", "nan", "inf", "-inf", "-1", "0", "1e308", "1e-300", "1e400", "2", "99999999999999999999", "abc", "=1+1", '"',
    "\x00", "\ufeff",
    "[red]", "<script>", "1,2", "9" * 5000, "true", "2020-01-01", "\udc80",
)  # fmt: skip


def of_text(rng: np.random.Generator, content: bytes) -> tuple[bytes, str]:
    """Cells of a table in text replaced, bytes flipped, lines doubled, cut or lost."""
    label = ("cell", "flipped", "cut", "lost", "twice", "header", "noise")[int(rng.integers(7))]
    lines = content.split(b"\n")
    at = int(rng.integers(len(lines)))
    if label in ("cell", "header"):
        at = 0 if label == "header" else at
        cells = lines[at].split(b",")
        cell = CELLS[int(rng.integers(len(CELLS)))]
        cells[int(rng.integers(len(cells)))] = cell.encode(errors="surrogatepass")
        lines[at] = b",".join(cells)
        return b"\n".join(lines), f"{label} {cell[:12]!r}"
    if label == "lost":
        del lines[at]
    if label == "twice":
        lines.insert(at, lines[int(rng.integers(len(lines)))])
    if label in ("lost", "twice"):
        return b"\n".join(lines), label
    return of_bytes(rng, content, label)


def of_bytes(rng: np.random.Generator, content: bytes, label: str | None = None) -> tuple[bytes, str]:
    """Bytes flipped, cut off or made up."""
    label = label or ("flipped", "cut", "noise")[int(rng.integers(3))]
    if label == "cut":
        return content[: int(rng.integers(len(content)))], label
    if label == "noise":
        return rng.bytes(500), label
    changed = bytearray(content)
    for _ in range(1 + int(rng.integers(4))):
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed), label
