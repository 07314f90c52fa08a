"""Signatures of edge bundles: Ed25519, by the package `cryptography`, which is imported when one is made or checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyarms._base.tables import Shown, Table
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput, MissingExtra, StorageError

LENGTH = 32  # bytes of a key, secret or public

PublicKey = str | bytes
"""32 bytes, or as many in hexadecimal."""


class SigningKey(Shown):
    """A secret key, and the public one that goes with it."""

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes) or len(secret) != LENGTH:
            raise InvalidInput("secret", "something else", f"{LENGTH} bytes")
        self._key = _ed25519().Ed25519PrivateKey.from_private_bytes(secret)
        self._secret = secret

    @classmethod
    def generate(cls) -> SigningKey:
        """A new one."""
        return cls(_ed25519().Ed25519PrivateKey.generate().private_bytes_raw())

    @property
    def secret(self) -> bytes:
        """What must be kept secret."""
        return self._secret

    @property
    def public(self) -> str:
        """The public key, in hexadecimal."""
        found: bytes = self._key.public_key().public_bytes_raw()
        return found.hex()

    def sign(self, content: bytes) -> bytes:
        """64 bytes."""
        found: bytes = self._key.sign(content)
        return found

    def _table(self) -> Table:
        return Table(f"public {self.public}")  # and nothing of the secret


def require_signature(content: bytes, signature: bytes, public_key: PublicKey | Sequence[PublicKey] | None) -> None:
    """Refuse what none of these keys has signed."""
    keys = _keys(public_key)
    ed25519 = _ed25519("client", "checking the signatures of edge bundles")
    from cryptography.exceptions import InvalidSignature

    for key in keys:
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, content)
            return
        except InvalidSignature:
            continue
        except ValueError as error:  # no point of the curve
            raise InvalidInput("public_key", describe(key.hex()), "a public key of Ed25519") from error
    signed = "not signed" if not any(signature) else "damaged, or not signed by the key that was given"
    raise StorageError(f"the edge bundle is {signed}")


def _keys(given: PublicKey | Sequence[PublicKey] | None) -> list[bytes]:
    if given is None:
        raise InvalidInput(
            "public_key",
            "None",
            "the key that bundles are signed with (GET /v1/edge/key), or verify=None to trust anybody",
        )
    listed = [given] if isinstance(given, str | bytes) else list(given) if isinstance(given, Sequence) else []
    if not listed:
        raise InvalidInput("public_key", describe(given), "a public key, or several")
    return [_key(one) for one in listed]


def _key(given: object) -> bytes:
    found = given
    if isinstance(given, str):
        try:
            found = bytes.fromhex(given)
        except ValueError:
            found = None
    if not isinstance(found, bytes) or len(found) != LENGTH:
        raise InvalidInput("public_key", describe(given), f"{LENGTH} bytes, or {2 * LENGTH} hexadecimal digits")
    return found


def _ed25519(extra: str = "service", purpose: str = "signing edge bundles") -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingExtra("cryptography", extra, purpose) from error
    return ed25519


__all__ = ["PublicKey", "SigningKey", "require_signature"]
