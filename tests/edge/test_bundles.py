"""A bundle is read whole and unchanged, from who signed it and in time, or refused by an error of ours that says why."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from edge.making import IDS, KEY, a_bundle, a_policy
from manyarms.edge import EdgePolicy, SigningKey, bundle_format
from manyarms.edge.header import RULES
from manyarms.errors import InvalidInput, ManyArmsError, MissingExtra, StorageError

OTHER = SigningKey(bytes(32))


def header_of(data: bytes) -> tuple[dict[str, object], int]:
    """The header, and where it ends."""
    (length,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[24 : 24 + length]), 24 + length


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("ids", [IDS, [3, 1, 2**62, -5]])
def test_what_is_read_is_what_was_written(rule: str, ids: list[str | int]) -> None:
    policy = a_policy(rule, ids=ids)
    data = policy.to_bytes(KEY)
    again = EdgePolicy.read(data, KEY.public)
    assert again.header == policy.header
    assert list(again.ids) == ids
    assert again.id == policy.id
    assert again.to_bytes(KEY) == data
    assert EdgePolicy.read(bytearray(data), bytes.fromhex(KEY.public)).id == policy.id
    assert EdgePolicy.read(memoryview(data), [OTHER.public, KEY.public]).id == policy.id
    assert "edge policy" in str(again) and policy.id[:8] in repr(again)


def test_two_bundles_have_two_ids() -> None:
    assert (
        len({a_policy(seed=seed).id for seed in range(5)} | {a_policy(version=version).id for version in range(5)})
        == 10
    )


@pytest.mark.parametrize("rule", RULES)
def test_any_changed_byte_is_refused(rule: str) -> None:
    data = bytearray(a_bundle(rule))
    rng = np.random.default_rng(0)
    places = {*rng.integers(len(data), size=150).tolist(), *range(24), *range(len(data) - 70, len(data))}
    for place in sorted(places):
        was = data[place]
        data[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(StorageError):
            EdgePolicy.read(bytes(data), KEY.public)
        data[place] = was
    EdgePolicy.read(bytes(data), KEY.public)


def test_a_truncated_or_longer_file_is_refused() -> None:
    data = a_bundle()
    for length in [*range(100), *range(100, len(data), 37), len(data) - 1]:
        with pytest.raises(StorageError):
            EdgePolicy.read(data[:length], KEY.public)
    with pytest.raises(StorageError, match="truncated"):
        EdgePolicy.read(data + b"\0", KEY.public)


def test_another_key_no_signature_and_no_key_are_refused() -> None:
    with pytest.raises(StorageError, match="not signed by the key"):
        EdgePolicy.read(a_bundle(), OTHER.public)
    unsigned = a_policy().to_bytes(None)
    with pytest.raises(StorageError, match="is not signed"):
        EdgePolicy.read(unsigned, KEY.public)
    with pytest.raises(InvalidInput, match="verify=None"):
        EdgePolicy.read(a_bundle())
    for key in ("", "ab", b"short", [], 7, "zz" * 32, [None]):
        with pytest.raises(InvalidInput, match="public_key"):
            EdgePolicy.read(a_bundle(), key)  # type: ignore[arg-type]
    assert list(EdgePolicy.read(unsigned, verify=None).ids) == IDS
    with pytest.raises(InvalidInput, match="verify"):
        EdgePolicy.read(a_bundle(), KEY.public, verify=False)  # type: ignore[arg-type]


def test_an_expired_bundle_is_refused_unless_it_is_asked_for() -> None:
    data = a_bundle(created=0.0, expires=100.0)
    with pytest.raises(StorageError, match="expired at 1970-01-01 00:01:40 UTC"):
        EdgePolicy.read(data, KEY.public)
    assert EdgePolicy.read(data, KEY.public, expired=True).expired


@pytest.mark.parametrize("data", [None, "text", 7, [1], b"", b"x", b"MANYEDGE", bytes(200), os.urandom(500)])
def test_what_is_no_bundle_is_refused(data: object) -> None:
    with pytest.raises((StorageError, InvalidInput)):
        EdgePolicy.read(data, KEY.public)  # type: ignore[arg-type]


def test_sizes_are_checked_before_anything_is_made() -> None:
    """Headers that promise more than there is, signed or not: nothing of that size is ever asked for."""
    data = a_bundle()
    for at, kind, value in (
        (12, "<I", 2**32 - 1),
        (16, "<Q", 2**63),
        (16, "<Q", 2**64 - 1),
        (8, "<I", 2),
        (12, "<I", 0),
    ):
        wrong = bytearray(data)
        struct.pack_into(kind, wrong, at, value)
        with pytest.raises(StorageError):
            EdgePolicy.read(bytes(wrong), verify=None)


CHANGES: list[Callable[[dict[str, object]], object]] = [
    lambda told: told.update(arrays=[["tables", "<f4", [2**39, 2**39, 2**39]]]),
    lambda told: told.update(arrays=[["tables", "|O", [1, 7, 3]]]),
    lambda told: told.update(arrays=[["tables", "<f4", [-1, -7, 3]]]),
    lambda told: told.update(arrays=[["tables", "<f4", [True, 7, 3]]]),
    lambda told: told.update(arrays={}),
    lambda told: told.update(arrays=[["x", "<f4", [1, 7, 3]], *told["arrays"][1:]]),  # type: ignore[index]
    lambda told: told.update(sha256="0" * 64),
    lambda told: told.pop("rule"),
    lambda told: told.update(rule="best"),
    lambda told: told.update(rule=["softmax"]),
    lambda told: told.update(dim=4),
    lambda told: told.update(dim="3"),
    lambda told: told.update(epsilon=1.5),
    lambda told: told.update(temperature=0),
    lambda told: told.update(salt="00"),
    lambda told: told.update(salt=7),
    lambda told: told.update(expires="never"),
    lambda told: told.update(version=-1),
    lambda told: told.update(actions=8),
    lambda told: told.update(draws=2),
    lambda told: told.update(features=["a", 2, "c"]),
    lambda told: told.update(features=["a"]),
    lambda told: told.update(encoder=[]),
    lambda told: told.update(encoder={"kind": "table-encoder"}),
    lambda told: told.update(encoder={"kind": "table-encoder", "intercept": True, "parts": [{}], "arrays": 3}),
    lambda told: told.update(encoder={"kind": "table-encoder", "intercept": True, "parts": []}),
    lambda told: told.update(agent=""),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_header_that_cannot_be_is_refused_even_if_nobody_checks_who_wrote_it(
    change: Callable[[dict[str, object]], object],
) -> None:
    data = a_policy().to_bytes(None)
    told, end = header_of(data)
    rest = data[-(-end // 64) * 64 : -64]
    change(told)
    text = bundle_format.canonical(told)
    padding = bytes(-(24 + len(text)) % 64)
    changed = struct.pack("<8sIIQ", b"MANYEDGE", 1, len(text), len(rest)) + text + padding + rest + bytes(64)
    with pytest.raises(StorageError):
        EdgePolicy.read(changed, verify=None)


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Bytes changed, cut out or doubled, at random."""
    found = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at, length = int(rng.integers(len(found))), int(rng.integers(1, 9))
        part = (rng.bytes(length), b"", bytes(found[at : at + length]) * 2)[int(rng.integers(3))]
        found[at : at + length] = part
    return bytes(found)


