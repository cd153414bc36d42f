-- FOCUS 1.0, 1.2 and 1.3 of any provider to billing lines.
-- grain: one charge; input: view `focus_file`, the files by name, every value text, what is empty or absent NULL
-- invariant: every line in a national currency becomes one line; money is cast once, by money()
-- sources: reference/billing.md 3.3 and 2.3; FOCUS specification 1.2, columns BillingCurrency, BilledCost, EffectiveCost

-- :columns
-- What the mapping reads; a file may spell it in any case, and lack most of it.
BilledCost VARCHAR, EffectiveCost VARCHAR, ListCost VARCHAR, ContractedCost VARCHAR, BillingCurrency VARCHAR,
PricingCurrency VARCHAR, BillingPeriodStart VARCHAR, BillingPeriodEnd VARCHAR, ChargePeriodStart VARCHAR,
ChargePeriodEnd VARCHAR, BillingAccountId VARCHAR, SubAccountId VARCHAR, InvoiceId VARCHAR, InvoiceIssuerName VARCHAR,
ProviderName VARCHAR, PublisherName VARCHAR, ServiceProviderName VARCHAR, HostProviderName VARCHAR,
ChargeCategory VARCHAR, ChargeClass VARCHAR, ChargeFrequency VARCHAR, ChargeDescription VARCHAR,
ServiceName VARCHAR, ServiceCategory VARCHAR, ServiceSubcategory VARCHAR, RegionId VARCHAR, AvailabilityZone VARCHAR,
ResourceId VARCHAR, ResourceType VARCHAR, SkuId VARCHAR, SkuMeter VARCHAR, SkuPriceDetails VARCHAR,
PricingCategory VARCHAR, PricingUnit VARCHAR, PricingQuantity VARCHAR, ListUnitPrice VARCHAR,
ConsumedQuantity VARCHAR, ConsumedUnit VARCHAR, CommitmentDiscountId VARCHAR, CommitmentDiscountStatus VARCHAR,
CommitmentDiscountCategory VARCHAR, CommitmentDiscountType VARCHAR, CapacityReservationStatus VARCHAR,
PrincipalId VARCHAR, Tags VARCHAR, x_ServiceCode VARCHAR, x_UsageType VARCHAR, x_Operation VARCHAR,
x_SkuMeterName VARCHAR

-- :macros
-- A number as spreadsheets write it ("$10,000.00 ") as money() reads it. A comma alone could be a decimal one: such a
-- number stays as it is, and is none.
CREATE OR REPLACE TEMP MACRO focus_number(written) AS
    CASE WHEN contains(written, '$') OR contains(written, ',')
         THEN CASE WHEN regexp_full_match(trim(written),
                       '-?(\$\d{1,3}(,\d{3})*(\.\d+)?|\$\d+(\.\d+)?|\d{1,3}(,\d{3})+\.\d+)')
                   THEN replace(replace(trim(written), ',', ''), '$', '')
                   ELSE written END
         ELSE lower(trim(written)) END;

CREATE OR REPLACE TEMP MACRO focus_is_number(number) AS coalesce(isfinite(TRY_CAST(number AS DOUBLE)), FALSE);

CREATE OR REPLACE TEMP MACRO focus_is_nothing(number) AS number IS NULL OR coalesce(TRY_CAST(number AS DOUBLE) = 0, FALSE);

-- An instant of any spelling, UTC; NULL when it is none. `4/1/25` is the first of April: `check` refuses files whose
-- billing periods do not begin and end on the first of a month when they are read so.
CREATE OR REPLACE TEMP MACRO focus_instant(written) AS
    CASE WHEN substr(written, 5, 1) = '-'
         THEN CASE WHEN length(written) = 19 OR (length(written) = 20 AND ends_with(written, 'Z'))
                   THEN TRY_CAST(written AS TIMESTAMP)
                   ELSE CAST(TRY_CAST(regexp_replace(written, '([T ]\d\d:\d\d)(Z|[+-]\d\d:?\d\d)$', '\1:00\2')
                            AS TIMESTAMPTZ) AT TIME ZONE 'UTC' AS TIMESTAMP) END
         WHEN regexp_full_match(written, '\d{1,2}/\d{1,2}/\d{2}') THEN try_strptime(written, '%m/%d/%y')
         WHEN contains(written, '/') THEN try_strptime(written, ['%m/%d/%Y', '%m/%d/%Y %H:%M', '%m/%d/%Y %H:%M:%S'])
    END;

