"""Arms and whole states as bytes, and bytes in a store.

An archive (zip, nothing compressed, nothing dated) holds `state.json` and a folder for each arm, as `save` writes it; the same
state makes the same bytes. In the store it lies in parts, each written in a transaction of its own so that nobody waits long; a
row that names the parts and their checksum, written last, makes them a whole.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tempfile
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyarms._base import storage
from manyarms.agents import Agent
from manyarms.agents.draws import NumberedDraws
from manyarms.errors import StorageError
from manyarms.live.arms import AgentArm, Arm, PolicyArm
from manyarms.live.stores.database import Database, Reader, Transaction, Work

if TYPE_CHECKING:
    from manyarms.live.state import State

PART = 1 << 22  # bytes
STATE = "state.json"
_NAME = re.compile(r"state\.json|arms/\d+/(manifest\.json|arrays-[0-9a-f]{16}\.npz)")
_ALWAYS = (1980, 1, 1, 0, 0, 0)


# ---- states and arms as bytes


def pack(spec: Mapping[str, Any], arms: Mapping[str, Arm]) -> bytes:
    """A spec and arms, by name, as one archive."""
    out = io.BytesIO()
    described = []
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive, tempfile.TemporaryDirectory() as scratch:
        for number, (name, arm) in enumerate(arms.items()):
            folder = Path(scratch) / str(number)
            arm.save(folder)
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    _add(archive, f"arms/{number}/{path.relative_to(folder).as_posix()}", path.read_bytes())
            told: dict[str, Any] = {"name": name, "kind": arm.kind, "learns": arm.learns, "since": arm.since}
            if isinstance(arm, PolicyArm):
                told |= {"draws": arm.draws.spec(), "retired": sorted(arm.retired)}
            described.append(told)
        text = json.dumps({**spec, "arms": described}, sort_keys=True, allow_nan=False)
        _add(archive, STATE, text.encode())
    return out.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _ALWAYS), content)


def unpack(content: bytes) -> tuple[dict[str, Any], dict[str, Arm]]:
    """What `pack` was given."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, tempfile.TemporaryDirectory() as scratch:
            for name in archive.namelist():
                if not _NAME.fullmatch(name):
                    raise StorageError(f"an archive of a live state holds {name!r}, which does not belong there")
                path = Path(scratch) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(name))
            spec = json.loads((Path(scratch) / STATE).read_bytes())
            arms = {
                told["name"]: _arm(told, Path(scratch) / "arms" / str(number))
                for number, told in enumerate(spec.pop("arms"))
            }
            return spec, arms
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise StorageError(f"a live state cannot be read: {error}") from error


def _arm(told: dict[str, Any], folder: Path) -> Arm:
    if told["kind"] == "agent":
        return AgentArm(storage.load(folder, Agent), told["learns"], told["since"])
    draws = NumberedDraws.restored(told["draws"])
    return PolicyArm(storage.load(folder), draws, frozenset(told["retired"]), told["since"])


def pack_state(state: State) -> bytes:
    """A whole state."""
    chunk = state.chunk
    spec = {
        "chunk": [chunk.version, chunk.upto, chunk.due, chunk.at, chunk.token],
        "settings": json.loads(state.settings.to_json()),
        "salt": state.salt,
        "deployment": state.deployment.to_json(),
        "catalogue": state.catalogue,
        "exposures": [exposure.to_json() for exposure in state.exposures],
        "counts": state.counts,
        "results": {str(position): result for position, result in state.results.items()},
        "watch": state.watch.to_json(),
    }
    return pack(spec, state.arms)


def unpack_state(content: bytes) -> State:
    """What `pack_state` made."""
    from manyarms.live.deployment import Deployment
    from manyarms.live.exposure import Exposure
    from manyarms.live.records import Chunk
    from manyarms.live.settings import Settings
    from manyarms.live.state import State
    from manyarms.live.watch import Watch

    spec, arms = unpack(content)
    return State(
        settings=Settings(**spec["settings"]),
        salt=spec["salt"],
        arms=arms,
        deployment=Deployment.from_json(spec["deployment"]),
        chunk=Chunk(*spec["chunk"]),
        catalogue=spec["catalogue"],
        exposures=[Exposure.from_json(body) for body in spec["exposures"]],
        counts=spec["counts"],
        results={int(position): result for position, result in spec["results"].items()},
        watch=Watch.from_json(spec["watch"]),
    )


# ---- bytes in a store


def write_parts(database: Database, content: bytes) -> str:
    """Write bytes in parts; the name under which they were written. They count for nothing until something names them."""
    writing = uuid.uuid4().hex
    for number, body in enumerate(_parts(content)):
        database.do(_add_part(writing, number, body))
    return writing


def _parts(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), PART):
        yield content[start : start + PART]


def _add_part(writing: str, number: int, body: bytes) -> Work:
    def work(tx: Transaction) -> None:
        tx.execute("INSERT INTO snapshot_parts (writing, part, body) VALUES (?, ?, ?)", (writing, number, body))

    return work


def read_parts(reader: Reader, writing: str) -> bytes:
    """The bytes that were written under this name."""
    rows = reader.execute("SELECT body FROM snapshot_parts WHERE writing = ? ORDER BY part", (writing,))
    return b"".join(bytes(row[0]) for row in rows)


def read_arm(reader: Reader, writing: str, since: int) -> Arm:
    """The one arm that was written under this name, joining at a position of the log."""
    _, arms = unpack(read_parts(reader, writing))
    [arm] = arms.values()
    arm.since = since
    return arm


def sha256(content: bytes) -> str:
    """Its checksum."""
    return hashlib.sha256(content).hexdigest()


__all__ = ["pack", "pack_state", "read_arm", "read_parts", "sha256", "unpack", "unpack_state", "write_parts"]
