"""Evidence of a fleet as it really comes: told twice, names used again, broken counters, odd bills."""

import pytest

from tests import fleet
from tests.fleet import rising
from tests.world import World
from warehouse.settings import WarehouseSettings

HOUR, NEXT = "2026-10-07 10:00", "2026-10-07 11:00"
DAY_BEFORE = "2026-10-06 10:00"
OWNERS = [
    {"when": {"key_alias": "search*"}, "set": {"team": "search"}},
    {"when": {"key_alias": "ads*"}, "set": {"team": "ads"}},
]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, WarehouseSettings.model_validate({"owners": OWNERS}))


def dollars(world):
    """What the fleet cost, by kind, reason and model where it is not nothing; every control holds."""
    assert world.attribute().failed_controls == ()
    rows = world.rows(
        "SELECT kind, reason, model, sum(effective_nano) / 1e9 FROM ledger_hour WHERE cluster IS NOT NULL "
        "GROUP BY ALL HAVING sum(effective_nano) <> 0 ORDER BY ALL"
    )
    return {key: round(usd, 9) for *names, usd in rows for key in [tuple(names)]}


def asked_for_all(world, at="2026-10-07 10:30", model="qwen", **tokens):
    """A call for exactly the tokens that `fleet.serve` shows in an hour: 5,900 in, 590 out."""
    fleet.asked(world, at, {"key_alias": "ads-1"}, model=model, **{"uncached_input": 5900, "output": 590, **tokens})


USED_BY_CALLS = ("usage", None, "qwen")


def test_a_pod_name_that_is_used_again_for_another_model_leaves_its_past_alone(world):
    fleet.serve(world, DAY_BEFORE, app="llama")
    fleet.machine(world, "n1", DAY_BEFORE, "12")
    asked_for_all(world, "2026-10-06 10:30", "llama")
    assert dollars(world) == {("usage", None, "llama"): 12}
    fleet.serve(world, HOUR, app="qwen")
    fleet.machine(world, "n1", HOUR, "12")
    asked_for_all(world)
    assert dollars(world) == {("usage", None, "llama"): 12, USED_BY_CALLS: 12}


def test_a_pod_that_was_made_anew_under_its_name_is_starting_again(world):
    for uid, start in (("a", DAY_BEFORE), ("b", HOUR)):
        fleet.node(world, "n1", start, 60)
        fleet.pod(world, "vllm-0", "n1", start, 60, app="qwen")
        told = {"namespace": "llm", "pod": "vllm-0", "node": "n1", "resource": "nvidia_com_gpu", "uid": uid}
        fleet.shown(world, "kube_state_metrics", "pod_gpu_request", told, start, [4] * 60, pod="vllm-0", node="n1")
    fleet.engine(world, "vllm-0", DAY_BEFORE, running=[0] * 60)
    fleet.engine(world, "vllm-0", "2026-10-07 10:15", running=[0] * 45)
    fleet.machine(world, "n1", HOUR, "12")
    assert dollars(world) == {("idle", "no_traffic", "qwen"): 9, ("idle", "starting", "qwen"): 3}


@pytest.mark.parametrize("other", [{"role": "decode"}, {"gpus": 4}, {"valid_to": "2026-10-07 10:30"}])
def test_rows_of_a_pool_table_that_differ_in_one_column_are_two_members(world, other):
    fleet.member(world, "i-n1", "qwen", "mixed", pool="qwen")
    fleet.member(world, "i-n1", "qwen", **{"role": "mixed", "pool": "qwen", **other})
    fleet.machine(world, "n1", HOUR, "60")
    asked_for_all(world)
    assert sum(dollars(world).values()) == 60


def test_the_same_row_in_two_pool_tables_is_one_member(world):
    for source in ("table", "other"):
        fleet.member(world, "i-n1", "qwen", "mixed", pool="qwen", source=source)
    fleet.machine(world, "n1", HOUR, "60")
    asked_for_all(world)
    dollars(world)
    assert world.rows("SELECT sum(gpus) FROM (SELECT DISTINCT pod, gpus FROM replica_window)") == [(8,)]


def test_a_node_name_that_a_machine_without_gpus_takes_over_has_none(world):
    fleet.node(world, "ip1", DAY_BEFORE, 60, gpus=8)
    told = {"node": "ip1", "provider_id": "aws:///us-east-1a/i-cpu"}
    fleet.shown(world, "kube_state_metrics", "node_info", told, HOUR, [1] * 60, node="ip1")
    fleet.serve(world, HOUR)
    fleet.machine(world, "n1", HOUR, "12")
    fleet.machine(world, "cpu", HOUR, "1")
    asked_for_all(world)
    found = dollars(world)
    assert sum(usd for (kind, *_), usd in found.items() if kind == "shared") == 1


