"""What people receive: a page that fits a mail program, text, and a Slack message within Slack's limits."""

import html
import json
import re
from datetime import date
from html.parser import HTMLParser

import pytest

from delivery.message import Message
from reports.build import Report, build
from reports.settings import ReportSettings
from tests.reports.organisation import SETTINGS

DAY = date(2026, 10, 9)
HOSTILE = "<script>alert('x')</script>&\"'<!channel> *b* `c` ~d~ <http://evil.example|Click>"
VOID = {"meta", "br", "img", "hr", "input", "link"}


def forms(report: Report) -> dict[str, str]:
    blocks = json.dumps(report.message.blocks, ensure_ascii=False)
    data = json.dumps(report.message.data, ensure_ascii=False)
    return {"html": report.html, "text": report.text, "blocks": blocks, "data": data, "subject": report.subject}


def texts(report: Report) -> list[str]:
    """Every text of the Slack message."""
    found = []
    for block in report.message.blocks:
        found += [block["text"]] if "text" in block else []
        found += block.get("fields", []) + block.get("elements", [])
    return [text["text"] for text in found]


def within_slacks_limits(report: Report) -> None:
    blocks = report.message.blocks
    assert 0 < len(blocks) <= 50
    for block in blocks:
        if block["type"] == "header":
            assert 0 < len(block["text"]["text"]) <= 150
            assert block["text"]["type"] == "plain_text"
        elif block["type"] == "context":
            assert 0 < len(block["elements"]) <= 10
            assert all(0 < len(element["text"]) <= 2000 for element in block["elements"])
        else:
            assert block["type"] == "section"
            assert ("text" in block) != ("fields" in block)
            assert len(block.get("fields", [])) <= 10
            assert all(0 < len(field["text"]) <= 2000 for field in block.get("fields", []))
            assert 0 < len(block.get("text", {"text": "-"})["text"]) <= 3000


