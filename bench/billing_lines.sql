-- A month of a large account's bill as CUR 2.0 lines, each drawn from its number, so that any range can be written alone.
-- inputs: session variables first_line, last_line (the latter not included), month_start, hours
-- Shares, cardinalities and widths are meant to be like a real bill's: unique line ids, tens of thousands of resources,
-- product maps of a dozen keys, lines in no order of time. Costs are doubles, as AWS's are.

-- :shapes
-- grain: one kind of line; weight: its share in a thousand
CREATE OR REPLACE TEMP TABLE shape AS
SELECT row_number() OVER () - 1 AS place, kind.* EXCLUDE (weight)
FROM (VALUES
    (150, 'Usage', 'AWS', 'AmazonEC2', 'Amazon Elastic Compute Cloud', 'BoxUsage:m6i.xlarge', 'RunInstances', 'Hrs', 'Compute Instance', 'm6i.xlarge', 0.192, 1, 'instance'),
    (60, 'Usage', 'AWS', 'AmazonEC2', 'Amazon Elastic Compute Cloud', 'BoxUsage:g5.12xlarge', 'RunInstances', 'Hrs', 'Compute Instance', 'g5.12xlarge', 5.672, 1, 'instance'),
    (25, 'Usage', 'AWS', 'AmazonEC2', 'Amazon Elastic Compute Cloud', 'SpotUsage:p5.48xlarge', 'RunInstances:SV001', 'Hrs', 'Compute Instance', 'p5.48xlarge', 32.1187, 1, 'instance'),
    (80, 'SavingsPlanCoveredUsage', 'AWS', 'AmazonEC2', 'Amazon Elastic Compute Cloud', 'BoxUsage:p4d.24xlarge', 'RunInstances', 'Hrs', 'Compute Instance', 'p4d.24xlarge', 32.7726, 1, 'instance'),
    (30, 'DiscountedUsage', 'AWS', 'AmazonEC2', 'Amazon Elastic Compute Cloud', 'BoxUsage:c5.2xlarge', 'RunInstances', 'Hrs', 'Compute Instance', 'c5.2xlarge', 0.34, 1, 'instance'),
    (10, 'SavingsPlanNegation', 'AWS', 'AmazonEC2', 'Amazon Elastic Compute Cloud', 'BoxUsage:p4d.24xlarge', 'RunInstances', 'Hrs', 'Compute Instance', 'p4d.24xlarge', -32.7726, 1, 'none'),
    (2, 'SavingsPlanRecurringFee', 'AWS', 'ComputeSavingsPlans', 'Savings Plans for AWS Compute usage', 'ComputeSP:1yrNoUpfront', 'None', 'Hrs', '', '', 20.0, 1, 'plan'),
    (120, 'Usage', 'AWS', 'AmazonEC2', 'Amazon Elastic Compute Cloud', 'EBS:VolumeUsage.gp3', 'CreateVolume-Gp3', 'GB-Mo', 'Storage', '', 0.08, 0.7, 'volume'),
    (60, 'Usage', 'AWS', 'AmazonEC2', 'AWS Data Transfer', 'DataTransfer-Regional-Bytes', 'InterZone-Out', 'GB', 'Data Transfer', '', 0.01, 0.003, 'instance'),
    (20, 'Usage', 'AWS', 'AmazonEC2', 'AWS Data Transfer', 'NatGateway-Bytes', 'NatGateway', 'GB', 'NAT Gateway', '', 0.045, 0.2, 'instance'),
    (140, 'Usage', 'AWS', 'AmazonS3', 'Amazon Simple Storage Service', 'Requests-Tier1', 'PutObject', 'Requests', 'API Request', '', 0.000005, 40, 'bucket'),
    (60, 'Usage', 'AWS', 'AWSLambda', 'AWS Lambda', 'Lambda-GB-Second', 'Invoke', 'seconds', 'Serverless', '', 0.0000166667, 12.5, 'function'),
    (40, 'Usage', 'AWS', 'AmazonCloudWatch', 'AmazonCloudWatch', 'CW:MetricMonitorUsage', 'MetricStorage', 'Metrics', 'Metric', '', 0.3, 0.0013440861, 'none'),
    (45, 'Usage', 'AWS', 'AmazonBedrock', 'Amazon Bedrock', 'Nova2.0Lite-input-tokens', 'InvokeModelInference', '1K tokens', '', '', 0.00006, 9000, 'profile'),
    (45, 'Usage', 'AWS', 'AmazonBedrock', 'Amazon Bedrock', 'Nova2.0Lite-output-tokens', 'InvokeModelInference', '1K tokens', '', '', 0.00024, 800, 'profile'),
    (25, 'Usage', 'AWS', 'AmazonBedrockService', 'Amazon Bedrock Service', 'Claude4.6Sonnet-input-tokens-cross-region-global', 'InvokeModelStreamingInference', '1M tokens', '', '', 3.0, 2.5, 'profile'),
    (25, 'Usage', 'AWS', 'AmazonBedrockService', 'Amazon Bedrock Service', 'Claude4.6Sonnet-cache-read-input-token-count', 'InvokeModelStreamingInference', '1M tokens', '', '', 0.3, 7.5, 'profile'),
    (20, 'Usage', 'AWS Marketplace', '4a524th30q694o538qndh9ucht', 'Claude 3.5 Sonnet (Amazon Bedrock Edition)', 'MP:USE1_OutputTokenCount-Units', 'Usage', 'Units', '', '', 15.0, 0.4, 'profile'),
    (40, 'Usage', 'AWS', 'AmazonEKS', 'Amazon Elastic Container Service for Kubernetes', 'EKS-EC2-GB-Hours', 'EKSPod-EC2', 'GB-Hours', 'Compute', '', 0.0, 4, 'pod'),
    (1, 'Tax', 'AWS', 'AmazonEC2', 'Amazon Elastic Compute Cloud', '', '', '', '', '', 1219.66, 1, 'none'),
    (1, 'Credit', 'AWS', 'AmazonBedrock', 'Amazon Bedrock', '', '', '', '', '', -250.0, 1, 'none'),
    (1, 'Fee', 'AWS', 'AWSSupportEnterprise', 'AWS Support (Enterprise)', 'Dollar', '', 'Dollar', '', '', 15000.0, 1, 'none')
) AS kind(weight, item_type, entity, product_code, product_name, usage_type, operation, unit, family, instance_type, rate,
          usual, resource),
    range(weight) AS repeated(number);