def test_software_billed_by_the_hours_of_an_instance_makes_them_no_longer(world):
    fleet.serve(world, HOUR)
    fleet.machine(world, "n1", HOUR, "12")
    world.line(
        HOUR,
        "1",
        service_name="NVIDIA AI Enterprise",
        resource_id="i-n1",
        pricing_unit="Hrs",
        consumed_quantity="1",
        x_usage_type="SoftwareUsage:g6e.12xlarge",
    )
    asked_for_all(world)
    assert dollars(world) == {USED_BY_CALLS: 13}


def test_the_requests_of_a_pod_that_two_kube_state_metrics_tell_are_one(world):
    fleet.node(world, "n1", HOUR, 60)
    fleet.pod(world, "p1", "n1", HOUR, 60, gpus=1, app="qwen")
    again = {"namespace": "llm", "pod": "p1", "node": "n1", "resource": "nvidia_com_gpu", "instance": "ksm-1"}
    fleet.shown(world, "kube_state_metrics", "pod_gpu_request", again, HOUR, [1] * 60, pod="p1", node="n1")
    fleet.engine(world, "p1", HOUR, running=[0] * 60)
    fleet.machine(world, "n1", HOUR, "12")
    assert dollars(world) == {("idle", "no_traffic", "qwen"): 3, ("idle", "not_requested", None): 9}


def test_a_pod_that_two_jobs_scrape_counts_its_tokens_once(world):
    fleet.serve(world, HOUR)
    for concept, step in (("prompt_tokens", 100), ("generation_tokens", 10)):
        labels = {"pod": "p1", "namespace": "llm", "model_name": "qwen", "job": "second"}
        fleet.shown(world, "vllm", concept, labels, HOUR, rising(step), pod="p1", kind="counter", target="p1-second")
    fleet.machine(world, "n1", HOUR, "12")
    asked_for_all(world)
    assert dollars(world) == {USED_BY_CALLS: 12}
    assert world.rows("SELECT sum(uncached_input_tokens), sum(output_tokens) FROM pool_hour") == [(5900, 590)]


@pytest.mark.parametrize("job", ["a", "z"])
def test_the_second_job_tells_what_the_first_one_missed(world, job):
    fleet.node(world, "n1", HOUR, 120)
    fleet.pod(world, "p1", "n1", HOUR, 120, app="qwen")
    labels = {"pod": "p1", "namespace": "llm", "model_name": "qwen", "job": "m"}
    fleet.shown(world, "vllm", "prompt_tokens", labels, HOUR, rising(100), pod="p1", kind="counter", target="m")
    labels |= {"job": job}
    fleet.shown(world, "vllm", "prompt_tokens", labels, HOUR, rising(100, 120), pod="p1", kind="counter", target=job)
    for hour in (HOUR, NEXT):
        fleet.machine(world, "n1", hour, "12")
    dollars(world)
    # what rose from 10:59 to 11:00 is of the first hour
    assert world.rows("SELECT sum(uncached_input_tokens) FROM pool_hour GROUP BY hour ORDER BY hour") == [
        (6000,),
        (5900,),
    ]


def test_an_instance_that_two_clusters_claim_is_held_once(world):
    fleet.node(world, "n1", HOUR, 60)
    fleet.pod(world, "p1", "n1", HOUR, 60, gpus=1, app="qwen")
    fleet.engine(world, "p1", HOUR, running=[0] * 60)
    with fleet.another_cluster("copy"):
        fleet.node(world, "n1", HOUR, 60)
        fleet.pod(world, "p1", "n1", HOUR, 60, gpus=1, app="qwen")
        fleet.engine(world, "p1", HOUR, running=[0] * 60)
    fleet.machine(world, "n1", HOUR, "12")
    assert dollars(world) == {("idle", "no_traffic", "qwen"): 3, ("idle", "not_requested", None): 9}


def test_an_instance_under_two_node_names_at_once_is_one(world):
    fleet.serve(world, HOUR, gpus=1)
    told = {"node": "n1-new", "provider_id": "aws:///us-east-1a/i-n1"}
    fleet.shown(world, "kube_state_metrics", "node_info", told, HOUR, [1] * 60, node="n1-new")
    fleet.machine(world, "n1", HOUR, "12")
    asked_for_all(world)
    assert dollars(world) == {("idle", "not_requested", None): 9, USED_BY_CALLS: 3}


def test_a_log_that_tells_cache_reads_splits_the_prompts_of_engines_that_count_none(world):
    fleet.serve(world, HOUR)
    fleet.machine(world, "n1", HOUR, "12")
    asked_for_all(world, uncached_input=2950, cache_read=2950)
    assert dollars(world) == {USED_BY_CALLS: 12}


def test_engines_that_count_hits_are_believed_though_the_log_tells_others(world):
    fleet.serve(world, HOUR, cached=10)
    fleet.machine(world, "n1", HOUR, "12")
    asked_for_all(world, uncached_input=2950, cache_read=2950)
    # 5,310 prompt tokens were computed, the log tells of 2,950
    assert dollars(world)[("unattributed", "no_log", "qwen")] > 0


