"""A PostgreSQL server, for the slow tests that ask for it."""

from live.postgres import postgres

__all__ = ["postgres"]