-- :lines
WITH numbered AS (
    SELECT n, hash(n) AS a, hash(n, 1) AS b, hash(n, 2) AS c
    FROM range(getvariable('first_line'), getvariable('last_line')) AS r(n)
),
drawn AS (
    SELECT n, a, b, c, shape.*,
        getvariable('month_start') + CAST(b % getvariable('hours') AS INTEGER) * INTERVAL 1 HOUR AS hour,
        ['us-east-1', 'us-west-2', 'eu-west-1', 'ap-northeast-1'][CAST(1 + (a >> 20) % 4 AS INTEGER)] AS region,
        ['', 'USW2-', 'EU-', 'APN1-'][CAST(1 + (a >> 20) % 4 AS INTEGER)] AS prefix,
        CAST(111122220000 + (a >> 24) % 40 AS VARCHAR) AS account, (a >> 32) % 30 AS team, (c >> 8) % 20000 AS thing,
        usual * (1 + CAST((c >> 24) % 1000 AS INTEGER) / 1000.0) AS amount
    FROM numbered
    JOIN shape ON shape.place = a % 1000
),
costed AS (
    SELECT *, amount * rate AS cost, item_type IN ('Usage', 'DiscountedUsage', 'SavingsPlanCoveredUsage') AS is_usage
    FROM drawn
)
SELECT
    md5(CAST(n AS VARCHAR)) || substr(md5(CAST(b AS VARCHAR)), 1, 20) AS identity_line_item_id,
    strftime(hour, '%Y-%m-%dT%H:%M:%SZ') || '/' || strftime(hour + INTERVAL 1 HOUR, '%Y-%m-%dT%H:%M:%SZ') AS identity_time_interval,
    'Anniversary' AS bill_bill_type, entity AS bill_billing_entity,
    getvariable('month_start') AS bill_billing_period_start_date,
    getvariable('month_start') + INTERVAL 1 MONTH AS bill_billing_period_end_date,
    'Amazon Web Services, Inc.' AS bill_invoicing_entity, '999988887777' AS bill_payer_account_id,
    'Example Payer' AS bill_payer_account_name,
    CASE WHEN family = 'Compute Instance' THEN region || ['a', 'b', 'c'][CAST(1 + c % 3 AS INTEGER)] END AS line_item_availability_zone,
    cost AS line_item_blended_cost, CAST(rate AS VARCHAR) AS line_item_blended_rate, 'USD' AS line_item_currency_code,
    CASE WHEN resource = 'profile'
         THEN 'arn:aws:sts::' || account || ':assumed-role/app-' || CAST(team AS VARCHAR) || '/session-' || CAST(c % 50 AS VARCHAR) END
        AS line_item_iam_principal,
    'Amazon Web Services, Inc.' AS line_item_legal_entity,
    CASE WHEN entity = 'AWS Marketplace' THEN 'AWS Marketplace software usage|' || region || '|Million Response Tokens'
         ELSE '$' || CAST(rate AS VARCHAR) || ' per ' || unit || ' for ' || usage_type || ' in ' || region END AS line_item_line_item_description,
    item_type AS line_item_line_item_type,
    CASE WHEN is_usage THEN 1.0 ELSE 0.0 END AS line_item_normalization_factor,
    CASE WHEN is_usage THEN amount ELSE 0.0 END AS line_item_normalized_usage_amount,
    operation AS line_item_operation, product_code AS line_item_product_code,
    CASE resource
        WHEN 'instance' THEN 'i-' || substr(md5(CAST(thing AS VARCHAR)), 1, 17)
        WHEN 'volume' THEN 'vol-' || substr(md5(CAST(thing AS VARCHAR)), 1, 17)
        WHEN 'bucket' THEN 'data-' || CAST(thing % 300 AS VARCHAR)
        WHEN 'function' THEN 'arn:aws:lambda:' || region || ':' || account || ':function:task-' || CAST(thing % 500 AS VARCHAR)
        WHEN 'profile' THEN 'arn:aws:bedrock:' || region || ':' || account || ':application-inference-profile/p' || CAST(team AS VARCHAR)
        WHEN 'pod' THEN 'arn:aws:eks:' || region || ':' || account || ':pod/serving/llm/' || CAST(thing AS VARCHAR)
        WHEN 'plan' THEN 'arn:aws:savingsplans::' || account || ':savingsplan/5d1f5c4e-' || CAST(team AS VARCHAR)
    END AS line_item_resource_id,
    CASE WHEN item_type = 'DiscountedUsage' THEN 0.0 ELSE cost END AS line_item_unblended_cost,
    CAST(rate AS VARCHAR) AS line_item_unblended_rate, account AS line_item_usage_account_id,
    'team ' || CAST(team AS VARCHAR) AS line_item_usage_account_name, amount AS line_item_usage_amount,
    hour AS line_item_usage_start_date, hour + INTERVAL 1 HOUR AS line_item_usage_end_date,
    prefix || usage_type AS line_item_usage_type, 'USD' AS pricing_currency,
    CASE WHEN is_usage AND entity = 'AWS' THEN abs(amount * rate) ELSE 0.0 END AS pricing_public_on_demand_cost,
    CAST(rate AS VARCHAR) AS pricing_public_on_demand_rate,
    upper(substr(md5(usage_type), 1, 16)) || '.JRTCKXETXF.6YS6EN2CT7' AS pricing_rate_code,
    CAST(10000000 + hash(usage_type, region) % 1000000 AS VARCHAR) AS pricing_rate_id,
    CASE WHEN item_type = 'DiscountedUsage' THEN 'Reserved' ELSE 'OnDemand' END AS pricing_term, unit AS pricing_unit,
    CASE WHEN family = 'Compute Instance'
         THEN MAP(['product_name', 'region', 'instance_type_family', 'operating_system', 'tenancy', 'physical_processor',
                   'vcpu', 'memory', 'current_generation', 'license_model', 'network_performance', 'storage'],
                  [product_name, region, split_part(instance_type, '.', 1), 'Linux', 'Shared', 'Intel Xeon Scalable', '48',
                   '192 GiB', 'Yes', 'No License required', 'Up to 12500 Megabit', 'EBS only'])
         ELSE MAP(['product_name', 'region', 'group', 'group_description'], [product_name, region, operation, family]) END AS product,
    family AS product_product_family, instance_type AS product_instance_type, region AS product_region_code,
    region AS product_location, 'AWS Region' AS product_location_type, operation AS product_operation,
    product_code AS product_servicecode, upper(substr(md5(usage_type), 1, 16)) AS product_sku,
    prefix || usage_type AS product_usagetype, unit AS product_pricing_unit,
    CASE WHEN item_type = 'DiscountedUsage' THEN amount * rate * 0.62 ELSE 0.0 END AS reservation_effective_cost,
    CASE WHEN item_type = 'DiscountedUsage'
         THEN 'arn:aws:ec2:' || region || ':' || account || ':reserved-instances/3c1f-' || CAST(team AS VARCHAR) END AS reservation_reservation_a_r_n,
    CASE WHEN item_type = 'SavingsPlanCoveredUsage' THEN amount * rate * 0.72 ELSE 0.0 END AS savings_plan_savings_plan_effective_cost,
    CASE WHEN item_type LIKE 'SavingsPlan%'
         THEN 'arn:aws:savingsplans::' || account || ':savingsplan/5d1f5c4e-' || CAST(team AS VARCHAR) END AS savings_plan_savings_plan_a_r_n,
    CASE WHEN item_type = 'SavingsPlanRecurringFee' THEN cost ELSE 0.0 END AS savings_plan_total_commitment_to_date,
    CASE WHEN item_type = 'SavingsPlanRecurringFee' THEN cost * 0.83 ELSE 0.0 END AS savings_plan_used_commitment,
    CASE WHEN resource IN ('instance', 'volume', 'function', 'pod', 'profile')
         THEN MAP(['user_team', 'user_environment', 'user_app', 'user_cost_center', 'aws_created_by'],
                  ['team-' || CAST(team AS VARCHAR), ['production', 'staging', 'development'][CAST(1 + c % 3 AS INTEGER)],
                   'app-' || CAST(thing % 60 AS VARCHAR), 'cc-' || CAST(4000 + team AS VARCHAR),
                   'AssumedRole:deployer:' || CAST(team AS VARCHAR)])
         ELSE MAP {} END AS resource_tags,
    MAP(['unit'], ['unit-' || CAST(team % 6 AS VARCHAR)]) AS cost_category,
    CASE WHEN resource = 'pod' THEN 'i-' || substr(md5(CAST(thing % 900 AS VARCHAR)), 1, 17) END AS split_line_item_parent_resource_id,
    CASE WHEN resource = 'pod' THEN amount * 0.0056 END AS split_line_item_split_cost
FROM costed;
