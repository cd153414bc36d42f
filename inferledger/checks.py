"""What `inferledger doctor` looks at: is everything there, reachable, fresh, complete and balanced, and what to do if not.

`fail` stops figures from being right or from arriving, `warn` makes them less than they could be.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal

from sqlalchemy.exc import OperationalError

from collector.source import CollectError
from collector.store import open_store
from delivery import outbox
from delivery.channels import open_channels
from inferledger import evidence, jobs, operations
from inferledger.config import Configuration, environment_variables
from inferledger.figures import count, money, mtok, percent
from migrations import run as migrations
from warehouse import measures
from warehouse.engine import WarehouseBusy, writing
from warehouse.operations import connect
from warehouse.snapshot import NothingPublished, Snapshot

Result = Literal["ok", "warn", "fail"]

STALE = {"billing": timedelta(days=2), "usage": timedelta(days=1)}
STALE_SNAPSHOT = timedelta(days=1)
STUCK_JOB = timedelta(hours=6)
NOTABLE_SHARE = 0.05


@dataclass(frozen=True)
class Check:
    """One thing looked at. `remedy` says what to do unless it is ok."""

    area: str
    subject: str
    result: Result
    detail: str
    remedy: str = ""


Checks = Iterator[Check]


def run(configuration: Configuration, now: datetime) -> list[Check]:
    """Every check, in the order in which evidence flows."""
    found = [
        *_config(configuration),
        *_credentials(configuration),
        *_sources(configuration),
        *_channels(configuration),
        *_warehouse(configuration),
        *_operations(configuration, now),
    ]
    try:
        snapshot = jobs.snapshot(configuration, "doctor")
    except NothingPublished:
        remedy = "run `inferledger collect`, `inferledger attribute` and `inferledger publish`, or leave `inferledger run` running"
        return [*found, Check("snapshot", "published", "fail", "nothing has been published yet", remedy)]
    return [
        *found,
        *_snapshot(snapshot, now),
        *_freshness(snapshot, now),
        *_rejected(snapshot),
        *_controls(snapshot),
        *_unknown(snapshot),
    ]


def _config(configuration: Configuration) -> Checks:
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


def _credentials(configuration: Configuration) -> Checks:
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


def _sources(configuration: Configuration) -> Checks:
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


def _channels(configuration: Configuration) -> Checks:
    for name, channel in open_channels(configuration.delivery).items():
        problems = channel.check()
        if not problems:
            yield Check("channels", name, "ok", "can be reached")
        for problem in problems:
            what, _, remedy = problem.removeprefix(f"channel `{name}`: ").partition("; ")
            yield Check("channels", name, "fail", what, remedy or "correct it under delivery.channels")


def _warehouse(configuration: Configuration) -> Checks:
    layout = configuration.layout
    if not layout.warehouse.exists():
        yield Check(
            "databases", "warehouse", "warn", f"{layout.warehouse} is not there yet", "run `inferledger collect`"
        )
        return
    if not os.access(layout.data, os.W_OK):
        yield Check("databases", "warehouse", "ok", "may only be read here")
        return
    at_once = configuration.engine.model_copy(update={"lock_wait_seconds": 0.0})
    try:
        with writing(layout, "doctor", at_once) as connection:
            stands_at = evidence.revision(connection)
    except WarehouseBusy as error:
        yield Check("databases", "warehouse", "ok", f"in use: {str(error).partition(' Wait ')[0]}")
        return
    yield _revision("warehouse", stands_at, migrations.heads("evidence")[0])


def _operations(configuration: Configuration, now: datetime) -> Checks:
    if configuration.operations.url is None and not configuration.layout.operations.exists():
        yield Check(
            "databases",
            "operations",
            "warn",
            f"{configuration.layout.operations} is not there yet",
            "run `inferledger db upgrade`",
        )
        return
    engine = connect(configuration.operations_url)
    shown = engine.url.render_as_string(hide_password=True)
    try:
        stands_at, head = operations.revision(engine), migrations.heads("operations")[0]
        yield _revision("operations", stands_at, head)
        if stands_at == head:
            with engine.connect() as connection:
                waiting = outbox.problems(connection, now=now)
            yield from _outbox(waiting)
            yield from _jobs(operations.last_jobs(engine), now)
    except OperationalError as error:
        said = (str(error.orig).strip().splitlines() or ["no answer"])[0]
        yield Check(
            "databases",
            "operations",
            "fail",
            f"{shown}: {said}",
            "check operations.url, that it is up, and PGPASSWORD in the environment if it is PostgreSQL",
        )
    finally:
        engine.dispose()


def _revision(name: str, stands_at: str | None, head: str) -> Check:
    if stands_at == head:
        return Check("databases", name, "ok", f"at revision {head}")
    return Check(
        "databases",
        name,
        "fail",
        f"at revision {stands_at or 'none'}, and {head} is needed",
        "run `inferledger db upgrade`",
    )


def _outbox(problems: Sequence[str]) -> Checks:
    if not problems:
        yield Check("outbox", "messages", "ok", "none is stuck")
    for problem in problems:
        what, _, remedy = problem.partition(". Look there; then ")
        yield Check(
            "outbox", "messages", "fail" if remedy else "warn", what.rstrip("."), remedy or "check the channel above"
        )


def _jobs(runs: Sequence[operations.JobRun], now: datetime) -> Checks:
    for job in runs:
        began = f"began {job.started_at:%Y-%m-%d %H:%M} UTC"
        if job.status == "failed":
            yield Check(
                "jobs",
                job.job,
                "fail",
                f"failed ({began}): {job.detail}",
                "mend what it says; it is tried again on schedule",
            )
        elif job.status == "findings":
            yield Check(
                "jobs", job.job, "warn", f"{began}: {job.detail}", "mend what it says; it is tried again on schedule"
            )
        elif job.status == "running" and now - job.started_at > STUCK_JOB:
            yield Check(
                "jobs",
                job.job,
                "warn",
                f"{began} and has not ended",
                "see whether `inferledger run` still runs; start it again",
            )
        else:
            yield Check("jobs", job.job, "ok", f"{job.status}, {began}")


def _snapshot(snapshot: Snapshot, now: datetime) -> Checks:
    about = f"{snapshot.manifest_id[:8]} as of {snapshot.as_of:%Y-%m-%d %H:%M} UTC"
    if snapshot.held:
        yield Check(
            "snapshot",
            "published",
            "fail",
            f"{about}; a newer state is held back: {'; '.join(snapshot.held[:5])}",
            "report this as a defect; the published snapshot is the last good one",
        )
    elif now - snapshot.as_of > STALE_SNAPSHOT:
        yield Check(
            "snapshot",
            "published",
            "warn",
            f"{about}, {_age(now - snapshot.as_of)} ago",
            "leave `inferledger run` running, or run collect, attribute and publish by a timer",
        )
    else:
        yield Check("snapshot", "published", "ok", about)


def _freshness(snapshot: Snapshot, now: datetime) -> Checks:
    for row in snapshot.sql(
        "SELECT source, kind, last_at, rows_loaded FROM source_state ORDER BY kind, source"
    ).to_pylist():
        if row["kind"] not in STALE or row["last_at"] is None:
            continue
        last = row["last_at"].replace(tzinfo=UTC)
        about = f"{count(row['rows_loaded'])} rows, the latest of {last:%Y-%m-%d %H:%M} UTC"
        if last > now + timedelta(hours=1) and row["kind"] == "usage":
            yield Check(
                "freshness",
                row["source"],
                "warn",
                f"{about}, which is still to come",
                "set the clock of whoever writes that log",
            )
        elif now - last > STALE[row["kind"]]:
            yield Check(
                "freshness",
                row["source"],
                "warn",
                f"{about}, {_age(now - last)} ago",
                "see whether its files still arrive, and run `inferledger collect`",
            )
        else:
            yield Check("freshness", row["source"], "ok", about)


def _rejected(snapshot: Snapshot) -> Checks:
    rows = snapshot.sql(
        "SELECT r.source, r.reason, r.rows, r.detail, r.example_location, r.example_line, s.loaded FROM rejected AS r LEFT JOIN "
        "(SELECT source, sum(rows_loaded) AS loaded FROM source_state GROUP BY ALL) AS s ON s.source = r.source ORDER BY ALL"
    ).to_pylist()
    if not rows:
        yield Check("rows", "rejected", "ok", "none was refused")
    for row in rows:
        where = row["example_location"] + (f" line {row['example_line']}" if row["example_line"] is not None else "")
        about = f" ({row['detail']})" if row["detail"] else ""
        yield Check(
            "rows",
            row["source"],
            "warn" if row["loaded"] else "fail",
            f"{count(row['rows'])} refused as {row['reason']}{about}, e.g. {where}",
            "mend what writes them and deliver the file anew; the others are loaded",
        )


def _controls(snapshot: Snapshot) -> Checks:
    wrong = snapshot.sql(
        "SELECT name, subject, lhs, rhs, difference FROM control WHERE NOT ok ORDER BY ALL"
    ).to_pylist()
    for row in wrong:
        yield Check(
            "controls",
            row["name"],
            "fail",
            f"{row['subject']}: {row['lhs']} is not {row['rhs']}",
            "report this as a defect",
        )
    balances = snapshot.sql(
        "SELECT billing_period, currency, cost_basis, difference_usd FROM balance ORDER BY ALL"
    ).to_pylist()
    for row in balances:
        if row["difference_usd"]:
            yield Check(
                "controls",
                f"bill of {row['billing_period']}",
                "fail",
                f"{row['cost_basis']} in {row['currency']}: {row['difference_usd']} is missing from the ledger",
                "report this as a defect",
            )
    if not wrong and not any(row["difference_usd"] for row in balances):
        held = snapshot.sql("SELECT count(*) AS controls FROM control").to_pylist()[0]["controls"]
        yield Check(
            "controls", "books", "ok", f"{count(held)} controls hold; {count(len(balances))} balance(s) are exact"
        )


def _unknown(snapshot: Snapshot) -> Checks:
    by_model = measures.table(snapshot, ["unpriced_tokens", "unknown_cost_tokens"], ("model",)).to_pylist()
    unpriced = [row for row in by_model if row["unpriced_tokens"] or row["unknown_cost_tokens"]]
    for row in unpriced:
        yield Check(
            "prices",
            row["model"] or "(unknown model)",
            "warn",
            f"{mtok(row['unpriced_tokens'])} tokens have no price; the cost of {mtok(row['unknown_cost_tokens'])} is unknown",
            "add the model under prices.contract, or an alias under models.aliases",
        )
    if not unpriced:
        yield Check("prices", "models", "ok", "every logged model has a price")
    figures = measures.table(
        snapshot, ["unattributed_share", "unattributed_cost_usd", "ownerless_share", "ownerless_cost_usd"]
    )
    row = figures.to_pylist()[0]
    yield _share(
        "unattributed",
        row["unattributed_share"],
        row["unattributed_cost_usd"],
        snapshot.currency,
        "see the page Reconciliation: which account, model or region has no usage log",
    )
    yield _share(
        "without a team",
        row["ownerless_share"],
        row["ownerless_cost_usd"],
        snapshot.currency,
        "see the page Teams and apps for claims that no rule knows, and add rules under `owners`",
    )


def _share(what: str, share: float | None, cost: Decimal | None, currency: str, remedy: str) -> Check:
    shown = None if share is None else Decimal(repr(share))
    detail = f"{money(cost, currency)}, {percent(shown)} of inference cost"
    if share is not None and share > NOTABLE_SHARE:
        return Check("attribution", what, "warn", detail, remedy)
    return Check("attribution", what, "ok", detail)


def _age(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    return f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} hours"
