"""The command line: one file a command, found by `manyarms.cli.commands`.

app.py          the program: its sections, its version, how it ends on an error (one line; --traceback for the rest)
commands.py     the registry of commands; options.py: what commands have in common
inspect.py, evaluate.py, compare.py, choose.py, tune.py, learn.py, certify.py, decide.py        logs and policies
export.py, replay.py, compact.py        live stores
demo/, reproduce.py, version.py
_help.py        help as plain text at any width; _flags.py: messages name flags, not Python's arguments
_policies.py    what stands for a policy: a folder, uniform, logging, a column; _reading.py: how a log is read
_*.py           what a command needs beside its options
"""
