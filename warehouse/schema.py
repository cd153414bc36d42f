"""The evidence tables, once: the contract between collectors and attribution.

Every timestamp is a UTC instant stored as TIMESTAMP (microseconds). Money is DECIMAL(38,18), cast once when
loaded; that value is "the bill". Token counts are whole numbers; NULL means unknown, never zero. DuckDB gets
no keys and no indexes: integrity is checked in SQL (``warehouse/checks``).

Alembic owns these tables (``migrations/evidence``); a test holds the migrated catalogue against this module.
"""

from sqlalchemy import BigInteger, Boolean, Column, Date, Integer, MetaData, Numeric, String, Table, TypeDecorator
from sqlalchemy.types import TIMESTAMP, UserDefinedType


class Map(UserDefinedType[dict[str, str]]):
    """DuckDB's MAP(VARCHAR, VARCHAR)."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "MAP(VARCHAR, VARCHAR)"


class BigIntList(UserDefinedType[list[int]]):
    """DuckDB's BIGINT[]."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "BIGINT[]"


class TimestampList(UserDefinedType[list[object]]):
    """DuckDB's TIMESTAMP[]."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "TIMESTAMP[]"


class Money(TypeDecorator[object]):
    """DECIMAL(38,18): 20 digits before the point, 18 after it."""

    impl = Numeric(38, 18)
    cache_ok = True


metadata = MetaData()


def _evidence(name: str, comment: str, *columns: Column[object]) -> Table:
    return Table(name, metadata, *columns, comment=comment)


load = _evidence(
    "load",
    "One row per loaded batch, committed with its rows. The same batch again changes nothing.",
    Column("load_id", String, nullable=False, comment="md5 of source and identity"),
    Column("source", String, nullable=False, comment="name of the source in the configuration"),
    Column("kind", String, nullable=False, comment="billing, usage, prices, metrics"),
    Column("identity", String, nullable=False, comment="object key + content hash, execution id, or query + window"),
    Column("detail", String, comment="what a person recognises: file, billing period, package version"),
    Column("rows_read", BigInteger, nullable=False),
    Column("rows_loaded", BigInteger, nullable=False),
    Column("rows_rejected", BigInteger, nullable=False),
    Column("rows_filtered", BigInteger, nullable=False, comment="left out by the source's own `where`"),
    Column("first_at", TIMESTAMP, comment="earliest instant in the batch"),
    Column("last_at", TIMESTAMP, comment="latest instant in the batch"),
    Column("sums", Map(), comment="control sums by column, as text"),
    Column("loaded_at", TIMESTAMP, nullable=False),
)

loaded_object = _evidence(
    "loaded_object",
    "Every object a load consists of, where one load takes many; an object is loaded again when its version changes.",
    Column("source", String, nullable=False),
    Column("object_key", String, nullable=False, comment="relative to the source's location"),
    Column("version", String, nullable=False, comment="ETag, or size and modification time of a local file"),
    Column("load_id", String, nullable=False),
)

rejected_row = _evidence(
    "rejected_row",
    "What was refused, why and from where; never its text, which may hold a prompt.",
    Column("load_id", String, nullable=False),
    Column("source", String, nullable=False),
    Column("location", String, nullable=False, comment="file or object key"),
    Column("line_number", BigInteger, comment="1 is the first line; NULL when the whole file was refused"),
    Column("reason", String, nullable=False, comment="stable code, e.g. malformed_json, negative_tokens"),
    Column("detail", String, comment="column and rule, never the row's text"),
    Column("row_digest", String, comment="md5 of the refused line, so that it can be found again"),
)

billing_line = _evidence(
    "billing_line",
    "One row of a cloud bill as restated most recently, FOCUS-named; replaced whole per export and period.",
    Column("load_id", String, nullable=False),
    Column("export_name", String, nullable=False),
    Column("billing_period", String, nullable=False, comment="YYYY-MM, the bill it is on"),
    Column("line_digest", String, nullable=False, comment="md5 of the line's content"),
    Column("x_line_item_id", String),
    Column("x_file", String, comment="data file the line came from, its name only"),
    Column("provider_name", String, nullable=False, comment="OTel style: aws, azure, gcp, openai, ..."),
    Column("invoice_issuer_name", String),
    Column("publisher_name", String, comment="AWS, AWS Marketplace, ..."),
    Column("billing_account_id", String, nullable=False),
    Column("sub_account_id", String),
    Column("invoice_id", String, comment="NULL while the bill is an estimate"),
    Column("billing_currency", String, nullable=False),
    Column("billing_period_start", TIMESTAMP, nullable=False),
    Column("billing_period_end", TIMESTAMP, nullable=False),
    Column("charge_period_start", TIMESTAMP, nullable=False),
    Column("charge_period_end", TIMESTAMP, nullable=False),
    Column("charge_category", String, nullable=False, comment="Usage, Purchase, Tax, Credit, Adjustment"),
    Column("charge_class", String, comment="Correction or NULL"),
    Column("charge_frequency", String),
    Column("charge_description", String),
    Column("service_name", String, nullable=False),
    Column("x_service_code", String),
    Column("x_line_item_type", String),
    Column("x_usage_type", String),
    Column("x_operation", String),
    Column("region_id", String),
    Column("availability_zone", String),
    Column("resource_id", String),
    Column("sku_id", String),
    Column("pricing_unit", String),
    Column("consumed_quantity", Money()),
    Column("commitment_discount_id", String),
    Column("commitment_discount_status", String),
    Column("billed_cost", Money(), nullable=False),
    Column("effective_cost", Money(), nullable=False),
    Column("list_cost", Money()),
    Column("contracted_cost", Money()),
    Column("tags", Map()),
    Column("x_principal", String),
    Column("x_inference_profile", String),
    Column(
        "x_charge_family",
        String,
        comment="model_api, model_endpoint, support, tax, credit, discount, commitment, other",
    ),
    Column("x_model", String, comment="model as the bill spells it, normalised; NULL if the line names none"),
    Column("x_token_class", String, comment="uncached_input, cache_read, cache_write_5m, cache_write_1h, output"),
    Column("x_tokens", BigInteger, comment="consumed quantity in tokens; NULL if the unit is not tokens or unknown"),
    Column("x_service_tier", String, comment="standard, batch, flex, priority, latency_optimized"),
    Column("x_scope", String, comment="regional, geo, global"),
    Column("x_context_tier", String, comment="base, long"),
    Column("x_other", Map(), comment="columns of the export that have no place here, kept"),
    Column(
        "x_purchase_option",
        String,
        comment="on_demand, spot, savings_plan, reserved, capacity_block, unused_reservation; NULL: no machine",
    ),
    Column(
        "x_cost_class",
        String,
        comment="accelerator, compute, storage, network_cross_zone, network_cross_region, network_internet, "
        "network_nat, network, other; NULL unknown",
    ),
)

cross_check_line = _evidence(
    "cross_check_line",
    "Lines of exports that tell a bill which another export is the record of: compared, never counted.",
    *(Column(column.name, column.type, nullable=column.nullable) for column in billing_line.columns),
)

bill_export = _evidence(
    "bill_export",
    "Which export tells the bill of which account and period, and which of them is the record.",
    Column("export_name", String, nullable=False),
    Column("billing_period", String, nullable=False),
    Column("provider_name", String, nullable=False),
    Column("billing_account_id", String, nullable=False),
    Column("export_group", String, nullable=False, comment="exports of one group complete each other"),
    Column("format", String, nullable=False, comment="cur2, legacy_cur, focus"),
    Column("wish", String, nullable=False, comment="what the source is set to: auto, record, cross_check"),
    Column("is_record", Boolean, nullable=False),
)

bill_check = _evidence(
    "bill_check",
    "What a delivery says of itself twice, both sides, as it was read; replaced with its export and period.",
    Column("load_id", String, nullable=False),
    Column("export_name", String, nullable=False),
    Column("billing_period", String, nullable=False),
    Column("check_name", String, nullable=False),
    Column("subject", String, nullable=False, comment="what of the delivery, e.g. a commitment or a cost column"),
    Column("currency", String, nullable=False),
    Column("lhs", Money(), nullable=False),
    Column("rhs", Money(), nullable=False),
    Column("tolerance", Money(), nullable=False, comment="the largest difference that is none"),
)

split_cost_line = _evidence(
    "split_cost_line",
    "The provider's own split of machines to pods: repeats money of billing_line, evidence for placement, never added.",
    Column("load_id", String, nullable=False),
    Column("export_name", String, nullable=False),
    Column("billing_period", String, nullable=False),
    Column("currency", String, nullable=False),
    Column("charge_period_start", TIMESTAMP, nullable=False),
    Column("charge_period_end", TIMESTAMP, nullable=False),
    Column("parent_resource_id", String, nullable=False, comment="the instance"),
    Column("resource_id", String, comment="the pod or task"),
    Column("cluster", String),
    Column("namespace", String),
    Column("workload", String),
    Column("node", String),
    Column("usage_type", String),
    Column("split_cost", Money(), comment="the pod's own part, amortised"),
    Column("unused_cost", Money(), comment="its part of what no pod used"),
    Column("quantity", Money(), comment="GPUs, cores or GB that the pod reserved or used, whichever is more"),
)

bill_version = _evidence(
    "bill_version",
    "Totals of every delivery of a bill per day and service, so that a restatement can be explained.",
    Column("load_id", String, nullable=False),
    Column("export_name", String, nullable=False),
    Column("billing_period", String, nullable=False),
    Column("delivery", Integer, nullable=False, comment="1, 2, ... in the order of delivered_at"),
    Column("delivered_at", TIMESTAMP, nullable=False, comment="when the provider made it: execution or manifest time"),
    Column("identity", String, nullable=False),
    Column("charge_day", Date, nullable=False, comment="UTC day of charge_period_start"),
    Column("service_name", String, nullable=False),
    Column("billing_currency", String, nullable=False),
    Column("line_count", BigInteger, nullable=False),
    Column("billed_cost", Money(), nullable=False),
    Column("effective_cost", Money(), nullable=False),
)

claim_set = _evidence(
    "claim_set",
    "A distinct combination of the claims that owner rules may use; never an id unique to a request.",
    Column("claim_set_id", String, nullable=False, comment="md5 of the canonical claims"),
    Column("claims", Map(), nullable=False, comment="claim name to value, sorted by name"),
)

usage_record = _evidence(
    "usage_record",
    "What one source said about one attempt at a model call. Never any prompt or response text.",
    Column("load_id", String, nullable=False),
    Column("source", String, nullable=False),
    Column("source_trust", Integer, nullable=False, comment="lower is trusted more: 10 gateway, 20 trace, ..."),
    Column("record_id", String, nullable=False, comment="unique within the source"),
    Column("event_key", String, nullable=False, comment="provider response id, else source and record id"),
    Column("record_digest", String, nullable=False, comment="md5 of the record's facts"),
    Column("provider_response_id", String),
    Column("operation_id", String, comment="what the caller asked for once; attempts share it"),
    Column("attempt", Integer, comment="0 is the first"),
    Column("parent_id", String),
    Column("session_id", String),
    Column("task_id", String),
    Column("agent", String),
    Column("parent_agent", String),
    Column("task_outcome", String, comment="merged, resolved, abandoned, failed, ... on a task's last call"),
    Column("user_id", String),
    Column("started_at", TIMESTAMP, nullable=False),
    Column("first_token_at", TIMESTAMP),
    Column("ended_at", TIMESTAMP, nullable=False),
    Column("provider", String, nullable=False, comment="OTel gen_ai.provider.name: aws.bedrock, openai, ..."),
    Column("model_raw", String),
    Column("model", String, comment="normalised from model_raw, before aliases"),
    Column("account_id", String),
    Column("region_id", String),
    Column("scope", String, comment="regional, geo, global; NULL unknown"),
    Column("route", String, comment="the name the caller asked for"),
    Column("service_tier", String, nullable=False, comment="standard, batch, flex, priority, latency_optimized"),
    Column("stream", Boolean),
    Column("status", String, nullable=False, comment="success, failure, timeout, cancelled"),
    Column("error_kind", String),
    Column("finish_reason", String),
    Column("uncached_input_tokens", BigInteger),
    Column("cache_read_tokens", BigInteger),
    Column("cache_write_5m_tokens", BigInteger),
    Column("cache_write_1h_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("reasoning_tokens", BigInteger, comment="a part of output_tokens"),
    Column("other_units", Map(), comment="images, searches, seconds: unit to count as text"),
    Column("claim_set_id", String, nullable=False),
    Column("provider_cost_usd", Money(), comment="what the source said it cost; NULL when it could not know"),
    Column("prefix_blocks", BigIntList(), comment="prefix-block hashes, if the source carries them"),
    Column("semantics", String, nullable=False, comment="which token convention was applied"),
    Column("raw_counts", Map(), comment="the counts as the source gave them"),
)

price = _evidence(
    "price",
    "Effective-dated price rows: USD-like amounts per unit, one row per class and tier.",
    Column("load_id", String, nullable=False),
    Column("book", String, nullable=False, comment="contract, catalogue"),
    Column("provider", String, nullable=False),
    Column("model", String, nullable=False, comment="normalised like usage_record.model"),
    Column("scope", String, comment="regional, geo, global; NULL any"),
    Column("service_tier", String, nullable=False),
    Column("token_class", String, nullable=False, comment="a token class, or a unit such as request"),
    Column("from_input_tokens", BigInteger, nullable=False, comment="0 base; else applies above this whole prompt"),
    Column("currency", String, nullable=False),
    Column("per_mtok", Money(), nullable=False, comment="amount per million units"),
    Column("valid_from", TIMESTAMP, nullable=False),
    Column("valid_to", TIMESTAMP, nullable=False, comment="exclusive; 9999-12-31 for none"),
    Column("day_start_second", Integer, comment="time-of-day window in UTC seconds; NULL all day"),
    Column("day_end_second", Integer),
    Column("match_reason", String, nullable=False, comment="why this row is for that model"),
    Column("origin", String, nullable=False, comment="package and version, or the configuration's path"),
)

fx_rate = _evidence(
    "fx_rate",
    "Dated exchange rates from the configuration.",
    Column("load_id", String, nullable=False),
    Column("day", Date, nullable=False),
    Column("currency", String, nullable=False),
    Column("reporting_currency", String, nullable=False),
    Column("rate", Money(), nullable=False, comment="reporting currency for one unit of currency"),
)

model_alias = _evidence(
    "model_alias",
    "Names that bills, logs and price books use for one model. Data, not code.",
    Column("load_id", String, nullable=False),
    Column("alias", String, nullable=False, comment="normalised name as found"),
    Column("model", String, nullable=False, comment="the one name used in the ledger"),
    Column("origin", String, nullable=False, comment="built-in or configuration"),
)

touched_hour = _evidence(
    "touched_hour",
    "Hours whose evidence changed since they were attributed last; written with the load, emptied by attribution.",
    Column("hour", TIMESTAMP, nullable=False),
    Column("reason", String, nullable=False, comment="billing, usage, overlay, metrics"),
)

metric_series = _evidence(
    "metric_series",
    "One row per full series of a serving engine, exporter or process, written once, when it is first seen.",
    Column("load_id", String, nullable=False),
    Column("series_id", String, nullable=False, comment="md5 of source, metric name and canonical sorted labels"),
    Column("source", String, nullable=False),
    Column("engine", String, nullable=False, comment="catalogue: vllm, sglang, dcgm, kube_state_metrics, process"),
    Column("metric", String, nullable=False, comment="name as exposed"),
    Column("concept", String, nullable=False, comment="the catalogue's name for what it measures"),
    Column("sample_kind", String, nullable=False, comment="counter, gauge, info"),
    Column("unit", String, nullable=False, comment="tokens, microseconds, ppm, bytes, ...: what a value of 1 is"),
    Column("semantics", String, comment="what exactly is counted, where engines differ"),
    Column("cluster", String, nullable=False, comment="setting of the source; overrides a `cluster` label"),
    Column("target_id", String, nullable=False, comment="md5 of source|cluster|job|instance"),
    Column("namespace", String),
    Column("pod", String),
    Column("node", String),
    Column("of_series_id", String, comment="of `*_created`: the counter whose birth it tells"),
    Column("labels", Map(), nullable=False, comment="all labels as scraped, without the name"),
)


def _minutes(name: str, comment: str) -> Table:
    return _evidence(
        name,
        comment,
        Column("load_id", String, nullable=False, comment="the load that changed the minute last"),
        Column("series_id", String, nullable=False),
        Column("minute", TIMESTAMP, nullable=False),
        Column("first_at", TIMESTAMP, nullable=False),
        Column("first_value", BigInteger, nullable=False),
        Column("last_at", TIMESTAMP, nullable=False),
        Column("last_value", BigInteger, nullable=False),
        Column("increase", BigInteger, comment="between the minute's samples, resets handled; NULL unless a counter"),
        Column("sample_count", BigInteger, nullable=False),
        Column("value_sum", BigInteger, nullable=False),
        Column("max_value", BigInteger, nullable=False),
        Column("min_value", BigInteger, nullable=False),
        Column("sample_at", TimestampList(), nullable=False, comment="instants, ascending and distinct"),
        Column("sample_value", BigIntList(), nullable=False, comment="values at those instants"),
    )


serving_minute = _minutes("serving_minute", "One series of a serving engine or its process in one minute.")

gpu_minute = _minutes("gpu_minute", "One series of a GPU exporter in one minute.")

kube_minute = _minutes("kube_minute", "One series of kube-state-metrics in one minute.")

pool_member = _evidence(
    "pool_member",
    "The pool table, written by hand: which billed resource served which pool, and when.",
    Column("load_id", String, nullable=False),
    Column("source", String, nullable=False),
    Column("resource_id", String, nullable=False, comment="instance id or ARN, as on the bill"),
    Column("cluster", String),
    Column("region_id", String),
    Column("route", String, nullable=False),
    Column("pool", String, nullable=False),
    Column("role", String, nullable=False, comment="mixed, prefill, decode, embedding, batch"),
    Column("gpus", BigInteger, nullable=False),
    Column("gpu_type", String),
    Column("valid_from", TIMESTAMP, nullable=False),
    Column("valid_to", TIMESTAMP, nullable=False, comment="exclusive; 9999-12-31 for none"),
)
