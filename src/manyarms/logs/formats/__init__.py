"""File formats of logs, one module a format."""
