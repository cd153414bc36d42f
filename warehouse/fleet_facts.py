"""What the own GPU fleet is, from all evidence there is: nodes and pods with their lives, routes and their weights.

Everything here is looked up, nothing is divided, and nothing depends on the hours at hand.
"""

import json

import duckdb

from warehouse.settings import FleetSettings, WarehouseSettings, WorkWeights
from warehouse.steps import FIRST_INSTANT, LAST_INSTANT

NOT_ENGINES = ("dcgm", "kube_state_metrics", "process")


def prepare(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings) -> None:
    """Fill what does not depend on the hours at hand: `fleet_node`, `fleet_pod`, `fleet_member`, `fleet_route`,
    `route_weight`, `fleet_resource`, `fleet_commitment`, `minute_step`. Needs `model_name`."""
    connection.execute("CREATE OR REPLACE TEMP TABLE minute_step AS SELECT unnest(range(60)) AS n")
    _names(connection, settings.fleet)
    _members(connection)
    _nodes(connection)
    _split(connection, settings.fleet)
    _pods(connection, settings.fleet)
    _routes(connection, settings.fleet)
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE fleet_resource AS
        SELECT resource_id, min(cluster) AS cluster, max(gpus) AS gpus FROM (
            SELECT instance_id AS resource_id, cluster, gpus FROM fleet_node
            UNION ALL SELECT resource_id, cluster, gpus FROM fleet_member
            UNION ALL SELECT resource_id, cluster, gpus FROM split_machine)
        GROUP BY resource_id;
        CREATE OR REPLACE TEMP TABLE fleet_commitment AS
        SELECT DISTINCT l.commitment_discount_id FROM billing_line AS l
        SEMI JOIN fleet_resource AS r ON r.resource_id = l.resource_id
        WHERE nullif(l.commitment_discount_id, '') IS NOT NULL;
        """
    )


def _names(connection: duckdb.DuckDBPyConnection, settings: FleetSettings) -> None:
    pairs = [[name, route.name] for route in settings.routes for name in (route.name, *route.models)]
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE fleet_alias AS
        SELECT {_key("p[1]")} AS alias, min(p[2]) AS route
        FROM (SELECT unnest(CAST(? AS VARCHAR[][])) AS p) GROUP BY ALL
        """,
        [pairs],
    )


