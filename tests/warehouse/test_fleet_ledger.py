"""The own fleet's money, in readable ledgers: a few nodes, pods and calls in, exact rows out."""

import pytest

from tests import fleet
from tests.fleet import rising
from tests.world import World
from warehouse.settings import WarehouseSettings

HOUR = "2026-10-07 10:00"
OWNERS = [
    {"when": {"key_alias": "search*"}, "set": {"team": "search"}},
    {"when": {"key_alias": "ads*"}, "set": {"team": "ads"}},
]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, WarehouseSettings.model_validate({"owners": OWNERS, "fleet": {"weights": {"step": 300}}}))


def kinds(world):
    """Dollars by kind and reason."""
    world.attribute()
    assert world.rows("SELECT * FROM control_hour WHERE lhs <> rhs") == []
    rows = world.rows(
        "SELECT kind, reason, sum(effective_nano) / 1e9 FROM ledger_hour WHERE cluster IS NOT NULL "
        "GROUP BY ALL HAVING sum(effective_nano) <> 0 ORDER BY ALL"
    )
    return {(kind, reason): round(usd, 9) for kind, reason, usd in rows}


def teams(world, kind="usage"):
    """Dollars and tokens of one kind by key alias and token class."""
    world.attribute()
    return {
        (claims["key_alias"] if claims else None, token_class): (round(usd, 9), tokens)
        for claims, token_class, usd, tokens in world.rows(
            f"""SELECT s.claims, l.token_class, sum(l.effective_nano) / 1e9, sum(l.tokens) FROM ledger_hour AS l
                LEFT JOIN claim_set AS s USING (claim_set_id) WHERE l.kind = '{kind}' AND l.cluster IS NOT NULL
                GROUP BY ALL ORDER BY ALL"""
        )
    }


def serve(world, *, minutes=60, prompt=100, cached=0, output=10, running=1):
    """One node with one pod of four GPUs that is busy the whole hour."""
    fleet.node(world, "n1", HOUR, minutes)
    fleet.pod(world, "p1", "n1", HOUR, minutes, app="qwen")
    fleet.engine(
        world,
        "p1",
        HOUR,
        running=[running] * minutes,
        prompt=rising(prompt, minutes, 1000),
        cached=rising(cached, minutes),
        output=rising(output, minutes),
        born=[1] * minutes,
    )


def test_a_busy_node_is_paid_by_those_who_called_it_and_the_rest_has_no_log(world):
    serve(world)
    fleet.machine(world, "n1", HOUR, "12")
    # engines: 5,900 prompt and 590 output tokens rose between samples; 5,900 + 4 x 590 = 8,260 parts of work
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=2950, output=295)
    fleet.asked(world, "2026-10-07 10:40", {"key_alias": "ads-1"}, uncached_input=1475, output=0)
    found = teams(world)
    of_input, of_output = 12 * 5900 / 8260, 12 * 2360 / 8260
    assert found[("search-1", "uncached_input")] == (pytest.approx(of_input / 2, abs=2e-9), 2950)
    assert found[("search-1", "output")] == (pytest.approx(of_output / 2, abs=2e-9), 295)
    assert found[("ads-1", "uncached_input")] == (pytest.approx(of_input / 4, abs=2e-9), 1475)
    assert kinds(world) == {
        ("unattributed", "no_log"): pytest.approx(of_input / 4 + of_output / 2, abs=3e-9),
        ("usage", None): pytest.approx(of_input * 3 / 4 + of_output / 2, abs=3e-9),
    }


def test_what_no_pod_requested_is_idle_of_the_node(world):
    fleet.node(world, "n1", HOUR, 60)
    fleet.pod(world, "p1", "n1", HOUR, 60, gpus=1, app="qwen")
    fleet.engine(world, "p1", HOUR, running=[1] * 60, prompt=rising(5), output=rising(5))
    fleet.machine(world, "n1", HOUR, "12")
    assert kinds(world) == {("idle", "not_requested"): 9, ("unattributed", "no_log"): 3}


def test_a_replica_without_traffic_is_idle_and_one_without_metrics_is_unmeasured(world):
    fleet.node(world, "n1", HOUR, 60)
    for number, gpus in ((1, 1), (2, 1), (3, 2)):
        fleet.pod(world, f"p{number}", "n1", HOUR, 60, gpus=gpus, app="qwen")
    fleet.engine(world, "p1", HOUR, running=[0] * 60, prompt=[7] * 60)
    fleet.engine(world, "p2", HOUR, running=[1] * 30 + [0] * 30, prompt=rising(5, 30) + [145] * 30)
    fleet.machine(world, "n1", HOUR, "12")
    assert kinds(world) == {
        ("idle", "no_traffic"): 3 + 1.5,
        ("unattributed", "no_log"): 1.5,
        ("unmeasured", "unmeasured"): 6,
    }


