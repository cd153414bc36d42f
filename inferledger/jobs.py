"""What the command line, the daemon and the demo do, once: collect, attribute, publish, alert, report, deliver.

Each is a function of the configuration (and of the instant it is given) that returns what it did. Messages for people
are made by the caller.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from alerts import evaluate
from alerts.evaluate import EvaluationReport
from collector.prices.book import price_sources
from collector.registry import kinds
from collector.run import CollectReport, Step
from collector.run import collect as run_collectors
from delivery.channels import Channel, open_channels
from delivery.worker import DeliveryReport, deliver_due
from inferledger import evidence, operations
from inferledger.config import Configuration
from inferledger.exits import ControlsFailed, UsageError
from reports.run import ReportRun
from reports.run import run as run_report
from warehouse import attribution, measures
from warehouse import publish as publisher
from warehouse.attribution import AttributionReport
from warehouse.engine import writing
from warehouse.publish import Publication
from warehouse.snapshot import Scope, Snapshot

Say = Callable[[str], None]


def silent(_: object) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Alerted:
    """One evaluation, and what could be delivered of its messages."""

    evaluation: EvaluationReport
    delivery: DeliveryReport


@dataclass(frozen=True)
class Reported:
    """What became of each report, and what could be delivered of their messages."""

    runs: tuple[ReportRun, ...]
    delivery: DeliveryReport

    @property
    def problems(self) -> list[str]:
        """Lines for a person."""
        return [*(line for run in self.runs for line in run.problems), *self.delivery.problems]


def now_to_the_hour() -> datetime:
    """The default `as_of` of attribution: the hour that has begun, UTC."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def sources(configuration: Configuration) -> dict[str, str]:
    """Every source by name, prices included, with the family it belongs to: billing, usage, metrics, prices."""
    found = [
        *price_sources(configuration, configuration.currency),
        *(kinds()[each.kind].open(each) for each in configuration.sources),
    ]
    return {source.name: source.family for source in found}


def chosen_sources(configuration: Configuration, only: str | None, names: list[str]) -> set[str] | None:
    """Names that `--only` and `--source` leave; None for all. Raises UsageError when there are none."""
    if only is None and not names:
        return None
    known = sources(configuration)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"No source is called `{unknown[0]}`. There are: {', '.join(known)}.")
    left = {name for name, family in known.items() if (only is None or family == only) and (not names or name in names)}
    if not left:
        raise UsageError(f"No source is left: none of {', '.join(names or known)} is of the family `{only}`.")
    return left


def collect(
    configuration: Configuration,
    only: set[str] | None = None,
    as_of: datetime | None = None,
    progress: Callable[[Step], None] = silent,
) -> CollectReport:
    """Load what is new."""
    evidence.prepare(configuration, "collect")
    return run_collectors(
        configuration.layout,
        configuration,
        only,
        as_of,
        progress,
        engine=configuration.engine,
        attribution=configuration.attribution,
        currency=configuration.currency,
    )


def attribute(configuration: Configuration, as_of: datetime | None = None, progress: Say = silent) -> AttributionReport:
    """Bring the ledger up to date with the evidence as of an instant; default: the hour that has begun."""
    evidence.prepare(configuration, "attribute")
    with writing(configuration.layout, "attribute", configuration.engine) as connection:
        return attribution.attribute(connection, configuration, as_of or now_to_the_hour(), progress)


def publish(configuration: Configuration, progress: Say = silent) -> Publication:
    """Make the ledger visible to readers, and keep a record of it.

    Raises NothingAttributed before the first attribution, ControlsFailed when the books do not balance.
    """
    evidence.prepare(configuration, "publish")
    with writing(configuration.layout, "publish", configuration.engine) as connection:
        done = publisher.publish(connection, configuration.layout, configuration, progress)
    if done.held:
        raise ControlsFailed(done.held)
    with operations.opened(configuration) as engine:
        operations.record_publication(engine, snapshot(configuration), done)
    return done


def snapshot(configuration: Configuration, who: str = "inferledger") -> Snapshot:
    """The published snapshot, whole; raises NothingPublished."""
    return Snapshot.open(configuration.layout.published, Scope.everything(who))


def alert(
    configuration: Configuration, now: datetime | None = None, channels: Mapping[str, Channel] | None = None
) -> Alerted:
    """Evaluate every rule on the snapshot, then send what waits. `channels` stands in for the configured ones."""
    now = now or datetime.now(UTC)
    channels = open_channels(configuration.delivery) if channels is None else channels
    published = snapshot(configuration, "alert")
    with operations.opened(configuration) as engine:
        evaluation = evaluate.run(published, configuration.alerts, engine, list(channels), now, measures=measures)
        return Alerted(evaluation, deliver_due(engine, channels, now))


def deliver(
    configuration: Configuration, now: datetime | None = None, channels: Mapping[str, Channel] | None = None
) -> DeliveryReport:
    """Send what waits in the outbox."""
    channels = open_channels(configuration.delivery) if channels is None else channels
    with operations.opened(configuration) as engine:
        return deliver_due(engine, channels, now or datetime.now(UTC))


def report(
    configuration: Configuration,
    names: Collection[str] | None = None,
    *,
    by_hand: bool = False,
    now: datetime | None = None,
    channels: Mapping[str, Channel] | None = None,
) -> Reported:
    """Make the reports that are due (or, `by_hand`, those named, whatever their schedule), then send them."""
    now = now or datetime.now(UTC)
    channels = open_channels(configuration.delivery) if channels is None else channels
    runs: list[ReportRun] = []
    with operations.opened(configuration) as engine:
        for settings in configuration.reports:
            if names is None or settings.name in names:
                published = Snapshot.open(configuration.layout.published, settings.scope())
                folder = reports_folder(configuration)
                runs.append(
                    run_report(published, settings, engine, list(channels), now, folder=folder, by_hand=by_hand)
                )
        return Reported(tuple(runs), deliver_due(engine, channels, now))


def reports_folder(configuration: Configuration) -> Path:
    """Where the pages of reports are kept."""
    return configuration.data / "reports"
