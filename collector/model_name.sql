-- One spelling of a model's name, the same for bills, logs and price books.
-- grain: a scalar macro; inputs: a model name in any provider's spelling; NULL or '' gives NULL
-- invariant: model_slug(model_slug(x)) = model_slug(x). No name is ever mapped to another model's: what differs in
-- more than spelling goes through the model_alias table.
--
--   bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0                        claude-sonnet-4-5
--   arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0            nova-pro
--   gpt-4o-2024-08-06                                                           gpt-4o-2024-08-06
--   Claude Sonnet 4.5 (Amazon Bedrock Edition)                                  claude sonnet 4.5
CREATE OR REPLACE TEMP MACRO model_slug(raw) AS
    nullif(
        regexp_replace(  -- Claude's date and release: claude-sonnet-4-5-20250929, claude-3-haiku@20240307, claude-opus-4-6-v1
            regexp_replace(  -- release of a foundation model: -v1:0, -v1:0:48k; it tells Titan's and old Claude's models apart
                regexp_replace(  -- vendor: anthropic., amazon., ...; deepseek.r1 keeps it, `r1` alone says nothing
                    regexp_replace(  -- inference profile: us., eu., apac., global., ...
                        regexp_replace(  -- route, folder or ARN before the last slash; edition after the name
                            lower(trim(raw)), '^.*/|\s*\(amazon bedrock edition\)$', '', 'g'),
                        '^(us|us-gov|eu|apac|jp|au|ca|in|sa|me|af|il|mx|uk|global|regional)\.', ''),
                    '^(anthropic|amazon|meta|mistral|cohere|ai21|openai|google|qwen|stability|writer|twelvelabs|luma|moonshot|moonshotai|minimax|nvidia|zai)\.', ''),
                '^(titan.*|claude-v[0-9]+|claude-instant-v[0-9]+)(:[0-9]+[a-z0-9:]*)$|^(.*?)(-v[0-9]+)?:[0-9]+[a-z0-9:]*$', '\1\3'),
            '^(claude-.*?[0-9][a-z-]*?)(-v[0-9]+)?([-@]20[0-9]{6})?(-v[0-9]+)?$', '\1'),
        '');

-- The scope a name states: an inference profile's prefix. NULL when the name has none.
CREATE OR REPLACE TEMP MACRO model_scope(raw) AS
    CASE regexp_extract(lower(trim(coalesce(raw, ''))), '(?:^|/)(us|us-gov|eu|apac|jp|au|ca|in|sa|me|af|il|mx|uk|global|regional)\.', 1)
        WHEN '' THEN NULL
        WHEN 'global' THEN 'global'
        WHEN 'regional' THEN 'regional'
        ELSE 'geo'
    END;