def test_before_its_engine_answers_a_pod_is_starting(world):
    fleet.node(world, "n1", HOUR, 60)
    fleet.pod(world, "p1", "n1", HOUR, 60, app="qwen")
    fleet.engine(world, "p1", "2026-10-07 10:15", running=[1] * 45, prompt=rising(5, 45))
    fleet.machine(world, "n1", HOUR, "12")
    assert kinds(world) == {("idle", "starting"): 3, ("unattributed", "no_log"): 9}


def test_a_pod_that_ended_holds_nothing_though_it_is_still_shown(world):
    fleet.node(world, "n1", HOUR, 60)
    fleet.pod(world, "p1", "n1", HOUR, 60, ended=[15], app="qwen")
    fleet.engine(world, "p1", HOUR, running=[1] * 15, prompt=rising(5, 15))
    fleet.machine(world, "n1", HOUR, "12")
    assert kinds(world) == {("idle", "not_requested"): 9, ("unattributed", "no_log"): 3}


def test_billed_time_before_a_node_joined_is_idle(world):
    serve(world, minutes=30)
    fleet.machine(world, "n1", HOUR, "6.2", hours="0.516666666666666667")
    assert kinds(world) == {
        ("idle", "not_in_cluster"): pytest.approx(0.2, abs=1e-9),
        ("unattributed", "no_log"): pytest.approx(6, abs=1e-9),
    }


def test_an_outage_of_all_metrics_is_unmeasured_and_not_idle(world):
    gap = range(10, 50)
    fleet.node(world, "n1", HOUR, 60, skip=gap)
    fleet.pod(world, "p1", "n1", HOUR, 60, skip=gap, app="qwen")
    fleet.engine(world, "p1", HOUR, skip=gap, running=[1] * 60, prompt=rising(5))
    fleet.machine(world, "n1", HOUR, "12")
    assert kinds(world) == {("unattributed", "no_log"): 4, ("unmeasured", "unmeasured"): 8}


def test_a_short_gap_of_the_scraper_changes_nothing(world):
    gap = range(10, 14)
    fleet.node(world, "n1", HOUR, 60, skip=gap)
    fleet.pod(world, "p1", "n1", HOUR, 60, skip=gap, app="qwen")
    fleet.engine(world, "p1", HOUR, skip=gap, running=[1] * 60, prompt=rising(5))
    fleet.machine(world, "n1", HOUR, "12")
    assert kinds(world) == {("unattributed", "no_log"): 12}
    assert world.rows("SELECT sum(uncached_input_tokens), sum(unknown_series) FROM pool_hour") == [(59 * 5, 1)]


def test_with_roles_the_prefill_pool_pays_for_input_and_the_decode_pool_for_output(world):
    for number, role in ((1, "prefill"), (2, "decode")):
        fleet.node(world, f"n{number}", HOUR, 60, gpus=8)
        fleet.pod(world, f"p{number}", f"n{number}", HOUR, 60, gpus=8, app="qwen", role=role)
        fleet.machine(world, f"n{number}", HOUR, "30" if role == "prefill" else "50")
    fleet.engine(world, "p1", HOUR, running=[1] * 60, prompt=rising(100), output=rising(1))
    fleet.engine(world, "p2", HOUR, running=[1] * 60, prompt=rising(100), output=rising(20))
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=5900, output=590)
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "ads-1"}, output=590)
    assert teams(world) == {
        ("ads-1", "output"): (25, 590),
        ("search-1", "output"): (25, 590),
        ("search-1", "uncached_input"): (30, 5900),
    }
    assert world.rows(
        "SELECT pool, token_class, method, sum(tokens) FROM ledger_hour WHERE kind = 'usage' AND tokens > 0 "
        "GROUP BY ALL ORDER BY ALL"
    ) == [("qwen-decode", "output", "pool_role", 1180), ("qwen-prefill", "uncached_input", "pool_role", 5900)]


