"""The own GPU fleet: what its evidence means for the hours at hand, as tables that the waterfall's steps 30 to 56 read.

Everything here is looked up or selected, nothing is divided: which pod serves which route, which instance is which
node, which minutes belong to the hours at hand, and which further hours a change of that reaches.
"""

import duckdb

from warehouse.fleet_facts import NOT_ENGINES, instance_id

SELF_HOSTED = "self-hosted"
# How far a counter's sample tells of the time around it; the steps say the same in SQL.
REACH = "INTERVAL 15 MINUTE"
COUNTERS = ("prompt_tokens", "prompt_tokens_cached", "generation_tokens", "forward_seconds", "engine_steps")
SCRAPE_LABELS = ("job", "service", "endpoint", "prometheus", "prometheus_replica", "prometheus_group", "replica")
CLUSTER_TAGS = ("awseksclustername", "eksclustername", "ekseksclustername", "usereksclustername")

BOOKKEEPING = """
CREATE TABLE IF NOT EXISTS known_node (
    resource_id VARCHAR, cluster VARCHAR, node VARCHAR, gpus BIGINT, gpu_type VARCHAR, first_minute TIMESTAMP,
    last_minute TIMESTAMP);
CREATE TABLE IF NOT EXISTS known_pod (
    cluster VARCHAR, namespace VARCHAR, pod VARCHAR, life_from TIMESTAMP, life_to TIMESTAMP, route VARCHAR,
    pool VARCHAR, role VARCHAR, version VARCHAR, running_first TIMESTAMP, engine_first TIMESTAMP,
    engine_last TIMESTAMP);
CREATE TABLE IF NOT EXISTS known_route (model VARCHAR, route VARCHAR);
"""
TABLES = ("known_node", "known_pod", "known_route")


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
        UNION ALL SELECT resource_id, cluster, member_id, gpus, gpu_type, valid_from, valid_to FROM fleet_member
        UNION ALL SELECT resource_id, cluster, 'split', gpus, NULL, valid_from, valid_to FROM split_machine;
        CREATE OR REPLACE TEMP TABLE pod_now AS
        SELECT cluster, namespace, pod, life_from, life_to, route, pool, role, version, running_first, engine_first,
               engine_last
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
            FROM pod_now AS n INNER JOIN known_pod AS k USING (cluster, namespace, pod, life_from)
            WHERE n.engine_first IS DISTINCT FROM k.engine_first AND n.engine_first IS NOT NULL
            UNION ALL
            SELECT date_trunc('hour', least(n.engine_last, coalesce(k.engine_last, n.engine_last)))
                       - INTERVAL 1 HOUR,
                   greatest(n.engine_last, coalesce(k.engine_last, n.engine_last)) + INTERVAL 1 HOUR
            FROM pod_now AS n INNER JOIN known_pod AS k USING (cluster, namespace, pod, life_from)
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
    # pods of which something else is known now: the hours of that life; where one ends, the next one begins
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE pod_change AS
        SELECT DISTINCT cluster, namespace, pod, life_from, life_to FROM (
            (SELECT * EXCLUDE (engine_last) FROM pod_now EXCEPT SELECT * EXCLUDE (engine_last) FROM known_pod)
            UNION ALL
            (SELECT * EXCLUDE (engine_last) FROM known_pod EXCEPT SELECT * EXCLUDE (engine_last) FROM pod_now));
        INSERT INTO fleet_change
        SELECT DISTINCT date_trunc('hour', m.minute) FROM kube_minute AS m
        INNER JOIN metric_series AS s ON s.series_id = m.series_id
        SEMI JOIN pod_change AS c
            ON c.cluster = coalesce(s.cluster, '') AND c.namespace = coalesce(s.namespace, '') AND c.pod = s.pod
            AND m.minute >= c.life_from AND m.minute < c.life_to
        WHERE s.concept = 'pod_gpu_request'
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
    """Fill the minutes of `work_hour` and what lies within reach of them: `work_counter`, `told_twice`,
    `work_engine_sample`, `process_birth`, `work_pod_sample`, `work_node_sample`, `work_gpu`, `member_hour`,
    `event_minute`."""
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
        CREATE OR REPLACE TEMP TABLE told_twice AS
        WITH teller AS (
            SELECT series_id, twin FROM (
                SELECT series_id, {_twin("labels")} AS twin FROM metric_series
                WHERE concept IN ({counters}) AND pod IS NOT NULL)
            QUALIFY count(*) OVER (PARTITION BY twin) > 1
        ),
        hour_told AS (
            SELECT t.twin, t.series_id, date_trunc('hour', m.minute) AS hour, count(*) AS minutes
            FROM teller AS t INNER JOIN serving_minute AS m ON m.series_id = t.series_id
            WHERE m.minute >= date_trunc('hour', TIMESTAMP '{span[0]}')
              AND m.minute < date_trunc('hour', TIMESTAMP '{span[1]}') + INTERVAL 1 HOUR
            GROUP BY ALL
        )
        SELECT series_id, hour FROM hour_told
        QUALIFY row_number() OVER (PARTITION BY twin, hour ORDER BY minutes DESC, series_id) > 1;
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
                AND k.minute >= f.life_from AND k.minute < f.life_to
            WHERE k.concept = 'pod_phase_running' AND k.max_value = 0 AND k.minute > f.running_first
        ) AS e ON e.cluster = r.cluster AND e.namespace = r.namespace AND e.pod = r.pod AND e.minute = r.minute
        GROUP BY ALL HAVING sum(r.gpus) > 0;
        CREATE OR REPLACE TEMP TABLE work_node_sample AS
        SELECT DISTINCT cluster, node, {instance_id("labels['provider_id']")} AS instance_id, minute
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


def _twin(labels: str) -> str:
    """What a counter is, whoever scraped it: two jobs that scrape one port tell the same counter twice."""
    scraped = ", ".join(f"'{name}'" for name in SCRAPE_LABELS)
    own = f"list_sort(list_filter(map_entries({labels}), lambda label: label.key NOT IN ({scraped})))"
    return f"md5(CAST(to_json(row(cluster, namespace, pod, metric, {own})) AS VARCHAR))"