def _members(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE fleet_member AS
        SELECT DISTINCT md5(CAST(to_json(row(p.resource_id, p.cluster, p.region_id, p.route, p.pool, p.role, p.gpus,
                   p.gpu_type, p.valid_from, p.valid_to)) AS VARCHAR)) AS member_id,
               p.resource_id, coalesce(p.cluster, '') AS cluster, nullif(p.region_id, '') AS region_id,
               {_route("p.route")} AS route, coalesce(nullif(p.pool, ''), p.route) AS pool,
               {_role("p.role")} AS role, p.gpus, nullif(p.gpu_type, '') AS gpu_type, p.valid_from, p.valid_to
        FROM pool_member AS p
        """
    )


def _nodes(connection: duckdb.DuckDBPyConnection) -> None:
    """Lives of nodes: from the first minute kube-state-metrics showed them to the last."""
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE node_told AS
        SELECT coalesce(s.cluster, '') AS cluster, s.node, {instance_id("s.labels['provider_id']")} AS instance_id,
               nullif(regexp_extract(min(s.labels['provider_id']), '([a-z]{{2}}(-[a-z]+)+-[0-9]+)', 1), '')
                   AS region,
               min(m.first_minute) AS first_minute, max(m.last_minute) AS last_minute
        FROM metric_series AS s
        INNER JOIN (SELECT series_id, min(minute) AS first_minute, max(minute) AS last_minute
                    FROM kube_minute GROUP BY series_id) AS m USING (series_id)
        WHERE s.concept = 'node_info' AND nullif(s.node, '') IS NOT NULL
          AND nullif(s.labels['provider_id'], '') IS NOT NULL
        GROUP BY ALL;
        -- an instance is in one cluster at a time: told by two, it belongs to the one that told of it first
        CREATE OR REPLACE TEMP TABLE node_life AS
        SELECT n.* FROM node_told AS n
        ANTI JOIN node_told AS o
            ON o.instance_id = n.instance_id AND o.cluster <> n.cluster
            AND o.first_minute <= n.last_minute AND n.first_minute <= o.last_minute
            AND (o.first_minute < n.first_minute OR (o.first_minute = n.first_minute AND o.cluster < n.cluster));
        CREATE OR REPLACE TEMP TABLE fleet_node AS
        SELECT n.cluster, n.node, n.instance_id, n.region, g.gpu_type, coalesce(g.gpus, 0) AS gpus, n.first_minute,
               n.last_minute
        FROM node_life AS n
        LEFT JOIN (
            -- names of nodes are used again: what was told while the instance lived
            SELECT l.cluster, l.node, l.instance_id,
                   CAST(max(m.max_value) FILTER (s.concept = 'node_allocatable_gpu') AS BIGINT) AS gpus,
                   coalesce(max(nullif(s.labels['label_nvidia_com_gpu_product'], ''))
                                FILTER (s.concept = 'node_labels'),
                            max(nullif(s.labels['label_node_kubernetes_io_instance_type'], ''))
                                FILTER (s.concept = 'node_labels')) AS gpu_type
            FROM node_life AS l
            INNER JOIN metric_series AS s ON coalesce(s.cluster, '') = l.cluster AND s.node = l.node
            INNER JOIN kube_minute AS m
                ON m.series_id = s.series_id AND m.minute >= l.first_minute AND m.minute <= l.last_minute
            WHERE s.concept = 'node_labels'
               OR (s.concept = 'node_allocatable_gpu' AND s.labels['resource'] = 'nvidia_com_gpu')
            GROUP BY l.cluster, l.node, l.instance_id
        ) AS g ON g.cluster = n.cluster AND g.node = n.node AND g.instance_id = n.instance_id
        """
    )


