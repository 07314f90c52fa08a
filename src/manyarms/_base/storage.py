"""Saving and loading: a folder with a versioned JSON manifest and the arrays beside it.

    folder/manifest.json               format, version, kind, the caller's spec, and what the arrays must look like
    folder/arrays-<checksum>.npz       plain numeric arrays, uncompressed; nothing in it can run code when read

The manifest names the arrays file, and the arrays file is named after its content. So a save first puts the new
arrays beside the old ones and then replaces the manifest in one step: whoever reads, and whatever breaks, finds the
old save or the new one complete.

Any number of readers, and any number of writers: they take turns (`locks.py`), and the save that ends last is the one that
stays. A writer that is killed leaves no lock behind, and at most files that the next save clears up. Where the system has no
locks (Windows, some network file systems) a save deletes only what the manifest before it named, and two writers at the very
same time may still lose the arrays that both have in common: there, one writer at a time.

Loading trusts nothing. Names in a manifest are looked up in lists; links, pipes and devices are not opened; sizes are checked
before anything is read (`npz.py`); and a loader checks what the arrays say, since anybody can make checksums that fit.

`load` gives back the object itself, whatever it is: the manifest's kind names its loader, and only registered loaders are
called. A class that can be saved registers one:

    @LOADERS.register("actions")
    def _restore(spec: dict[str, JSON], arrays: dict[str, AnyArray]) -> Actions: ...
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np

from manyarms._base import files, npz
from manyarms._base.locks import only_writer
from manyarms._base.registry import Registry
from manyarms._base.typing import JSON, AnyArray
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput, ManyArmsError, StorageError

FORMAT = "manyarms"
VERSION = 4
UPGRADED = 3  # what `load(..., upgrade=True)` reads as well
MANIFEST = "manifest.json"

Loader = Callable[[dict[str, JSON], dict[str, AnyArray]], object]
LOADERS: Registry[Loader] = Registry("kind of saved object", group="manyarms.loaders")
"""What makes an object of a spec and arrays again, by the kind that its manifest states."""

# the modules that register the library's own loaders, imported when a folder of that kind is met
_MODULES = {
    "actions": "manyarms.logs.actions",
    "agent": "manyarms.agents.agent",
    "catalogue": "manyarms.items.catalogue",
    "table-encoder": "manyarms.logs.encoding",
    "policy": "manyarms.policies",
    "schema": "manyarms.logs.schema",
    "pretrained-diffusion": "manyarms.priors.pretraining",
    "transformer-encoder": "manyarms.logs.transformers",
}
Saved = TypeVar("Saved")

_ARRAYS_FILE = re.compile(r"arrays-[0-9a-f]{16}\.npz")
_OURS = re.compile(r"arrays-[0-9a-f]{16}\.npz|\.(manifest\.json|arrays\.npz)\.[0-9a-f]{16}\.tmp")
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_MOST_BITS = 14_000  # Python refuses to read decimal numbers of more than 4,300 digits
_MOST_OF_A_MANIFEST = 1 << 25  # bytes: the largest ones, of encoders with many categories, have a few millions
_OLD = 86_400.0  # seconds after which a file that no manifest names was left by a writer that is dead


def save(
    folder: Path | str,
    kind: str,
    spec: Mapping[str, JSON],
    arrays: Mapping[str, AnyArray],
) -> None:
    """Write `spec` and `arrays` to `folder`, in place of what was saved there before.

    spec holds only what JSON can give back unchanged: None, bool, int (the 128 bits of a generator's state, and far
    more), finite float, str, and lists and dictionaries (with string keys) of these. Arrays may hold NaN, but no
    Python objects. When this raises, the earlier save is still there (or, if only the last flush failed, the new one).
    """
    folder = files.as_path("folder", folder)
    spec = dict(spec)
    _check_spec("spec", spec)
    checked = {name: _check_array(name, array) for name, array in arrays.items()}
    with files.writing(folder):
        files.make_folder(folder)
        with only_writer(folder) as alone:
            replaced = _arrays_file_named_in(folder)
            temporary = files.write_temporary(folder, "arrays.npz", lambda stream: npz.write_npz(stream, checked))
            try:
                digest = _checksum(temporary)
                arrays_file = f"arrays-{digest[:16]}.npz"
                manifest = {
                    "format": FORMAT,
                    "version": VERSION,
                    "kind": kind,
                    "library": _library_version(),
                    "spec": spec,
                    "arrays": {
                        "file": arrays_file,
                        "sha256": digest,
                        "names": {name: npz.describe_array(array) for name, array in checked.items()},
                    },
                }
                manifest["sha256"] = _manifest_checksum(manifest)
                text = json.dumps(manifest, indent=1, allow_nan=False) + "\n"
                if len(text) > _MOST_OF_A_MANIFEST:
                    raise InvalidInput("spec", f"{len(text):,} bytes as JSON", f"at most {_MOST_OF_A_MANIFEST:,}")
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            files.rename(temporary, folder / arrays_file)
            files.write_text_atomically(folder / MANIFEST, text)
            _remove_leftovers(folder, arrays_file, replaced, alone=alone)


@overload
def load(folder: Path | str) -> Any: ...


@overload
def load(folder: Path | str, expected: type[Saved]) -> Saved: ...


def load(folder: Path | str, expected: type[Any] | None = None) -> Any:
    """Whatever was saved in a folder by its `save` method: an agent, a policy, an encoder, a prior, ...

    expected: the class that it must be of; anything else is refused. Folders of another format version are refused too.
    """
    return _loaded(folder, expected, upgrade=False)


def load_part(folder: Path | str, expected: type[Any] | None = None) -> Any:
    """The same for a part of a store, which is kept for years: of the format version before this one, too."""
    return _loaded(folder, expected, upgrade=True)


def _loaded(folder: Path | str, expected: type[Any] | None, *, upgrade: bool) -> Any:
    folder = files.as_path("folder", folder)
    kind = str(_manifest_of(folder, upgrade).get("kind"))
    try:
        loader = _loader(kind)
    except InvalidInput as error:
        raise StorageError(f"{folder}: nothing here can load what it holds: {error}") from error
    spec, arrays = read(folder, kind, upgrade=upgrade)
    try:
        found = loader(spec, arrays)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        if isinstance(error, StorageError):
            raise StorageError(f"{folder}: {error}") from error
        told = str(error) if isinstance(error, ManyArmsError) else repr(error)
        raise StorageError(f"{folder}: the saved {kind} is incomplete or inconsistent ({told})") from error
    except MemoryError as error:
        raise StorageError(f"{folder}: there is not enough memory for the saved {kind}") from error
    if expected is not None and not isinstance(found, expected):
        raise StorageError(f"{folder}: holds a {type(found).__name__}, expected {expected.__name__}")
    return found


def _loader(kind: str) -> Loader:
    if kind in _MODULES:
        importlib.import_module(_MODULES[kind])
    return LOADERS[kind]


def restored(kind: str, spec: dict[str, JSON], arrays: dict[str, AnyArray]) -> object:
    """A part of a saved object, of a kind that could be saved on its own."""
    return _loader(kind)(spec, arrays)


def read(folder: Path | str, kind: str, *, upgrade: bool = False) -> tuple[dict[str, JSON], dict[str, AnyArray]]:
    """The spec and the arrays of what was saved in `folder` as `kind`; refused unless complete and unchanged."""
    folder = files.as_path("folder", folder)
    manifest = _manifest_of(folder, upgrade)
    while True:
        _check_kind(folder / MANIFEST, manifest, kind)
        try:
            return manifest["spec"], _read_arrays(folder / manifest["arrays"]["file"], manifest["arrays"])
        except FileNotFoundError as error:
            # somebody may have saved anew since the manifest was read; only an unchanged manifest proves a loss
            earlier, manifest = manifest, _manifest_of(folder, upgrade)
            if manifest == earlier:
                name = manifest["arrays"]["file"]
                raise StorageError(f"{folder / name}: missing, although {MANIFEST} names it") from error


# ---- writing


def _arrays_file_named_in(folder: Path) -> str | None:
    """The arrays that belong to the save that is about to be replaced; None where there is none that can be read."""
    try:
        return str(_manifest_of(folder)["arrays"]["file"])
    except (StorageError, KeyError, TypeError):
        return None


def _remove_leftovers(folder: Path, keep: str, replaced: str | None, *, alone: bool) -> None:
    """Delete the replaced arrays, and what saves that broke off have left; the new save is complete without this.

    alone: other writers are kept out, so that whatever else lies here was left by one that is dead; otherwise what is old was.
    """
    with contextlib.suppress(OSError):
        for path in list(folder.iterdir()):
            if path.name == keep or not _OURS.fullmatch(path.name):
                continue
            if alone or path.name == replaced or time.time() - path.lstat().st_mtime > _OLD:
                path.unlink(missing_ok=True)


def _check_spec(name: str, value: object) -> None:
    """Refuse whatever JSON would drop, or give back as something else."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidInput(name, f"the key {describe(key)}", "strings as keys")
            _check_spec(f"{name}[{key!r}]", item)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _check_spec(f"{name}[{position}]", item)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(name, describe(value), "a finite number (NaN and infinity belong into the arrays)")
    elif isinstance(value, int):
        if value.bit_length() > _MOST_BITS:
            raise InvalidInput(name, f"an integer of {value.bit_length()} bits", f"at most {_MOST_BITS} bits")
    elif not (value is None or isinstance(value, str)):
        raise InvalidInput(name, f"{describe(value)} of type {type(value).__name__}", "what JSON can hold")


