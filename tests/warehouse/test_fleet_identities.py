"""The identities with a fleet: any nodes, pods, engines, calls and lines, in any order of arrival."""

import tempfile
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import fleet
from tests.world import World
from warehouse import measures
from warehouse.settings import WarehouseSettings
from warehouse.snapshot import Scope

# Friday evening to Monday morning: two weeks, and two months
START = datetime(2026, 10, 30, 21)
HOURS = 70
OWNERS = [
    {"when": {"key_alias": "a*"}, "set": {"team": "alpha"}},
    {"when": {"key_alias": "b*"}, "set": {"team": "beta"}},
]
METRIC_HOURS = "'metrics', date_trunc('hour', unnest([minute, minute + INTERVAL 5 MINUTE]))"
MARTS = ("cost_day", "cost_hour", "usage_day", "task_day", "user_day", "match_day", "pool_hour", "ratio_day", "balance")

minutes = st.integers(0, 400) | st.integers(3300, 3700)
gaps = st.lists(st.tuples(st.integers(0, 180), st.integers(1, 50)), max_size=3)
nodes = st.lists(
    st.fixed_dictionaries(
        {
            "start": minutes,
            "length": st.integers(1, 200),
            "gpus": st.sampled_from([0, 1, 4, 8]),
            "gaps": gaps,
        }
    ),
    min_size=1,
    max_size=3,
)
pods = st.lists(
    st.fixed_dictionaries(
        {
            "node": st.integers(0, 2),
            "start": minutes,
            "length": st.integers(1, 200),
            "gpus": st.integers(1, 6),
            "app": st.sampled_from(["qwen", "Org/Qwen", "llama", None]),
            "role": st.sampled_from(["both", "prefill", "decode", "embedding"]),
            "version": st.sampled_from(["v1", "v2"]),
            "gaps": gaps,
            "late": st.integers(0, 20),
            "engine": st.booleans(),
            "engine_gaps": gaps,
            "restarts": st.lists(st.integers(1, 180), max_size=2),
            "rates": st.tuples(st.integers(0, 500), st.integers(0, 400), st.integers(0, 90)),
            "quiet": st.integers(1, 10),
            "exact": st.booleans(),
            "born": st.booleans(),
        }
    ),
    max_size=4,
)
calls = st.lists(
    st.fixed_dictionaries(
        {
            "end": minutes,
            "length": st.integers(0, 130),
            "key": st.sampled_from(["a1", "b1", "c1"]),
            "model": st.sampled_from(["qwen", "qwen-lora", "llama", "unheard-of"]),
            "region_id": st.sampled_from(["us-east-1", None, "eu-west-1"]),
            "uncached_input": st.none() | st.integers(0, 20_000),
            "cache_read": st.none() | st.integers(0, 20_000),
            "output": st.none() | st.integers(0, 3_000),
            "task": st.none() | st.just("t1"),
        }
    ),
    max_size=8,
)
money = st.decimals("-20", "90", places=10) | st.sampled_from([Decimal(0), Decimal("0.000000000000000001")])
lines = st.lists(
    st.fixed_dictionaries(
        {
            "hour": st.integers(0, 6) | st.integers(55, 61),
            "of": st.sampled_from(
                ["n0", "n1", "n2", "table", "stranger", "cluster", "tagged", "commitment", "support"]
            ),
            "amount": money,
            "hours": st.sampled_from([None, "1", "0.25", "8"]),
            "length": st.sampled_from([1, 1, 1, 2, 24]),
            "covered": st.booleans(),
        }
    ),
    max_size=14,
)
members = st.lists(
    st.fixed_dictionaries(
        {
            "route": st.sampled_from(["qwen", "llama"]),
            "role": st.sampled_from(["mixed", "decode"]),
            "from": minutes,
            "length": st.integers(1, 300),
        }
    ),
    max_size=1,
)
worlds = st.fixed_dictionaries({"nodes": nodes, "pods": pods, "calls": calls, "lines": lines, "members": members})


def at(minute: int) -> str:
    return (START + timedelta(minutes=minute)).isoformat()


def skipped(some_gaps, length: int) -> set[int]:
    return {n for start, size in some_gaps for n in range(start, start + size) if n < length - 1}


