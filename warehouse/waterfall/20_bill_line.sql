-- Step 1: the bill at the door. Every line gets an accounting class, a route and whole nano-dollars.
-- grain:   billing line
-- inputs:  work_line (billing lines at hand), model_name, scope_service, scope_account, run_parameter,
--          fleet_resource (instances of the own clusters: resource_id, cluster, gpus), line_cluster (line_digest,
--          cluster: lines that a tag or resource name gives to a cluster), fleet_commitment (commitment_discount_id)
-- routes:  token    metered in tokens: meets the usage log in its own charge period (steps 60-64)
--          node     of one GPU instance of a cluster: shared by what its GPUs did (steps 40-41)
--          cluster  of a cluster as a whole, its machines without GPUs, storage, network: to its pools (step 42)
--          hour     posted in the hour in which its charge period starts
--          overlay  support, tax, credits, discounts, commitments, whatever spans more than a day and lines of the
--                   own fleet that span more than an hour: never folded into hours, shared by day (steps 80-82), days to come included
-- control: sum of nanos out + rounding = sum of DECIMAL costs in (ledger_rounding).
SELECT
    c.load_id AS load_id, c.line_digest AS line_digest, c.billing_period AS billing_period, c.currency AS currency,
    c.status AS status, c.provider AS provider, c.payer_id AS payer_id, c.account_id AS account_id,
    c.region_id AS region_id, c.service_name AS service_name, c.charge_category AS charge_category,
    c.line_class AS line_class,
    CASE
        WHEN c.line_class IN ('support_tax', 'credit', 'discount', 'commitment') THEN 'overlay'
        WHEN c.is_future = 1 AND (c.fleet_gpus IS NOT NULL OR c.cluster IS NOT NULL)
            AND c.charge_period_end <= c.charge_period_start + INTERVAL 1 DAY THEN 'hour'
        -- a daily line cannot be told from what GPUs did hour by hour: the day's users of the fleet share it
        WHEN c.cluster IS NOT NULL AND c.charge_period_end > c.charge_period_start + INTERVAL 1 HOUR THEN 'overlay'
        WHEN c.fleet_gpus > 0 THEN 'node'
        WHEN c.cluster IS NOT NULL THEN 'cluster'
        WHEN c.line_class = 'model_api' AND c.token_class IS NOT NULL AND c.tokens IS NOT NULL
            THEN CASE WHEN c.is_future = 1 THEN 'hour' ELSE 'token' END
        WHEN c.charge_period_end > c.charge_period_start + INTERVAL 1 DAY THEN 'overlay'
        ELSE 'hour'
    END AS line_route,
    c.is_future AS is_future,
    c.model AS model, c.token_class AS token_class, c.tokens AS tokens, c.service_tier AS service_tier,
    c.scope AS scope, c.context_tier AS context_tier,
    c.cluster AS cluster, c.resource_id AS resource_id, c.fleet_gpus AS fleet_gpus, c.usage_ms AS usage_ms,
    c.commitment_id AS commitment_id,
    c.charge_period_start AS charge_period_start, c.charge_period_end AS charge_period_end,
    CAST(date_trunc('hour', c.charge_period_start) AS TIMESTAMP) AS charge_hour,
    nano(c.effective_cost) AS effective_nano,
    nano(c.billed_cost) AS billed_nano,
    nano(coalesce(c.list_cost, 0)) AS list_nano