def test_hundreds_of_mutations_raise_errors_of_ours_or_nothing() -> None:
    """Without a signature to protect them; of the arrays, with their checksum put right."""
    rng = np.random.default_rng(1)
    read = 0
    for number in range(400):
        data = a_bundle(RULES[number % 3])
        if number % 2:
            header, arrays = bundle_format.unpacked(bundle_format.split(data)[0])
            for name, array in arrays.items():
                wrong = mutated(array.tobytes(), rng)[: array.nbytes].ljust(array.nbytes, b"\0")
                if rng.random() < 0.5:
                    arrays[name] = np.frombuffer(wrong, array.dtype).reshape(array.shape)
            data = bundle_format.packed(header, arrays) + bytes(64)
        else:
            data = mutated(data, rng)
        with suppress(ManyArmsError):
            EdgePolicy.read(data, verify=None).decide([1.0, 2.0, 3.0], "x")
            read += 1
    assert read  # parameters may be any finite numbers


def test_headers_written_in_another_way_or_nested_deeply_are_refused() -> None:
    for text in (
        b'{"agent": "x"}',
        b'{"a":1,"a":1}',
        b"[" * 100_000,
        b"\xff\xfe",
        b"NaN",
        b"[]",
        b'{"a":' + b"1" * 5000 + b"}",
    ):
        padding = bytes(-(24 + len(text)) % 64)
        data = struct.pack("<8sIIQ", b"MANYEDGE", 1, len(text), 0) + text + padding + bytes(64)
        with pytest.raises(StorageError):
            EdgePolicy.read(data, verify=None)


def test_keys_are_made_and_kept() -> None:
    key = SigningKey.generate()
    assert SigningKey(key.secret).public == key.public
    assert key.secret.hex() not in repr(key)
    with pytest.raises(InvalidInput):
        SigningKey(b"short")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    data = a_bundle()
    for name in [name for name in sys.modules if name.startswith("cryptography")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtra, match=r"manyarms\[client\]"):
        EdgePolicy.read(data, KEY.public)
    assert EdgePolicy.read(data, verify=None).ids[0] == "apple"


def test_the_package_needs_numpy_alone() -> None:
    """What a client loads: no scipy, no other part of the library."""
    code = (
        "import sys; import manyarms.edge; "
        "print([name for name in sys.modules if name.split('.')[0] in ('scipy', 'cryptography', 'pandas')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
