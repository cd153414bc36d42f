"""The own GPU fleet: what its evidence means for the hours at hand, as tables that the waterfall's steps 30 to 56 read.

Everything here is looked up or selected, nothing is divided: which pod serves which route, which instance is which
node, which minutes belong to the hours at hand, and which further hours a change of that reaches.
"""

import json

import duckdb

from warehouse.settings import FleetSettings, WarehouseSettings, WorkWeights

SELF_HOSTED = "self-hosted"
# How far a counter's sample tells of the time around it; the steps say the same in SQL.
REACH = "INTERVAL 15 MINUTE"
COUNTERS = ("prompt_tokens", "prompt_tokens_cached", "generation_tokens", "forward_seconds", "engine_steps")
NOT_ENGINES = ("dcgm", "kube_state_metrics", "process")
CLUSTER_TAGS = ("awseksclustername", "eksclustername", "ekseksclustername", "usereksclustername")

BOOKKEEPING = """
CREATE TABLE IF NOT EXISTS known_node (
    resource_id VARCHAR, cluster VARCHAR, node VARCHAR, gpus BIGINT, gpu_type VARCHAR, first_minute TIMESTAMP,
    last_minute TIMESTAMP);
CREATE TABLE IF NOT EXISTS known_pod (
    cluster VARCHAR, namespace VARCHAR, pod VARCHAR, route VARCHAR, pool VARCHAR, role VARCHAR, version VARCHAR,
    running_first TIMESTAMP, engine_first TIMESTAMP, engine_last TIMESTAMP);
CREATE TABLE IF NOT EXISTS known_route (model VARCHAR, route VARCHAR);
"""
TABLES = ("known_node", "known_pod", "known_route")


