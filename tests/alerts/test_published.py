"""The same rules on a real published snapshot, and on PostgreSQL, through to what Slack receives."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from alerts import evaluate, silence
from alerts.settings import AlertSettings
from alerts.state import events, load
from delivery.channels import open_channels
from delivery.settings import DeliverySettings
from delivery.worker import deliver_due
from migrations import run
from tests.alerts import ledger
from tests.alerts.ledger import Ledger
from tests.delivery.servers import HttpServer
from tests.world import World
from warehouse import operations
from warehouse.settings import WarehouseSettings

OWNERS = [{"when": {"key_alias": "search-*"}, "set": {"team": "search", "agent": "crawler"}}]


@pytest.fixture
def slack() -> Iterator[HttpServer]:
    server = HttpServer()
    yield server
    server.stop()


def test_a_runaway_day_in_a_real_ledger_reaches_slack_once(tmp_path: Path, slack: HttpServer) -> None:
    """Ten days of two dollars and one of two hundred; the last day is only estimated, and a part has no owner."""
    world = World(tmp_path / "data", WarehouseSettings.model_validate({"owners": OWNERS}), as_of="2026-10-12 18:00")
    world.price(output="2")
    for day in range(1, 12):
        world.call(f"2026-10-{day:02} 10:10", {"key_alias": "search-1"}, output=1_000_000)
        world.line(f"2026-10-{day:02} 10:00", "2.00", token_class="output", tokens=1_000_000)
    world.call("2026-10-12 10:10", {"key_alias": "search-1"}, output=100_000_000, task_id="task-9")
    world.call("2026-10-12 11:10", {"key_alias": "nobody-1"}, output=3_000_000)
    url = f"sqlite:///{tmp_path}/operations.db"
    run.upgrade("operations", url)
    engine, now = operations.connect(url), datetime(2026, 10, 12, 18, 5, tzinfo=UTC)
    settings = AlertSettings.model_validate(
        {
            "without": ["model-cost"],
            "rules": [
                {"kind": "anomaly", "name": "team-cost", "measure": "inference_cost_usd", "by": ["team"], "min_usd": 20,
                 "seasonality": "none"}
            ],
        }
    )  # fmt: skip
    channels = open_channels(DeliverySettings.model_validate({"channels": {"ops": {"kind": "slack"}}}),
                             {"SLACK_WEBHOOK_URL": slack.url})  # fmt: skip

    snapshot = world.snapshot()
    reports = [evaluate.run(snapshot, settings, engine, channels, now) for _ in range(2)]
    delivered = deliver_due(engine, channels, now)

    assert reports[0].problems == ()
    assert [report.messages for report in reports] == [2, 0]
    assert delivered.sent == 2
    assert sorted(slack.texts) == [
        "🟠 cost without a team is high so far",
        "🟠 inference cost of team search is high so far",
    ]
    spike = next(body for body in slack.accepted if "search" in body["text"])
    shown = [block["text"]["text"] for block in spike["blocks"] if "text" in block]
    assert "$200.00 on 2026-10-12 so far, usually $2.00 (100.0 times)" in shown
    assert "*By agent*\n• crawler: $200.00 (usually $2.00)" in shown
    assert "*By task*\n• task-9: $200.00" in shown
    assert {"type": "mrkdwn", "text": "*Basis*\nestimated: price book x usage, not billed yet"} in spike["blocks"][2][
        "fields"
    ]
    engine.dispose()


@pytest.mark.postgres
def test_states_silences_and_events_live_in_postgresql_too(postgres_database: str) -> None:
    run.upgrade("operations", postgres_database)
    engine: Engine = operations.connect(postgres_database)
    book = Ledger()
    rule = {"kind": "threshold", "name": "limit", "measure": "inference_cost_usd", "by": ["team"], "above": 100}
    settings = AlertSettings.model_validate({"rules": [rule]})
    book.book("2026-11-29", "150", team="a")
    book.book("2026-11-29", "150", team="b")
    snapshot = book.publish("2026-11-30 06:00")
    with engine.begin() as connection:
        silence.add(
            connection,
            {"team": "b"},
            until=snapshot.as_of + timedelta(days=1),
            reason="r",
            who="ada",
            now=snapshot.as_of,
        )

    reports = [evaluate.run(snapshot, settings, engine, ("ops",), snapshot.as_of, measures=ledger) for _ in range(2)]

    assert [(report.messages, report.silenced) for report in reports] == [(1, 1), (0, 0)]
    with engine.connect() as connection:
        assert load(connection)["limit", '{"team":"a"}'].notified_at == snapshot.as_of
        assert {event["notice"] for event in events(connection)} >= {"message", "silenced"}
    engine.dispose()
