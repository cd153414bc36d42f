-- What a FOCUS line charges for: provider, family, model, token class, purchase option, cost class.
-- grain: one different way that lines name what they charge (`way` of focus_line), worked out once
-- inputs: tables `focus_line`, `focus_provider` (name, provider), `focus_service` (part, rule)
-- invariant: what a line does not say is NULL; no model, unit or class is guessed
-- sources: reference/billing.md 3.3 (FOCUS, AI keys of 1.5), 5.1-5.3 (Bedrock); meter names of Azure ("gpt 4o 1120 cached
-- Inp glbl Tokens") and Google ("Gemini 3 Flash Text Input Caching") as their public price lists spell them

-- :macros
-- A provider's name as the project spells it: by the table, else its own name in lower case.
CREATE OR REPLACE TEMP MACRO focus_company(name) AS
    regexp_replace(lower(trim(name)), ',? (inc|llc|ltd|limited|corporation|corp|gmbh|sarl|pbc|pty)\.?$', '');

CREATE OR REPLACE TEMP MACRO focus_slug(name) AS
    nullif(trim(regexp_replace(focus_company(name), '[^a-z0-9]+', '_', 'g'), '_'), '');

-- How many tokens one unit holds: 'Tokens', '1K Tokens', '1000000 Tokens', 'MTok'. NULL when it counts something else.
CREATE OR REPLACE TEMP MACRO focus_tokens_per(unit) AS
    CASE WHEN regexp_full_match(lower(trim(unit)), '([0-9][0-9,]{0,9})? ?(k|m|thousand|million)?[ -]?tok(en)?s?')
         THEN TRY_CAST(coalesce(nullif(replace(regexp_extract(trim(unit), '^[0-9,]+'), ',', ''), ''), '1') AS BIGINT)
              * CASE WHEN regexp_matches(lower(unit), '(k|thousand)[ -]?tok') THEN 1000
                     WHEN regexp_matches(lower(unit), '(m|million)[ -]?tok') THEN 1000000 ELSE 1 END
    END;

-- Token class of a meter's name or a description, in lower case. Cache before input, for its names hold "input".
CREATE OR REPLACE TEMP MACRO focus_token_class(said) AS
    CASE WHEN regexp_matches(said, 'cache[ _-]?miss|uncached') THEN 'uncached_input'
         WHEN regexp_matches(said, 'cache[ _-]?(write|creation)|\bcd wr') THEN
             CASE WHEN regexp_matches(said, '(^|[^0-9])1[ _-]?h(our|r)?([^a-z]|$|input)') THEN 'cache_write_1h'
                  ELSE 'cache_write_5m' END
         WHEN regexp_matches(said, 'cache[ _-]?(read|hit)|cached|cchd|\bcd (rd|inp)|input caching') THEN 'cache_read'
         WHEN regexp_matches(said, 'output|outp|\bopt\b|completion|response') THEN 'output'
         WHEN regexp_matches(said, 'input|\binpt?\b|prompt') THEN 'uncached_input'
    END;

-- What stands before the words of a token class in a meter's name: 'gpt 4o 1120 cached Inp glbl Tokens' -> 'gpt 4o 1120'.
CREATE OR REPLACE TEMP MACRO focus_model_before(said) AS
    nullif(regexp_extract(regexp_replace(said, '^azure openai[a-z ]* - ', ''),
        '^([a-z0-9][a-z0-9 ._:-]{1,58}?)[ _-]+(?:(?:ga|global|regional|thinking|text|batch|flex|priority|long|short|uncached|cached|cchd|cd|cache|prompt|mantle)[ _-]+)*(?:inputs?|inpt?|outputs?|outpt?|opt|read|write|hit|miss|completions?|response)(?:[ _-]|$)',
        1), '');

-- :class
CREATE OR REPLACE TEMP TABLE focus_class AS
WITH way AS (
    SELECT way, any_value(COLUMNS(* EXCLUDE (way))) FROM (SELECT way, {{way}} FROM focus_line) GROUP BY way
),
named AS (
    SELECT way.*,
        lower(coalesce(way.ServiceName, '')) AS service, lower(coalesce(way.ServiceCategory, '')) AS category,
        lower(coalesce(way.ServiceSubcategory, '')) AS subcategory,
        lower(coalesce(way.ChargeDescription, '')) AS description,
        lower(way.x_UsageType) AS usage, lower(way.SkuMeter) AS meter, lower(way.x_SkuMeterName) AS meter_name,
        CASE WHEN json_valid(way.SkuPriceDetails) THEN lower(way.SkuPriceDetails) END AS details,
        coalesce(host.provider, focus_slug(way.HostProviderName)) AS host,
        coalesce(issuer.provider, focus_slug(way.InvoiceIssuerName)) AS issuer,
        coalesce(own.provider, focus_slug(coalesce(way.ServiceProviderName, way.ProviderName, way.PublisherName))) AS own
    FROM way
    LEFT JOIN focus_provider AS host ON host.name = focus_company(way.HostProviderName)
    LEFT JOIN focus_provider AS issuer ON issuer.name = focus_company(way.InvoiceIssuerName)
    LEFT JOIN focus_provider AS own
        ON own.name = focus_company(coalesce(way.ServiceProviderName, way.ProviderName, way.PublisherName))
),
said AS (
    SELECT named.*,
        -- A cloud that hosts a service and bills it is the provider, whoever made the model.
        CASE WHEN host = issuer AND host IN ('aws', 'azure', 'gcp', 'oracle_cloud') THEN host
             ELSE coalesce(own, host, issuer, 'unknown') END AS provider_name,
        CASE lower(trim(ChargeCategory)) WHEN 'usage' THEN 'Usage' WHEN 'purchase' THEN 'Purchase' WHEN 'tax' THEN 'Tax'
            WHEN 'credit' THEN 'Credit' WHEN 'adjustment' THEN 'Adjustment' ELSE ChargeCategory END AS charge_category,
        (SELECT bool_or(s.rule = 'always') FROM focus_service AS s WHERE contains(named.service, s.part)) AS is_api_service,
        (SELECT count(*) FROM focus_service AS s WHERE contains(named.service, s.part)) > 0
            OR category = 'ai and machine learning' AS is_ai,
        json_extract_string(details, '$.tokendirection') AS direction,
        json_extract_string(details, '$.tokencacheaction') AS cache_action,
        json_extract_string(details, '$.modelid') AS model_id,
        concat_ws(' ', usage, meter, meter_name, description) AS all_said,
        focus_tokens_per(ConsumedUnit) AS consumed_tokens, focus_tokens_per(PricingUnit) AS priced_tokens
    FROM named
),
family AS (
    SELECT *,
        CASE
            WHEN charge_category = 'Tax' THEN 'tax'
            WHEN charge_category = 'Credit' THEN 'credit'
            WHEN charge_category = 'Adjustment' THEN
                CASE WHEN regexp_matches(description, 'discount|rebate') THEN 'discount' ELSE 'other' END
            -- bought ahead: a commitment, or tokens and credits whose use carries the effective cost later
            WHEN charge_category = 'Purchase' AND (has_commitment OR is_prepaid) THEN 'commitment'
            WHEN is_unused THEN 'commitment'
            WHEN regexp_matches(service, '\bsupport\b') THEN 'support'
            WHEN coalesce(is_api_service, FALSE) OR model_id IS NOT NULL OR direction IS NOT NULL
                OR (is_ai AND (consumed_tokens IS NOT NULL OR priced_tokens IS NOT NULL OR regexp_matches(all_said, '\btokens?\b')))
                THEN 'model_api'
            WHEN contains(service, 'sagemaker') AND regexp_matches(coalesce(usage, meter), '(^|-)(host|asyncinf|tsform|serverless-?inf)')
                THEN 'model_endpoint'
            ELSE 'other'
        END AS charge_family
    FROM said
),
classed AS (
    SELECT *,
        CASE
            WHEN charge_family <> 'model_api' OR charge_category <> 'Usage' THEN NULL
            WHEN direction = 'output' THEN 'output'
            WHEN direction = 'input' THEN
                CASE cache_action WHEN 'read' THEN 'cache_read' WHEN 'uncached' THEN 'uncached_input'
                    WHEN 'write' THEN CASE WHEN focus_token_class('cache write ' || all_said) = 'cache_write_1h'
                                           THEN 'cache_write_1h' ELSE 'cache_write_5m' END
                    ELSE coalesce(focus_token_class(meter), 'uncached_input') END
            -- tokens of other kinds, tokens an hour, and what is no token
            WHEN regexp_matches(all_said, 'modelunit|model unit|custommodel|customization|rft-training|training|fine-?tun|hosting|guardrail|evaluation|invokeflow|bedrockflow|optimizeprompt|prompt-routing|grounding|generatesql|structuredretrieve|search|dataautomation|image|video|sonic|speech|audio|tpm|provisioned|\bptu|caching storage|cache storage|interpreter|vcpu')
                THEN NULL
            ELSE coalesce(focus_token_class(usage), focus_token_class(meter), focus_token_class(meter_name),
                          focus_token_class(description))
        END AS token_class,
        CASE WHEN charge_category <> 'Usage' OR charge_family = 'commitment' OR category = '' THEN NULL
             WHEN regexp_matches(all_said, 'nat ?gateway') THEN 'network_nat'
             WHEN regexp_matches(all_said, 'regional data ?transfer|inter ?zone|availability zones?.* transfer|-regional-bytes') THEN 'network_cross_zone'
             WHEN regexp_matches(all_said, 'data ?transfer (from|to) |inter[ -]?region|-aws-(in|out)-bytes') THEN 'network_cross_region'
             WHEN regexp_matches(all_said, 'data ?transfer|internet|egress|bandwidth') THEN 'network_internet'
             WHEN category = 'networking' THEN 'network'
             WHEN category = 'storage' OR regexp_matches(all_said, '\bebs:|storage') THEN 'storage'
             WHEN category IN ('compute', 'ai and machine learning') AND charge_family IN ('other', 'model_endpoint') AND regexp_matches(all_said || ' ' || coalesce(details, ''),
                 '\bgpu|\btpu|nvidia|trainium|inferentia|\b(p[2-6][a-z]*|g[4-7][a-z]*|trn[1-3][a-z]*|inf[12]|dl[12]q?)(\.|-[a-z0-9]+\.)[0-9a-z]*(xlarge|metal)|\bstandard_n[cdv]|\b(a2|a3|a4|g2|g4)-(high|mega|ultra|edge|standard)gpu')
                 THEN 'accelerator'
             WHEN category = 'compute' THEN 'compute'
             ELSE 'other' END AS cost_class
    FROM family
)
SELECT way, provider_name, charge_category, charge_family, token_class,
    CASE WHEN token_class IS NOT NULL THEN coalesce(consumed_tokens,
        CASE -- Marketplace counts its models in units of a million, of a thousand in older descriptions
             WHEN provider_name = 'aws' AND lower(ConsumedUnit) IN ('units', 'unit') AND contains(service, 'bedrock')
             THEN CASE WHEN contains(description, 'thousand') THEN 1000 ELSE 1000000 END
             -- Google's price list counts tokens singly
             WHEN provider_name = 'gcp' AND lower(ConsumedUnit) = 'count' THEN 1 END) END AS tokens_per_consumed,
    CASE WHEN token_class IS NOT NULL THEN priced_tokens END AS tokens_per_priced,
    CASE WHEN charge_family = 'model_api' THEN model_slug(coalesce(
        model_id,
        CASE WHEN NOT coalesce(is_own_profile, FALSE) THEN nullif(resource_model, '') END,
        CASE WHEN contains(service, 'bedrock edition') THEN service END,
        nullif(regexp_extract(coalesce(usage, CASE WHEN provider_name = 'aws' THEN meter END), '^(?:[a-z]{2,3}[a-z0-9]{0,2}-)?(.+?)(?:-mantle)?-(?:input|output|cache-read|cache-write|response)-', 1), ''),
        focus_model_before(meter_name), focus_model_before(meter), focus_model_before(lower(SkuId)),
        focus_model_before(description))) END AS model,
    CASE WHEN token_class IS NULL THEN NULL
         WHEN contains(all_said, 'batch') THEN 'batch'
         WHEN regexp_matches(all_said, '\bflex') THEN 'flex'
         WHEN regexp_matches(all_said, '\bpriority|\bpp\b') THEN 'priority'
         WHEN regexp_matches(all_said, 'latency[-_ ]?optimized') THEN 'latency_optimized'
         ELSE 'standard' END AS service_tier,
    CASE WHEN token_class IS NULL THEN NULL
         WHEN regexp_matches(all_said, '(^|[^a-z])(global|glbl|gl)([^a-z]|$)') OR model_scope(resource_model) = 'global' THEN 'global'
         WHEN regexp_matches(all_said, 'data ?zone|(^|[^a-z])(dzone|dz|geo)([^a-z]|$)|regional cris')
             OR model_scope(resource_model) = 'geo' THEN 'geo'
         WHEN provider_name = 'aws' OR regexp_matches(all_said, '\b(regional|regnl|rgnl)\b') THEN 'regional' END AS scope,
    CASE WHEN token_class IS NULL THEN NULL
         WHEN regexp_matches(all_said, 'long[-_ ]?(ctx|context|co\b|input)|> ?200k') THEN 'long' ELSE 'base' END AS context_tier,
    -- how a machine was bought; what is no machine was not
    CASE WHEN coalesce(cost_class, '') NOT IN ('accelerator', 'compute') OR regexp_matches(service, 'lambda|functions|kubernetes')
              OR NOT regexp_full_match(lower(coalesce(ConsumedUnit, PricingUnit, '')), '(hour|hr|minute|min|second|sec|s)s?') THEN NULL
         WHEN contains(coalesce(usage, meter), 'capacityblock') THEN 'capacity_block'
         WHEN lower(CapacityReservationStatus) = 'unused' OR regexp_matches(coalesce(usage, meter), '(^|-)(unused(box|ded)|reservation):') THEN 'unused_reservation'
         WHEN contains(lower(CommitmentDiscountType), 'savings plan') OR lower(CommitmentDiscountCategory) = 'spend'
             THEN 'savings_plan'
         WHEN has_commitment THEN 'reserved'
         WHEN regexp_matches(all_said, '\bspot|preemptible') OR lower(PricingCategory) = 'dynamic' THEN 'spot'
         ELSE 'on_demand' END AS purchase_option,
    cost_class
FROM classed;
