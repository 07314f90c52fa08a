"""The command line: one file a command, found by `manyarms.cli.commands`.

app.py          the program: its help, its version, how it ends on an error
commands.py     the registry of commands; options.py: what commands have in common
demo/, reproduce.py, inspect.py, evaluate.py, learn.py, certify.py, version.py
export.py, replay.py, compact.py        live stores
_*.py           what a command needs beside its options, imported when it runs
"""