def test_exact_engine_seconds_go_before_the_configured_ratio(world):
    fleet.node(world, "n1", HOUR, 60)
    fleet.pod(world, "p1", "n1", HOUR, 60, app="qwen")
    fleet.engine(
        world,
        "p1",
        HOUR,
        running=[1] * 60,
        prompt=rising(100),
        output=rising(10),
        prefill=rising(30_000_000),
        decode=rising(10_000_000),
    )
    fleet.machine(world, "n1", HOUR, "12")
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=5900, output=590)
    assert teams(world) == {("search-1", "output"): (3, 590), ("search-1", "uncached_input"): (9, 5900)}


def test_what_small_batches_cost_beyond_full_ones_is_under_used_by_those_who_generated(world):
    """2,560 tokens in 620 steps instead of 20: 600 spare steps at 300, 2,560 tokens at 4, 10,240 of input."""
    fleet.node(world, "n1", HOUR, 60)
    fleet.pod(world, "p1", "n1", HOUR, 60, app="qwen")
    fleet.engine(
        world,
        "p1",
        HOUR,
        running=[1] * 60,
        prompt=[0, 10_240] + [10_240] * 58,
        output=[0, 2_560] + [2_560] * 58,
        steps=[0, 620] + [620] * 58,
    )
    fleet.machine(world, "n1", HOUR, "20.048")
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=10_240, output=1_280)
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "ads-1"}, output=1_280)
    assert teams(world) == {
        ("ads-1", "output"): (0.512, 1_280),
        ("search-1", "output"): (0.512, 1_280),
        ("search-1", "uncached_input"): (1.024, 10_240),
    }
    assert teams(world, "under_used") == {("ads-1", "output"): (9, 0), ("search-1", "output"): (9, 0)}
    # weights twice as large: 20,480 of 20,480 + 360,000 + 10,240 parts are the tokens', and so on
    low, high = world.rows(
        "SELECT sum(at_low_nano), sum(at_high_nano) FROM ratio_hour WHERE claim_set_id LIKE '%ads%'"
    )[0]
    assert low / 1e9 == pytest.approx(20.048 / 2 * (5_120 + 90_000) / (5_120 + 90_000 + 10_240), abs=1e-6)
    assert high / 1e9 == pytest.approx(20.048 / 2 * (20_480 + 360_000) / (20_480 + 360_000 + 10_240), abs=1e-6)


def test_a_log_that_tells_no_cache_reads_is_split_as_the_engines_say(world):
    serve(world, cached=50)
    fleet.machine(world, "n1", HOUR, "12")
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=5900, output=590)
    assert {key: tokens for key, (_, tokens) in teams(world).items()} == {
        ("search-1", "cache_read"): 2950,
        ("search-1", "output"): 590,
        ("search-1", "uncached_input"): 2950,
    }


def test_what_the_cluster_costs_as_a_whole_goes_to_its_pools(world):
    serve(world)
    fleet.machine(world, "n1", HOUR, "12")
    world.line(
        HOUR,
        "0.10",
        service_name="Amazon EKS",
        x_service_code="AmazonEKS",
        resource_id="arn:aws:eks:us-east-1:111122223333:cluster/east",
    )
    world.line(HOUR, "0.30", service_name="Amazon EC2 NAT", tags={"aws_eks_cluster_name": "east"})
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=5900, output=590)
    assert kinds(world) == {("shared", None): pytest.approx(0.4, abs=1e-9), ("usage", None): 12}
    assert {line for (line,) in world.rows("SELECT DISTINCT line_class FROM ledger_hour WHERE kind = 'shared'")} == {
        "control_plane",
        "network",
    }


def test_used_hours_of_a_capacity_block_are_of_its_cluster_and_unused_ones_idle(world):
    serve(world)
    fleet.machine(world, "n1", HOUR, "12")
    block = {
        "resource_id": "arn:aws:ec2:us-east-1:1:capacity-reservation/cr-0abc",
        "tags": {"aws_eks_cluster_name": "east"},
        "x_cost_class": "accelerator",
        "x_purchase_option": "capacity_block",
    }
    world.line(HOUR, "30", x_usage_type="CapacityBlockUsage:p5.48xlarge", **block)
    world.line(HOUR, "7", x_usage_type="UnusedCapacityBlock:p5.48xlarge", **block)
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=5900, output=590)
    assert kinds(world) == {("idle", "not_in_cluster"): 7, ("shared", None): 30, ("usage", None): 12}


