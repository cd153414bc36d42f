"""What sources of traces share: of a parent and its children only the children count, of two versions the later one.

Agents and frameworks write the usage of their model calls once more on the span around them (langfuse/langfuse#14808).
A call is kept where no call below it has usage; what is left out is counted as rejected, and each span is listed in
``rejected_row`` with the reason `repeats_children`. See traces.sql.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

import duckdb
from pydantic import Field

from collector.queries import queries
from collector.source import Fetched, LoadResult, Moment, Staged
from collector.usage.records import Reading, stage, write
from warehouse.settings import Settings

AGENT_TOTALS = Field(
    default=True,
    description="whether an agent's total counts where no call below it has usage; false where a gateway has the calls",
)


class Server(Settings):
    """Who answers at an address, where the address itself does not say: a proxy, an own fleet."""

    provider: str | None = None
    account: str | None = None
    region: str | None = None


def prepare(connection: duckdb.DuckDBPyConnection, servers: Mapping[str, Server]) -> None:
    """Define the macros of traces.sql and the table `server`."""
    sql = queries("usage/traces.sql")
    connection.execute(sql["macros"])
    connection.execute(sql["server"], [json.dumps({name: each.model_dump() for name, each in servers.items()})])


def stage_spans(
    connection: duckdb.DuckDBPyConnection,
    fetched: Fetched,
    source: str,
    trust: int,
    load_id: str,
    moment: Moment,
    reading: Reading,
) -> Staged:
    """Judge one batch, then leave out what repeats its children and what is an old version."""
    staged = stage(connection, fetched, source, trust, load_id, moment, reading)
    sql = queries("usage/traces.sql")
    for step in ("call", "old_version", "repeated", "leave_out", "explain"):
        connection.execute(sql[step])
    return staged


def write_spans(connection: duckdb.DuckDBPyConnection, source: str, staged: Staged) -> LoadResult:
    """Store what was staged and withdraw what earlier loads stored and this one makes a repetition."""
    sql = queries("usage/traces.sql")
    connection.execute(sql["withdraw"])
    result = write(connection, source, staged)
    connection.execute(sql["list"])
    counted = connection.execute(sql["counts"]).fetchone()
    assert counted is not None
    repeated, old, withdrawn = counted
    others = result.rows_filtered - repeated - old
    notes = [
        f"{repeated:,} spans repeat the usage of calls below them and were left out; rejected_row lists them"
        if repeated
        else "",
        f"{withdrawn:,} records of earlier loads were withdrawn: this one has their children or a later version"
        if withdrawn
        else "",
        f"{old:,} rows are old versions of others" if old else "",
        f"{others:,} spans are no model calls (tools, retrieval, agents without usage, ...)" if others else "",
    ]
    return replace(
        result,
        rows_filtered=result.rows_filtered - repeated,
        rows_rejected=result.rows_rejected + repeated,
        notes=(*result.notes, *(note for note in notes if note)),
    )
