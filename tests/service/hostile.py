"""HTTP as no client should speak it: bytes for a socket, by name. Whoever gets them answers with a refusal or hangs up."""

from __future__ import annotations

import json
from collections.abc import Iterator

DEEP = 10_000
MOST = 1 << 20  # bytes of a body that the service takes unless told otherwise


def request(
    body: bytes = b"",
    path: str = "/v1/decide",
    method: str = "POST",
    *headers: str,
    kind: str | None = "application/json",
    host: str = "localhost",
) -> bytes:
    """One request that says how long its body is."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", *headers]
    lines += [] if kind is None else [f"Content-Type: {kind}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def chunked(*chunks: bytes, path: str = "/v1/decide", end: bytes = b"0\r\n\r\n") -> bytes:
    """One request whose body comes in chunks."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head.encode() + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + end


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "half an object": b'{"context": [1, 2',
    "a quote": b'"',
    "words": b"decide for me",
    "a number of a thousand digits": b'{"context": [%s, 0, 0]}' % (b"9" * 1_000),
    "a number of a hundred thousand digits": b'{"context": [%s, 0, 0]}' % (b"9" * 100_000),
    "an integer beyond 64 bits": b'{"context": [0, 0, 0], "k": 123456789012345678901234567890}',
    "an action beyond 64 bits": b'{"context": [0, 0, 0], "candidates": [123456789012345678901234567890]}',
    "a negative action": b'{"context": [0, 0, 0], "candidates": [-1]}',
    "a number too large for a float": b'{"context": [1e999, 0, 0]}',
    "a tiny number": b'{"context": [1e-999, 0, 0], "k": -1}',
    "the largest float": b'{"context": [1.7976931348623157e308, 1.7976931348623157e308, -1.7976931348623157e308]}',
    "NaN": b'{"context": [NaN, 0, 0]}',
    "Infinity": b'{"context": [Infinity, -Infinity, 0]}',
    "lists in lists": b'{"context": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "objects in objects": b'{"context": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "lists that never end": b"[" * DEEP,
    "a lone surrogate as an id": b'{"context": [0, 0, 0], "id": "\\ud800"}',
    "a lone surrogate as a unit": b'{"context": [0, 0, 0], "unit": "a\\udfffb"}',
    "a lone surrogate as a name": b'{"context": {"\\ud800": 1}}',
    "a lone surrogate as a value": b'{"context": {"a": "\\udc80"}}',
    "NUL in an id": b'{"context": [0, 0, 0], "id": "a\\u0000b"}',
    "NUL in a unit": b'{"context": [0, 0, 0], "unit": "\\u0000"}',
    "a byte of NUL": b'{"context": [0, 0, 0], "id": "\x00"}',
    "no UTF-8": b'{"context": [0, 0, 0], "id": "\xff\xfe"}',
    "UTF-16": '{"context": [0, 0, 0]}'.encode("utf-16"),
    "UTF-7 and a mark": b"\xef\xbb\xbf" + b'{"context": [0, 0, 0]}',
    "an id of a megabyte": b'{"context": [0, 0, 0], "id": "%s"}' % (b"x" * (MOST - 100)),
    "an empty id": b'{"context": [0, 0, 0], "id": ""}',
    "a context of many numbers": json.dumps({"context": [0.5] * 100_000}).encode(),
    "a context of many columns": json.dumps({"context": {str(n): n for n in range(20_000)}}).encode(),
    "many candidates": json.dumps({"context": [0, 0, 0], "candidates": [1] * 100_000}).encode(),
    "the same name twice": b'{"context": [0, 0, 0], "context": "x", "id": "a", "id": 1}',
    "an array": b"[1, 2, 3]",
    "null": b"null",
    "truth": b"true",
    "a text for a number": b'{"context": ["1", "2", "3"]}',
    "truth values for numbers": b'{"context": [true, false, true]}',
    "unknown names": b'{"context": [0, 0, 0], "__class__": "x", "constructor": {"prototype": 1}}',
    "more than is allowed": b'{"context": [%s1]}' % (b"1," * MOST),
}
"""Bodies of calls that decide: refused, every one, but for those in `FINE`."""
FINE = {"UTF-7 and a mark"}  # what JSON may or may not begin with
KINDS = (
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jso",
    "json",
    "",
    "\x80",
    None,
)
"""Types of bodies that are not JSON's."""
PATHS = (
    "/v1/events/%", "/v1/events/%zz", "/v1/events/%00", "/v1/events/%ff%fe", "/v1/events/%ed%a0%80",
    "/v1/events/..%2f..%2fetc%2fpasswd", "/v1/events/" + "x" * 10_000, "/v1/events?limit=99999999999999999999",
    "/v1/events?before=-1", "/v1/events?before=1e3", "/v1/events?id=%00", "/v1/events?action=%00",
    "/v1/events?arm=%ed%a0%80", "/v1/events?limit=1&limit=2", "/v1/events?limit=%D9%A1", "/v1/events?since=nan",
    "/v1/events?since=1e400", "/v1/catalogue/-1", "/v1/catalogue/99999999999999999999999", "/v1/catalogue/%D9%A1",
    "/v1/catalogue/%00", "/v1/catalogue?after=-2", "/v1/catalogue?search=%00", "/v1/catalogue?search=%ff",
    "/v1/catalogue/1/statistics", "/v1/catalogue/%00/statistics", "/v1/catalogue/%ff/statistics", "/v1/edge/%00",
    "/v1/edge/%ff", "/v1/edge/../key", "/assets/../app.py", "/assets/%2e%2e%2fapp.py", "/assets/..%5c..%5capp.py",
    "//v1/events", "/v1//events", "/v1/events/", "/v1/decide", "/V1/EVENTS", "/v1/dashboard?minutes=0",
    "/v1/dashboard?minutes=99999999999", "/%00", "/" + "a/" * 2_000, "/v1/events/%E2%80%AE/why", "*",
    "http://elsewhere.example/v1/events", "/personalizer/v1.0/rank", "/v1/events/x?" + "a=b&" * 5_000,
)  # fmt: skip
"""Addresses that are read by GET."""


