"""Bills: purchase option and cost class of lines, exports that are no record, checks of deliveries, split costs."""

from alembic import op

revision = "evidence_0003"
down_revision = "evidence_0002"
branch_labels = None
depends_on = None

ADDED = ("x_purchase_option", "x_cost_class")
TABLES: dict[str, str] = {
    # the columns of billing_line at this revision
    "cross_check_line": "CREATE TABLE cross_check_line AS FROM billing_line WHERE FALSE",
    "bill_export": """
        CREATE TABLE bill_export (
            export_name VARCHAR NOT NULL,
            billing_period VARCHAR NOT NULL,
            provider_name VARCHAR NOT NULL,
            billing_account_id VARCHAR NOT NULL,
            export_group VARCHAR NOT NULL,
            format VARCHAR NOT NULL,
            wish VARCHAR NOT NULL,
            is_record BOOLEAN NOT NULL
        )""",
    "bill_check": """
        CREATE TABLE bill_check (
            load_id VARCHAR NOT NULL,
            export_name VARCHAR NOT NULL,
            billing_period VARCHAR NOT NULL,
            check_name VARCHAR NOT NULL,
            subject VARCHAR NOT NULL,
            currency VARCHAR NOT NULL,
            lhs DECIMAL(38, 18) NOT NULL,
            rhs DECIMAL(38, 18) NOT NULL,
            tolerance DECIMAL(38, 18) NOT NULL
        )""",
    "split_cost_line": """
        CREATE TABLE split_cost_line (
            load_id VARCHAR NOT NULL,
            export_name VARCHAR NOT NULL,
            billing_period VARCHAR NOT NULL,
            currency VARCHAR NOT NULL,
            charge_period_start TIMESTAMP NOT NULL,
            charge_period_end TIMESTAMP NOT NULL,
            parent_resource_id VARCHAR NOT NULL,
            resource_id VARCHAR,
            cluster VARCHAR,
            namespace VARCHAR,
            workload VARCHAR,
            node VARCHAR,
            usage_type VARCHAR,
            split_cost DECIMAL(38, 18),
            unused_cost DECIMAL(38, 18)
        )""",
}


def upgrade() -> None:
    for column in ADDED:
        op.execute(f"ALTER TABLE billing_line ADD COLUMN {column} VARCHAR")
    for statement in TABLES.values():
        op.execute(statement)
    connection = op.get_bind()
    # CREATE TABLE AS keeps types, not NOT NULL
    for (column,) in connection.exec_driver_sql(
        "SELECT column_name FROM duckdb_columns() WHERE table_name = 'billing_line' AND NOT is_nullable "
        "ORDER BY column_index"
    ).fetchall():
        op.execute(f"ALTER TABLE cross_check_line ALTER COLUMN {column} SET NOT NULL")
    # what is there was read before there was a choice of record
    op.execute(
        "INSERT INTO bill_export SELECT DISTINCT export_name, billing_period, provider_name, billing_account_id, "
        "export_name, 'cur2', 'auto', TRUE FROM billing_line ORDER BY ALL"
    )


def downgrade() -> None:
    for name in reversed(TABLES):
        op.execute(f"DROP TABLE {name}")
    for column in ADDED:
        op.execute(f"ALTER TABLE billing_line DROP COLUMN {column}")