-- Tags as normalised pairs, the same as in the other formats: lower case, `_` for signs. Three spellings: an object,
-- the same without its braces, a list of keys and values. NULL when it is none of them.
CREATE OR REPLACE TEMP MACRO focus_tags(written) AS
    list_transform([CASE WHEN written[1] IN ('{', '[') THEN written ELSE '{' || written || '}' END], lambda told:
        CASE WHEN NOT json_valid(told) THEN NULL
             WHEN told[1] = '[' THEN list_transform(from_json(told, '[{"key":"VARCHAR","value":"VARCHAR"}]'),
                 lambda pair: struct_pack(k := regexp_replace(lower(pair.key), '[^a-z0-9]+', '_', 'g'), v := pair.value))
             ELSE list_transform(list_zip(json_keys(told), json_extract_string(told, '$.*')), lambda pair: struct_pack(
                 k := regexp_replace(lower(pair[1]), '[^a-z0-9]+', '_', 'g'), v := pair[2])) END)[1];

-- :charge
-- grain: one line of the files with what it says in numbers and instants, each worked out once
CREATE OR REPLACE TEMP VIEW focus_charge AS
SELECT *,
    -- No money is in it: counted in a virtual currency (tokens, credits) and worth nothing, or not priced yet.
    (focus_currency IS NULL AND focus_is_nothing(focus_billed) AND focus_is_nothing(focus_effective)
        AND focus_is_nothing(focus_list) AND focus_is_nothing(focus_contracted))
    OR (PricingCurrency IS NOT NULL AND focus_pricing_currency IS NULL AND focus_billed IS NULL
        AND focus_effective IS NULL AND focus_list IS NULL AND focus_contracted IS NULL) AS focus_is_unpriced
FROM (
    SELECT file.*, currency.code AS focus_currency, pricing.code AS focus_pricing_currency,
        focus_instant(BillingPeriodStart) AS focus_period_start, focus_instant(BillingPeriodEnd) AS focus_period_end,
        focus_instant(ChargePeriodStart) AS focus_start, focus_instant(ChargePeriodEnd) AS focus_end,
        focus_number(BilledCost) AS focus_billed, focus_number(EffectiveCost) AS focus_effective,
        focus_number(ListCost) AS focus_list, focus_number(ContractedCost) AS focus_contracted
    FROM focus_file AS file
    LEFT JOIN focus_currency AS currency ON currency.code = upper(trim(BillingCurrency))
    LEFT JOIN focus_currency AS pricing ON pricing.code = upper(trim(PricingCurrency))
);

-- :check
-- grain: one row for the files
SELECT
    count(*) AS lines,
    count(*) FILTER (focus_is_unpriced) AS lines_without_money,
    count(*) FILTER (NOT focus_is_unpriced AND focus_currency IS NULL) AS lines_without_currency,
    count(*) FILTER (NOT focus_is_unpriced AND NOT focus_is_number(focus_billed)) AS lines_without_billed_cost,
    count(*) FILTER (NOT focus_is_unpriced AND NOT focus_is_number(focus_effective)) AS lines_without_effective_cost,
    count(*) FILTER ((focus_list IS NOT NULL AND NOT focus_is_number(focus_list))
        OR (focus_contracted IS NOT NULL AND NOT focus_is_number(focus_contracted))) AS lines_with_a_wrong_cost,
    count(*) FILTER (focus_period_start IS NULL OR (BillingPeriodEnd IS NOT NULL AND focus_period_end IS NULL))
        AS lines_without_period,
    count(*) FILTER (focus_start IS NULL OR focus_end IS NULL OR focus_end < focus_start) AS lines_without_time,
    count(*) FILTER ((contains(BillingPeriodStart, '/') AND day(focus_period_start) <> 1)
        OR (contains(BillingPeriodEnd, '/') AND day(focus_period_end) <> 1)) AS lines_of_an_unclear_day,
    count(*) FILTER (getvariable('billing_period') IS NOT NULL
        AND strftime(focus_period_start, '%Y-%m') IS DISTINCT FROM getvariable('billing_period')) AS lines_of_another_period,
    count(*) FILTER (ChargeCategory IS NULL) AS lines_without_category,
    coalesce(bool_or(contains(BillingPeriodStart, '/')), FALSE) AS has_slashes,
    coalesce(bool_or(contains(BilledCost, '$') OR contains(BilledCost, ',')), FALSE) AS has_signs,
    min(BillingAccountId) AS account,
    [{{counts}}] AS filled