FROM (
    SELECT
        l.load_id AS load_id, l.line_digest AS line_digest, l.billing_period AS billing_period,
        l.billing_currency AS currency,
        CASE WHEN l.invoice_id IS NULL THEN 'open' ELSE 'final' END AS status,
        -- a cloud's model API is called as logs call it, after OpenTelemetry
        CASE WHEN l.x_charge_family <> 'model_api' THEN l.provider_name
             WHEN l.provider_name = 'aws' THEN 'aws.bedrock'
             WHEN l.provider_name = 'azure' THEN 'azure.ai.openai'
             WHEN l.provider_name = 'gcp' THEN 'gcp.vertex_ai'
             ELSE l.provider_name END AS provider,
        l.billing_account_id AS payer_id,
        coalesce(nullif(l.sub_account_id, ''), l.billing_account_id) AS account_id,
        nullif(l.region_id, '') AS region_id, l.service_name AS service_name, l.charge_category AS charge_category,
        CASE
            WHEN l.x_charge_family IN ('support', 'tax') THEN 'support_tax'
            WHEN l.x_charge_family IN ('credit', 'discount', 'commitment', 'model_api') THEN l.x_charge_family
            WHEN r.gpus > 0 THEN 'accelerator'
            -- a GPU machine that is tagged with a cluster and never joined it did nothing there
            WHEN r.gpus IS NULL AND k.cluster IS NOT NULL AND l.x_cost_class = 'accelerator'
                AND l.resource_id IS NOT NULL THEN 'accelerator'
            WHEN r.gpus = 0 THEN 'other_compute'
            WHEN k.cluster IS NOT NULL THEN
                CASE WHEN l.x_usage_type LIKE '%EBS:%' OR l.x_service_code = 'AmazonS3' THEN 'storage'
                     WHEN l.x_service_code = 'AmazonEKS' THEN 'control_plane'
                     WHEN l.x_usage_type LIKE '%BoxUsage%' OR l.x_usage_type LIKE '%SpotUsage%' THEN 'other_compute'
                     ELSE 'network' END
            WHEN s.name IS NOT NULL OR a.account_id IS NOT NULL OR l.x_charge_family = 'model_endpoint'
                THEN 'in_scope_other'
            ELSE 'out_of_scope'
        END AS line_class,
        CASE WHEN l.charge_period_start >= p.as_of THEN 1 ELSE 0 END AS is_future,
        coalesce(n.model, nullif(l.x_model, '')) AS model,
        l.x_token_class AS token_class, l.x_tokens AS tokens,
        coalesce(l.x_service_tier, 'standard') AS service_tier,
        coalesce(l.x_scope, 'regional') AS scope,
        coalesce(l.x_context_tier, 'base') AS context_tier,
        coalesce(r.cluster, k.cluster) AS cluster, l.resource_id AS resource_id,
        coalesce(r.gpus, CASE
            -- used hours of a Capacity Block name the block, not the machines: its cluster shares them
            WHEN l.x_purchase_option = 'capacity_block' AND l.x_usage_type NOT LIKE '%Unused%' THEN NULL
            WHEN k.cluster IS NOT NULL AND l.x_cost_class = 'accelerator' AND l.resource_id IS NOT NULL THEN 1
        END) AS fleet_gpus,
        CASE WHEN lower(l.pricing_unit) IN ('hrs', 'hours', 'hour', 'hr')
             THEN CAST(round(CAST(l.consumed_quantity AS DOUBLE) * 3600000) AS BIGINT)
             WHEN lower(l.pricing_unit) IN ('minutes', 'minute', 'mins', 'min')
             THEN CAST(round(CAST(l.consumed_quantity AS DOUBLE) * 60000) AS BIGINT)
             WHEN lower(l.pricing_unit) IN ('seconds', 'second', 'secs', 'sec', 's')
             THEN CAST(round(CAST(l.consumed_quantity AS DOUBLE) * 1000) AS BIGINT) END AS usage_ms,
        f.commitment_discount_id AS commitment_id,
        l.charge_period_start AS charge_period_start, l.charge_period_end AS charge_period_end,
        l.effective_cost AS effective_cost, l.billed_cost AS billed_cost, l.list_cost AS list_cost
    FROM work_line AS l
    CROSS JOIN run_parameter AS p
    LEFT JOIN model_name AS n ON n.alias = l.x_model
    LEFT JOIN scope_service AS s ON s.name = l.service_name
    LEFT JOIN scope_account AS a ON a.account_id = coalesce(nullif(l.sub_account_id, ''), l.billing_account_id)
    LEFT JOIN fleet_resource AS r ON r.resource_id = l.resource_id
    LEFT JOIN line_cluster AS k ON k.line_digest = l.line_digest
    LEFT JOIN fleet_commitment AS f ON f.commitment_discount_id = l.commitment_discount_id
) AS c
