"""The same files on Apache Spark give the same rows as on DuckDB, step by step, from the same inputs."""

from pathlib import Path

import pytest

from tests import fleet, needs
from tests.world import World
from warehouse import owners, render, waterfall
from warehouse import steps as runner
from warehouse.engine import writing
from warehouse.settings import WarehouseSettings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

INPUTS = {
    "01_model_name": ["model_alias"],
    "02_usage_event": ["work_record", "model_name"],
    "10_rate": ["work_event", "price"],
    "11_event_class": ["work_event", "work_unit", "rate"],
    "12_usage_hour": ["work_event", "event_class"],
    "13_latency_hour": ["work_event"],
    "14_task_usage_hour": ["work_event"],
    "15_user_usage_hour": ["work_event"],
    "20_bill_line": [
        "work_line",
        "model_name",
        "scope_service",
        "scope_account",
        "run_parameter",
        "fleet_resource",
        "line_cluster",
        "fleet_commitment",
    ],
    "30_counter_minute": ["work_counter", "process_birth", "work_hour", "told_twice"],
    "31_pod_minute": ["work_pod_sample", "fleet_node", "member_hour", "minute_step", "work_hour"],
    "32_replica_minute": [
        "pod_minute",
        "fleet_pod",
        "work_engine_sample",
        "counter_minute",
        "event_minute",
        "minute_step",
    ],
    "33_replica_window": ["replica_minute", "fleet_pod", "fleet_node", "route_weight"],
    "34_node_hour": ["work_node_sample", "fleet_node", "member_hour", "minute_step", "work_hour"],
    "35_work_reference": ["reference_window"],
    "40_node_share": ["bill_line", "node_hour", "work_window", "work_reference"],
    "41_cluster_share": ["bill_line", "work_window"],
    "50_pool_token": ["work_window"],
    "51_fleet_use": ["work_fleet_event", "work_hour"],
    "52_route_region": ["pool_token", "fleet_use"],
    "53_fleet_cell": ["fleet_use", "route_region", "pool_token"],
    "54_engine_token": ["pool_token", "route_region", "fleet_cell"],
    "54_fleet_match": ["fleet_cell", "engine_token"],
    "55_pool_class": ["node_share", "cluster_share", "engine_token", "fleet_match", "route_weight"],
    "56_fleet_posting": ["pool_class", "node_share", "cluster_share", "fleet_cell", "fleet_match", "run_parameter"],
    "60_bill_bucket": ["bill_line"],
    "61_bill_amount": ["bill_line"],
    "62_event_cell": ["event_class", "bill_bucket", "bucket_hour", "run_parameter"],
    "63_bucket_match": ["bill_bucket", "event_cell", "bill_watermark", "run_parameter"],
    "64_api_posting": ["bucket_match", "bill_amount", "event_cell", "run_parameter"],
    "70_ledger_hour": ["api_posting", "fleet_posting", "bill_line"],
    "71_task_hour": ["api_posting", "fleet_posting"],
    "72_user_hour": ["api_posting", "fleet_posting"],
    "73_match_hour": ["bucket_match", "api_posting"],
    "75_pool_hour": ["work_window", "node_hour", "pool_token", "fleet_posting", "work_gpu"],
    "76_ratio_hour": ["fleet_posting"],
    "77_fleet_match_hour": ["fleet_match"],
    "78_fleet_class_hour": ["pool_class"],
    "79_fleet_line_hour": ["bill_line"],
    "80_overlay_scope": ["bill_line", "api_service", "scope_service", "scope_account", "period_usage"],
    "81_overlay_day": ["overlay_scope", "hour_calendar", "run_parameter"],
    "82_ledger_overlay": ["overlay_day", "day_usage"],
    "90_claim_owner": ["claim_set_key", "claim_value", "owner_period", "owner_rule", "owner_condition", "owner_value"],
}
# Steps before and after the bill's lines are read for the overlay: `bill_line` means another set of lines there.
OVERLAY = ("80_overlay_scope", "81_overlay_day", "82_ledger_overlay")


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    needs.java()
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("inferledger-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.ansi.enabled", "true")
        .config("spark.sql.timestampType", "TIMESTAMP_NTZ")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(folder))
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """Run the waterfall on DuckDB; keep every step's inputs and output as Parquet."""
    folder = tmp_path_factory.mktemp("steps")
    world = _organisation(World(tmp_path_factory.mktemp("data"), _settings(), as_of="2026-10-20 06:00"))
    kept: dict[str, dict[str, Path]] = {}
    step = runner.step

    def keep(connection, name, into=None):
        inputs = {}
        for table in INPUTS[name]:
            inputs[table] = folder / f"{name}-{table}.parquet"
            connection.execute(f"COPY (FROM {table}) TO '{inputs[table]}'")
        step(connection, name, into)
        output = folder / f"{name}.parquet"
        connection.execute(f"COPY (FROM {into or waterfall.table(name)}) TO '{output}'")
        kept[name] = {**inputs, "": output}

    runner.step = keep
    try:
        world.attribute()
    finally:
        runner.step = step
    with writing(world.layout, "test") as connection:
        owners.load_rules(connection, world.settings)
        inputs = {}
        for table in INPUTS["90_claim_owner"]:
            inputs[table] = folder / f"90-{table}.parquet"
            connection.execute(f"COPY (FROM {table}) TO '{inputs[table]}'")
        output = folder / "90.parquet"
        connection.execute(f"COPY ({waterfall.text('90_claim_owner')}) TO '{output}'")
        kept["90_claim_owner"] = {**inputs, "": output}
    return kept