def _split(connection: duckdb.DuckDBPyConnection, settings: FleetSettings) -> None:
    """`split_machine`: instances that only the bill's split costs tell of; their pods join `fleet_member`.

    A pod's GPUs are the most that it had; a workload's, those of its pods in that hour. What no pod had is requested
    by nobody, as with any machine.
    """
    workloads = [[workload, route.name] for route in settings.routes for workload in route.workloads]
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE split_pod AS
        WITH serves AS (
            SELECT {_key("p[1]")} AS workload, min(p[2]) AS route
            FROM (SELECT unnest(CAST(? AS VARCHAR[][])) AS p) GROUP BY ALL
        ),
        hour_pod AS (
            SELECT DISTINCT ON (s.parent_resource_id, s.resource_id, s.charge_period_start)
                   s.parent_resource_id, coalesce(s.cluster, '') AS cluster, w.route, s.workload, s.charge_period_start,
                   s.charge_period_end, s.quantity
            FROM split_cost_line AS s INNER JOIN serves AS w ON w.workload = {_key("s.workload")}
            ANTI JOIN fleet_node AS n ON n.instance_id = s.parent_resource_id
            ANTI JOIN fleet_member AS m ON m.resource_id = s.parent_resource_id
            WHERE s.usage_type LIKE '%Accelerator-Hours' AND s.quantity > 0
            ORDER BY s.parent_resource_id, s.resource_id, s.charge_period_start, s.quantity DESC, s.export_name
        ),
        hour_workload AS (
            SELECT parent_resource_id, cluster, route, workload, charge_period_start,
                   max(charge_period_end) AS charge_period_end, CAST(ceil(sum(quantity)) AS BIGINT) AS gpus
            FROM hour_pod GROUP BY ALL
        )
        SELECT parent_resource_id AS resource_id, cluster, route, workload AS pool, max(gpus) AS gpus,
               min(charge_period_start) AS valid_from, max(charge_period_end) AS valid_to
        FROM hour_workload GROUP BY ALL
        """,
        [workloads],
    )
    connection.execute(
        """
        INSERT INTO fleet_member BY NAME
        SELECT md5(CAST(to_json(row('split', p.resource_id, p.cluster, p.route, p.pool, p.gpus, p.valid_from,
                   p.valid_to)) AS VARCHAR)) AS member_id,
               p.*, 'mixed' AS role
        FROM split_pod AS p;
        CREATE OR REPLACE TEMP TABLE split_machine AS
        SELECT p.resource_id, p.cluster,
               greatest(max(TRY_CAST(l.x_other['product_gpu'] AS BIGINT)), max(p.gpus)) AS gpus,
               min(p.valid_from) AS valid_from, max(p.valid_to) AS valid_to
        FROM split_pod AS p INNER JOIN billing_line AS l ON l.resource_id = p.resource_id
        GROUP BY p.resource_id, p.cluster
        """
    )


def _pods(connection: duckdb.DuckDBPyConnection, settings: FleetSettings) -> None:
    """Pods by lives: a name that is used again, as a StatefulSet does, is another pod with its own labels."""
    others = ", ".join(f"'{name}'" for name in NOT_ENGINES)
    labels = {
        dimension: _first_label(getattr(settings.labels, dimension))
        for dimension in ("route", "role", "pool", "version")
    }
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE pod_told AS
        SELECT coalesce(s.cluster, '') AS cluster, coalesce(s.namespace, '') AS namespace, s.pod,
               nullif(s.labels['uid'], '') AS uid, m.first_minute,
               {
            ", ".join(f"CASE WHEN s.concept = 'pod_labels' THEN {text} END AS {name}" for name, text in labels.items())
        }
        FROM metric_series AS s
        INNER JOIN (SELECT series_id, min(minute) AS first_minute FROM kube_minute GROUP BY series_id) AS m
            USING (series_id)
        WHERE s.concept IN ('pod_labels', 'pod_gpu_request', 'pod_phase_running') AND s.pod IS NOT NULL;
        -- Another life begins with another uid; where nobody tells uids, with other labels.
        CREATE OR REPLACE TEMP TABLE pod_life AS
        WITH named AS (
            SELECT cluster, namespace, pod, first_minute,
                   CASE WHEN bool_or(uid IS NOT NULL) OVER (PARTITION BY cluster, namespace, pod) THEN uid
                        ELSE nullif(concat_ws(chr(31), route, pool, role, version), '') END AS life
            FROM pod_told
        ),
        begun AS (
            SELECT DISTINCT cluster, namespace, pod, begun FROM (
                SELECT cluster, namespace, pod, min(first_minute) AS begun FROM named WHERE life IS NOT NULL
                GROUP BY cluster, namespace, pod, life)
        ),
        any_pod AS (
            SELECT cluster, namespace, pod FROM pod_told
            UNION SELECT coalesce(cluster, ''), coalesce(namespace, ''), pod FROM metric_series
                  WHERE engine NOT IN ({others}) AND pod IS NOT NULL
        )
        SELECT p.cluster, p.namespace, p.pod,
               CASE WHEN row_number() OVER life = 1 THEN TIMESTAMP '{FIRST_INSTANT}' ELSE b.begun END AS life_from,
               coalesce(lead(b.begun) OVER life, TIMESTAMP '{LAST_INSTANT}') AS life_to,
               count(*) OVER (PARTITION BY p.cluster, p.namespace, p.pod) AS lives
        FROM any_pod AS p LEFT JOIN begun AS b USING (cluster, namespace, pod)
        WINDOW life AS (PARTITION BY p.cluster, p.namespace, p.pod ORDER BY b.begun);
        CREATE OR REPLACE TEMP TABLE pod_label AS
        SELECT l.cluster, l.namespace, l.pod, l.life_from, {", ".join(f"max(t.{name}) AS {name}" for name in labels)}
        FROM pod_life AS l INNER JOIN pod_told AS t USING (cluster, namespace, pod)
        WHERE t.first_minute >= l.life_from AND t.first_minute < l.life_to
        GROUP BY ALL;
        CREATE OR REPLACE TEMP TABLE pod_engine AS
        WITH engine AS (
            SELECT series_id, coalesce(cluster, '') AS cluster, coalesce(namespace, '') AS namespace, pod,
                   nullif(labels['model_name'], '') AS served
            FROM metric_series WHERE engine NOT IN ({others}) AND pod IS NOT NULL
        ),
        span AS (
            SELECT series_id, TIMESTAMP '{FIRST_INSTANT}' AS life_from, min(minute) AS first_minute,
                   max(minute) AS last_minute
            FROM serving_minute GROUP BY series_id
        ),
        span_of_life AS (
            SELECT e.series_id, l.life_from, min(m.minute) AS first_minute, max(m.minute) AS last_minute
            FROM pod_life AS l
            INNER JOIN engine AS e ON e.cluster = l.cluster AND e.namespace = l.namespace AND e.pod = l.pod
            INNER JOIN serving_minute AS m
                ON m.series_id = e.series_id AND m.minute >= l.life_from AND m.minute < l.life_to
            WHERE l.lives > 1 GROUP BY ALL
        )
        SELECT e.cluster, e.namespace, e.pod, l.life_from, max(e.served) AS served,
               min(coalesce(o.first_minute, s.first_minute)) AS engine_first,
               max(coalesce(o.last_minute, s.last_minute)) AS engine_last
        FROM engine AS e
        INNER JOIN span AS s ON s.series_id = e.series_id
        INNER JOIN pod_life AS l ON l.cluster = e.cluster AND l.namespace = e.namespace AND l.pod = e.pod
        LEFT JOIN span_of_life AS o ON o.series_id = e.series_id AND o.life_from = l.life_from
        WHERE l.lives = 1 OR o.series_id IS NOT NULL
        GROUP BY ALL;
        CREATE OR REPLACE TEMP TABLE pod_running AS
        SELECT l.cluster, l.namespace, l.pod, l.life_from, min(m.minute) AS running_first
        FROM kube_minute AS m
        INNER JOIN metric_series AS s ON s.series_id = m.series_id
        INNER JOIN pod_life AS l
            ON l.cluster = coalesce(s.cluster, '') AND l.namespace = coalesce(s.namespace, '') AND l.pod = s.pod
            AND m.minute >= l.life_from AND m.minute < l.life_to
        WHERE s.concept = 'pod_phase_running' AND m.max_value > 0
        GROUP BY ALL;
        CREATE OR REPLACE TEMP TABLE fleet_pod AS
        SELECT cluster, namespace, pod, life_from, life_to, route, coalesce(pool, route || '-' || role) AS pool, role,
               version, CAST(NULL AS VARCHAR) AS region, CAST(NULL AS VARCHAR) AS gpu_type, served, running_first,
               engine_first, engine_last
        FROM (
            SELECT p.cluster, p.namespace, p.pod, p.life_from, p.life_to,
                   {_route("coalesce(l.route, e.served)")} AS route, l.pool, {_role("l.role")} AS role, l.version,
                   e.served, r.running_first, e.engine_first, e.engine_last
            FROM pod_life AS p
            LEFT JOIN pod_label AS l USING (cluster, namespace, pod, life_from)
            LEFT JOIN pod_engine AS e USING (cluster, namespace, pod, life_from)
            LEFT JOIN pod_running AS r USING (cluster, namespace, pod, life_from))
        UNION ALL
        SELECT cluster, '', member_id, TIMESTAMP '{FIRST_INSTANT}', TIMESTAMP '{LAST_INSTANT}', route, pool, role, NULL,
               region_id, gpu_type, NULL, NULL, NULL, NULL
        FROM fleet_member
        """
    )