def prepare(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings) -> None:
    """Fill what does not depend on the hours at hand: `fleet_node`, `fleet_pod`, `fleet_member`, `fleet_route`,
    `route_weight`, `fleet_resource`, `fleet_commitment`, `minute_step`. Needs `model_name`."""
    connection.execute("CREATE OR REPLACE TEMP TABLE minute_step AS SELECT unnest(range(60)) AS n")
    _names(connection, settings.fleet)
    _members(connection)
    _nodes(connection)
    _pods(connection, settings.fleet)
    _routes(connection, settings.fleet)
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE fleet_resource AS
        SELECT resource_id, min(cluster) AS cluster, max(gpus) AS gpus FROM (
            SELECT instance_id AS resource_id, cluster, gpus FROM fleet_node
            UNION ALL SELECT resource_id, cluster, gpus FROM fleet_member)
        GROUP BY resource_id;
        CREATE OR REPLACE TEMP TABLE fleet_commitment AS
        SELECT DISTINCT l.commitment_discount_id FROM billing_line AS l
        SEMI JOIN fleet_resource AS r ON r.resource_id = l.resource_id
        WHERE nullif(l.commitment_discount_id, '') IS NOT NULL;
        """
    )


def touch(connection: duckdb.DuckDBPyConnection) -> None:
    """Add to `work_hour` what a change of the fleet itself reaches: new nodes and clusters, lives that became longer,
    labels that came late, routes that calls are now known to belong to."""
    connection.execute(
        """
        -- a sample tells of the minutes before it, and a counter's of those after it
        INSERT INTO work_hour
        SELECT DISTINCT t.hour + n * INTERVAL 1 HOUR FROM touched_hour AS t CROSS JOIN (VALUES (-1), (1)) AS s(n)
        WHERE t.reason = 'metrics' AND t.hour + n * INTERVAL 1 HOUR NOT IN (SELECT hour FROM work_hour);
        CREATE OR REPLACE TEMP TABLE node_now AS
        SELECT instance_id AS resource_id, cluster, node, gpus, gpu_type, first_minute, last_minute FROM fleet_node
        UNION ALL SELECT resource_id, cluster, member_id, gpus, gpu_type, valid_from, valid_to FROM fleet_member;
        CREATE OR REPLACE TEMP TABLE pod_now AS
        SELECT cluster, namespace, pod, route, pool, role, version, running_first, engine_first, engine_last
        FROM fleet_pod;
        CREATE OR REPLACE TEMP TABLE fleet_change AS
        -- instances that are now of a cluster, or no longer: their lines
        SELECT l.hour FROM (SELECT resource_id, date_trunc('hour', charge_period_start) AS hour FROM billing_line
                            WHERE resource_id IS NOT NULL) AS l
        SEMI JOIN (
            (SELECT resource_id, cluster, gpus FROM node_now EXCEPT SELECT resource_id, cluster, gpus FROM known_node)
            UNION ALL
            (SELECT resource_id, cluster, gpus FROM known_node EXCEPT SELECT resource_id, cluster, gpus FROM node_now)
        ) AS c ON c.resource_id = l.resource_id;
        -- lives that began earlier or ended later than was known
        INSERT INTO fleet_change
        SELECT h.hour FROM hour_calendar AS h
        SEMI JOIN (
            SELECT date_trunc('hour', least(n.first_minute, k.first_minute)) AS from_hour,
                   greatest(n.first_minute, k.first_minute) AS to_minute
            FROM node_now AS n INNER JOIN known_node AS k USING (resource_id, cluster, node)
            WHERE n.first_minute <> k.first_minute
            UNION ALL
            SELECT date_trunc('hour', least(n.last_minute, k.last_minute)), greatest(n.last_minute, k.last_minute)
            FROM node_now AS n INNER JOIN known_node AS k USING (resource_id, cluster, node)
            WHERE n.last_minute <> k.last_minute
            UNION ALL
            -- nodes that are new, or of another kind: all their lives
            SELECT date_trunc('hour', n.first_minute), n.last_minute
            FROM fleet_node AS n
            LEFT JOIN known_node AS k
                ON k.resource_id = n.instance_id AND k.cluster = n.cluster AND k.node = n.node
            WHERE k.node IS NULL OR k.gpu_type IS DISTINCT FROM n.gpu_type OR k.gpus <> n.gpus
            UNION ALL
            SELECT date_trunc('hour', least(n.engine_first, coalesce(k.engine_first, n.engine_first)))
                       - INTERVAL 1 HOUR,
                   greatest(n.engine_first, coalesce(k.engine_first, n.engine_first)) + INTERVAL 1 HOUR
            FROM pod_now AS n INNER JOIN known_pod AS k USING (cluster, namespace, pod)
            WHERE n.engine_first IS DISTINCT FROM k.engine_first AND n.engine_first IS NOT NULL
            UNION ALL
            SELECT date_trunc('hour', least(n.engine_last, coalesce(k.engine_last, n.engine_last)))
                       - INTERVAL 1 HOUR,
                   greatest(n.engine_last, coalesce(k.engine_last, n.engine_last)) + INTERVAL 1 HOUR
            FROM pod_now AS n INNER JOIN known_pod AS k USING (cluster, namespace, pod)
            WHERE n.engine_last IS DISTINCT FROM k.engine_last AND n.engine_last IS NOT NULL
        ) AS c ON h.hour >= c.from_hour AND h.hour <= c.to_minute;
        -- calls whose model is now served by the fleet, or no longer
        INSERT INTO fleet_change
        SELECT DISTINCT h.hour FROM (
            SELECT DISTINCT date_trunc('hour', started_at) AS first_hour, date_trunc('hour', ended_at) AS last_hour
            FROM usage_record AS r
            SEMI JOIN ((FROM fleet_route EXCEPT FROM known_route) UNION ALL
                       (FROM known_route EXCEPT FROM fleet_route)) AS c ON c.model = r.model
            WHERE r.provider = 'self-hosted') AS r
        INNER JOIN hour_calendar AS h ON h.hour >= r.first_hour AND h.hour <= r.last_hour;
        """
    )
    # pods of which something else is known now: all their hours
    connection.execute(
        """
        INSERT INTO fleet_change
        SELECT DISTINCT date_trunc('hour', m.minute) FROM kube_minute AS m
        SEMI JOIN (
            SELECT s.series_id FROM metric_series AS s
            SEMI JOIN (
                (SELECT * EXCLUDE (engine_last) FROM pod_now EXCEPT SELECT * EXCLUDE (engine_last) FROM known_pod)
                UNION ALL
                (SELECT * EXCLUDE (engine_last) FROM known_pod EXCEPT SELECT * EXCLUDE (engine_last) FROM pod_now)
            ) AS c ON c.cluster = coalesce(s.cluster, '') AND c.namespace = coalesce(s.namespace, '') AND c.pod = s.pod
            WHERE s.concept = 'pod_gpu_request'
        ) AS c ON c.series_id = m.series_id
        """
    )
    _new_clusters(connection)
    connection.execute(
        """
        INSERT INTO work_hour
        SELECT DISTINCT hour FROM fleet_change WHERE hour IS NOT NULL AND hour NOT IN (SELECT hour FROM work_hour);
        DELETE FROM known_node; INSERT INTO known_node SELECT * FROM node_now ORDER BY ALL;
        DELETE FROM known_pod; INSERT INTO known_pod SELECT * FROM pod_now ORDER BY ALL;
        DELETE FROM known_route; INSERT INTO known_route SELECT * FROM fleet_route ORDER BY ALL;
        """
    )


def samples(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the minutes of `work_hour` and what lies within reach of them: `work_counter`, `work_engine_sample`,
    `process_birth`, `work_pod_sample`, `work_node_sample`, `work_gpu`, `member_hour`, `event_minute`."""
    counters = ", ".join(f"'{name}'" for name in COUNTERS)
    others = ", ".join(f"'{name}'" for name in NOT_ENGINES)
    span = _span(connection)
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE work_minute AS
        SELECT DISTINCT w.hour + (n - 15) * INTERVAL 1 MINUTE AS minute
        FROM work_hour AS w CROSS JOIN (SELECT unnest(range(90)) AS n);
        CREATE OR REPLACE TEMP TABLE near_serving AS
        SELECT m.*, s.concept, s.engine, s.metric, s.target_id, coalesce(s.cluster, '') AS cluster,
               coalesce(s.namespace, '') AS namespace, s.pod, s.of_series_id, s.labels
        FROM serving_minute AS m
        INNER JOIN metric_series AS s ON s.series_id = m.series_id
        SEMI JOIN work_minute AS w ON w.minute = m.minute
        WHERE m.minute >= TIMESTAMP '{span[0]}' AND m.minute < TIMESTAMP '{span[1]}';
        CREATE OR REPLACE TEMP TABLE work_counter AS
        -- SGLang calls the computing of prompts `extend`, after its forward mode
        SELECT series_id, target_id, metric, concept,
               CASE WHEN labels['category'] IN ('extend', 'forward_extend', 'prefill') THEN 'prefill'
                    WHEN labels['category'] IN ('decode', 'forward_decode') THEN 'decode' ELSE '' END AS category,
               cluster, namespace, pod, minute, first_at, first_value, last_at, last_value,
               coalesce(increase, 0) AS increase
        FROM near_serving WHERE concept IN ({counters}) AND pod IS NOT NULL;
        CREATE OR REPLACE TEMP TABLE process_birth AS
        SELECT DISTINCT target_id, minute, make_timestamp(last_value) AS started_at FROM near_serving
        WHERE concept = 'process_start'
        UNION
        -- a counter's own birth, where the engine tells it
        SELECT DISTINCT c.target_id, b.minute, make_timestamp(b.last_value) FROM near_serving AS b
        INNER JOIN (SELECT DISTINCT series_id, target_id FROM work_counter) AS c ON c.series_id = b.of_series_id;
        CREATE OR REPLACE TEMP TABLE work_engine_sample AS
        SELECT cluster, namespace, pod, minute,
               max(CASE WHEN concept = 'requests_running' THEN max_value ELSE 0 END) AS running
        FROM near_serving WHERE engine NOT IN ({others}) AND pod IS NOT NULL
        GROUP BY ALL;
        CREATE OR REPLACE TEMP TABLE near_kube AS
        SELECT m.minute, m.last_value, m.max_value, s.concept, coalesce(s.cluster, '') AS cluster,
               coalesce(s.namespace, '') AS namespace, s.pod, s.node, s.labels
        FROM kube_minute AS m
        INNER JOIN metric_series AS s ON s.series_id = m.series_id
        SEMI JOIN work_minute AS w ON w.minute = m.minute
        WHERE m.minute >= TIMESTAMP '{span[0]}' AND m.minute < TIMESTAMP '{span[1]}'
          AND s.concept IN ('pod_gpu_request', 'pod_phase_running', 'node_info');
        CREATE OR REPLACE TEMP TABLE work_pod_sample AS
        SELECT r.cluster, r.namespace, r.pod, r.node, r.minute, CAST(sum(r.gpus) AS BIGINT) AS gpus
        -- one container may be told by several kube-state-metrics, or by one before and after its restart
        FROM (SELECT cluster, namespace, pod, node, minute, max(last_value) AS gpus
              FROM near_kube
              -- whole GPUs only; a slice is no GPU
              WHERE concept = 'pod_gpu_request' AND nullif(node, '') IS NOT NULL
                AND labels['resource'] = 'nvidia_com_gpu'
              GROUP BY cluster, namespace, pod, node, minute,
                       coalesce(labels['exported_container'], labels['container'], '')) AS r
        -- a pod that ran and does so no longer has ended: kube-state-metrics shows it until it is deleted
        ANTI JOIN (
            SELECT k.cluster, k.namespace, k.pod, k.minute FROM near_kube AS k
            INNER JOIN fleet_pod AS f ON f.cluster = k.cluster AND f.namespace = k.namespace AND f.pod = k.pod
            WHERE k.concept = 'pod_phase_running' AND k.max_value = 0 AND k.minute > f.running_first
        ) AS e ON e.cluster = r.cluster AND e.namespace = r.namespace AND e.pod = r.pod AND e.minute = r.minute
        GROUP BY ALL HAVING sum(r.gpus) > 0;
        CREATE OR REPLACE TEMP TABLE work_node_sample AS
        SELECT DISTINCT cluster, node, {_instance("labels['provider_id']")} AS instance_id, minute
        FROM near_kube WHERE concept = 'node_info';
        CREATE OR REPLACE TEMP TABLE work_gpu AS
        SELECT date_trunc('hour', m.minute) AS hour, coalesce(s.cluster, '') AS cluster,
               coalesce(s.namespace, '') AS namespace, s.pod,
               CAST(sum(m.value_sum) FILTER (s.concept = 'gpu_engine_active') AS BIGINT) AS active_ppm_sum,
               CAST(sum(m.sample_count) FILTER (s.concept = 'gpu_engine_active') AS BIGINT) AS active_samples,
               CAST(sum(m.value_sum) FILTER (s.concept = 'memory_used') AS BIGINT) AS memory_used_sum,
               CAST(sum(m.value_sum) FILTER (s.concept IN ('memory_used', 'memory_free')) AS BIGINT)
                   AS memory_total_sum
        FROM gpu_minute AS m
        INNER JOIN metric_series AS s ON s.series_id = m.series_id
        SEMI JOIN work_hour AS w ON w.hour = date_trunc('hour', m.minute)
        WHERE m.minute >= TIMESTAMP '{span[0]}' AND m.minute < TIMESTAMP '{span[1]}' AND s.pod IS NOT NULL
        GROUP BY ALL;
        CREATE OR REPLACE TEMP TABLE member_hour AS
        SELECT DISTINCT m.*, l.hour FROM fleet_member AS m
        INNER JOIN (SELECT resource_id, date_trunc('hour', charge_period_start) AS hour FROM billing_line
                    WHERE charge_period_start >= TIMESTAMP '{span[0]}' AND charge_period_start < TIMESTAMP '{span[1]}'
                   ) AS l ON l.resource_id = m.resource_id
        SEMI JOIN work_hour AS w ON w.hour = l.hour
        WHERE l.hour + INTERVAL 1 HOUR > m.valid_from AND l.hour < m.valid_to;
        CREATE OR REPLACE TEMP TABLE event_minute AS
        SELECT DISTINCT e.route, unnest(generate_series(
            date_trunc('minute', greatest(e.started_at, TIMESTAMP '{span[0]}')),
            date_trunc('minute', least(e.ended_at, TIMESTAMP '{span[1]}')), INTERVAL 1 MINUTE)) AS minute
        FROM work_fleet_event AS e
        WHERE e.route IN (SELECT route FROM fleet_member)
        """
    )


def calls(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `work_fleet_event`: calls the fleet answered that overlap `work_hour`, with their route."""
    span = _span(connection)
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE work_fleet_event AS
        SELECT e.event_key, r.route, e.region_id, e.claim_set_id, e.task_id, e.user_id, e.started_at, e.first_token_at,
               e.ended_at, e.uncached_input_tokens, e.cache_read_tokens, e.cache_write_5m_tokens,
               e.cache_write_1h_tokens, e.output_tokens
        FROM usage_event AS e INNER JOIN fleet_route AS r ON r.model = e.model
        WHERE e.provider = '{SELF_HOSTED}'
          AND e.hour >= TIMESTAMP '{span[0]}' AND e.started_at < TIMESTAMP '{span[1]}'
          AND e.ended_at <= (SELECT as_of + tolerance_minutes * INTERVAL 1 MINUTE FROM run_parameter)
        """
    )


def line_clusters(connection: duckdb.DuckDBPyConnection, lines: str = "work_line") -> None:
    """Fill `line_cluster`: which lines a tag or a resource's name gives to one of the known clusters."""
    tags = ", ".join(f"'{name}'" for name in CLUSTER_TAGS)
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE line_cluster AS
        SELECT l.line_digest, min(c.cluster) AS cluster FROM (
            SELECT line_digest, list_filter(map_entries(tags), lambda t:
                    regexp_replace(lower(t.key), '[^a-z0-9]', '', 'g') IN ({tags}))[1].value AS cluster
            FROM {lines} WHERE tags IS NOT NULL AND cardinality(tags) > 0
            UNION ALL
            SELECT line_digest, regexp_extract(resource_id, '^arn:[^:]*:eks:[^:]*:[^:]*:cluster/([^/]+)', 1)
            FROM {lines} WHERE resource_id LIKE 'arn:%:eks:%:cluster/%'
        ) AS l
        INNER JOIN (SELECT DISTINCT cluster FROM fleet_resource) AS c ON c.cluster = l.cluster
        GROUP BY l.line_digest
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
        CREATE OR REPLACE TEMP TABLE node_life AS
        SELECT coalesce(s.cluster, '') AS cluster, s.node, {_instance("s.labels['provider_id']")} AS instance_id,
               nullif(regexp_extract(min(s.labels['provider_id']), '([a-z]{{2}}(-[a-z]+)+-[0-9]+)', 1), '')
                   AS region,
               min(m.first_minute) AS first_minute, max(m.last_minute) AS last_minute
        FROM metric_series AS s
        INNER JOIN (SELECT series_id, min(minute) AS first_minute, max(minute) AS last_minute
                    FROM kube_minute GROUP BY series_id) AS m USING (series_id)
        WHERE s.concept = 'node_info' AND nullif(s.node, '') IS NOT NULL
          AND nullif(s.labels['provider_id'], '') IS NOT NULL
        GROUP BY ALL;
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


