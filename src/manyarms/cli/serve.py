"""`manyarms serve`: the decision service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from manyarms.cli._text import say
from manyarms.cli.commands import COMMANDS
from manyarms.cli.options import On
from manyarms.errors import InvalidInput, MissingExtra

STORE = "live.db"
NEEDED = ("fastapi", "uvicorn", "orjson", "prometheus_client", "cryptography")


@COMMANDS.register("serve")
def serve(
    agent: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A saved agent or policy: it decides first, where the store is new."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="STORE", help="The path of an SQLite file, or postgresql://user@host/name.", show_default=STORE
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in a TOML file; options here take their place.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 for any that is free.", show_default="8080")] = None,
    keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="API keys, made by `manyarms keys add`.", show_default="none")
    ] = None,
    default: Annotated[
        float | None,
        typer.Option(help="The reward of an event without one after the wait.", rich_help_panel="A new store"),
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long an event waits for its reward: 600s, 1h.",
            show_default="600s",
            rich_help_panel="A new store",
        ),
    ] = None,
    reward_range: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH",
            help="The smallest and the largest reward; intervals need it.",
            show_default="none",
            rich_help_panel="A new store",
        ),
    ] = None,
    aggregate: Annotated[
        str | None,
        typer.Option(
            help="Several rewards of an event: first, sum or max.", show_default="first", rich_help_panel="A new store"
        ),
    ] = None,
    on: On = "local",
    replicas: Annotated[
        str | None,
        typer.Option(
            metavar="N | A:B",
            help="With --on ray: how many processes serve, or between how many as the load is. More than one need PostgreSQL.",
            show_default="1",
        ),
    ] = None,
    personalizer: Annotated[
        bool,
        typer.Option("--personalizer", help="Azure Personalizer's calls, too; without --agent its own kind of agent."),
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", help="A made-up shop with simulated visitors.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check the settings.")] = False,
) -> None:
    r"""Serve decisions over HTTP, with a dashboard at /.

    One process and one SQLite file, nothing else to set up. What has been answered is in the store, whatever is killed; the agent
    learns in the background. Stop it with Ctrl-C or SIGTERM: requests under way are answered first. Started again it goes on
    where it was, and --agent is not looked at any more.

    With --on ray it is an application of Ray Serve: several such processes behind one address, on one PostgreSQL store, of which
    one learns.

    It listens on this machine alone. To be reached by others it needs API keys, and should have a certificate.

    Examples:

      manyarms serve --demo
      manyarms serve --agent agent/ --store shop.db --default 0 --wait 1h --reward-range 0,1
      manyarms serve --config service.toml
      manyarms keys add keys.json --name web --scopes decide,reward
      manyarms serve --config service.toml --host 0.0.0.0 --keys keys.json
      manyarms serve --personalizer --store loop.db
      manyarms serve --config service.toml --on ray --replicas 2:6

    Then:

      curl -X POST localhost:8080/v1/decide \
          -H 'Content-Type: application/json' \
          -d '{"context": {"device": "phone"}}'
    """
    _require_extra()
    from manyarms.engine import checked_on, elsewhere
    from manyarms.service.config import make_config, read_config
    from manyarms.service.request_log import start_logging

    options: dict[str, Any] = {
        "agent": agent, "store": store, "host": host, "port": port, "keys": keys, "default": default, "wait": wait,
        "reward_range": None if reward_range is None else _two(reward_range), "aggregate": aggregate,
        "personalizer": personalizer or None,
    }  # fmt: skip
    clustered = elsewhere(checked_on(on))
    if replicas is not None and not clustered:
        raise InvalidInput(
            "--replicas", repr(replicas), "--on ray or --on ray://host:port with it: here is one process"
        )
    if demo:
        from manyarms.service.demo import run_demo

        others = [name for name, value in {**options, "port": None, "config": config}.items() if value is not None]
        others += ["on"] * clustered
        if others:
            came = ", ".join(f"--{name.replace('_', '-')}" for name in others)
            raise InvalidInput(
                "--demo", came, "no option but --port: the shop has a store of its own, on this machine alone"
            )
        run_demo(options, lambda line: say(Console(stderr=True), line, whole=True))
        return
    if config is None and store is None:
        options["store"] = STORE
    settings = make_config({}, options, "manyarms serve") if config is None else read_config(config, **options)
    console = Console(stderr=True)
    from manyarms.service.replicas import check_on_cluster, read_replicas

    number = read_replicas("1" if replicas is None else replicas)
    if clustered:
        check_on_cluster(settings, number, on)
    if check:
        say(console, "the settings are fine")
        return
    if clustered:
        from manyarms.service.on_ray import run_on_ray

        run_on_ray(settings, number, on, lambda at: say(console, _serves(at), f"replicas: {replicas or 1}, on {on}"))
        return
    from manyarms.service.app import create_app
    from manyarms.service.running import run
    from manyarms.service.runtime import open_service

    start_logging(settings.log_format, settings.log_level)
    app = create_app(open_service(settings))
    run(app, settings, lambda address: say(console, _serves(address)))


def _serves(address: str) -> str:
    return f"manyarms serves at {address} (dashboard: {address}/)"


def _two(text: str) -> list[float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput("--reward-range", repr(text), "the smallest and the largest reward, such as 0,1") from None
    return [low, high]


def _require_extra() -> None:
    from importlib.util import find_spec

    for package in NEEDED:
        if find_spec(package) is None:
            raise MissingExtra(package, "service", "manyarms serve")


__all__ = ["serve"]