def test_a_daily_line_of_an_instance_is_shared_by_those_who_used_the_fleet_that_day(world):
    serve(world)
    fleet.machine(world, "n1", HOUR, "12")
    fleet.machine(world, "n1", "2026-10-07 00:00", "240", hours="24", end="2026-10-08 00:00")
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=5900, output=590)
    world.line("2026-10-07 10:00", "100", token_class="output", tokens=10)
    world.call("2026-10-07 10:10", {"key_alias": "ads-1"}, output=10)
    assert kinds(world) == {("usage", None): 12}
    assert world.rows(
        "SELECT kind, line_class, claim_set_id, sum(effective_nano) / 1e9 FROM ledger_overlay GROUP BY ALL"
    ) == [("shared", "accelerator", "key_alias=search-1", 240)]


def test_a_call_over_two_hours_pays_in_both(world):
    fleet.machine(world, "n1", HOUR, "12")
    fleet.machine(world, "n1", "2026-10-07 11:00", "12")
    fleet.node(world, "n1", HOUR, 120)
    fleet.pod(world, "p1", "n1", HOUR, 120, app="qwen")
    fleet.engine(world, "p1", HOUR, running=[1] * 120, prompt=[0] * 120, output=rising(10, 120))
    fleet.asked(
        world,
        "2026-10-07 11:20",
        {"key_alias": "search-1"},
        started_at="2026-10-07 10:40",
        first_token_at="2026-10-07 10:50",
        output=300,
    )
    world.attribute()
    assert world.rows(
        "SELECT hour, tokens FROM ledger_hour WHERE kind = 'usage' AND tokens > 0 ORDER BY hour"
    ) == world.rows("SELECT * FROM (VALUES (TIMESTAMP '2026-10-07 10:00', 100), (TIMESTAMP '2026-10-07 11:00', 200))")


def test_a_pool_table_takes_its_activity_from_the_log(world):
    fleet.member(world, "i-n1", "qwen", "mixed")
    fleet.machine(world, "n1", HOUR, "60")
    fleet.machine(world, "n1", "2026-10-07 11:00", "60")
    fleet.asked(
        world,
        "2026-10-07 10:29:30",
        {"key_alias": "search-1"},
        started_at="2026-10-07 10:00",
        uncached_input=100,
        output=25,
    )
    assert kinds(world) == {("idle", "no_traffic"): 90, ("usage", None): 30}
    assert teams(world) == {("search-1", "output"): (15, 25), ("search-1", "uncached_input"): (15, 100)}


def test_busy_below_last_weeks_best_is_under_used(world):
    week_before = "2026-09-30 10:00"
    fleet.node(world, "n1", week_before, 60)
    fleet.pod(world, "p0", "n1", week_before, 60, app="qwen")
    fleet.engine(world, "p0", week_before, running=[1] * 60, prompt=rising(1000), born=[1] * 60)
    serve(world, prompt=250, output=0)
    fleet.machine(world, "n1", HOUR, "12")
    found = kinds(world)
    assert found[("under_used", "no_log")] == pytest.approx(9, abs=0.2)
    assert sum(found.values()) == pytest.approx(12)


def test_calls_in_hours_that_the_bill_has_not_reached_have_an_unknown_amount(world):
    serve(world)
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=2950, output=295)
    world.attribute()
    assert world.rows("SELECT basis, reason, sum(tokens), sum(effective_nano) FROM ledger_hour GROUP BY ALL") == [
        ("estimated", "not_billed_yet", 3245, None)
    ]


def test_calls_in_billed_hours_in_which_no_pool_of_their_route_held_anything_say_so(world):
    serve(world)
    for hour in (HOUR, "2026-10-07 11:00"):
        fleet.machine(world, "n1", hour, "12")
    fleet.asked(world, "2026-10-07 11:30", {"key_alias": "search-1"}, uncached_input=2950, output=295)
    world.attribute()
    assert world.rows(
        "SELECT reason, sum(tokens), sum(effective_nano) FROM ledger_hour WHERE basis = 'estimated' GROUP BY ALL"
    ) == [("no_pool", 3245, None)]


def test_an_adapter_is_paid_at_its_route(tmp_path):
    settings = {"owners": OWNERS, "fleet": {"routes": [{"name": "qwen", "models": ["qwen-support-lora"]}]}}
    world = World(tmp_path, WarehouseSettings.model_validate(settings))
    serve(world)
    fleet.machine(world, "n1", HOUR, "12")
    fleet.asked(
        world, "2026-10-07 10:30", {"key_alias": "search-1"}, model="qwen-support-lora", uncached_input=5900, output=590
    )
    world.attribute()
    assert world.rows("SELECT model, sum(tokens) FROM ledger_hour WHERE kind = 'usage' GROUP BY ALL") == [
        ("qwen", 6490)
    ]
    assert world.rows("SELECT DISTINCT model FROM usage_hour") == [("qwen",)]