def test_the_tokens_of_a_pod_that_moves_within_a_minute_are_counted_once(world):
    for name in ("n1", "n2"):
        fleet.node(world, name, HOUR, 60)
        fleet.machine(world, name, HOUR, "12")
    fleet.pod(world, "vllm-0", "n1", HOUR, 31, app="qwen")
    fleet.pod(world, "vllm-0", "n2", "2026-10-07 10:30", 30, app="qwen")
    fleet.engine(world, "vllm-0", HOUR, running=[1] * 60, prompt=[0] * 30 + [60_000] * 30)
    dollars(world)
    assert world.rows("SELECT sum(uncached_input_tokens) FROM pool_hour") == [(60_000,)]


def test_a_counter_that_leaps_beyond_reason_is_unknown_and_costs_nobody(world):
    fleet.serve(world, HOUR)
    fleet.node(world, "n2", HOUR, 60)
    fleet.pod(world, "p2", "n2", HOUR, 60, app="qwen")
    fleet.engine(world, "p2", HOUR, running=[1] * 60, output=[0] * 30 + [9_000_000_000_000_000] * 30)
    for name in ("n1", "n2"):
        fleet.machine(world, name, HOUR, "12")
    asked_for_all(world)
    # all 24 dollars go by the 6,490 tokens that can be believed
    assert dollars(world) == {USED_BY_CALLS: 24}
    assert world.rows("SELECT sum(output_tokens), sum(unknown_series) >= 1 FROM pool_hour") == [(590, True)]


def test_what_an_instance_is_not_billed_for_it_was_stopped(world):
    away = range(10, 40)
    fleet.node(world, "n1", HOUR, 60, skip=away)
    fleet.pod(world, "p1", "n1", HOUR, 60, skip=away, app="qwen")
    fleet.engine(world, "p1", HOUR, skip=away, running=[0] * 60)
    fleet.machine(world, "n1", HOUR, "6", hours="0.5")
    assert dollars(world) == {("idle", "no_traffic", "qwen"): 6}


def test_a_gpu_machine_that_is_tagged_with_the_cluster_and_never_joined_it_is_idle(world):
    fleet.serve(world, HOUR)
    fleet.machine(world, "n1", HOUR, "12")
    tags = {"aws_eks_cluster_name": "east"}
    fleet.machine(world, "lost", HOUR, "9", tags=tags, x_cost_class="accelerator")
    fleet.machine(world, "cpu", HOUR, "1", tags=tags, x_cost_class="compute")
    asked_for_all(world)
    assert dollars(world) == {
        USED_BY_CALLS: 12,
        ("idle", "not_in_cluster", None): 9,
        ("shared", None, "qwen"): 1,
    }


def test_one_instance_on_bills_of_two_currencies_is_in_its_cluster(world):
    fleet.serve(world, HOUR)
    fleet.machine(world, "n1", HOUR, "12")
    fleet.machine(world, "n1", HOUR, "10", billing_currency="EUR", export_name="eu")
    asked_for_all(world)
    dollars(world)
    assert world.rows(
        "SELECT currency, kind, sum(effective_nano) / 1e9 FROM ledger_hour WHERE cluster IS NOT NULL "
        "AND effective_nano <> 0 GROUP BY ALL ORDER BY ALL"
    ) == [("EUR", "usage", 10), ("USD", "usage", 12)]


def test_an_instance_billed_in_seconds_is_billed_its_time(world):
    fleet.serve(world, HOUR, minutes=30)
    world.line(
        HOUR,
        "12",
        service_name="EC2",
        resource_id="i-n1",
        pricing_unit="Seconds",
        consumed_quantity="3600",
        x_usage_type="BoxUsage:g6e",
    )
    assert dollars(world)[("idle", "not_in_cluster", None)] == 6


def test_the_product_label_names_the_kind_of_gpu_though_one_node_showed_another_first(world):
    type_label = {"label_node_kubernetes_io_instance_type": "g6e.12xlarge"}
    for name in ("a", "b"):
        fleet.node(world, name, HOUR, 60)
        product = {"node": name, **type_label, "label_nvidia_com_gpu_product": "NVIDIA-L40S"}
        fleet.shown(world, "kube_state_metrics", "node_labels", product, "2026-10-07 10:02", [1] * 50, node=name)
    first = {"node": "a", **type_label}
    fleet.shown(world, "kube_state_metrics", "node_labels", first, HOUR, [1, 1], node="a")
    for name in ("a", "b"):
        fleet.pod(world, f"p-{name}", name, HOUR, 60, app="qwen")
        fleet.machine(world, name, HOUR, "12")
    dollars(world)
    assert world.rows("SELECT DISTINCT gpu_type FROM replica_window") == [("NVIDIA-L40S",)]