class Page(HTMLParser):
    """Checks that tags nest; collects tags, attributes and visible text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def report(snapshot) -> Report:
    settings = ReportSettings(name="daily-cost", dashboard_url="https://ledger.example.com/?a=1&b=2")
    return build(snapshot, settings, date(2026, 10, 30))


def test_the_page_is_one_file_without_anything_to_fetch_or_run(report):
    page = Page(report.html)
    assert not page.tags & {"script", "link", "img", "iframe", "object", "form", "svg", "style", "base"}
    assert not [value for name, value in page.attributes if name.startswith("on") or name in ("src", "background")]
    assert "url(" not in report.html
    assert [value for name, value in page.attributes if name == "href"] == ["https://ledger.example.com/?a=1&b=2"]


def test_the_page_is_small_enough_that_mail_programs_show_it_whole(report):
    assert len(report.html.encode()) < 100_000


def test_every_form_says_figure_basis_status_period_zone_as_of_and_snapshot(report):
    figure = f"${report.figure:,.2f}"
    for form in (html.unescape(report.html), report.text, "\n".join(texts(report))):
        for said in (figure, "illed and estimated", "tatus open", "2026-10-30", "Europe/Paris", "Sat 31 Oct 08:00"):
            assert said in form
        assert report.manifest_id[:12] in form
    assert figure in report.subject


def test_the_message_is_what_delivery_takes_and_machines_can_read_it(report):
    assert Message.model_validate(json.loads(report.message.model_dump_json())) == report.message
    data = report.message.data
    assert (data["figure"], data["day"], data["manifest"]) == (str(report.figure), "2026-10-30", report.manifest_id)
    within_slacks_limits(report)


def test_the_same_snapshot_gives_the_same_bytes(report, snapshot):
    settings = ReportSettings(name="daily-cost", dashboard_url="https://ledger.example.com/?a=1&b=2")
    again = build(snapshot, settings, date(2026, 10, 30))
    assert (again.html, again.text, again.message) == (report.html, report.text, report.message)


def test_the_reasons_are_said_in_words(report):
    text = html.unescape(report.html)
    assert "search / assistant" in text
    assert re.search(r"cache hits \d+ % to \d %", text)
    assert re.search(r"more tokens, [\d.]+ [kM] to", text)


def test_an_unknown_cost_is_a_notice_and_never_a_zero(report):
    for form in (report.html, report.text, "\n".join(texts(report))):
        assert "nova-premier-2 have no price and are not billed yet: their cost is unknown" in form
    row = re.search(r">nova-premier-2<.*?</tr>", report.html, re.DOTALL)[0]
    assert ">unknown<" in row
    assert "$0.00" not in row


def test_a_day_outside_the_snapshot_is_unknown_throughout(snapshot):
    report = build(snapshot, ReportSettings(name="daily-cost"), date(2026, 9, 15))
    assert report.figure is None
    assert "The cost of this day is unknown" in report.text
    assert report.subject.endswith("unknown")
    assert "$0.00" not in Page(report.html).texts[: len(Page(report.html).texts) // 2]
    within_slacks_limits(report)


def test_an_empty_organisation_has_a_report_that_knows_nothing(world):
    report = build(world.snapshot(), ReportSettings(name="daily-cost"), DAY)
    Page(report.html)
    assert report.figure is None
    assert "No bill has been loaded." in report.html
    assert "forecast unknown" in report.text
    assert report.message.data["basis"] == "unknown"
    within_slacks_limits(report)


def test_no_task_is_told_apart_from_an_unknown_one(world):
    world.call("2026-10-09 10:10", {"key_alias": "search"}, output=100)
    world.line("2026-10-09 10:00", "10", token_class="output", tokens=100)
    report = build(world.snapshot(), ReportSettings(name="daily-cost"), DAY)
    assert "No agent task ran." in report.html
    assert "Per agent task: none" in report.text


def test_hostile_names_are_text_in_every_form(world):
    claims = {"key_alias": HOSTILE, "tag.app": HOSTILE}
    world.call("2026-10-08 10:10", claims, output=100, model=HOSTILE, task_id=HOSTILE, agent=HOSTILE)
    world.call("2026-10-09 10:10", claims, output=300, model=HOSTILE, task_id=HOSTILE, agent=HOSTILE)
    world.price(model=HOSTILE, output="15000000")
    report = build(world.snapshot(), ReportSettings(name="daily-cost"), DAY)

    assert report.figure == 4500
    assert "script" not in Page(report.html).tags
    assert "&lt;script&gt;alert" in report.html
    within_slacks_limits(report)
    for text in texts(report):
        assert not re.findall(r"<(?!https?://)", text)
        assert "http://evil.example|" not in re.findall(r"<[^>]*>", text)
        assert "`" not in text


def test_a_name_with_line_breaks_and_controls_stays_on_one_line(world):
    name = "a\nb\tc\u2028d\u202ee\x00f"
    world.call("2026-10-09 10:10", {"key_alias": name}, output=100)
    world.line("2026-10-09 10:00", "10", token_class="output", tokens=100)
    report = build(world.snapshot(), ReportSettings(name="daily-cost"), DAY)
    assert "a b c d e f: $10.00" in report.text


def test_a_teams_report_holds_nothing_of_other_teams_or_of_the_whole(acme, snapshot):
    settings = ReportSettings(name="search-cost", teams=("search",))
    whole = build(snapshot, ReportSettings(name="daily-cost"), date(2026, 10, 30))
    own = build(acme.snapshot(settings.scope()), settings, date(2026, 10, 30))

    assert own.figure == {p.names: p.cost for p in whole.figures.rankings[0].parts}["search",]
    others = {rule.set["team"] for rule in SETTINGS.owners} - {"search", "support", "data"}  # words of the page
    strangers = {"helpdesk", "summaries", "code-agent", "extraction", "campaigns", "coder-1030-loop", "nova-premier-2"}
    figures, month = whole.figures, whole.figures.month
    totals = [figures.figure, figures.billed, figures.estimated, figures.loaded]
    totals += [month.to_date, figures.headline.week_before, *(row["bill"] for row in figures.books.balances)]
    for form in forms(own).values():
        words = set(re.findall(r"[\w-]+", html.unescape(form)))
        assert not words & (others | strangers)
        numbers = set(re.findall(r"[\d,]+\.\d+", form))
        assert not numbers & {written for total in totals for written in (f"{total:,.2f}", str(total))}
    assert "The books" not in own.html
    assert "team search" in own.subject
    assert own.message.data["teams"] == ["search"]


def test_a_report_of_a_team_without_any_cost_says_so(acme):
    settings = ReportSettings(name="ghosts", teams=("ghosts",))
    report = build(acme.snapshot(settings.scope()), settings, date(2026, 10, 30))
    assert report.figure is None
    assert "team ghosts" in report.html
    within_slacks_limits(report)


def test_other_currencies_are_named_and_not_added(world):
    world.call("2026-10-09 10:10", {"key_alias": "search"}, output=100)
    world.line("2026-10-09 10:00", "10", token_class="output", tokens=100)
    world.line("2026-10-09 11:00", "7", token_class="output", tokens=100, billing_currency="EUR", export_name="other")
    report = build(world.snapshot(), ReportSettings(name="daily-cost"), DAY)
    assert report.figure == 10
    assert "7.00 EUR is not in the figure" in report.text


def test_five_hundred_teams_with_long_names_stay_within_every_limit(world):
    world.call("2026-10-08 10:10", {"key_alias": "a", "tag.app": "b"}, output=1000, task_id="t")
    world.call("2026-10-09 10:10", {"key_alias": "a", "tag.app": "b"}, output=4000, task_id="t")
    world.price(output="15000")
    snapshot = world.snapshot()
    multiply(snapshot, "cost_day", team="very-long-name-", app="app<&>", model="model*_~`")
    multiply(snapshot, "usage_day", team="very-long-name-", app="app<&>", model="model*_~`")
    multiply(snapshot, "task_day", team="very-long-name-", task_id="task&")
    multiply(snapshot, "task_cost", team="very-long-name-", task_id="task&", models="model*_~`", outcome="merged<br>")

    report = build(snapshot, ReportSettings(name="daily-cost", top=15), DAY)

    assert report.figure == 500 * 60
    assert "485 others" in report.html
    within_slacks_limits(report)
    assert len(report.html.encode()) < 100_000
    assert len(report.subject) < 150
    assert sum(len(text) for text in texts(report)) < 12_000


def multiply(snapshot, mart, **names):
    """Five hundred times the rows of a mart, every time under other and very long names."""
    renamed = ", ".join(f"n || '-' || repeat('{name}', 30) AS {column}" for column, name in names.items())
    connection = snapshot._connection
    connection.execute(
        f"CREATE TABLE many_{mart} AS SELECT m.* REPLACE ({renamed}) FROM {mart} AS m, range(500) AS r(n)"
    )
    connection.execute(f"CREATE OR REPLACE VIEW {mart} AS FROM many_{mart}")


def test_a_figure_that_misses_tokens_of_unknown_cost_is_at_least(report, world):
    assert "at least $" in report.subject
    assert "at least $" in report.text
    world.call("2026-10-09 10:10", {"key_alias": "search"}, output=100)
    world.line("2026-10-09 10:00", "10", token_class="output", tokens=100)
    assert "at least" not in build(world.snapshot(), ReportSettings(name="daily-cost"), DAY).html
