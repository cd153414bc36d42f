"""The one configuration file: the settings of every room, composed, validated on start.

Every error names the file, the line, the key, what is wrong and what to do. Secrets are not in the file: they come from
environment variables, which the file may name, and from AWS's own credential chain.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from alerts.settings import AlertSettings, Dimension
from collector.settings import CollectorSettings
from dashboards.settings import DashboardSettings
from delivery.settings import DeliverySettings
from inferledger import complaints, yaml_file
from inferledger.schedule import ScheduleSettings
from inferledger.yaml_file import ConfigError, Problem, YamlFile
from reports.settings import DEFAULT_REPORTS, Reports
from warehouse.engine import Layout
from warehouse.measures import COMPONENTS, DIMENSIONS, MEASURES
from warehouse.settings import Settings, WarehouseSettings

FILE_NAME = "inferledger.yaml"
VARIABLE = "INFERLEDGER_CONFIG"
DEMO_FILE = Path(".demo") / FILE_NAME


class OperationsSettings(Settings):
    """The small transactional database: alert states, outbox, publications, job runs."""

    url: str | None = Field(
        default=None,
        description="sqlite:///PATH or postgresql://HOST/DATABASE; default: operations.db in the data folder",
    )

    @field_validator("url")
    @classmethod
    def _usable(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        try:
            url = make_url(value)
        except ArgumentError as error:
            raise ValueError("this is no database URL; write sqlite:///PATH or postgresql://HOST/DATABASE") from error
        if url.get_backend_name() not in ("sqlite", "postgresql", "postgres"):
            raise ValueError(
                f"`{url.get_backend_name()}` is not supported; write sqlite:///PATH or postgresql://HOST/DATABASE"
            )
        if url.password:
            raise ValueError(
                "a password does not belong in this file; leave it out and set PGPASSWORD in the environment"
            )
        base = (info.context or {}).get("base")
        if url.get_backend_name() == "sqlite" and url.database and base is not None:
            return f"sqlite:///{(Path(base) / Path(url.database).expanduser()).resolve()}"
        return value


class Configuration(WarehouseSettings, CollectorSettings):
    """Everything InferLedger can be told. Paths are relative to the file; every key has a working default."""

    data: Path = Field(Path("data"), validate_default=True, description="folder of warehouse and snapshots")
    operations: OperationsSettings = OperationsSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    alerts: AlertSettings = AlertSettings()
    reports: Reports = Field(DEFAULT_REPORTS, description="`[]` is none")
    delivery: DeliverySettings = DeliverySettings()
    dashboard: DashboardSettings = DashboardSettings.model_validate({})

    @field_validator("data")
    @classmethod
    def _relative_to_the_configuration(cls, value: Path, info: ValidationInfo) -> Path:
        base = (info.context or {}).get("base")
        return value if base is None else (Path(base) / value.expanduser()).resolve()

    @property
    def layout(self) -> Layout:
        """Where the files are."""
        return Layout(self.data)

    @property
    def operations_url(self) -> str:
        """The operations database as SQLAlchemy writes it."""
        return self.operations.url or f"sqlite:///{self.layout.operations}"


def find(named: Path | None, environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> Path:
    """The file to read: the named one, else the environment's, else ./inferledger.yaml, else the demo's.

    Raises ConfigError when there is none.
    """
    folder = folder or Path()
    if named is not None:
        return named
    if environ.get(VARIABLE):
        return Path(environ[VARIABLE])
    for candidate in (folder / FILE_NAME, folder / DEMO_FILE):
        if candidate.is_file():
            return candidate
    remedy = f"`inferledger init` writes one, `inferledger demo` makes an example, --config or {VARIABLE} names another"
    raise ConfigError((Problem(str(folder / FILE_NAME), 1, "", "there is no such file", remedy),))


def load(path: Path) -> Configuration:
    """Read and validate a configuration file; raises ConfigError naming everything that is wrong with it."""
    name = str(path)
    if not path.exists():
        remedy = "`inferledger init` writes one; or correct --config" + (
            f" or {VARIABLE}" if os.environ.get(VARIABLE) else ""
        )
        raise ConfigError((Problem(name, 1, "", "there is no such file", remedy),))
    file = yaml_file.read(path, name)
    problems = list(file.problems)
    try:
        configuration = Configuration.model_validate(file.values, context={"base": path.absolute().parent})
    except ValidationError as error:
        problems += [complaints.problem(file, Configuration, each) for each in error.errors()]
    else:
        problems += _across_rooms(file, configuration)
    if problems:
        raise ConfigError(tuple(dict.fromkeys(sorted(problems, key=lambda each: (each.line, each.path)))))
    return configuration


def _across_rooms(file: YamlFile, configuration: Configuration) -> Iterator[Problem]:
    """What one room names and another one has: measures, dimensions and channels."""
    for number, rule in enumerate(configuration.alerts.rules):
        loc: complaints.Loc = ("alerts", "rules", number)
        measure = MEASURES.get(rule.measure)
        if measure is None:
            known = list(MEASURES)
            remedy = f"correct it{complaints.meant(rule.measure, known)}; known are {', '.join(known)}"
            yield complaints.at(file, (*loc, "measure"), f"there is no measure `{rule.measure}`", remedy)
            continue
        for part in (measure.numerator, measure.denominator):
            mart = COMPONENTS[part].mart if part else "cost_day"
            wrong = [name for name in rule.by if name not in DIMENSIONS[mart]]
            if wrong:
                fitting = [name for name in get_args(Dimension) if name in DIMENSIONS[mart]]
                remedy = f"write some of {', '.join(fitting)}" if fitting else "leave `by` out"
                yield complaints.at(file, (*loc, "by"), f"`{rule.measure}` cannot be split by {wrong[0]}", remedy)
    channels = list(configuration.delivery.channels)
    for loc, channel in _named_channels(configuration):
        if channel not in channels:
            yield complaints.at(file, loc, f"there is no channel `{channel}`", _channel_remedy(channel, channels))


def _named_channels(configuration: Configuration) -> Iterator[tuple[complaints.Loc, str]]:
    for place, channel in enumerate(configuration.alerts.channels):
        yield ("alerts", "channels", place), channel
    for number, rule in enumerate(configuration.alerts.rules):
        for place, channel in enumerate(rule.channels or ()):
            yield ("alerts", "rules", number, "channels", place), channel
    for number, report in enumerate(configuration.reports):
        for place, channel in enumerate(report.channels):
            yield ("reports", number, "channels", place), channel


def _channel_remedy(channel: str, channels: list[str]) -> str:
    if not channels:
        return f"add `{channel}` under delivery.channels"
    return f"write one of {', '.join(channels)}{complaints.meant(channel, channels)}, or add it under delivery.channels"


def environment_variables(configuration: Configuration) -> dict[str, str]:
    """Variables that hold secrets the configuration refers to, and which key refers to them."""
    found: dict[str, str] = {}
    for name, channel in configuration.delivery.channels.items():
        for key, value in channel.model_dump().items():
            if re.fullmatch(r"\w+_env", key) and value is not None:
                found.setdefault(str(value), f"delivery.channels.{name}.{key}")
    for source in configuration.sources:
        for key, value in source.model_dump().items():
            if re.fullmatch(r"\w+_env", key) and value:
                named = (
                    {f"{key}.{name}": each for name, each in value.items()} if isinstance(value, dict) else {key: value}
                )
                for place, variable in named.items():
                    found.setdefault(str(variable), f"sources.{source.name}.{place}")
    return found
