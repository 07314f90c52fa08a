"""The key that signs edge bundles: made on first use, kept in a file that nobody else may read, changed when somebody says so."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from manyarms._base import files
from manyarms.edge import SigningKey
from manyarms.errors import InvalidInput, StorageError

FILE = "signing-key.json"
MOST = 1 << 20  # bytes


class EdgeKeys:
    """The signing key of a folder, and the public keys before it, newest first."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def current(self) -> SigningKey:
        """The key that signs; a new one where there is none yet."""
        return self._read()[0]

    def public(self) -> tuple[str, list[str]]:
        """The public key, and those before it: what they have signed may still be in use."""
        key, previous = self._read()
        return key.public, previous

    def rotate(self) -> str:
        """A new key signs from now on; its public one. Clients that know the old one alone refuse new bundles until they ask."""
        key, previous = self._read()
        new = SigningKey.generate()
        content = _content(new, [key.public, *previous])
        files.write_atomically(self._path, lambda stream: stream.write(content), private=True)
        return new.public

    def _read(self) -> tuple[SigningKey, list[str]]:
        if not files.present(self._path):
            self._make()
        try:
            with files.open_regular(self._path) as stream:
                self._check_mode(os.fstat(stream.fileno()).st_mode)
                told: Any = json.loads(stream.read(MOST))
            return SigningKey(bytes.fromhex(told["secret"])), [
                str(bytes.fromhex(one).hex()) for one in told["previous"]
            ]
        except OSError as error:
            raise StorageError(f"{self._path}: cannot be read: {files.reason(error)}") from error
        except (ValueError, LookupError, TypeError, InvalidInput) as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"{self._path}: damaged: no signing key") from None  # what is in it is told to nobody

    def _make(self) -> None:
        """A first key; who comes second takes the one that is there."""
        content = _content(SigningKey.generate(), [])
        with files.writing(self._path):
            files.make_folder(self._path.parent)
            made = files.write_temporary(
                self._path.parent, self._path.name, lambda stream: stream.write(content), private=True
            )
            try:
                os.link(made, self._path)
                files.flush_folder(self._path.parent)
            except FileExistsError:
                pass
            finally:
                made.unlink(missing_ok=True)

    def _check_mode(self, mode: int) -> None:
        if os.name != "nt" and stat.S_IMODE(mode) & 0o077:
            raise StorageError(f"{self._path}: others than its owner may read it: chmod 600")


def _content(key: SigningKey, previous: list[str]) -> bytes:
    return json.dumps({"secret": key.secret.hex(), "previous": previous}).encode()


__all__ = ["EdgeKeys"]