def _routes(connection: duckdb.DuckDBPyConnection, settings: FleetSettings) -> None:
    """`fleet_route`: names under which calls ask for what the fleet serves; `route_weight`: how its work is weighed."""
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE fleet_route AS
        -- what is configured comes before a route's own name, and that before what engines call their model
        SELECT model, arg_min(route, (place, route)) AS route FROM (
            SELECT alias AS model, route, 1 AS place FROM fleet_alias
            UNION ALL SELECT coalesce(n.model, f.alias), f.route, 2 FROM fleet_alias AS f
                LEFT JOIN model_name AS n ON n.alias = f.alias
            UNION ALL SELECT route, route, 3 FROM fleet_pod WHERE route IS NOT NULL
            UNION ALL SELECT {_key("served")}, route, 4 FROM fleet_pod WHERE route IS NOT NULL AND served IS NOT NULL)
        WHERE model IS NOT NULL GROUP BY model
        """
    )
    weights = [
        {"route": route, **_thousandths(weighed)}
        for route, weighed in [
            ("", settings.weights),
            *((each.name, each.weights or settings.weights) for each in settings.routes),
        ]
    ]
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE route_weight AS
        WITH given AS (
            SELECT unnest(from_json(CAST(? AS JSON), '[{"route": "VARCHAR", "cached_weight": "BIGINT",
                "output_weight": "BIGINT", "output_low": "BIGINT", "output_high": "BIGINT", "step_weight": "BIGINT",
                "step_low": "BIGINT", "step_high": "BIGINT", "reference_batch": "BIGINT"}]'), recursive := true))
        SELECT r.route, g.* EXCLUDE (route)
        FROM (SELECT DISTINCT route FROM fleet_route) AS r
        INNER JOIN given AS g
            ON g.route = CASE WHEN r.route IN (SELECT route FROM given) THEN r.route ELSE '' END
        """,
        [json.dumps(weights)],
    )


