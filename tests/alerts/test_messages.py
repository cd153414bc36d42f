"""What a person reads: the figure, what it is held against, since when, made of what, and what to do."""

from decimal import Decimal
from typing import Any

import pytest

from alerts import words
from alerts.settings import SHIPPED_RULES
from delivery import slack
from delivery.message import Message
from delivery.transport import Envelope
from tests.alerts.conftest import Desk
from tests.alerts.ledger import Ledger
from warehouse.measures import MEASURES


def anomaly(**facts: Any) -> dict[str, Any]:
    fixed = {"kind": "anomaly", "name": "team-cost", "measure": "inference_cost_usd", "by": ["team"], "min_usd": 20}
    return {**fixed, "seasonality": "none", **facts}


def spike(desk: Desk, book: Ledger) -> dict[str, Any]:
    """A crawler of team search runs away on the open day, half of it only estimated; the zone is Paris."""
    desk.rules(anomaly(), dashboard_url="https://costs.example.com/")
    book.days("2026-11-02", 28, ["60", "65", "62", "58"], team="search", model="sonnet", app="web")
    book.days("2026-11-02", 28, ["30", "31", "29", "30"], team="search", model="nova", app="rag")
    book.book("2026-11-30", "30", team="search", model="nova", app="rag")
    book.book("2026-11-30", "1400", team="search", model="sonnet", agent="crawler", estimated="700", task_id="task-77")
    book.book("2026-11-30", "9", team="other", model="sonnet", task_id="task-1")
    desk.evaluate(book.publish("2026-11-30 16:05", zone="Europe/Paris"))
    (message,) = desk.messages()
    return message


def test_a_message_says_everything_a_person_needs(desk: Desk, book: Ledger) -> None:
    assert spike(desk, book)["text"] == (
        """\
🟠 inference cost of team search is high so far

$1,430.00 on 2026-11-30 so far, usually $90.50 (15.8 times)

Rule: team-cost (warning)
Since: 2026-11-30 17:05 Europe/Paris
Period: 2026-11-30, Europe/Paris
Usually: median of the days in 28 days; robust z 602.3
Measure: Inference cost: usage and unattributed, billed and estimated
Basis: billed, and $700.00 estimated
Status: open: so far, partly estimated
Snapshot: manifest-001, evidence to 2026-11-30 17:05 Europe/Paris

By model:
- sonnet: $1,400.00 (usually $61.00)
- nova: $30.00 (usually $30.00)

By app:
- no app: $1,400.00 (new)
- rag: $30.00 (usually $30.00)

By agent:
- crawler: $1,400.00 (new)
- no agent: $30.00 (usually $90.50)

By task:
- task-77: $1,400.00

What to do: look at what contributes: more requests (a loop, retries), longer prompts, a cache that stopped hitting, \
or another model; if it is meant, silence it until it is history.
https://costs.example.com/teams?team=search&from=2026-11-30&to=2026-11-30
"""
    )


def test_slack_gets_the_same_in_blocks(desk: Desk, book: Ledger) -> None:
    message = spike(desk, book)
    blocks = message["blocks"]

    assert [block["type"] for block in blocks] == ["header", *["section"] * 7, "actions"]
    assert blocks[0]["text"]["text"] == message["subject"]
    assert {"type": "mrkdwn", "text": "*Basis*\nbilled, and $700.00 estimated"} in blocks[2]["fields"]
    assert (
        blocks[3]["text"]["text"] == "*By model*\n• sonnet: $1,400.00 (usually $61.00)\n• nova: $30.00 (usually $30.00)"
    )
    assert blocks[-1]["elements"][0]["url"].startswith("https://costs.example.com/teams?")
    envelope = Envelope("k", "ops", Message.model_validate(message), None, may_repeat=False)  # type: ignore[arg-type]
    assert slack.payload(envelope)["blocks"] == blocks  # nothing had to be cut


def test_machines_get_money_as_decimal_text(desk: Desk, book: Ledger) -> None:
    data = spike(desk, book)["data"]

    assert (data["value"], data["expected"], data["currency"]) == ("1430", "90.5", "USD")
    assert (data["event"], data["state"], data["series"], data["so_far"]) == (
        "fired",
        "firing",
        {"team": "search"},
        True,
    )
    assert data["contributors"][0] == {"dimension": "model", "name": "sonnet", "value": "1400", "usual": "61"}


def test_names_cannot_break_the_markup(desk: Desk, book: Ledger) -> None:
    desk.rules({"kind": "threshold", "name": "limit", "measure": "inference_cost_usd", "by": ["team"], "above": 1})
    book.book("2026-11-29", "5", team='<!channel> & "co"', model="a\\b\nc")
    desk.evaluate(book.publish("2026-11-30 06:00"))

    (message,) = desk.messages()
    assert message["blocks"][0]["text"]["text"] == '🟠 inference cost of team <!channel> & "co" is high'
    shown = [block["text"]["text"] for block in message["blocks"][1:] if "text" in block]
    assert not any("<!channel>" in text for text in shown)
    assert any("a\\b\nc: $5.00" in text for text in shown)


def test_without_a_dashboard_there_is_no_link(desk: Desk, book: Ledger) -> None:
    desk.rules({"kind": "threshold", "name": "limit", "measure": "inference_cost_usd", "above": 1})
    book.book("2026-11-29", "5")
    desk.evaluate(book.publish("2026-11-30 06:00"))

    (message,) = desk.messages()
    assert "http" not in message["text"]
    assert message["data"]["link"] == ""
    assert message["blocks"][-1]["type"] == "section"


def test_a_rule_may_say_itself_what_to_do(desk: Desk, book: Ledger) -> None:
    rule = {"kind": "threshold", "name": "limit", "measure": "inference_cost_usd", "above": 1}
    desk.rules({**rule, "remedy": "call Ada"})
    book.book("2026-11-29", "5")
    desk.evaluate(book.publish("2026-11-30 06:00"))

    assert "What to do: call Ada." in desk.messages()[0]["text"]


@pytest.mark.parametrize(
    ("measure", "value", "currency", "written"),
    [
        ("effective_cost_usd", "1234.565", "USD", "$1,234.56"),
        ("effective_cost_usd", "-3.5", "USD", "-$3.50"),
        ("effective_cost_usd", "0.00123", "USD", "$0.0012"),
        ("effective_cost_usd", "0", "EUR", "0.00 EUR"),
        ("unattributed_share", "0.0723", "USD", "7.2 %"),
        ("total_tokens", "1234567", "USD", "1,234,567 tokens"),
        ("requests", "12", "USD", "12"),
        ("requests", None, "USD", "unknown"),
    ],
)
def test_figures_are_written_with_their_unit(measure: str, value: str | None, currency: str, written: str) -> None:
    assert words.figure(measure, None if value is None else Decimal(value), currency) == written


def test_every_shipped_rule_watches_a_measure_that_exists() -> None:
    assert {rule.measure for rule in SHIPPED_RULES} <= MEASURES.keys()
