"""Arms and whole states as bytes, and bytes in a store.

An archive (zip, nothing compressed, nothing dated) holds `state.json` and a folder for each arm, as `save` writes it, and one for
the schema where contexts are encoded or actions have ids; the same state makes the same bytes. In the store it lies in parts,
each written in a transaction of its own so that nobody waits long; a row that names the parts and their checksum, written
last, makes them a whole. Parts whose process was killed before it came to that are removed when the next snapshot is named, if
they are old enough that nobody can still be at it.
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
from manyarms.live.agent_arm import AgentArm
from manyarms.live.arms import Arm
from manyarms.live.policy_arm import PolicyArm
from manyarms.live.stores.database import Database, Reader, Transaction, Work
from manyarms.logs.schema import NOTHING, Schema

if TYPE_CHECKING:
    from manyarms.live.state import State

PART = 1 << 22  # bytes
ORPHANED = 3600.0  # seconds after which nobody is still writing parts, or about to name them
STATE = "state.json"
SCHEMA = "schema"
_NAME = re.compile(r"state\.json|(schema|arms/\d+)/(manifest\.json|arrays-[0-9a-f]{16}\.npz)")
_ALWAYS = (1980, 1, 1, 0, 0, 0)


# ---- states and arms as bytes


def pack(spec: Mapping[str, Any], arms: Mapping[str, Arm], schema: Schema = NOTHING) -> bytes:
    """A spec, arms by name and a schema, as one archive."""
    out = io.BytesIO()
    described = []
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive, tempfile.TemporaryDirectory() as scratch:
        for number, (name, arm) in enumerate(arms.items()):
            arm.save(Path(scratch) / str(number))
            _add_folder(archive, f"arms/{number}", Path(scratch) / str(number))
            told: dict[str, Any] = {"name": name, "kind": arm.kind, "learns": arm.learns, "since": arm.since}
            if isinstance(arm, PolicyArm):
                told |= {"draws": arm.draws.spec(), "retired": sorted(arm.retired)}
            described.append(told)
        if schema:
            schema.save(Path(scratch) / SCHEMA)
            _add_folder(archive, SCHEMA, Path(scratch) / SCHEMA)
        text = json.dumps({**spec, "arms": described}, sort_keys=True, allow_nan=False)
        _add(archive, STATE, text.encode())
    return out.getvalue()


def _add_folder(archive: zipfile.ZipFile, name: str, folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            _add(archive, f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _ALWAYS), content)


def unpack(content: bytes) -> tuple[dict[str, Any], dict[str, Arm], Schema]:
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
            kept = Path(scratch) / SCHEMA
            return spec, arms, storage.load_part(kept, Schema) if kept.is_dir() else NOTHING
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise StorageError(f"a live state cannot be read: {error}") from error


def _arm(told: dict[str, Any], folder: Path) -> Arm:
    if told["kind"] == "agent":
        return AgentArm(storage.load_part(folder, Agent), told["learns"], told["since"])
    draws = NumberedDraws.restored(told["draws"])
    return PolicyArm(storage.load_part(folder), draws, frozenset(told["retired"]), told["since"])


def pack_state(state: State) -> bytes:
    """A whole state."""
    chunk = state.chunk
    spec: dict[str, Any] = {
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
    if state.former:  # where nothing was ever changed, a state is packed as it was when nothing could be
        spec["former"] = [[position, json.loads(settings.to_json())] for position, settings in state.former]
    return pack(spec, state.arms, state.schema)


def unpack_state(content: bytes) -> State:
    """What `pack_state` made."""
    from manyarms.live.deployment import Deployment
    from manyarms.live.exposure import Exposure
    from manyarms.live.records import Chunk
    from manyarms.live.settings import Settings
    from manyarms.live.state import State
    from manyarms.live.watch import Watch

    spec, arms, schema = unpack(content)
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
        schema=schema,
        former=tuple((position, Settings(**settings)) for position, settings in spec.get("former", ())),
    )


# ---- bytes in a store


def write_parts(database: Database, content: bytes) -> str:
    """Write bytes in parts; the name under which they were written. They count for nothing until something names them."""
    writing = f"{int(database.do(_now)):012d}-{uuid.uuid4().hex}"
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


def _now(tx: Transaction) -> float:
    _, at = tx.following()
    return at


def are_there(reader: Reader, writing: str, parts: int) -> bool:
    """Whether all parts are still there: whoever was asleep between writing and naming them may come too late."""
    rows = reader.execute("SELECT COUNT(*) FROM snapshot_parts WHERE writing = ?", (writing,))
    return bool(rows[0][0] >= parts)


def remove_orphans(tx: Transaction) -> int:
    """Remove parts that were written more than `ORPHANED` seconds ago and that nothing names; how many writings."""
    end = _now(tx) - ORPHANED
    every = [name for (name,) in tx.execute("SELECT DISTINCT writing FROM snapshot_parts")]
    old = {name for name in every if _written_at(name) < end}
    old -= {name for (name,) in tx.execute("SELECT writing FROM snapshots")}
    if old:  # arms that operations brought along
        bodies = tx.execute("SELECT body FROM operations WHERE body LIKE ?", ('%"writing"%',))
        old = {name for name in old if not any(name in body for (body,) in bodies)}
    for writing in sorted(old):
        tx.execute("DELETE FROM snapshot_parts WHERE writing = ?", (writing,))
    return len(old)


def _written_at(writing: str) -> float:
    """When a writing began, by the log's time: its name says it."""
    found = re.match(r"(\d{12})-", writing)
    return float(found[1]) if found else float("inf")


def read_parts(reader: Reader, writing: str) -> bytes:
    """The bytes that were written under this name."""
    rows = reader.execute("SELECT body FROM snapshot_parts WHERE writing = ? ORDER BY part", (writing,))
    return b"".join(bytes(row[0]) for row in rows)


def read_arm(reader: Reader, writing: str, since: int) -> Arm:
    """The one arm that was written under this name, joining at a position of the log."""
    _, arms, _ = unpack(read_parts(reader, writing))
    [arm] = arms.values()
    arm.since = since
    return arm


def sha256(content: bytes) -> str:
    """Its checksum."""
    return hashlib.sha256(content).hexdigest()


__all__ = [
    "are_there", "pack", "pack_state", "read_arm", "read_parts", "remove_orphans", "sha256", "unpack", "unpack_state",
    "write_parts",
]  # fmt: skip
