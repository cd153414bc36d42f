"""The columns of CUR 2.0, in the order and with the types of billing.md 3.1."""

import pyarrow as pa

STRING, DOUBLE, TIME = pa.string(), pa.float64(), pa.timestamp("ms")
MAP, NUMBER_MAP = pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.float64())


def _group(prefix: str, names: str, kind: pa.DataType = STRING) -> list[tuple[str, pa.DataType]]:
    return [(f"{prefix}_{name}", kind) for name in names.split()]


def _columns() -> list[tuple[str, pa.DataType]]:
    reservation_amounts = """amortized_upfront_cost_for_usage amortized_upfront_fee_for_billing_period effective_cost
        recurring_fee_for_usage unused_amortized_upfront_fee_for_billing_period unused_normalized_unit_quantity
        unused_quantity unused_recurring_fee upfront_value net_amortized_upfront_cost_for_usage
        net_amortized_upfront_fee_for_billing_period net_effective_cost net_recurring_fee_for_usage
        net_unused_amortized_upfront_fee_for_billing_period net_unused_recurring_fee net_upfront_value"""
    reservation_names = """availability_zone end_time modification_status normalized_units_per_reservation
        number_of_reservations reservation_a_r_n start_time subscription_id total_reserved_normalized_units
        total_reserved_units units_per_reservation"""
    savings_plan_amounts = """amortized_upfront_commitment_for_billing_period recurring_commitment_for_billing_period
        savings_plan_effective_cost savings_plan_rate total_commitment_to_date used_commitment
        net_amortized_upfront_commitment_for_billing_period net_recurring_commitment_for_billing_period
        net_savings_plan_effective_cost"""
    savings_plan_names = """end_time instance_type_family offering_type payment_option purchase_term region
        savings_plan_a_r_n start_time"""
    product = """comment fee_code fee_description from_location from_location_type from_region_code instance_family
        instance_type instancesku location location_type operation pricing_unit product_family region_code servicecode
        sku to_location to_location_type to_region_code usagetype"""
    split = """actual_usage reserved_usage split_usage split_usage_ratio split_cost unused_cost net_split_cost
        net_unused_cost public_on_demand_split_cost public_on_demand_unused_cost"""
    columns = [
        *_group("identity", "line_item_id time_interval"),
        *_group("bill", "bill_type billing_entity"),
        *_group("bill", "billing_period_start_date billing_period_end_date", TIME),
        *_group("bill", "invoice_id invoicing_entity payer_account_id payer_account_name"),
        ("line_item_availability_zone", STRING),
        ("line_item_blended_cost", DOUBLE),
        *_group("line_item", "blended_rate currency_code iam_principal legal_entity line_item_description"),
        ("line_item_line_item_type", STRING),
        ("line_item_net_unblended_cost", DOUBLE),
        ("line_item_net_unblended_rate", STRING),
        *_group("line_item", "normalization_factor normalized_usage_amount", DOUBLE),
        *_group("line_item", "operation product_code resource_id tax_type"),
        ("line_item_unblended_cost", DOUBLE),
        *_group("line_item", "unblended_rate usage_account_id usage_account_name"),
        ("line_item_usage_amount", DOUBLE),
        *_group("line_item", "usage_start_date usage_end_date", TIME),
        *_group("line_item", "usage_type user_identifier"),
        *_group("pricing", "currency lease_contract_length offering_class"),
        ("pricing_public_on_demand_cost", DOUBLE),
        *_group("pricing", "public_on_demand_rate purchase_option rate_code rate_id term unit"),
        ("product", MAP),
        *_group("product", product),
        *_group("reservation", reservation_amounts, DOUBLE),
        *_group("reservation", reservation_names),
        *_group("savings_plan", savings_plan_amounts, DOUBLE),
        *_group("savings_plan", savings_plan_names),
        ("discount", NUMBER_MAP),
        *_group("discount", "bundled_discount total_discount", DOUBLE),
        ("resource_tags", MAP),
        ("cost_category", MAP),
        ("tags", MAP),
        *_group("capacity_reservation_capacity_reservation", "arn status type"),
        *_group("split_line_item", split, DOUBLE),
        ("split_line_item_parent_resource_id", STRING),
    ]
    return columns


SCHEMA = pa.schema(_columns())

MANIFEST_TYPES = {
    STRING: "string",
    DOUBLE: "double",
    TIME: "timestamp",
    MAP: "map<string,string>",
    NUMBER_MAP: "map<string,double>",
}
