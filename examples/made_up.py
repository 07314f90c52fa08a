"""Made-up data for the examples, in the form in which shops and apps have it. Put your own in its place.

FULL=1 in the environment makes it as large as in earnest: 200,000 clicks on 30,000 SKUs, 100,000 notifications.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

FULL = os.environ.get("FULL", "") not in ("", "0")
DEVICES, TOWNS = ("phone", "tablet", "desktop"), ("Ulm", "Bonn", "Kiel", "Jena")


def _softmax(scores: np.ndarray) -> np.ndarray:
    mass = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return mass / mass.sum(axis=-1, keepdims=True)


def shop(folder: Path | str = ".", rows: int | None = None, skus: int | None = None) -> tuple[Path, Path]:
    """clicks.csv and items.csv of a shop that showed one item to each visitor and logged how likely that was.

    A visitor's device and age say which categories he likes; the shop knew a little of it. Some ages are missing.
    """
    rows, skus = rows or (200_000 if FULL else 20_000), skus or (30_000 if FULL else 1_000)
    rng = np.random.default_rng(0)
    category = rng.integers(20, size=skus)
    price = np.round(np.exp(rng.normal(3.0, 0.7, skus)), 2)
    likes = rng.normal(0.0, 1.0, (len(DEVICES), 2, 20))  # of a device and an age group, for a category
    device, age = rng.integers(len(DEVICES), size=rows), rng.integers(18, 80, rows)
    liked = likes[device, (age > 45).astype(int)]  # (rows, categories)
    known = _softmax(0.4 * liked)
    shown_category = (known.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(max=19)
    members = [np.flatnonzero(category == one) for one in range(20)]
    sku = np.array(
        [members[one][int(u * len(members[one]))] for one, u in zip(shown_category, rng.random(rows), strict=True)]
    )
    propensity = known[np.arange(rows), shown_category] / np.array([len(one) for one in members])[shown_category]
    appeal = -3.0 + 1.2 * liked[np.arange(rows), shown_category] - 0.3 * np.log(price[sku] / 20)
    clicked = rng.random(rows) < 1 / (1 + np.exp(-appeal))
    seen = rng.random(rows) > 0.05
    folder = Path(folder)
    _write(folder / "items.csv", ["sku", "category", "price"], (
        (f"SKU-{i:05}", f"category {category[i]}", price[i]) for i in range(skus)
    ))  # fmt: skip
    _write(folder / "clicks.csv", ["time", "device", "age", "sku", "propensity", "click"], (
        (1_700_000_000 + 30 * i, DEVICES[device[i]], age[i] if seen[i] else "", f"SKU-{sku[i]:05}", f"{propensity[i]:.12g}",
         int(clicked[i])) for i in range(rows)
    ))  # fmt: skip
    return folder / "clicks.csv", folder / "items.csv"


def _write(path: Path, header: list[str], lines: Iterator[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows(lines)


class Notifications:
    """An app that may send one of 300 messages to a user, and learns whether it is opened.

    messages: columns (message, topic, length), one entry a message. users(): the users one after the other, as dictionaries.
    """

    def __init__(self, number: int | None = None) -> None:
        self.number = number or (100_000 if FULL else 2_000)
        self._rng = np.random.default_rng(1)
        topic = self._rng.integers(8, size=300)
        self.messages = {
            "message": [f"msg-{i}" for i in range(300)],
            "topic": [f"topic {t}" for t in topic],
            "length": self._rng.integers(20, 140, 300).tolist(),
        }
        self._device, self._town = (self._rng.normal(0.0, 0.8, (8, len(names))) for names in (DEVICES, TOWNS))
        self._own = dict(zip(self.messages["message"], self._rng.normal(0.0, 0.3, 300), strict=True))
        self._topic = dict(zip(self.messages["message"], topic.tolist(), strict=True))

    def users(self, number: int | None = None) -> Iterator[dict[str, object]]:
        """Users as they come."""
        for _ in range(number or self.number):
            device, town = DEVICES[self._rng.integers(3)], TOWNS[self._rng.integers(4)]
            yield {"device": device, "town": town, "days_since_visit": float(self._rng.integers(30))}

    def opened(self, user: dict[str, object], message: str) -> float:
        """1.0 if the user opens the message."""
        device, town = DEVICES.index(str(user["device"])), TOWNS.index(str(user["town"]))
        topic = self._topic[message]
        score = -1.5 + self._device[topic, device] + self._town[topic, town] + self._own[message]
        return float(self._rng.random() < 1 / (1 + np.exp(-score)))