def test_every_step_is_compared():
    assert set(INPUTS) == set(waterfall.names())


@pytest.mark.parametrize("name", list(INPUTS))
def test_a_step_gives_the_same_rows_on_spark(name, spark, steps):
    for table in INPUTS[name]:
        spark.read.parquet(str(steps[name][table])).createOrReplaceTempView(table)
    got = _canonical(spark.sql(render.sql(name, "spark")))
    expected = _canonical(spark.read.parquet(str(steps[name][""])))
    assert expected[1], f"{name}: the organisation of this test gives it nothing to do"
    assert got == expected


def _canonical(frame):
    rows = [tuple("NULL" if value is None else str(value) for value in row) for row in frame.collect()]
    return frame.columns, sorted(rows)


def _settings():
    return WarehouseSettings.model_validate(
        {
            "zone": "Europe/Paris",
            "fleet": {"routes": [{"name": "qwen", "models": ["qwen-lora"]}], "weights": {"output": 3.5}},
            "attribution": {"scope": {"services": ["Amazon OpenSearch"], "accounts": ["222233334444"]}},
            "owners": [
                {"when": {"key_alias": "search-*"}, "set": {"team": "search", "app": "app-{tag.app}"}},
                {"when": {"key_alias": "old_*"}, "set": {"team": "legacy"}, "to": "2026-10-03"},
                {"when": {"tag.app": "*"}, "set": {"team": "guess", "app": "{tag.app}"}},
            ],
        }
    )


def _organisation(world):
    """Every branch of every step: negative and zero amounts, corrections, tiers, windows, lateness, overlays."""
    with world.connected():
        _fill(world)
    return world


