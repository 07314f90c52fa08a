"""What several calls refuse alike: an arm that there is not, and more entries at once than a batch may have."""

from __future__ import annotations

from manyarms.live import Live
from manyarms.service.problems import Problem


def check_arm(live: Live, name: str) -> None:
    """404 where no arm has this name."""
    if name not in live.arms:
        raise Problem(404, f"no arm has this name; there are {', '.join(live.arms)}", name="unknown-agent")


def check_size(number: int, most: int, what: str = "") -> None:
    """422 where these are too many."""
    if number > most:
        raise Problem(422, f"{number:,} {what}at once: expected at most {most:,}", name="invalid-input")


__all__ = ["check_arm", "check_size"]