def broken() -> Iterator[tuple[str, bytes]]:
    """What is no HTTP, or not quite."""
    body = b'{"context": [0, 0, 0]}'
    yield "no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256))
    yield "a line without end", b"GET /" + b"a" * 200_000
    yield "a header without end", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 200_000
    yield "many headers", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 20_000 + b"\r\n"
    yield "HTTP/9.9", b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n"
    yield "no host", b"GET /v1/status HTTP/1.1\r\n\r\n"
    yield "two hosts", b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nHost: elsewhere.example\r\n\r\n"
    yield "another host", request(body, host="elsewhere.example")
    yield "a host that is none", request(body, host="[::1")
    yield "an odd method", b"\x7f\x7f /v1/decide HTTP/1.1\r\nHost: localhost\r\n\r\n"
    yield "TRACE", b"TRACE /v1/decide HTTP/1.1\r\nHost: localhost\r\n\r\n"
    yield "CONNECT", b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    yield "a wrong length", b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n"
    yield "a negative length", b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n"
    yield "two lengths", request(body, "/v1/decide", "POST", "Content-Length: 3")
    yield "a length and chunks", request(body, "/v1/decide", "POST", "Transfer-Encoding: chunked")
    yield (
        "a length beyond all measure",
        b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: %s\r\n\r\n" % (b"9" * 30),
    )
    yield "chunks of no length", chunked(body, end=b"zz\r\n\r\n")
    yield "chunks of a negative length", chunked(end=b"-5\r\nhello\r\n0\r\n\r\n")
    yield "chunks beyond the limit", chunked(*[b" " * 65_536] * 40)
    yield (
        "an upgrade",
        request(body, "/v1/decide", "GET", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
    )
    yield "a header with a line break", request(body, "/v1/decide", "POST", "X-Request-Id: a\n b")
    yield (
        "a request id that is an attack",
        request(b"{", "/v1/decide", "POST", "X-Request-Id: " + "'; DROP TABLE events; --" * 9),
    )
