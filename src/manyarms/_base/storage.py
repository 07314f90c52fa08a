"""Saving and loading: a folder with a versioned JSON manifest and the arrays beside it.

    folder/manifest.json               format, version, kind, the caller's spec, and what the arrays must look like
    folder/arrays-<checksum>.npz       plain numeric arrays, uncompressed; nothing in it can run code when read

The manifest names the arrays file, and the arrays file is named after its content. So a save first puts the new
arrays beside the old ones and then replaces the manifest in one step: whoever reads, and whatever breaks, finds the
old save or the new one complete. One writer at a time per folder; any number of readers.

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
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, overload

import numpy as np

from manyarms._base import files
from manyarms._base.registry import Registry
from manyarms._base.typing import AnyArray
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput, StorageError

JSON = Any  # None, bool, int, finite float, str, and lists and string-keyed dictionaries of these; checked by `save`

FORMAT = "manyarms"
VERSION = 3
MANIFEST = "manifest.json"

Loader = Callable[[dict[str, JSON], dict[str, AnyArray]], object]
LOADERS: Registry[Loader] = Registry("kind of saved object", group="manyarms.loaders")
"""What makes an object of a spec and arrays again, by the kind that its manifest states."""

# the modules that register the library's own loaders, imported when a folder of that kind is met
_MODULES = {
    "actions": "manyarms.logs.actions",
    "agent": "manyarms.agents.agent",
    "table-encoder": "manyarms.logs.encoding",
    "policy": "manyarms.policies",
    "pretrained-diffusion": "manyarms.priors.pretraining",
}
Saved = TypeVar("Saved")

_ARRAYS_FILE = re.compile(r"arrays-[0-9a-f]{16}\.npz")
_OURS = re.compile(r"arrays-[0-9a-f]{16}\.npz|\.(manifest\.json|arrays\.npz)\.[0-9a-f]{16}\.tmp")
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_MOST_BITS = 14_000  # Python refuses to read decimal numbers of more than 4,300 digits
_PLAIN_KINDS = "biufcSU"  # booleans, integers, floats, complex numbers, strings of fixed length


def save(folder: Path | str, kind: str, spec: Mapping[str, JSON], arrays: Mapping[str, AnyArray]) -> None:
    """Write `spec` and `arrays` to `folder`, in place of what was saved there before.

    spec holds only what JSON can give back unchanged: None, bool, int (the 128 bits of a generator's state, and far
    more), finite float, str, and lists and dictionaries (with string keys) of these. Arrays may hold NaN, but no
    Python objects. When this raises, the earlier save is still there (or, if only the last flush failed, the new one).
    """
    folder = Path(folder)
    spec = dict(spec)
    _check_spec("spec", spec)
    checked = {name: _check_array(name, array) for name, array in arrays.items()}
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            files.flush_folder(folder.parent)
        temporary = files.write_temporary(folder, "arrays.npz", lambda stream: _write_npz(stream, checked))
        digest = _checksum(temporary)
        arrays_file = f"arrays-{digest[:16]}.npz"
        files.rename(temporary, folder / arrays_file)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "kind": kind,
            "library": _library_version(),
            "spec": spec,
            "arrays": {
                "file": arrays_file,
                "sha256": digest,
                "names": {name: _describe_array(array) for name, array in checked.items()},
            },
        }
        manifest["sha256"] = _manifest_checksum(manifest)
        files.write_text_atomically(folder / MANIFEST, json.dumps(manifest, indent=1, allow_nan=False) + "\n")
    except OSError as error:
        raise StorageError(f"{folder}: cannot be written: {error}") from error
    _remove_leftovers(folder, keep=arrays_file)


@overload
def load(folder: Path | str) -> Any: ...


@overload
def load(folder: Path | str, expected: type[Saved]) -> Saved: ...


def load(folder: Path | str, expected: type[Any] | None = None) -> Any:
    """Whatever was saved in a folder by its `save` method: an agent, a policy, an encoder, a prior, ...

    expected: the class that it must be of; anything else is refused. Folders of another format version are refused too.
    """
    folder = Path(folder)
    kind = str(_manifest_of(folder).get("kind"))
    if kind in _MODULES:
        importlib.import_module(_MODULES[kind])
    try:
        loader = LOADERS[kind]
    except InvalidInput as error:
        raise StorageError(f"{folder}: nothing here can load what it holds: {error}") from error
    spec, arrays = read(folder, kind)
    try:
        found = loader(spec, arrays)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        if isinstance(error, StorageError):
            raise StorageError(f"{folder}: {error}") from error
        raise StorageError(f"{folder}: the saved {kind} is incomplete or inconsistent ({error!r})") from error
    if expected is not None and not isinstance(found, expected):
        raise StorageError(f"{folder}: holds a {type(found).__name__}, expected {expected.__name__}")
    return found


def read(folder: Path | str, kind: str) -> tuple[dict[str, JSON], dict[str, AnyArray]]:
    """The spec and the arrays of what was saved in `folder` as `kind`; refused unless complete and unchanged."""
    folder = Path(folder)
    manifest = _manifest_of(folder)
    while True:
        _check_kind(folder / MANIFEST, manifest, kind)
        try:
            return manifest["spec"], _read_arrays(folder / manifest["arrays"]["file"], manifest["arrays"])
        except FileNotFoundError as error:
            # somebody may have saved anew since the manifest was read; only an unchanged manifest proves a loss
            earlier, manifest = manifest, _manifest_of(folder)
            if manifest == earlier:
                name = manifest["arrays"]["file"]
                raise StorageError(f"{folder / name}: missing, although {MANIFEST} names it") from error


# ---- writing


def _write_npz(stream: BinaryIO, arrays: Mapping[str, AnyArray]) -> None:
    # not np.savez: it stamps the time of day into the file, and cannot store an array that is called "file"
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _remove_leftovers(folder: Path, keep: str) -> None:
    """Delete earlier arrays and the temporaries of saves that broke off; the new save is complete without this."""
    with contextlib.suppress(OSError):
        for path in list(folder.iterdir()):
            if path.name != keep and _OURS.fullmatch(path.name):
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
    if array.dtype.kind not in _PLAIN_KINDS:
        raise InvalidInput(f"arrays[{name!r}]", f"type {array.dtype}", "numbers, booleans or strings of fixed length")
    return array


def _library_version() -> str:
    from importlib import metadata  # here, because it is slow to import and only a save needs it

    try:
        return metadata.version("manyarms")
    except metadata.PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"


# ---- reading


def _manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest, of our format and version, and undamaged: version first, since another one may have another layout."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise StorageError(f"{folder}: no such folder")
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise StorageError(f"{path}: missing, so nothing was saved in this folder") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:  # undecodable bytes and broken JSON are both ValueErrors
        raise StorageError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StorageError(f'{path}: not written by manyarms (no "format": "{FORMAT}")')
    version = manifest.get("version")
    if type(version) is not int or version != VERSION:
        raise StorageError(
            f"{path}: written in format version {describe(version)}, which this release does not read: it reads version "
            f"{VERSION}. Save it again with this release, or load it with the release that wrote it"
        )
    if manifest.get("sha256") != _manifest_checksum(manifest):
        raise StorageError(f"{path}: damaged or edited: its checksum does not match")
    return manifest


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


def _read_arrays(path: Path, expected: dict[str, Any]) -> dict[str, AnyArray]:
    """The arrays of an .npz file, held to the checksum, names, shapes and types that the manifest states."""
    try:
        with path.open("rb") as stream:  # one open file for both passes: a save in between cannot mix two states
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            if digest != expected["sha256"]:
                raise StorageError(f"{path}: damaged: its checksum does not match {MANIFEST}")
            stream.seek(0)
            arrays = _read_npz(stream)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error}") from error
    except (zipfile.BadZipFile, EOFError, KeyError, ValueError, NotImplementedError) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path}: not a readable .npz file: {error}") from error
    found = {name: _describe_array(array) for name, array in arrays.items()}
    names: dict[str, Any] = expected["names"]
    if found.keys() != names.keys():
        raise StorageError(f"{path}: holds the arrays {sorted(found)}, but {MANIFEST} states {sorted(names)}")
    for name, what in found.items():
        if what != names[name]:
            raise StorageError(f"{path}: the array {name!r} is {what}, but {MANIFEST} states {names[name]}")
    return arrays


def _read_npz(stream: BinaryIO) -> dict[str, AnyArray]:
    arrays: dict[str, AnyArray] = {}
    with zipfile.ZipFile(stream) as archive:
        for member in archive.namelist():
            with archive.open(member) as data:
                arrays[member.removesuffix(".npy")] = np.lib.format.read_array(data, allow_pickle=False)
    return arrays


# ---- random generators

_BIT_GENERATORS = {
    kind.__name__: kind
    for kind in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)
}


def generator_state(rng: np.random.Generator) -> dict[str, JSON]:
    """The state of a random generator as a spec can hold it."""

    def plain(value: object) -> JSON:
        if isinstance(value, Mapping):
            return {name: plain(part) for name, part in value.items()}
        return value.tolist() if isinstance(value, np.ndarray) else value

    state: dict[str, JSON] = plain(rng.bit_generator.state)
    return state


def restore_generator(state: Mapping[str, JSON]) -> np.random.Generator:
    """The generator that `generator_state` came from; one of NumPy's own kinds, whatever the spec says."""
    kind = _BIT_GENERATORS.get(str(state["bit_generator"]))
    if kind is None:
        raise StorageError(
            f"unknown bit generator {describe(state['bit_generator'])}, not {', '.join(_BIT_GENERATORS)}"
        )
    generator = np.random.Generator(kind())
    generator.bit_generator.state = dict(state)
    return generator


# ---- what both sides agree on


def _describe_array(array: AnyArray) -> dict[str, Any]:
    return {"shape": list(array.shape), "dtype": array.dtype.str}


def _checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _manifest_checksum(manifest: Mapping[str, Any]) -> str:
    """Of everything but itself, in an order and spacing that do not depend on how the file was laid out."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


__all__ = ["JSON", "LOADERS", "MANIFEST", "VERSION", "generator_state", "load", "read", "restore_generator", "save"]