def fill(world: World, drawn) -> None:
    with world.connected():
        for number, node in enumerate(drawn["nodes"]):
            fleet.node(
                world,
                f"n{number}",
                at(node["start"]),
                node["length"],
                gpus=node["gpus"],
                skip=skipped(node["gaps"], node["length"]),
            )
        for number, pod in enumerate(drawn["pods"]):
            _pod(world, f"p{number}", pod)
        for number, row in enumerate(drawn["members"]):
            fleet.member(
                world,
                "i-table",
                row["route"],
                row["role"],
                pool=f"pool-{number}",
                valid_from=at(row["from"]),
                valid_to=at(row["from"] + row["length"]),
            )
        for number, call in enumerate(drawn["calls"]):
            start = at(call["end"] - call["length"])
            fleet.asked(
                world,
                at(call["end"]),
                {"key_alias": call["key"]},
                started_at=start,
                first_token_at=at(call["end"] - call["length"] // 2) if number % 2 else None,
                model=call["model"],
                region_id=call["region_id"],
                uncached_input=call["uncached_input"],
                cache_read=call["cache_read"],
                output=call["output"],
                task_id=call["task"],
            )
        for line in drawn["lines"]:
            _line(world, line)


def _pod(world: World, name: str, pod) -> None:
    labels = {key: pod[key] for key in ("app", "role", "version") if pod[key]}
    length = pod["length"]
    fleet.pod(
        world,
        name,
        f"n{pod['node']}",
        at(pod["start"]),
        length,
        gpus=pod["gpus"],
        skip=skipped(pod["gaps"], length),
        **labels,
    )
    if not pod["engine"]:
        return
    running, counters, born = (
        [],
        {word: [] for word in ("prompt", "cached", "output", "steps", "prefill", "decode")},
        [],
    )
    values = dict.fromkeys(counters, 0)
    began = int((START + timedelta(minutes=pod["start"]) - datetime(1970, 1, 1)).total_seconds()) * 1_000_000
    prompt, cached, output = pod["rates"]
    for minute in range(length):
        if minute in pod["restarts"]:
            values = dict.fromkeys(counters, 0)
            began += minute * 60_000_000
        works = minute % pod["quiet"] == 0
        running.append(int(works))
        steps = {
            "prompt": prompt,
            "cached": cached,
            "output": output,
            "steps": 9,
            "prefill": 3_000_000,
            "decode": 1_000_000,
        }
        for word in counters:
            values[word] += steps[word] if works else 0
            counters[word].append(values[word])
        born.append(began)
    fleet.engine(
        world,
        name,
        at(pod["start"] + pod["late"]),
        skip=skipped(pod["engine_gaps"], length),
        running=running,
        **{word: counters[word] for word in ("prompt", "cached", "output", "steps")},
        **({"prefill": counters["prefill"], "decode": counters["decode"]} if pod["exact"] else {}),
        **({"born": born} if pod["born"] else {}),
    )


def _line(world: World, line) -> None:
    start = START + timedelta(hours=line["hour"])
    facts = {"commitment_discount_id": "sp-1"} if line["covered"] else {}
    amount, end = str(line["amount"]), (start + timedelta(hours=line["length"])).isoformat()
    if line["of"] in ("n0", "n1", "n2", "table", "stranger"):
        hours = {"consumed_quantity": line["hours"], "pricing_unit": "Hrs" if line["hours"] else "GB"}
        world.line(
            start.isoformat(), amount, end=end, resource_id=f"i-{line['of']}", service_name="EC2", **hours, **facts
        )
    elif line["of"] == "cluster":
        world.line(
            start.isoformat(),
            amount,
            end=end,
            x_service_code="AmazonEKS",
            resource_id="arn:aws:eks:us-east-1:1:cluster/east",
            service_name="EKS",
        )
    elif line["of"] == "tagged":
        world.line(start.isoformat(), amount, end=end, tags={"aws_eks_cluster_name": "east"}, service_name="EC2")
    else:
        world.line(
            start.isoformat(),
            amount,
            end=(start + timedelta(hours=1 if line["of"] == "commitment" else 300)).isoformat(),
            x_charge_family=line["of"],
            service_name=line["of"],
            **facts,
        )


def world_in(folder: str) -> World:
    return World(
        Path(folder),
        WarehouseSettings.model_validate(
            {
                "owners": OWNERS,
                "zone": "Asia/Kolkata",
                "fleet": {"routes": [{"name": "qwen", "models": ["qwen-lora"]}]},
            }
        ),
        as_of="2026-11-04 00:00",
    )


def check(world: World, drawn) -> list[tuple]:
    """Both identities against the lines themselves; the rows of every mart."""
    snapshot = world.snapshot(Scope.everything("test"))
    assert snapshot.held == ()
    bill = sum((line["amount"] for line in drawn["lines"]), Decimal(0))
    balance = snapshot.sql("SELECT * FROM balance WHERE cost_basis = 'effective'").to_pylist()
    assert all(row["difference_usd"] == 0 for row in balance)
    assert sum((row["bill_usd"] for row in balance), Decimal(0)) == bill
    expected = bill - sum((row["rounding_usd"] for row in balance), Decimal(0))
    for by in ("kind", "team", "claim_set_id", "model", "cluster", "pool", "day"):
        table = measures.table(snapshot, ["effective_cost_usd"], [by])
        assert sum((row["effective_cost_usd"] for row in table.to_pylist()), Decimal(0)) == expected, by
    by_pool = snapshot.sql("SELECT coalesce(sum(effective_nano), 0) AS nano FROM pool_hour").to_pylist()[0]["nano"]
    by_kind = snapshot.sql(
        "SELECT coalesce(sum(effective_nano), 0) AS nano FROM cost_day "
        "WHERE cluster IS NOT NULL AND kind <> 'future' AND basis = 'billed'"
    ).to_pylist()[0]["nano"]
    assert by_pool == by_kind
    wrong = "SELECT count(*) AS rows FROM cost_hour WHERE kind NOT IN (SELECT unnest(?))"
    known = ["usage", "under_used", "idle", "unmeasured", "shared", "unattributed", "out_of_scope", "future"]
    assert snapshot.sql(wrong, [known]).to_pylist()[0]["rows"] == 0
    rows = [(mart, *row.values()) for mart in MARTS for row in snapshot.sql(f"FROM {mart} ORDER BY ALL").to_pylist()]
    snapshot.close()
    return rows


def arrive(world: World, whole: World, parts: int, seed: int) -> None:
    """Load everything that `whole` holds in `parts` deliveries, any row in any of them; publish after each."""
    tables = {
        "billing_line": "'billing', date_trunc('hour', charge_period_start)",
        "usage_record": "'usage', date_trunc('hour', ended_at)",
        "kube_minute": METRIC_HOURS,
        "serving_minute": METRIC_HOURS,
    }
    for part in range(parts):
        with world.connected() as c:
            c.execute(f"ATTACH '{whole.layout.warehouse}' AS whole (READ_ONLY)")
            c.execute(
                "INSERT INTO claim_set SELECT * FROM whole.claim_set "
                "WHERE claim_set_id NOT IN (SELECT claim_set_id FROM claim_set)"
            )
            for table, touched in tables.items():
                rows = f"SELECT * FROM whole.{table} AS t WHERE hash(t, {seed}) % {parts} = {part}"
                c.execute(f"INSERT INTO {table} {rows}")
                c.execute(f"INSERT INTO touched_hour (reason, hour) SELECT DISTINCT {touched} FROM ({rows})")
            c.execute(
                """
                INSERT INTO metric_series SELECT * FROM whole.metric_series AS s
                WHERE series_id NOT IN (SELECT series_id FROM metric_series)
                  AND series_id IN (SELECT series_id FROM kube_minute UNION SELECT series_id FROM serving_minute)
                """
            )
            if part == seed % parts:
                c.execute("INSERT INTO pool_member SELECT * FROM whole.pool_member")
                c.execute(
                    "INSERT INTO touched_hour SELECT DISTINCT date_trunc('hour', charge_period_start), 'billing' "
                    "FROM billing_line SEMI JOIN pool_member USING (resource_id)"
                )
            c.execute("DETACH whole")
        world.publish()


@pytest.mark.slow
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(worlds)
def test_with_any_fleet_kinds_and_owners_and_the_bill_are_one_sum(drawn):
    with tempfile.TemporaryDirectory() as folder:
        world = world_in(folder)
        fill(world, drawn)
        check(world, drawn)


@pytest.mark.slow
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(worlds, st.integers(2, 4), st.integers(0, 10**6))
def test_a_fleet_whose_evidence_comes_in_any_order_has_the_same_ledger(drawn, parts, seed):
    with tempfile.TemporaryDirectory() as folder:
        whole = world_in(f"{folder}/whole")
        fill(whole, drawn)
        expected = check(whole, drawn)
        late = world_in(f"{folder}/late")
        arrive(late, whole, parts, seed)
        assert check(late, drawn) == expected
