"""The evidence tables: loads, refused rows, bills, usage, prices, rates, names, touched hours.

Plain SQL, one statement a table; `warehouse/schema.py` declares the same and a test holds them together. No keys, no
indexes: integrity is checked in SQL.
"""

from alembic import op

revision = "evidence_0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES: dict[str, str] = {
    "load": """
        CREATE TABLE load (
            load_id VARCHAR NOT NULL,
            source VARCHAR NOT NULL,
            kind VARCHAR NOT NULL,
            identity VARCHAR NOT NULL,
            detail VARCHAR,
            rows_read BIGINT NOT NULL,
            rows_loaded BIGINT NOT NULL,
            rows_rejected BIGINT NOT NULL,
            rows_filtered BIGINT NOT NULL,
            first_at TIMESTAMP,
            last_at TIMESTAMP,
            sums MAP(VARCHAR, VARCHAR),
            loaded_at TIMESTAMP NOT NULL
        )""",
    "loaded_object": """
        CREATE TABLE loaded_object (
            source VARCHAR NOT NULL,
            object_key VARCHAR NOT NULL,
            version VARCHAR NOT NULL,
            load_id VARCHAR NOT NULL
        )""",
    "rejected_row": """
        CREATE TABLE rejected_row (
            load_id VARCHAR NOT NULL,
            source VARCHAR NOT NULL,
            location VARCHAR NOT NULL,
            line_number BIGINT,
            reason VARCHAR NOT NULL,
            detail VARCHAR,
            row_digest VARCHAR
        )""",
    "billing_line": """
        CREATE TABLE billing_line (
            load_id VARCHAR NOT NULL,
            export_name VARCHAR NOT NULL,
            billing_period VARCHAR NOT NULL,
            line_digest VARCHAR NOT NULL,
            x_line_item_id VARCHAR,
            x_file VARCHAR,
            provider_name VARCHAR NOT NULL,
            invoice_issuer_name VARCHAR,
            publisher_name VARCHAR,
            billing_account_id VARCHAR NOT NULL,
            sub_account_id VARCHAR,
            invoice_id VARCHAR,
            billing_currency VARCHAR NOT NULL,
            billing_period_start TIMESTAMP NOT NULL,
            billing_period_end TIMESTAMP NOT NULL,
            charge_period_start TIMESTAMP NOT NULL,
            charge_period_end TIMESTAMP NOT NULL,
            charge_category VARCHAR NOT NULL,
            charge_class VARCHAR,
            charge_frequency VARCHAR,
            charge_description VARCHAR,
            service_name VARCHAR NOT NULL,
            x_service_code VARCHAR,
            x_line_item_type VARCHAR,
            x_usage_type VARCHAR,
            x_operation VARCHAR,
            region_id VARCHAR,
            availability_zone VARCHAR,
            resource_id VARCHAR,
            sku_id VARCHAR,
            pricing_unit VARCHAR,
            consumed_quantity DECIMAL(38, 18),
            commitment_discount_id VARCHAR,
            commitment_discount_status VARCHAR,
            billed_cost DECIMAL(38, 18) NOT NULL,
            effective_cost DECIMAL(38, 18) NOT NULL,
            list_cost DECIMAL(38, 18),
            contracted_cost DECIMAL(38, 18),
            tags MAP(VARCHAR, VARCHAR),
            x_principal VARCHAR,
            x_inference_profile VARCHAR,
            x_charge_family VARCHAR,
            x_model VARCHAR,
            x_token_class VARCHAR,
            x_tokens BIGINT,
            x_service_tier VARCHAR,
            x_scope VARCHAR,
            x_context_tier VARCHAR,
            x_other MAP(VARCHAR, VARCHAR)
        )""",
    "bill_version": """
        CREATE TABLE bill_version (
            load_id VARCHAR NOT NULL,
            export_name VARCHAR NOT NULL,
            billing_period VARCHAR NOT NULL,
            delivery INTEGER NOT NULL,
            delivered_at TIMESTAMP NOT NULL,
            identity VARCHAR NOT NULL,
            charge_day DATE NOT NULL,
            service_name VARCHAR NOT NULL,
            billing_currency VARCHAR NOT NULL,
            line_count BIGINT NOT NULL,
            billed_cost DECIMAL(38, 18) NOT NULL,
            effective_cost DECIMAL(38, 18) NOT NULL
        )""",
    "claim_set": """
        CREATE TABLE claim_set (
            claim_set_id VARCHAR NOT NULL,
            claims MAP(VARCHAR, VARCHAR) NOT NULL
        )""",
    "usage_record": """
        CREATE TABLE usage_record (
            load_id VARCHAR NOT NULL,
            source VARCHAR NOT NULL,
            source_trust INTEGER NOT NULL,
            record_id VARCHAR NOT NULL,
            event_key VARCHAR NOT NULL,
            record_digest VARCHAR NOT NULL,
            provider_response_id VARCHAR,
            operation_id VARCHAR,
            attempt INTEGER,
            parent_id VARCHAR,
            session_id VARCHAR,
            task_id VARCHAR,
            agent VARCHAR,
            parent_agent VARCHAR,
            task_outcome VARCHAR,
            user_id VARCHAR,
            started_at TIMESTAMP NOT NULL,
            first_token_at TIMESTAMP,
            ended_at TIMESTAMP NOT NULL,
            provider VARCHAR NOT NULL,
            model_raw VARCHAR,
            model VARCHAR,
            account_id VARCHAR,
            region_id VARCHAR,
            scope VARCHAR,
            route VARCHAR,
            service_tier VARCHAR NOT NULL,
            stream BOOLEAN,
            status VARCHAR NOT NULL,
            error_kind VARCHAR,
            finish_reason VARCHAR,
            uncached_input_tokens BIGINT,
            cache_read_tokens BIGINT,
            cache_write_5m_tokens BIGINT,
            cache_write_1h_tokens BIGINT,
            output_tokens BIGINT,
            reasoning_tokens BIGINT,
            other_units MAP(VARCHAR, VARCHAR),
            claim_set_id VARCHAR NOT NULL,
            provider_cost_usd DECIMAL(38, 18),
            prefix_blocks BIGINT[],
            semantics VARCHAR NOT NULL,
            raw_counts MAP(VARCHAR, VARCHAR)
        )""",
    "price": """
        CREATE TABLE price (
            load_id VARCHAR NOT NULL,
            book VARCHAR NOT NULL,
            provider VARCHAR NOT NULL,
            model VARCHAR NOT NULL,
            scope VARCHAR,
            service_tier VARCHAR NOT NULL,
            token_class VARCHAR NOT NULL,
            from_input_tokens BIGINT NOT NULL,
            currency VARCHAR NOT NULL,
            per_mtok DECIMAL(38, 18) NOT NULL,
            valid_from TIMESTAMP NOT NULL,
            valid_to TIMESTAMP NOT NULL,
            day_start_second INTEGER,
            day_end_second INTEGER,
            match_reason VARCHAR NOT NULL,
            origin VARCHAR NOT NULL
        )""",
    "fx_rate": """
        CREATE TABLE fx_rate (
            load_id VARCHAR NOT NULL,
            day DATE NOT NULL,
            currency VARCHAR NOT NULL,
            reporting_currency VARCHAR NOT NULL,
            rate DECIMAL(38, 18) NOT NULL
        )""",
    "model_alias": """
        CREATE TABLE model_alias (
            load_id VARCHAR NOT NULL,
            alias VARCHAR NOT NULL,
            model VARCHAR NOT NULL,
            origin VARCHAR NOT NULL
        )""",
    "touched_hour": """
        CREATE TABLE touched_hour (
            hour TIMESTAMP NOT NULL,
            reason VARCHAR NOT NULL
        )""",
}


def upgrade() -> None:
    for statement in TABLES.values():
        op.execute(statement)


def downgrade() -> None:
    for name in reversed(TABLES):
        op.execute(f"DROP TABLE {name}")
