"""Finding and reading labelled pictures; nothing is shipped or fetched.

Under MANYARMS_DATA, or in a folder of its own: `mnist`, `fashion-mnist` and `emnist` (its balanced split) as idx files under
their usual names, plain or gzipped, and `cifar100` as one .npz file with x_train, y_train, x_test and y_test. Whoever has neither
can work with `write_made_up_images`, which writes the same formats.
"""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.files import write_atomically, write_bytes_atomically
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import DataError
from manyarms.worlds import data_files

ImageSet = Literal["cifar100", "mnist", "fashion-mnist", "emnist"]
Bytes = npt.NDArray[np.uint8]

IDX_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
EMNIST_FILES = tuple(
    f"emnist-balanced-{part}-{what}-ubyte" for part in ("train", "test") for what in ("images-idx3", "labels-idx1")
)
NPZ_FILES = ("cifar100_16x16.npz", "cifar100.npz")
NPZ_ARRAYS = ("x_train", "y_train", "x_test", "y_test")


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Pictures as rows of bytes, (n, pixels), and their classes, counted from 0; train and test apart."""

    train: Bytes
    train_classes: Ints
    test: Bytes
    test_classes: Ints
    provenance: str

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.train_classes.max()) + 1


def read_images(name: ImageSet = "cifar100", folder: str | Path | None = None) -> LabelledImages:
    """Read a data set, from memory where this process has read the same files before."""
    validate.one_of("data", name, get_args(ImageSet))
    base = data_files.data_folder(name, folder, "manyarms.worlds.image_files.write_made_up_images")
    for sub in ("", name):
        found = _find(Path(base) / sub, name)
        if found:
            return _read(name, data_files.states_of(found))
    wanted = " or ".join(NPZ_FILES) if name == "cifar100" else ", ".join(_idx_files(name))
    raise DataError(f"{name}: no {wanted} in {base} or its folder {name}")


def _idx_files(name: ImageSet) -> tuple[str, ...]:
    return EMNIST_FILES if name == "emnist" else IDX_FILES


def _find(folder: Path, name: ImageSet) -> list[Path]:
    """The files of a data set, all of them or none."""
    if name == "cifar100":
        return [folder / file for file in NPZ_FILES if os.path.isfile(folder / file)][:1]
    found = [path for file in _idx_files(name) for path in data_files.plain_or_gzipped(folder, file)]
    return found if len(found) == len(_idx_files(name)) else []


@lru_cache(maxsize=2)
def _read(name: ImageSet, states: data_files.FileStates) -> LabelledImages:
    paths = [path for path, _, _ in states]
    if name == "cifar100":
        arrays = read_arrays(paths[0])
        for array_name, array in zip(NPZ_ARRAYS, arrays, strict=True):
            if array.dtype != np.uint8:
                raise DataError(f"{paths[0]}: {array_name} has type {array.dtype}, expected uint8")
    else:
        arrays = [_read_idx(path) for path in paths]
    train, train_classes, test, test_classes = arrays
    for pictures, classes, part in ((train, train_classes, "training"), (test, test_classes, "test")):
        if pictures.ndim < 2 or classes.ndim != 1 or len(pictures) != len(classes) or not len(classes):
            raise DataError(
                f"{paths[0].parent}: {part} pictures of shape {pictures.shape} do not go with labels of {classes.shape}"
            )
    if train.shape[1:] != test.shape[1:]:
        raise DataError(f"{paths[0].parent}: training pictures are {train.shape[1:]}, test pictures {test.shape[1:]}")
    missing = sorted(set(range(int(train_classes.max()) + 1)) ^ set(train_classes.tolist()))
    if missing or int(test_classes.max()) > int(train_classes.max()):
        raise DataError(f"{paths[0].parent}: labels are not the numbers from 0 to the number of classes")
    made_up = data_files.is_made_up(paths[0])
    counts = f"{len(train):,} + {len(test):,} pictures of {int(train_classes.max()) + 1} classes"
    return LabelledImages(
        train.reshape(len(train), -1), train_classes.astype(np.int64), test.reshape(len(test), -1),
        test_classes.astype(np.int64), f"made-up pictures, not {name}: {counts}" if made_up else f"{name}: {counts}",
    )  # fmt: skip


def _read_idx(path: Path) -> Bytes:
    """An idx file of unsigned bytes: two zeros, 0x08, the number of axes, their lengths as big-endian words, the bytes."""
    with data_files.opened(path) as stream:
        content = stream.read()
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise DataError(f"{path}: not an idx file of bytes")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise DataError(f"{path}: truncated in its header")
    shape = tuple(int(length) for length in np.frombuffer(content, dtype=">u4", count=content[3], offset=4))
    size = int(np.prod(shape))
    if len(content) - start != size:
        raise DataError(f"{path}: its header promises {size:,} bytes, but {len(content) - start:,} follow")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def read_arrays(path: Path) -> list[AnyArray]:
    """x_train, y_train, x_test and y_test of an .npz file, whatever their types."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            missing = [name for name in NPZ_ARRAYS if name not in archive.files]
            if missing:
                raise DataError(f"{path}: the arrays {', '.join(missing)} are missing")
            arrays = [archive[name] for name in NPZ_ARRAYS]
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: cannot be read ({error})") from error
    return arrays


def write_made_up_images(
    folder: str | Path, name: ImageSet = "mnist", *, classes: int = 10, each: int = 60, side: int = 8, seed: int = 0
) -> Path:
    """Write made-up pictures in a data set's own format, and a note that says so; gives the folder.

    Every class has a smooth pattern of its own, and its pictures are that pattern with noise: `each` for training and half as
    many for testing.
    """
    validate.one_of("name", name, get_args(ImageSet))
    classes, each = validate.count("classes", classes, 2), validate.count("each", each, 2)
    side = validate.count("side", side)
    rng = np.random.default_rng(validate.seed(seed))
    channels = (3,) if name == "cifar100" else ()
    patterns = _smooth(rng.normal(size=(classes, side, side, *channels)))
    note = f"Made-up pictures (seed {seed}), in the format of {name}; not {name}.\n"
    target = data_files.made_up_folder(folder, note)
    parts: list[Bytes] = []
    for number in (each, max(1, each // 2)):
        labels = rng.permutation(np.repeat(np.arange(classes), number))
        noise = _smooth(rng.normal(size=(len(labels), side, side, *channels)))
        pixels = 128 + 40 * (patterns[labels] + noise) + 10 * rng.normal(size=noise.shape)
        parts += [np.clip(np.rint(pixels), 0, 255).astype(np.uint8), labels.astype(np.uint8)]
    if name == "cifar100":
        x, y, x_test, y_test = parts
        named = {"x_train": x, "y_train": y, "x_test": x_test, "y_test": y_test}
        write_atomically(target / NPZ_FILES[0], lambda stream: np.savez(stream, **named))  # type: ignore[arg-type]
        return target
    for file, array in zip(_idx_files(name), parts, strict=True):
        header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
        # without a time stamp in it the file is the same, byte for byte, for the same arguments
        write_bytes_atomically(target / f"{file}.gz", gzip.compress(header + array.tobytes(), mtime=0))
    return target


def _smooth(pictures: Array) -> Array:
    """Neighbouring pixels averaged along both axes, then scaled back to about unit variance."""
    for axis in (1, 2):
        pictures = sum(np.roll(pictures, shift, axis) for shift in (-1, 0, 1)) / np.sqrt(3)
    return pictures


__all__ = ["ImageSet", "LabelledImages", "read_arrays", "read_images", "write_made_up_images"]