def _pods(connection: duckdb.DuckDBPyConnection, settings: FleetSettings) -> None:
    others = ", ".join(f"'{name}'" for name in NOT_ENGINES)
    labels = {
        dimension: _first_label(getattr(settings.labels, dimension))
        for dimension in ("route", "role", "pool", "version")
    }
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE pod_label AS
        SELECT coalesce(s.cluster, '') AS cluster, coalesce(s.namespace, '') AS namespace, s.pod,
               {", ".join(f"max({text}) AS {name}" for name, text in labels.items())}
        FROM metric_series AS s WHERE s.concept = 'pod_labels' AND s.pod IS NOT NULL GROUP BY ALL;
        CREATE OR REPLACE TEMP TABLE pod_engine AS
        SELECT coalesce(s.cluster, '') AS cluster, coalesce(s.namespace, '') AS namespace, s.pod,
               max(nullif(s.labels['model_name'], '')) AS served,
               min(m.first_minute) AS engine_first, max(m.last_minute) AS engine_last
        FROM metric_series AS s
        INNER JOIN (SELECT series_id, min(minute) AS first_minute, max(minute) AS last_minute
                    FROM serving_minute GROUP BY series_id) AS m USING (series_id)
        WHERE s.engine NOT IN ({others}) AND s.pod IS NOT NULL
        GROUP BY ALL;
        CREATE OR REPLACE TEMP TABLE pod_running AS
        SELECT coalesce(s.cluster, '') AS cluster, coalesce(s.namespace, '') AS namespace, s.pod,
               min(m.minute) AS running_first
        FROM kube_minute AS m INNER JOIN metric_series AS s ON s.series_id = m.series_id
        WHERE s.concept = 'pod_phase_running' AND m.max_value > 0 AND s.pod IS NOT NULL
        GROUP BY ALL;
        CREATE OR REPLACE TEMP TABLE fleet_pod AS
        SELECT cluster, namespace, pod, route, coalesce(pool, route || '-' || role) AS pool, role, version,
               CAST(NULL AS VARCHAR) AS region, CAST(NULL AS VARCHAR) AS gpu_type, served, running_first, engine_first,
               engine_last
        FROM (
            SELECT p.cluster, p.namespace, p.pod, {_route("coalesce(l.route, e.served)")} AS route,
                   l.pool, {_role("l.role")} AS role, l.version, e.served, r.running_first, e.engine_first,
                   e.engine_last
            FROM (SELECT cluster, namespace, pod FROM pod_label UNION SELECT cluster, namespace, pod FROM pod_engine
                  UNION SELECT coalesce(cluster, ''), coalesce(namespace, ''), pod FROM metric_series
                  WHERE concept = 'pod_gpu_request' AND pod IS NOT NULL) AS p
            LEFT JOIN pod_label AS l USING (cluster, namespace, pod)
            LEFT JOIN pod_engine AS e USING (cluster, namespace, pod)
            LEFT JOIN pod_running AS r USING (cluster, namespace, pod))
        UNION ALL
        SELECT cluster, '', member_id, route, pool, role, NULL, region_id, gpu_type, NULL, NULL, NULL, NULL
        FROM fleet_member
        """
    )


def _routes(connection: duckdb.DuckDBPyConnection, settings: FleetSettings) -> None:
    """`fleet_route`: names under which calls ask for what the fleet serves; `route_weight`: how its work is weighed."""
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE fleet_route AS
        SELECT model, min(route) AS route FROM (
            SELECT alias AS model, route FROM fleet_alias
            UNION ALL SELECT coalesce(n.model, f.alias), f.route FROM fleet_alias AS f
                LEFT JOIN model_name AS n ON n.alias = f.alias
            UNION ALL SELECT route, route FROM fleet_pod WHERE route IS NOT NULL
            UNION ALL SELECT {_key("served")}, route FROM fleet_pod WHERE route IS NOT NULL AND served IS NOT NULL)
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


def _new_clusters(connection: duckdb.DuckDBPyConnection) -> None:
    """Lines of clusters that are known now and were not, or the other way round."""
    row = connection.execute(
        """
        SELECT count(*) FROM (
            (SELECT DISTINCT cluster FROM node_now EXCEPT SELECT cluster FROM known_node) UNION ALL
            (SELECT DISTINCT cluster FROM known_node EXCEPT SELECT cluster FROM node_now))
        """
    ).fetchone()
    if row and row[0]:
        connection.execute(
            """
            INSERT INTO fleet_change
            SELECT DISTINCT date_trunc('hour', charge_period_start) FROM billing_line
            WHERE cardinality(tags) > 0 OR resource_id LIKE 'arn:%:eks:%:cluster/%'
            """
        )


def _span(connection: duckdb.DuckDBPyConnection) -> tuple[str, str]:
    """First and last instant within reach of the hours at hand, as text; said as constants, history is skipped."""
    row = connection.execute(
        f"SELECT min(hour) - {REACH}, max(hour) + INTERVAL 1 HOUR + {REACH} FROM work_hour"
    ).fetchone()
    if row is None or row[0] is None:
        return "2000-01-01", "2000-01-01"
    return str(row[0]), str(row[1])


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


def _instance(provider_id: str) -> str:
    """aws:///us-east-1a/i-0abc -> i-0abc."""
    return f"regexp_replace({provider_id}, '^.*/', '')"


def _first_label(names: tuple[str, ...]) -> str:
    parts = [f"nullif(s.labels['{name.replace(chr(39), chr(39) * 2)}'], '')" for name in names]
    return f"coalesce({', '.join([*parts, 'NULL'])})"
