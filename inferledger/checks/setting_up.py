"""The configuration, its secrets, and whether sources and channels can be reached."""

import os
from datetime import UTC, datetime
from typing import Any

from collector.registry import kinds
from collector.source import CollectError
from collector.store import open_store
from delivery.channels import open_channels
from inferledger import jobs
from inferledger.checks.check import Check, Checks
from inferledger.config import Configuration, environment_variables
from inferledger.figures import count


def config(configuration: Configuration) -> Checks:
    """Whether anything essential is left out."""
    yield Check(
        "config", "file", "ok", f"{len(configuration.sources)} source(s), {len(configuration.owners)} owner rule(s)"
    )
    families = set(jobs.sources(configuration).values())
    if "billing" not in families:
        yield Check(
            "config",
            "bill",
            "warn",
            "no bill is configured, so every cost is an estimate",
            "add the cloud bill's export under `sources`, kind bill",
        )
    if "usage" not in families:
        yield Check(
            "config",
            "usage log",
            "warn",
            "no usage log is configured, so no cost can be attributed",
            "add a gateway log under `sources`, kind litellm or generic",
        )
    if configuration.fleet.routes and "metrics" not in families:
        yield Check(
            "config",
            "fleet",
            "warn",
            "fleet.routes is configured and no metrics source is, so the own GPUs are not known",
            "add a source of kind prometheus, openmetrics or pool_table under `sources`",
        )
    if not configuration.owners:
        yield Check(
            "config",
            "owners",
            "warn",
            "no owner rule is configured, so no cost has a team",
            "add rules under `owners` that map claims, such as key_alias, to teams",
        )


def credentials(configuration: Configuration) -> Checks:
    """Environment variables that the configuration names."""
    for variable, key in environment_variables(configuration).items():
        if os.environ.get(variable, "").strip():
            yield Check("credentials", variable, "ok", f"set, for {key}")
        else:
            yield Check(
                "credentials",
                variable,
                "fail",
                f"not set, and {key} needs it",
                f"export {variable}=... for the process that runs inferledger",
            )


def sources(configuration: Configuration) -> Checks:
    """Whether every location can be listed and every server answers, with the credentials there are."""
    for settings in configuration.sources:
        server = getattr(kinds()[settings.kind].open(settings), "server", None)
        if server is not None:
            yield _server(settings.name, server)
            continue
        try:
            found = open_store(settings).list()
        except CollectError as error:
            yield Check("sources", settings.name, "fail", f"{error.where}: {error.what}", error.remedy)
            continue
        if found:
            yield Check("sources", settings.name, "ok", f"{count(len(found))} object(s) at {settings.location}")
        else:
            yield Check(
                "sources",
                settings.name,
                "warn",
                f"nothing is at {settings.location}",
                "correct the source's `location`, or wait for the first delivery",
            )


def _server(name: str, server: Any) -> Check:
    """Whether a metrics server answers."""
    try:
        clock = datetime.fromtimestamp(server.clock(), UTC)
    except CollectError as error:
        return Check("sources", name, "fail", f"{error.where}: {error.what}", error.remedy)
    return Check("sources", name, "ok", f"{server.url} answers; its clock says {clock:%Y-%m-%d %H:%M} UTC")


def channels(configuration: Configuration) -> Checks:
    """Whether messages could leave; nothing is sent."""
    for name, channel in open_channels(configuration.delivery).items():
        problems = channel.check()
        if not problems:
            yield Check("channels", name, "ok", "can be reached")
        for problem in problems:
            what, _, remedy = problem.removeprefix(f"channel `{name}`: ").partition("; ")
            yield Check("channels", name, "fail", what, remedy or "correct it under delivery.channels")
