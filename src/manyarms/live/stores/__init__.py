"""Where a live log is kept: SQLite in one file, or PostgreSQL."""
