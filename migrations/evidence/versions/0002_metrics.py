"""Metrics: series, their minutes (serving, GPU, Kubernetes) and the hand-written pool table."""

from alembic import op

revision = "evidence_0002"
down_revision = "evidence_0001"
branch_labels = None
depends_on = None

MINUTES = """
            load_id VARCHAR NOT NULL,
            series_id VARCHAR NOT NULL,
            minute TIMESTAMP NOT NULL,
            first_at TIMESTAMP NOT NULL,
            first_value BIGINT NOT NULL,
            last_at TIMESTAMP NOT NULL,
            last_value BIGINT NOT NULL,
            increase BIGINT,
            sample_count BIGINT NOT NULL,
            value_sum BIGINT NOT NULL,
            max_value BIGINT NOT NULL,
            min_value BIGINT NOT NULL,
            sample_at TIMESTAMP[] NOT NULL,
            sample_value BIGINT[] NOT NULL
"""

TABLES: dict[str, str] = {
    "metric_series": """
        CREATE TABLE metric_series (
            load_id VARCHAR NOT NULL,
            series_id VARCHAR NOT NULL,
            source VARCHAR NOT NULL,
            engine VARCHAR NOT NULL,
            metric VARCHAR NOT NULL,
            concept VARCHAR NOT NULL,
            sample_kind VARCHAR NOT NULL,
            unit VARCHAR NOT NULL,
            semantics VARCHAR,
            cluster VARCHAR NOT NULL,
            target_id VARCHAR NOT NULL,
            namespace VARCHAR,
            pod VARCHAR,
            node VARCHAR,
            of_series_id VARCHAR,
            labels MAP(VARCHAR, VARCHAR) NOT NULL
        )""",
    "serving_minute": f"CREATE TABLE serving_minute ({MINUTES})",
    "gpu_minute": f"CREATE TABLE gpu_minute ({MINUTES})",
    "kube_minute": f"CREATE TABLE kube_minute ({MINUTES})",
    "pool_member": """
        CREATE TABLE pool_member (
            load_id VARCHAR NOT NULL,
            source VARCHAR NOT NULL,
            resource_id VARCHAR NOT NULL,
            cluster VARCHAR,
            region_id VARCHAR,
            route VARCHAR NOT NULL,
            pool VARCHAR NOT NULL,
            role VARCHAR NOT NULL,
            gpus BIGINT NOT NULL,
            gpu_type VARCHAR,
            valid_from TIMESTAMP NOT NULL,
            valid_to TIMESTAMP NOT NULL
        )""",
}


def upgrade() -> None:
    for statement in TABLES.values():
        op.execute(statement)


def downgrade() -> None:
    for name in reversed(TABLES):
        op.execute(f"DROP TABLE {name}")
