"""Names of the legacy CUR: `lineItem/UsageType` in CSV, `line_item_usage_type` in Parquet (billing.md 3.2)."""

import re

_CATEGORIES = {
    "capacity_reservation_": "capacityReservation",
    "split_line_item_": "splitLineItem",
    "savings_plan_": "savingsPlan",
    "reservation_": "reservation",
    "line_item_": "lineItem",
    "discount_": "discount",
    "identity_": "identity",
    "pricing_": "pricing",
    "product_": "product",
    "bill_": "bill",
}

# AWS's own unevenness: most of pricing/ and all of product/ begin with a small letter
_SMALL = ("currency", "public_on_demand_cost", "public_on_demand_rate", "term", "unit")

TAG_CATEGORIES = {"resource_tags": "resourceTags", "cost_category": "costCategory", "product": "product"}
"""Maps of CUR 2.0 whose keys are columns in the legacy CUR."""


def slash_name(column: str) -> str:
    """`line_item_usage_type` -> `lineItem/UsageType`."""
    prefix, category = next((prefix, name) for prefix, name in _CATEGORIES.items() if column.startswith(prefix))
    rest = column.removeprefix(prefix)
    words = "".join(word.capitalize() for word in rest.split("_"))
    words = re.sub(r"ARN$", "ARN", words)
    if category == "product" or (category == "pricing" and rest in _SMALL):
        words = words[0].lower() + words[1:]
    return f"{category}/{words}"


def key_name(column: str, key: str) -> str:
    """Column of one key of a map: `resource_tags['user_team']` -> `resourceTags/user:team`."""
    category = TAG_CATEGORIES[column]
    if category == "resourceTags":
        return f"{category}/{tag_key(key)}"
    if category == "product":
        words = "".join(word.capitalize() for word in key.split("_"))
        return f"product/{words if key == 'product_name' else words[0].lower() + words[1:]}"
    return f"{category}/{key}"


def tag_key(key: str) -> str:
    """The tag as it was before CUR 2.0 turned what is no letter or digit to `_`: AWS's own tags are known."""
    if key.startswith("aws_eks_"):
        return "aws:eks:" + key.removeprefix("aws_eks_").replace("_", "-")
    return key.replace("_", ":", 1)


def athena_name(slash: str) -> str:
    """`reservation/ReservationARN` -> `reservation_reservation_a_r_n`: AWS's rule for Athena's column names."""
    spaced = re.sub(r"(?=[A-Z])", "_", slash)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")