def _fill(world):
    world.price(
        uncached_input="3.3", output="15.7", cache_read="0.33", web_searches="10000", input_audio="0.0833333333"
    )
    with world.connected() as c:
        c.execute("""
            INSERT INTO price SELECT 'p', 'contract', 'aws.bedrock', 'opus', s.scope, 'standard', k.name, t.tier, 'USD',
                k.amount * t.factor, '1970-01-01', '9999-12-31', w.a, w.b, 'test', 'test'
            FROM (VALUES ('uncached_input', 5.25), ('output', 25.333333)) AS k(name, amount),
                 (VALUES (0, 1), (200000, 2)) AS t(tier, factor), (VALUES (NULL), ('global')) AS s(scope),
                 (VALUES (NULL, NULL), (1800, 59400), (59400, 1800)) AS w(a, b)""")
        c.execute(
            "INSERT INTO model_alias VALUES ('m', 'nova-pro-alias', 'nova-pro', 'built-in'), "
            "('m', 'nova-pro-alias', 'nova-pro', 'configuration'), ('m', 'opus-alias', 'opus', 'built-in')"
        )
    models = ("nova-pro-alias", "opus-alias", "unknown-model")
    for number in range(90):
        hour = f"2026-10-{1 + number % 5:02d} {number % 24:02d}"
        world.call(
            f"{hour}:{(number * 7) % 60:02d}:{number % 60:02d}.{number * 1113 % 1000:03d}",
            [{"key_alias": "search-1", "tag.app": "web"}, {"key_alias": "old_key"}, {"tag.app": "batch"}, {}][
                number % 4
            ],
            uncached_input=[1000 + number, 250_000, 0][number % 3],
            output=[None, 17 * number, 3][number % 3],
            cache_read=[None, 500][number % 2],
            model=models[number % 3],
            scope=["regional", "geo", "global", None][number % 4],
            task_id=[None, "t1", "t2"][number % 3],
            user_id=[None, "u1"][number % 2],
            agent=["main", None][number % 2],
            operation_id=f"op-{number // 2}",
            status=["success", "failure", "timeout"][(number % 10) // 4],
            first_token_at=[None, f"{hour}:00"][number % 2],
            task_outcome=[None, "merged"][number % 9 == 0],
            started_at=f"{hour}:00",
            event_key=f"r:{number // 30 * 30 + number % 29}",
            other_units=[None, {"web_searches": "2", "input_audio_tokens": "7"}][number % 5 == 0],
        )
    for number in range(60):
        hour = f"2026-10-{1 + number % 5:02d} {number % 24:02d}:00"
        world.line(
            hour,
            ["0.123456789987654321", "-0.05", "1.0000000005", "0"][number % 4],
            token_class=["uncached_input", "output", "cache_read"][number % 3],
            tokens=[900, 20, 0, -5][number % 4],
            x_model=["nova-pro", "opus-alias"][number % 2],
            x_scope=["regional", "geo", "global", None][number % 4],
            x_context_tier=["base", "long"][number % 2],
            invoice_id=[None, "INV"][number % 2],
            billing_period=["2026-10", "2026-11"][number % 7 == 0],
            billing_currency=["USD", "EUR"][number % 11 == 0],
        )
    world.line("2026-10-02 00:00", "7.77", end="2026-10-03 00:00", token_class="output", tokens=5000)
    world.line("2026-10-02 05:00", "3.21", service_name="Amazon EC2")
    world.line("2026-10-02 05:00", "1.11", service_name="Amazon OpenSearch")
    world.line("2026-10-02 05:00", "2.22", service_name="Amazon EKS", sub_account_id="222233334444")
    world.line(
        "2026-10-01 00:00",
        "100.000000001",
        end="2026-11-01 00:00",
        service_name="AWS Support",
        x_charge_family="support",
        charge_category="Purchase",
    )
    world.line("2026-10-01 00:00", "-12.5", end="2026-10-20 00:00", x_charge_family="credit", charge_category="Credit")
    world.line("2026-10-01 00:00", "4.2", end="2026-10-01 00:00", x_charge_family="tax", charge_category="Tax")
    world.line("2026-10-25 10:00", "9.9", service_name="Amazon EC2")
    _fleet(world)


def _fleet(world):
    """Nodes that come and go, gaps, resets, births, roles, exact seconds, a pool table, regions told and not told."""
    start = "2026-10-06 08:57"
    for number, role in enumerate(("both", "prefill", "decode", "both")):
        fleet.node(world, f"n{number}", start, 170, gpus=4, skip=range(30, 50) if number == 3 else ())
        fleet.pod(
            world, f"p{number}", f"n{number}", start, 160, gpus=3, app="Org/Qwen", role=role, version=f"v{number}"
        )
        more = (
            {"prefill": [90 * n for n in range(150)], "decode": [7_000 * n for n in range(150)]} if number == 3 else {}
        )
        fleet.engine(
            world,
            f"p{number}",
            "2026-10-06 09:02",
            skip=(40, 41, *range(60, 70)),
            running=[n % 7 // 5 for n in range(150)],
            prompt=[113 * (n % 80) for n in range(150)],
            cached=[31 * (n % 80) for n in range(150)],
            output=[29 * (n % 80) for n in range(150)],
            steps=[7 * (n % 80) for n in range(150)],
            born=[1_791_190_920_000_000 + n // 75 * 4_500_000_000 for n in range(150)],
            **more,
        )
    fleet.node(world, "system", start, 170, gpus=0)
    fleet.node(world, "n5", "2026-09-30 10:00", 90)
    fleet.pod(world, "p5", "n5", "2026-09-30 10:00", 90, app="qwen", role="both")
    fleet.engine(world, "p5", "2026-09-30 10:00", running=[1] * 90, prompt=[700 * n for n in range(90)])
    fleet.member(world, "i-table", "llama", "embedding", valid_to="2026-10-06 10:30")
    for hour in (8, 9, 10, 11, 12):
        at = f"2026-10-06 {hour:02d}:00"
        for number in range(4):
            fleet.machine(world, f"n{number}", at, f"{hour}.123456789", hours="0.97" if hour < 11 else "1")
        fleet.machine(world, "system", at, "0.5")
        fleet.machine(world, "table", at, "17", hours="8")
        world.line(at, "0.1", x_service_code="AmazonEKS", resource_id="arn:aws:eks:us-east-1:1:cluster/east")
        world.line(at, "0.07", tags={"eks:cluster-name": "east"}, x_usage_type="EBS:VolumeUsage.gp3")
    fleet.machine(world, "n1", "2026-10-06 00:00", "2.2", hours="24", end="2026-10-07 00:00")
    fleet.machine(world, "n1", "2026-10-06 10:00", "3.3", commitment_discount_id="sp-1")
    world.line(
        "2026-10-06 10:00",
        "4.4",
        x_charge_family="commitment",
        commitment_discount_id="sp-1",
        service_name="Savings Plans",
    )
    for number in range(40):
        fleet.asked(
            world,
            f"2026-10-06 {9 + number % 3:02d}:{(number * 11) % 60:02d}:07.5",
            [{"key_alias": "search-1"}, {"tag.app": "batch"}, {}][number % 3],
            started_at=f"2026-10-06 {8 + number % 3:02d}:50",
            first_token_at=[None, f"2026-10-06 {9 + number % 3:02d}:00:03"][number % 2],
            model=["qwen", "qwen-lora", "llama"][number % 3],
            region_id=["us-east-1", "us-east-1", None][number % 3 if number > 20 else 0],
            uncached_input=number * 37,
            cache_read=[0, 11][number % 2],
            output=[None, 100 + number][number % 4 > 0],
            task_id=[None, "t3"][number % 2],
            user_id=[None, "u2"][number % 2],
        )
    series = world.rows("SELECT series_id FROM metric_series WHERE pod = 'p0' AND concept = 'requests_running'")[0][0]
    with world.connected() as c:
        c.execute(
            """
            INSERT INTO metric_series BY NAME
            SELECT * REPLACE ('gpu-' || concept AS series_id, 'dcgm' AS engine) FROM (
                SELECT s.* REPLACE (k.concept AS concept) FROM metric_series AS s,
                    (VALUES ('gpu_engine_active'), ('memory_used'), ('memory_free')) AS k(concept)
                WHERE s.series_id = ?);
            """,
            [series],
        )
        c.execute(
            "INSERT INTO gpu_minute SELECT m.* REPLACE (s.series_id AS series_id, 70 AS value_sum) "
            "FROM serving_minute AS m, metric_series AS s WHERE m.series_id = ? AND s.engine = 'dcgm'",
            [series],
        )