def _check_array(name: str, value: AnyArray) -> AnyArray:
    if not isinstance(name, str) or not _ARRAY_NAME.fullmatch(name):
        raise InvalidInput("arrays", f"the name {describe(name)}", "names of letters, digits and _ . - /")
    array: AnyArray = np.asarray(value)
    if array.dtype.kind not in npz.PLAIN_KINDS:
        raise InvalidInput(f"arrays[{name!r}]", f"type {array.dtype}", "numbers, booleans or strings of fixed length")
    return array


def _library_version() -> str:
    from importlib import metadata  # here, because it is slow to import and only a save needs it

    try:
        return metadata.version("manyarms")
    except metadata.PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"


# ---- reading


def upgraded(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest of the format version before this one as one of this version: agents and policies had no schema."""
    if manifest.get("version") != UPGRADED:
        return manifest
    spec = manifest.get("spec")
    if manifest.get("kind") in ("agent", "policy") and isinstance(spec, dict):
        spec = {**spec, "schema": {"encoder": None, "catalogue": False}}
    return {**manifest, "version": VERSION, "spec": spec}


def _manifest_of(folder: Path, upgrade: bool = False) -> dict[str, Any]:
    """The manifest, of our format and version, and undamaged: version first, since another one may have another layout."""
    path = folder / MANIFEST
    try:
        with files.open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            content = stream.read(size) if size <= _MOST_OF_A_MANIFEST else b""
    except (FileNotFoundError, NotADirectoryError):
        if os.path.isdir(folder):
            raise StorageError(f"{path}: missing, so nothing was saved in this folder") from None
        found = "is a file, not a folder" if os.path.exists(folder) else "no such folder"
        raise StorageError(f"{folder}: {found}") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {files.reason(error)}") from error
    if size > _MOST_OF_A_MANIFEST:
        raise StorageError(f"{path}: {size:,} bytes, more than {_MOST_OF_A_MANIFEST:,}, which no manifest has")
    try:
        manifest = json.loads(content, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:  # undecodable bytes and broken JSON are both ValueErrors
        raise StorageError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StorageError(f'{path}: not written by manyarms (no "format": "{FORMAT}")')
    version = manifest.get("version")
    if type(version) is not int or not (version == VERSION or (upgrade and version == UPGRADED)):
        raise StorageError(
            f"{path}: written in format version {describe(version)}, which this release does not read: it reads version "
            f"{VERSION}. Load it with the release that wrote it ({describe(manifest.get('library'))})"
        )
    if manifest.get("sha256") != _manifest_checksum(manifest):
        raise StorageError(f"{path}: damaged or edited: its checksum does not match")
    return upgraded(manifest)


def _check_kind(path: Path, manifest: dict[str, Any], kind: str) -> None:
    """Whether a manifest is what was asked for, with everything in it."""
    if manifest.get("kind") != kind:
        raise StorageError(f"{path}: holds {describe(manifest.get('kind'))}, expected {kind!r}")
    arrays = manifest.get("arrays")
    complete = (
        isinstance(manifest.get("spec"), dict)
        and isinstance(arrays, dict)
        and isinstance(arrays.get("names"), dict)
        and isinstance(arrays.get("sha256"), str)
        and isinstance(arrays.get("file"), str)
        and _ARRAYS_FILE.fullmatch(arrays["file"]) is not None  # a name in this folder, never a path out of it
    )
    if not complete:
        raise StorageError(f'{path}: incomplete: "spec" or "arrays" is missing or malformed')


def _finite(text: str) -> float:
    """A number of a manifest: what Python reads beyond JSON (NaN, Infinity), and what overflows, is none."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is not a finite number")
    return value


def _read_arrays(path: Path, expected: dict[str, Any]) -> dict[str, AnyArray]:
    """The arrays of an .npz file, held to the checksum, names, shapes and types that the manifest states."""
    try:
        with files.open_regular(
            path
        ) as stream:  # one open file for both passes: a save in between cannot mix two states
            size = os.fstat(stream.fileno()).st_size
            npz.require_room(size)
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            if digest != expected["sha256"]:
                raise StorageError(f"damaged: its checksum does not match {MANIFEST}")
            stream.seek(0)
            return npz.read_npz(stream, size, expected["names"])
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {files.reason(error)}") from error
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from error


# ---- what both sides agree on


def _checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _manifest_checksum(manifest: Mapping[str, Any]) -> str:
    """Of everything but itself, in an order and spacing that do not depend on how the file was laid out."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


__all__ = ["JSON", "LOADERS", "MANIFEST", "VERSION", "load", "load_part", "read", "restored", "save", "upgraded"]
