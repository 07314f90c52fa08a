"""The page for those who come from Personalizer is true: its program runs against `manyarms serve --personalizer`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manyarms.service.keys import Keys
from service.server import Process, Server, start_command

PAGE = Path(__file__).resolve().parents[3] / "docs" / "moving" / "personalizer.md"


def without_agent(arguments: Sequence[str], log: Path) -> Process:
    """The service that knows nothing beforehand."""
    place = list(arguments).index("--agent")
    return start_command([*arguments[:place], *arguments[place + 2 :]], log)


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    code = re.search(r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert code is not None
    keys = Keys.open(tmp_path / "keys.json", make=True)
    key = keys.add("shop", ["decide", "reward", "read", "admin"])
    options = ["--personalizer"]
    with Server(tmp_path, agent=tmp_path, keys=keys.path, options=options, starter=without_agent) as server:
        text = code[1].replace("http://127.0.0.1:8080", server.address).replace("ma_...", key)
        assert text.count(server.address) == text.count(key) == 1
        page: dict[str, Any] = {}
        exec(compile(text, str(PAGE), "exec", dont_inherit=True), page)
        assert page["ranked"]["rewardActionId"] in ("pasta", "salad")
        settings = page["call"]("GET", "/configurations/service")
        assert (settings["rewardWaitTime"], settings["defaultReward"], settings["rewardAggregation"]) == (
            "PT10M",
            0,
            "earliest",
        )
        server.restart()  # what was ranked is still there
        page["BASE"] = server.address
        page["call"]("POST", f"/events/{page['ranked']['eventId']}/reward", {"value": 1.0})