FROM focus_charge;

-- :line
-- grain: one line that holds money; values as they stay, and the key of the way it names what it charges
SELECT
    parse_filename(x_file_path) AS x_file,
    InvoiceIssuerName AS invoice_issuer_name, coalesce(PublisherName, ServiceProviderName) AS publisher_name,
    coalesce(BillingAccountId, '-') AS billing_account_id, SubAccountId AS sub_account_id, InvoiceId AS invoice_id,
    focus_currency AS billing_currency,
    focus_period_start AS billing_period_start,
    coalesce(focus_period_end, focus_period_start + INTERVAL 1 MONTH) AS billing_period_end,
    focus_start AS charge_period_start, focus_end AS charge_period_end,
    CASE WHEN lower(ChargeClass) = 'correction' THEN 'Correction' ELSE ChargeClass END AS charge_class,
    CASE lower(ChargeFrequency) WHEN 'usage-based' THEN 'Usage-Based' WHEN 'one-time' THEN 'One-Time'
         WHEN 'recurring' THEN 'Recurring' ELSE ChargeFrequency END AS charge_frequency,
    ChargeDescription AS charge_description, coalesce(ServiceName, 'unknown') AS service_name,
    x_ServiceCode AS x_service_code, coalesce(x_UsageType, SkuMeter, x_SkuMeterName) AS x_usage_type,
    x_Operation AS x_operation, RegionId AS region_id, AvailabilityZone AS availability_zone, ResourceId AS resource_id,
    SkuId AS sku_id, coalesce(ConsumedUnit, PricingUnit) AS pricing_unit,
    CASE WHEN focus_is_number(focus_number(ConsumedQuantity)) THEN money(focus_number(ConsumedQuantity)) END
        AS consumed_quantity,
    CASE WHEN focus_is_number(focus_number(PricingQuantity)) THEN money(focus_number(PricingQuantity)) END
        AS pricing_quantity,
    TRY_CAST(focus_number(ListUnitPrice) AS DOUBLE) AS list_unit_price,
    CommitmentDiscountId AS commitment_discount_id, CommitmentDiscountStatus AS commitment_discount_status,
    money(focus_billed) AS billed_cost, money(focus_effective) AS effective_cost, money(focus_list) AS list_cost,
    money(focus_contracted) AS contracted_cost,
    {{tags}} AS tag_list, Tags AS tags_written, PrincipalId AS x_principal, {{other}} AS x_other,
    -- what the class of a line depends on
    ServiceProviderName, ProviderName, HostProviderName, InvoiceIssuerName, PublisherName, ServiceName, ServiceCategory,
    ServiceSubcategory, ChargeCategory, ChargeDescription, ResourceType, SkuId, SkuMeter, SkuPriceDetails, x_SkuMeterName,
    x_UsageType, ConsumedUnit, PricingUnit, PricingCategory, CommitmentDiscountCategory, CommitmentDiscountType,
    CapacityReservationStatus,
    regexp_extract(ResourceId, '(foundation-model|inference-profile)/(.+)$', 2) AS resource_model,
    contains(ResourceId, 'application-inference-profile/') AS is_own_profile,
    CommitmentDiscountId IS NOT NULL AS has_commitment, lower(CommitmentDiscountStatus) = 'unused' AS is_unused,
    TRY_CAST(focus_effective AS DOUBLE) = 0 AND TRY_CAST(focus_billed AS DOUBLE) <> 0 AS is_prepaid,
    md5_number(concat_ws(chr(31), {{way}})) AS way
FROM focus_charge WHERE NOT focus_is_unpriced;

-- :way
-- The columns that the class of a line depends on: lines that say the same in them are of one class.
ServiceProviderName, ProviderName, HostProviderName, InvoiceIssuerName, PublisherName, ServiceName, ServiceCategory,
ServiceSubcategory, ChargeCategory, ChargeDescription, ResourceType, SkuId, SkuMeter, SkuPriceDetails, x_SkuMeterName,
x_UsageType, ConsumedUnit, PricingUnit, PricingCategory, CommitmentDiscountCategory, CommitmentDiscountType,
CapacityReservationStatus, resource_model, is_own_profile, has_commitment, is_unused, is_prepaid

