"""`explain`: postings, buckets, lines and records, and every level adds up to the one above."""

from decimal import Decimal

import pytest

from tests.inferledger.conftest import fill


def usd(rows, column):
    return sum((Decimal(row[column]) for row in rows if row[column] is not None), Decimal(0))


def adds_up(facts):
    """Every level against the one above it, the rows that sum up the rest included."""
    billed = [row for row in facts["postings"] if row["basis"] == "billed"]
    assert usd(billed, "effective") == Decimal(facts["total"]["effective"])
    assert sum(row["tokens"] for row in facts["postings"]) == facts["total"]["tokens"]
    for bucket in facts["buckets"]:
        parts = [Decimal(bucket[part]) for part in ("selected", "others", "unattributed", "other_days")]
        shown = usd(bucket["lines"], "effective") + Decimal(bucket["lines_more"].get("effective") or 0)
        assert sum(parts) == Decimal(bucket["bill"]) == shown
    records = facts["records"]
    assert sum(row["tokens"] for row in records["shown"]) + records["more"]["tokens"] == records["tokens"]
    assert sum(row["logged"] for row in records["by_token_class"]) == records["tokens"]
    for row in records["by_token_class"]:
        assert row["logged"] == row["billed"] + row["estimated"] + row["never_billed"]


def test_a_team_is_walked_back_to_lines_and_records(world, published, cli):
    fill(world)
    world.line("2026-10-01 10:00", "0.05", token_class="uncached_input", tokens=50, x_file="part-1.parquet",
               x_line_item_id="line-a", x_usage_type="USE1-NovaPro-input-tokens")  # fmt: skip
    published()
    facts = cli.json("explain", "--team", "search", "--limit", "0")
    adds_up(facts)
    (posting,) = facts["postings"]
    assert (posting["kind"], posting["basis"], posting["status"], posting["method"]) == (
        "usage", "billed", "open", "bill_tokens",
    )  # fmt: skip
    (bucket,) = facts["buckets"]
    assert (bucket["bill_tokens"], bucket["logged_tokens"], bucket["selected_tokens"]) == (150, 95, 60)
    assert bucket["rate_per_mtok"] == "1000.000000000"
    line = next(line for line in bucket["lines"] if line["line_item_id"] == "line-a")
    assert (line["file"], line["usage_type"], line["tokens"]) == ("part-1.parquet", "USE1-NovaPro-input-tokens", 50)
    (record,) = facts["records"]["shown"]
    assert (record["source"], record["record_id"], record["tokens"]) == ("gateway", "call-1", 60)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--team", "search"),
        ("--team", "(none)"),
        ("--model", "nova-pro", "--day", "2026-10-01"),
        ("--kind", "unattributed"),
        ("--kind", "usage", "--from", "2026-10-01", "--to", "2026-10-09"),
        ("--task", "t-1"),
    ],
)
def test_every_level_adds_up_however_it_is_asked(filled, cli, words):
    for limit in ("0", "1"):
        adds_up(cli.json("explain", *words, "--limit", limit))
    result = cli("explain", *words)
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 100


def test_nobody_is_asked_for_by_none(filled, cli):
    facts = cli.json("explain", "--team", "(none)", "--kind", "usage")
    assert facts["total"]["estimated"] == "3.000000000"
    assert facts["total"]["effective"] == "0.000000000"
    assert [row["record_id"] for row in facts["records"]["shown"]] == ["call-3"]


def test_what_is_not_metered_in_tokens_comes_from_whole_lines(filled, cli):
    facts = cli.json("explain", "--kind", "out_of_scope")
    assert facts["buckets"] == []
    assert [(row["service_name"], row["line_count"], row["effective"]) for row in facts["other_lines"]] == [
        ("Amazon EC2", 1, "12.345000000")
    ]


def test_two_tasks_of_one_key_share_by_what_their_tokens_cost(world, published, cli):
    """A long prompt costs twice as much a token: its task gets twice the money, not the mean."""
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, uncached_input=300_000, task_id="long")
    world.call("2026-10-01 10:20", {"key_alias": "search-1"}, uncached_input=100_000, task_id="short")
    world.line("2026-10-01 10:00", "1.80", token_class="uncached_input", tokens=300_000, x_context_tier="long")
    world.line("2026-10-01 10:00", "0.30", token_class="uncached_input", tokens=100_000)
    published()
    facts = cli.json("explain", "--task", "long")
    adds_up(facts)
    assert facts["total"]["effective"] == "1.800000000"
    (posting,) = facts["postings"]
    assert (posting["tokens"], posting["effective"]) == (300_000, "1.800000000")


def test_a_task_may_be_named_by_its_beginning(world, published, cli):
    for task in ("alpha-1", "beta-1", "beta-2"):
        world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=5, task_id=task)
    world.line("2026-10-01 10:00", "1.00", token_class="output", tokens=15)
    published()
    assert cli.json("explain", "--task", "alp")["question"]["task_id"] == ["alpha-1"]
    for words, said in (
        (("--task", "beta"), "Several tasks begin with `beta`: beta-1, beta-2. Write more"),
        (("--task", "gamma"), "No task `gamma` is known"),
        (("--task", "alpha-1", "--team", "search"), "A task is explained whole"),
        (("--team", "nobody"), "The ledger has nothing of that"),
        (("--day", "2026-10-01", "--from", "2026-10-01"), "Give either --day, or --from and --to"),
    ):
        result = cli("explain", *words)
        assert result.exit_code == 2
        assert said in result.output


def test_a_bill_by_the_day_says_what_lies_on_other_days(tmp_path, cli):
    """Days are cut in the reporting zone; a charge period of a UTC day lies on two of them."""
    from pathlib import Path

    from tests.world import World
    from warehouse.settings import WarehouseSettings

    world = World(tmp_path / "data", WarehouseSettings(zone="Asia/Tokyo"))
    world.call("2026-10-01 10:10", {"key_alias": "a"}, output=60)
    world.call("2026-10-01 20:10", {"key_alias": "a"}, output=40)
    world.line("2026-10-01 00:00", "1.00", end="2026-10-02 00:00", token_class="output", tokens=100)
    world.publish()
    Path("inferledger.yaml").write_text(f"data: {world.data}\nzone: Asia/Tokyo\n")
    facts = cli.json("explain", "--day", "2026-10-01")
    adds_up(facts)
    (bucket,) = facts["buckets"]
    assert (bucket["selected"], bucket["other_days"], bucket["bill"]) == ("0.600000000", "0.400000000", "1.000000000")
