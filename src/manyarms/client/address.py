"""Where the service is, and whether a key may be sent there."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from manyarms._base import validate
from manyarms.errors import InvalidInput

EXPECTED = "the address of a decision service, such as https://decide.example.org"


def checked_address(url: object, key: str | None, insecure: bool) -> tuple[str, bool]:
    """The address without a slash at its end, and whether it is this machine; refused where a key would travel in clear."""
    if not isinstance(url, str):
        raise InvalidInput("url", validate.describe(url), EXPECTED)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput("url", validate.describe(url), EXPECTED) from None
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("url", "one with a name or a password in it", f"{EXPECTED}, and the key as `key`")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise InvalidInput("url", validate.describe(url), EXPECTED)
    here = is_this_machine(host)
    if key is not None and parts.scheme == "http" and not here and not insecure:
        raise InvalidInput(
            "url",
            f"{parts.scheme}://{host}",
            "https where there is a key, which would travel in clear; or insecure=True",
        )
    return url.rstrip("/"), here


def checked_key(key: object) -> str | None:
    """A key that can stand in a header; one that cannot is not repeated in the error."""
    if key is None:
        return None
    if not isinstance(key, str) or not key or not all("!" <= letter <= "~" for letter in key):
        raise InvalidInput("key", "something else", "an API key: letters, digits and signs of ASCII, without spaces")
    return key


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine for certain."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


__all__ = ["checked_address", "checked_key", "is_this_machine"]
