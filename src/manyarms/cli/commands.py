"""The commands by name. A new one is a file in this package:

    @COMMANDS.register("hello")
    def hello(name: Annotated[str, typer.Argument(help="Whom to greet.")]) -> None:
        '''Greet somebody.'''

Another distribution names its module in the entry-point group "manyarms.commands". A function's signature and docstring are the
command's options and help (Typer's conventions); heavy imports belong into the function.
"""

from __future__ import annotations

from collections.abc import Callable

from manyarms._base.registry import Registry

COMMANDS: Registry[Callable[..., None]] = Registry("command", package="manyarms.cli", group="manyarms.commands")

__all__ = ["COMMANDS"]
