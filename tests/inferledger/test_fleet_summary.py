"""`summary` with a GPU fleet: managed and self-hosted side by side, pools, what did nothing and why."""

from decimal import Decimal

from inferledger.summary import summary
from warehouse.measures import Filters
from warehouse.snapshot import Scope, Snapshot


def test_managed_and_self_hosted_stand_side_by_side_and_add_up(with_fleet, cli):
    facts = cli.json("summary")
    fleet = facts["fleet"]
    assert fleet["managed"]["fully_loaded_cost"] == "0.900000000"
    own = fleet["self_hosted"]
    assert (own["fully_loaded_cost"], own["idle_cost"], own["unmeasured_cost"], own["shared_cost"]) == (
        "36.600000000", "12.000000000", "12.000000000", "0.600000000",
    )  # fmt: skip
    parts = [fleet[name]["fully_loaded_cost"] for name in ("managed", "self_hosted", "beside")]
    assert sum(map(Decimal, parts)) == Decimal(facts["totals"]["fully_loaded_cost"])
    assert (fleet["managed"]["total_tokens"], own["total_tokens"]) == (60, 3795)
    # what tokens cost with everything counted, over tokens of logged calls
    assert Decimal(own["fully_loaded_cost_per_mtok"]) == round(Decimal("36.6") / 3795 * 1_000_000, 9)


def test_the_books_balance_and_kinds_name_what_gpus_did(with_fleet, cli):
    facts = cli.json("summary")
    assert Decimal(facts["difference"]) == Decimal(facts["difference_billed"]) == 0
    assert sum(map(Decimal, facts["by_kind"].values())) == Decimal(facts["effective"]) == Decimal("44.5")
    assert sum(map(Decimal, facts["by_team"].values())) == Decimal("44.5")
    assert {name: facts["by_kind"][name] for name in ("idle", "unmeasured")} == dict.fromkeys(
        ("idle", "unmeasured"), "12.000000000"
    )


def test_pools_have_their_cost_by_state_and_causes_add_up_to_idle(with_fleet, cli):
    fleet = cli.json("summary")["fleet"]
    pools = {pool["pool"]: pool for pool in fleet["pools"]}
    assert {name: (pool["cost"], pool["idle_cost"], pool["gpu_hours"]) for name, pool in pools.items()} == {
        "qwen-mixed": ("18.360000000", "0.000000000", "6.000000"),
        "llama-mixed": ("6.120000000", "6.000000000", "2.000000"),
        "unlabelled": ("6.120000000", "0.000000000", "2.000000"),
        None: ("6.000000000", "6.000000000", "2.000000"),
    }
    assert sum(Decimal(pool["cost"]) for pool in fleet["pools"]) == Decimal(fleet["self_hosted"]["fully_loaded_cost"])
    assert fleet["idle_by_cause"] == {"no_traffic": "6.000000000", "not_requested": "6.000000000"}
    assert sum(map(Decimal, fleet["idle_by_cause"].values())) == Decimal(fleet["self_hosted"]["idle_cost"])


def test_people_read_it_within_a_hundred_columns(with_fleet, cli):
    output = cli("summary").output
    assert max(map(len, output.splitlines())) <= 100
    flat = " ".join(output.split())
    for said in (
        "Managed and self-hosted",
        "own GPU fleet $36.60",
        "The own fleet, by pool",
        "$12.00 of GPU money did nothing: $6.00 replicas that were up and had no call; $6.00 GPUs of nodes",
        "$12.00 is unmeasured: no metric tells what those GPUs did, which is not idle.",
        "3 counter(s) of the engines began at an unknown value",
    ):
        assert said in flat


def test_without_a_fleet_nothing_is_said_of_one(filled, cli):
    assert cli.json("summary")["fleet"] is None
    output = cli("summary").output
    for word in ("GPU", "fleet", "pool", "self-hosted"):
        assert word not in output


def test_days_without_the_fleet_have_none(with_fleet, cli):
    with_fleet.line("2026-10-08 10:00", "1", token_class="output", tokens=10)
    with_fleet.publish()
    assert cli.json("summary", "--from", "2026-10-08")["fleet"] is None
    assert cli.json("summary", "--to", "2026-10-07")["fleet"] is not None


def test_a_reader_of_one_team_gets_no_pools(with_fleet):
    snapshot = Snapshot.open(with_fleet.layout.published, Scope.of("ada", ["search"]))
    fleet = summary(snapshot, Filters())["fleet"]
    assert (fleet["pools"], fleet["unknown_counters"], fleet["idle_by_cause"]) == (None, None, {})
    assert Decimal(fleet["self_hosted"]["idle_cost"]) == 0


def test_calls_that_wait_for_the_bill_are_not_called_unpriced(world, published, cli):
    from tests import fleet as hand

    hand.node(world, "n1", "2026-10-07 10:00", 60)
    hand.pod(world, "p1", "n1", "2026-10-07 10:00", 60, app="qwen")
    hand.engine(world, "p1", "2026-10-07 10:00", running=[1] * 60, prompt=[5 * n for n in range(60)])
    hand.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=200)
    published()
    notes = " ".join(cli.json("summary")["notes"])
    assert "tokens of the own fleet is unknown: the bill has not reached their hours" in notes
    assert "prices.contract" not in notes