-- :staged
-- grain: one line with its class
SELECT
    CAST(NULL AS VARCHAR) AS x_line_item_id, x_file, provider_name, invoice_issuer_name, publisher_name,
    billing_account_id, sub_account_id, invoice_id, billing_currency, billing_period_start, billing_period_end,
    charge_period_start, charge_period_end, charge_category, charge_class, charge_frequency, charge_description,
    service_name, x_service_code, CAST(NULL AS VARCHAR) AS x_line_item_type, x_usage_type, x_operation, region_id,
    availability_zone, resource_id, sku_id, pricing_unit, consumed_quantity, commitment_discount_id,
    commitment_discount_status, billed_cost, effective_cost, list_cost, contracted_cost,
    CASE WHEN len(tag_list) > 0
         THEN map_from_entries(list_sort(list_filter(tag_list, lambda tag, place: tag.k IS NOT NULL AND tag.v IS NOT NULL
             AND list_position(list_transform(tag_list, lambda other: other.k), tag.k) = place))) END AS tags,
    x_principal, CASE WHEN contains(resource_id, 'inference-profile/') THEN resource_id END AS x_inference_profile,
    charge_family AS x_charge_family, model AS x_model, token_class AS x_token_class,
    CASE WHEN token_class IS NULL THEN NULL
         WHEN tokens_per_consumed IS NOT NULL
         THEN TRY_CAST(round(TRY_CAST(consumed_quantity AS DECIMAL(29, 11)) * CAST(tokens_per_consumed AS DECIMAL(7, 0))) AS BIGINT)
         -- Some exports write the quantity once more divided by the unit: the list price tells which it is.
         WHEN list_cost IS NULL OR list_unit_price IS NULL OR abs(CAST(pricing_quantity AS DOUBLE) * list_unit_price
                  - CAST(list_cost AS DOUBLE)) <= 0.01 * abs(CAST(list_cost AS DOUBLE))
         THEN TRY_CAST(round(TRY_CAST(pricing_quantity AS DECIMAL(29, 11)) * CAST(tokens_per_priced AS DECIMAL(7, 0))) AS BIGINT)
         END AS x_tokens,
    service_tier AS x_service_tier, scope AS x_scope, context_tier AS x_context_tier, x_other,
    purchase_option AS x_purchase_option, cost_class AS x_cost_class
FROM focus_line JOIN focus_class USING (way);

-- :sums
-- grain: one currency; the costs as they were read
SELECT billing_currency, CAST(sum(billed_cost) AS VARCHAR) AS billed_cost, CAST(sum(effective_cost) AS VARCHAR) AS effective_cost,
    CAST(sum(list_cost) AS VARCHAR) AS list_cost, CAST(sum(contracted_cost) AS VARCHAR) AS contracted_cost
FROM focus_line GROUP BY billing_currency ORDER BY billing_currency;

-- :uneven
-- How many billing periods and currencies differ between what was read and what is staged: none, or this is a fault.
SELECT count(*) FROM (
    (FROM (SELECT 'read' AS side, billing_period_start, billing_currency, count(*) AS lines, sum(billed_cost) AS billed,
               sum(effective_cost) AS effective, sum(list_cost) AS list, sum(contracted_cost) AS contracted
           FROM focus_line GROUP BY ALL
           UNION ALL
           SELECT 'staged', billing_period_start, billing_currency, count(*), sum(billed_cost), sum(effective_cost),
               sum(list_cost), sum(contracted_cost)
           FROM staged_line GROUP BY ALL)
     SELECT 1 GROUP BY billing_period_start, billing_currency, lines, billed, effective, list, contracted
     HAVING count(*) <> 2)
);

-- :told
-- grain: one row; how many lines there is something to say of
SELECT
    count(*) FILTER (charge_class = 'Correction') AS corrections,
    count(*) FILTER (charge_period_start < billing_period_start) AS earlier,
    count(*) FILTER (charge_period_start >= billing_period_end) AS later,
    count(*) FILTER (x_charge_family = 'model_api' AND charge_category = 'Usage' AND x_token_class IS NULL) AS without_class,
    count(*) FILTER (x_token_class IS NOT NULL AND x_tokens IS NULL) AS without_tokens,
    count(*) FILTER (x_charge_family = 'model_api' AND charge_category = 'Usage' AND x_model IS NULL) AS without_model,
    (SELECT count(*) FROM focus_line WHERE tags_written IS NOT NULL AND tag_list IS NULL) AS without_tags
FROM staged_line;
