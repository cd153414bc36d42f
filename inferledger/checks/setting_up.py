"""The configuration, its secrets, and whether sources and channels can be reached."""

import os

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
            "add the cloud bill's export under `sources`, kind cur2",
        )
    if "usage" not in families:
        yield Check(
            "config",
            "usage log",
            "warn",
            "no usage log is configured, so no cost can be attributed",
            "add a gateway log under `sources`, kind litellm or generic",
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
    """Whether every location can be listed, with the credentials there are."""
    for settings in configuration.sources:
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


def channels(configuration: Configuration) -> Checks:
    """Whether messages could leave; nothing is sent."""
    for name, channel in open_channels(configuration.delivery).items():
        problems = channel.check()
        if not problems:
            yield Check("channels", name, "ok", "can be reached")
        for problem in problems:
            what, _, remedy = problem.removeprefix(f"channel `{name}`: ").partition("; ")
            yield Check("channels", name, "fail", what, remedy or "correct it under delivery.channels")
