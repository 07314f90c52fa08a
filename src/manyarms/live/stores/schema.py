"""The tables of a live log, their version, and how an older store becomes one of today's.

Types are written as `INTEGER` (64 bits), `REAL` (double precision), `TEXT` and `BYTES`; a database puts its own names in their
place. A store says its version in the table `meta`; `MIGRATIONS[v]` are the statements that make a store of version v one of
version v + 1, run in one transaction.
"""

from __future__ import annotations

VERSION = 4
VERSION_NAME = "schema_version"
"""The row of `meta` that says the version."""

TABLES = (
    # name and value of what there is once: the schema's version, the settings, the salt of routing
    "CREATE TABLE meta (name TEXT PRIMARY KEY, body TEXT NOT NULL)",
    # the last position and its time: one row
    "CREATE TABLE counter (id INTEGER PRIMARY KEY, position INTEGER NOT NULL, at REAL NOT NULL)",
    "INSERT INTO counter VALUES (1, 0, 0.0)",
    """CREATE TABLE decisions (
        position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, unit TEXT, arm TEXT NOT NULL,
        version INTEGER NOT NULL, draw INTEGER NOT NULL, digest BYTES NOT NULL, context BYTES, question TEXT NOT NULL,
        actions TEXT NOT NULL, propensity REAL, arm_propensity REAL, inclusion REAL, propensity_kind TEXT, details TEXT NOT NULL,
        erased INTEGER NOT NULL, active INTEGER NOT NULL DEFAULT 1)""",
    "CREATE INDEX decisions_by_unit ON decisions (unit, version)",
    "CREATE INDEX decisions_by_version ON decisions (version)",
    "CREATE INDEX decisions_by_time ON decisions (at)",
    # the units of decisions that compaction has deleted, by a hash: their arms were drawn long ago
    "CREATE TABLE units (unit INTEGER PRIMARY KEY)",
    """CREATE TABLE rewards (
        position INTEGER PRIMARY KEY, decision INTEGER NOT NULL, action INTEGER NOT NULL, id TEXT NOT NULL,
        value REAL NOT NULL, at REAL NOT NULL, UNIQUE (decision, action, id))""",
    # decisions that were made as inactive, and are shown after all
    "CREATE TABLE activations (position INTEGER PRIMARY KEY, decision INTEGER NOT NULL UNIQUE, at REAL NOT NULL)",
    "CREATE TABLE operations (position INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL)",
    """CREATE TABLE chunks (
        version INTEGER PRIMARY KEY, upto INTEGER NOT NULL, due INTEGER NOT NULL, at REAL NOT NULL, token INTEGER NOT NULL)""",
    """CREATE TABLE snapshots (
        version INTEGER PRIMARY KEY, upto INTEGER NOT NULL, writing TEXT NOT NULL, parts INTEGER NOT NULL, sha256 TEXT NOT NULL,
        at REAL NOT NULL, origin INTEGER NOT NULL)""",
    "CREATE TABLE snapshot_parts (writing TEXT NOT NULL, part INTEGER NOT NULL, body BYTES NOT NULL, "
    "PRIMARY KEY (writing, part))",
    """CREATE TABLE propensities (
        decision INTEGER PRIMARY KEY, propensity REAL NOT NULL, arm_propensity REAL NOT NULL, inclusion REAL NOT NULL,
        error REAL NOT NULL, draws INTEGER NOT NULL)""",
    "CREATE TABLE leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, token INTEGER NOT NULL, expires REAL NOT NULL)",
)

MIGRATIONS: dict[int, tuple[str, ...]] = {
    # decisions that may never be shown are activated when they are; units outlive their decisions
    1: (
        "CREATE TABLE units (unit INTEGER PRIMARY KEY)",
        "ALTER TABLE decisions ADD COLUMN active INTEGER NOT NULL DEFAULT 1",
        "CREATE INDEX decisions_by_time ON decisions (at)",
        "DROP INDEX decisions_by_unit",
        "CREATE INDEX decisions_by_unit ON decisions (unit, version)",
    ),
    2: ("CREATE TABLE activations (position INTEGER PRIMARY KEY, decision INTEGER NOT NULL UNIQUE, at REAL NOT NULL)",),
    # the same tables: snapshots watch drift, and decisions may have times, which earlier releases would drop without a word
    3: (),
}

__all__ = ["MIGRATIONS", "TABLES", "VERSION", "VERSION_NAME"]
