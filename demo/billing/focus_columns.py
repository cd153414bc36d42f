"""Columns of AWS's FOCUS tables, in order, with the types of billing.md 3.3."""

import pyarrow as pa

from demo.cur_schema import DOUBLE, MAP, NUMBER_MAP, STRING, TIME

_FOCUS_1_2_AWS = """
AvailabilityZone BilledCost BillingAccountId BillingAccountName BillingAccountType BillingCurrency BillingPeriodEnd
BillingPeriodStart CapacityReservationId CapacityReservationStatus ChargeCategory ChargeClass ChargeDescription
ChargeFrequency ChargePeriodEnd ChargePeriodStart CommitmentDiscountCategory CommitmentDiscountId CommitmentDiscountName
CommitmentDiscountQuantity CommitmentDiscountType CommitmentDiscountUnit CommitmentDiscountStatus ConsumedQuantity
ConsumedUnit ContractedCost ContractedUnitPrice EffectiveCost InvoiceId InvoiceIssuerName ListCost ListUnitPrice
PricingCategory PricingCurrency PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost
PricingCurrencyListUnitPrice PricingQuantity PricingUnit ProviderName PublisherName RegionId RegionName ResourceId
ResourceName ResourceType ServiceCategory ServiceName ServiceSubcategory SkuId SkuMeter SkuPriceId SkuPriceDetails
SubAccountId SubAccountName SubAccountType Tags x_Discounts x_Operation x_ServiceCode
"""

_NOT_IN_1_0 = """
BillingAccountType InvoiceId PricingCurrency PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost
PricingCurrencyListUnitPrice SubAccountType CapacityReservationId CapacityReservationStatus CommitmentDiscountQuantity
CommitmentDiscountUnit ServiceSubcategory SkuMeter SkuPriceDetails
"""

COLUMNS = {
    "1.2": _FOCUS_1_2_AWS.split(),
    # assumption: 1.0 has these two x_ columns beside those of 1.2
    "1.0": [
        *(name for name in _FOCUS_1_2_AWS.split() if name not in _NOT_IN_1_0.split()),
        *("x_CostCategories", "x_UsageType"),
    ],
}

_MAPS = {"Tags": MAP, "SkuPriceDetails": MAP, "x_CostCategories": MAP, "x_Discounts": NUMBER_MAP}
_NUMBERS = ("Cost", "Price", "Quantity")


def kind(name: str) -> pa.DataType:
    """Type of a column in Parquet."""
    if name in _MAPS:
        return _MAPS[name]
    if name.startswith(("BillingPeriod", "ChargePeriod")):
        return TIME
    return DOUBLE if name.endswith(_NUMBERS) else STRING
