-- The few expressions that every step shares. Written once; inlined for engines other than DuckDB (render.py).

-- Nano-dollars of a DECIMAL(38,18) amount. The inner cast keeps 12 digits after the multiplication on every
-- engine (Spark would keep 7 of decimal(38,18) x decimal(10,0)), so the one rounding is the only one.
CREATE OR REPLACE TEMP MACRO nano(amount) AS
    CAST(round(CAST(amount AS DECIMAL(34, 18)) * CAST(1000000000 AS DECIMAL(10, 0))) AS BIGINT);

-- The allocation rule, part one: the amount's edge after `upto` of `total` weights.
CREATE OR REPLACE TEMP MACRO edge(amount, upto, total) AS
    CASE WHEN upto = total THEN amount
         ELSE CAST(floor(CAST(amount AS DOUBLE) * upto / nullif(total, 0)) AS BIGINT) END;

-- Part two: one share. `upto` is the running sum of weights in a TOTAL order, this row's weight included.
-- Shares telescope: they add up to the amount exactly and none has the wrong sign.
CREATE OR REPLACE TEMP MACRO share(amount, upto, weight, total) AS
    edge(amount, upto, total) - edge(amount, upto - weight, total);

-- Pico-dollars per token from an amount per million tokens, nine digits behind the point: prices such as $1/12 a million
-- are no whole number of picos.
CREATE OR REPLACE TEMP MACRO pico(per_mtok) AS
    CAST(CAST(per_mtok AS DECIMAL(30, 18)) * CAST(1000000 AS DECIMAL(7, 0)) AS DECIMAL(24, 9));

-- What so many tokens or units cost, in whole picos: rounded once. Whole picos and the rest apart, so that both products
-- have room for counts beyond what a double holds.
CREATE OR REPLACE TEMP MACRO pico_of(units, pico_per_unit) AS
    CAST(units AS BIGINT) * CAST(floor(pico_per_unit) AS BIGINT)
    + CAST(round(CAST(units AS DECIMAL(19, 0)) * CAST(pico_per_unit - floor(pico_per_unit) AS DECIMAL(9, 9))) AS BIGINT);

-- The reporting day of a UTC instant.
CREATE OR REPLACE TEMP MACRO local_day(instant, zone) AS
    CAST((CAST(instant AS TIMESTAMP) AT TIME ZONE 'UTC') AT TIME ZONE zone AS DATE);

-- One part of a text key: no two lists of parts make the same key, and an absent part is not a part called '-'.
CREATE OR REPLACE TEMP MACRO key_part(part) AS
    coalesce('=' || replace(part, '|', '||'), '-');
