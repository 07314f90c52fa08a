"""Wrong arguments of clients are refused by name, before anything is sent or written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from manyarms.client import AsyncClient, Backoff, Client, in_process, in_process_async
from manyarms.client.arguments import a_context, a_name, an_action
from manyarms.client.queue import UploadQueue
from manyarms.errors import InvalidInput

URL = "http://localhost"


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("tls", lambda: Client(URL, tls="certificate.pem")),
        ("tls", lambda: AsyncClient(URL, tls=True)),
        ("transport", lambda: Client(URL, transport=len)),
        ("transport", lambda: AsyncClient(URL, transport=in_process(len))),  # of the other client
        ("random", lambda: Backoff(random=0.5)),
        ("sleep", lambda: Backoff(sleep=0.5)),
        ("now", lambda: Backoff(now=None)),
        ("app", lambda: in_process("application")),
        ("app", lambda: in_process_async(None)),
        ("event", lambda: a_name("event", "\udc80")),
        ("action", lambda: an_action("action", 10**5000)),
        ("context['age']", lambda: a_context({"age": 10**5000})),
    ],
)
def test_what_is_wrong_is_named(argument: str, call: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInput) as found:
        call()
    assert found.value.argument == argument


@pytest.mark.parametrize("path", ["a\0b", "", {}, 3, "\udcff\ud800"])
def test_a_queue_has_a_path_that_there_can_be(path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as found:
        UploadQueue(path, 10)
    assert found.value.argument == "queue" and not list(tmp_path.iterdir())
