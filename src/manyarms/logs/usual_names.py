"""The usual names of columns: what a name is as good as a statement for, and which names are as good as each other.

For every part of a log there are ranks, the best first. In a rank there are things (an item, a product), each with its spellings,
the best first: `item_id` is taken before `item`, which is the same thing by another name. Two things of one rank are two
candidates, and nobody but the log's owner knows which one it is: that is said, and nothing guessed.

Case, blanks, hyphens and underscores do not count: `itemId`, `Item ID` and `item_id` are one name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from manyarms.errors import InvalidInput
from manyarms.logs.tables import Kind

ESTIMATE = "propensity_estimate"  # a column of this name holds estimates, and says so
ESTIMATED = "propensity_is_estimate"  # a column of this name says of each row whether its propensity is one

Rank = tuple[tuple[str, ...], ...]
USUAL: dict[str, tuple[Rank, ...]] = {
    "action": (
        (("action", "action_id", "actions", "chosen_action"),),
        (
            ("arm", "arm_id"), ("item_id", "item"), ("sku", "sku_id"), ("product_id", "product"), ("content_id", "content"),
            ("article_id", "article"), ("ad_id", "ad"), ("creative_id", "creative"), ("offer_id", "offer"), ("movie_id", "movie"),
            ("video_id", "video"), ("track_id", "track", "song_id", "song"), ("variant_id", "variant"),
            ("treatment_id", "treatment"), ("template_id", "template"), ("prompt_id", "prompt"), ("model_id", "model"),
        ),
        (("a",),),
    ),
    "reward": (
        (("reward", "rewards"),),
        (
            ("click", "clicked", "clicks", "is_click", "is_clicked"), ("purchase", "purchased", "is_purchase"),
            ("conversion", "converted", "is_conversion"), ("rating",), ("revenue",), ("opened", "open"),
        ),
        (("label",), ("outcome",), ("feedback",)),
        (("r",),),
    ),
    "propensity": (
        (("propensity", ESTIMATE, "propensity_score", "pscore", "propensities"),),
        (("probability", "prob", "action_probability", "action_prob"),),
        (("p",), ("pi0",)),
    ),
    "event_id": (
        (("event_id", "event"),),
        (("request_id",), ("impression_id",), ("decision_id",)),
    ),
    "timestamp": (
        (("timestamp", "ts"),),
        (("time", "datetime", "date_time"), ("event_time",), ("created_at",), ("occurred_at",), ("logged_at",)),
        (("date", "day"),),
    ),
    "group": (
        (("group", "group_id"),),
        (
            ("user_id", "user", "uid"), ("customer_id", "customer"), ("visitor_id", "visitor"), ("member_id", "member"),
            ("account_id", "account"), ("client_id", "client"), ("patient_id", "patient"), ("player_id", "player"),
        ),
        (("session_id", "session"), ("device_id",)),
    ),
    "estimated": (((ESTIMATED,),),),
}  # fmt: skip
FITTING = {
    "action": ("number", "text", "mixed"),
    "reward": ("number", "mixed"),
    "propensity": ("number", "mixed"),
    "event_id": ("number", "text", "mixed"),
    "timestamp": ("number", "text", "time"),
    "group": ("number", "text", "mixed"),
    "estimated": ("number", "text"),
}
"""What a column must hold to be taken for a part by anything but its best names."""


def plain(name: str) -> str:
    """A name without what does not count."""
    return re.sub(r"[\W_]", "", name.lower())


def guessed(part: str, kinds: Mapping[str, Kind], source: str, taken: Collection[str] = ()) -> str | None:
    """The column that a part is, by its name; None where there is none, an error where there are two.

    taken: columns that were said to be something else, which are no candidates beside others.
    """
    by_plain = {plain(name): name for name in reversed(list(kinds))}
    by_plain |= {plain(name): name for name in kinds if plain(name) == name.replace("_", "")}  # the usual writing first
    for rank, things in enumerate(USUAL[part]):
        found = []
        for spellings in things:
            names = [by_plain[plain(one)] for one in spellings if plain(one) in by_plain]
            fitting = [name for name in names if rank == 0 or kinds[name].name in FITTING[part]]
            found += fitting[:1]
        if len(found) > 1:
            found = [name for name in found if name not in taken] or found
        if len(found) > 1:
            came = " and ".join(repr(name) for name in found)
            expected = f"to be told which column of {source} it is" + (
                "" if part in ("action", "reward") else ", or None"
            )
            raise InvalidInput(f"columns.{part}", f"nothing, and {came} to choose from", expected)
        if found:
            return found[0]
    return None


def some_usual(part: str) -> str:
    """A few of a part's names, for a message."""
    names = [spellings[0] for things in USUAL[part] for spellings in things]
    return ", ".join(names[:4])


__all__ = ["ESTIMATE", "ESTIMATED", "USUAL", "guessed", "some_usual"]