def _thousandths(weights: WorkWeights) -> dict[str, int]:
    """Weights as whole thousandths of an uncached input token."""
    return {
        "cached_weight": int(weights.cache_read * 1000),
        "output_weight": int(weights.output * 1000),
        "output_low": int(weights.output_low * 1000),
        "output_high": int(weights.output_high * 1000),
        "step_weight": int(weights.step * 1000),
        "step_low": int(weights.step * weights.output_low / weights.output * 1000),
        "step_high": int(weights.step * weights.output_high / weights.output * 1000),
        "reference_batch": weights.reference_batch,
    }


def instance_id(provider_id: str) -> str:
    """aws:///us-east-1a/i-0abc -> i-0abc."""
    return f"regexp_replace({provider_id}, '^.*/', '')"


def _key(name: str) -> str:
    """A served name or label as it is compared: without its path, in lower case."""
    return f"lower(regexp_replace({name}, '^.*/', ''))"


def _route(name: str) -> str:
    """The route a name stands for: configured, else by the model's own alias, else itself."""
    return (
        f"coalesce((SELECT min(a.route) FROM fleet_alias AS a WHERE a.alias = {_key(name)}), "
        f"(SELECT min(n.model) FROM model_name AS n WHERE n.alias = {_key(name)}), {_key(name)})"
    )


def _role(name: str) -> str:
    return f"CASE WHEN lower({name}) IN ('prefill', 'decode', 'embedding', 'batch') THEN lower({name}) ELSE 'mixed' END"


def _first_label(names: tuple[str, ...]) -> str:
    parts = [f"nullif(s.labels['{name.replace(chr(39), chr(39) * 2)}'], '')" for name in names]
    return f"coalesce({', '.join([*parts, 'NULL'])})"
