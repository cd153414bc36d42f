"""What must hold after each run: amount in = amount out, step by step. Exact; there is no tolerance.

Hour controls yield (hour, lhs, rhs), period controls (billing_period, currency, lhs, rhs). A row whose sides
differ stops publication; the last good snapshot stays.
"""


def _pair(left: str, right: str, key: str) -> str:
    return f"""
        SELECT {key}, CAST(sum(lhs) AS DECIMAL(38, 0)) AS lhs, CAST(sum(rhs) AS DECIMAL(38, 0)) AS rhs
        FROM (SELECT {key}, lhs, 0 AS rhs FROM ({left}) UNION ALL SELECT {key}, 0 AS lhs, rhs FROM ({right}))
        GROUP BY {key}"""


def _money(column: str) -> dict[str, str]:
    return {
        f"token lines = postings ({column})": _pair(
            f"SELECT charge_hour AS hour, sum({column}_nano) AS lhs FROM bill_line "
            "WHERE line_route = 'token' GROUP BY ALL",
            f"SELECT charge_hour AS hour, sum({column}_nano) AS rhs FROM api_posting "
            "WHERE basis = 'billed' GROUP BY ALL",
            "hour",
        ),
        f"lines of the own fleet = postings ({column})": _pair(
            f"SELECT charge_hour AS hour, sum({column}_nano) AS lhs FROM bill_line "
            "WHERE line_route IN ('node', 'cluster') GROUP BY ALL",
            f"SELECT hour, sum({column}_nano) AS rhs FROM fleet_posting WHERE basis = 'billed' GROUP BY ALL",
            "hour",
        ),
        f"postings and hourly lines = ledger ({column})": _pair(
            f"""SELECT hour, sum(amount) AS lhs FROM (
                    SELECT hour, {column}_nano AS amount FROM api_posting WHERE basis = 'billed'
                    UNION ALL SELECT hour, {column}_nano FROM fleet_posting WHERE basis = 'billed'
                    UNION ALL SELECT charge_hour, {column}_nano FROM bill_line WHERE line_route = 'hour')
                GROUP BY ALL""",
            f"SELECT hour, sum({column}_nano) AS rhs FROM new_ledger_hour WHERE basis = 'billed' GROUP BY ALL",
            "hour",
        ),
        f"ledger usage = by task ({column})": _pair(
            f"SELECT hour, sum({column}_nano) AS lhs FROM new_ledger_hour WHERE kind = 'usage' GROUP BY ALL",
            f"SELECT hour, sum({column}_nano) AS rhs FROM new_task_hour GROUP BY ALL",
            "hour",
        ),
        f"ledger usage = by user ({column})": _pair(
            f"SELECT hour, sum({column}_nano) AS lhs FROM new_ledger_hour WHERE kind = 'usage' GROUP BY ALL",
            f"SELECT hour, sum({column}_nano) AS rhs FROM new_user_hour GROUP BY ALL",
            "hour",
        ),
    }


HOUR_CONTROLS: dict[str, str] = {
    **_money("effective"),
    **_money("billed"),
    "events = requests": _pair(
        "SELECT hour, count(*) AS lhs FROM work_event GROUP BY ALL",
        "SELECT hour, sum(requests) AS rhs FROM new_usage_hour GROUP BY ALL",
        "hour",
    ),
    "event tokens = cells": _pair(
        """SELECT hour, sum(coalesce(uncached_input_tokens, 0) + coalesce(cache_read_tokens, 0)
               + coalesce(cache_write_5m_tokens, 0) + coalesce(cache_write_1h_tokens, 0)
               + coalesce(output_tokens, 0)) AS lhs FROM work_event WHERE is_fleet = 0 GROUP BY ALL""",
        "SELECT hour, sum(tokens) AS rhs FROM event_cell GROUP BY ALL",
        "hour",
    ),
    "bill + missing + variance = logged + unexplained": _pair(
        "SELECT charge_hour AS hour, sum(bill_tokens + missing_tokens + variance_tokens) AS lhs FROM bucket_match "
        "GROUP BY ALL",
        "SELECT charge_hour AS hour, sum(event_tokens + unexplained_tokens) AS rhs FROM bucket_match GROUP BY ALL",
        "hour",
    ),
    "tokens of calls = posted tokens of the own fleet": _pair(
        "SELECT hour, sum(event_tokens) AS lhs FROM fleet_match GROUP BY ALL",
        "SELECT hour, sum(tokens) AS rhs FROM fleet_posting WHERE claim_set_id IS NOT NULL GROUP BY ALL",
        "hour",
    ),
    "held = GPUs x minutes": _pair(
        "SELECT hour, sum(gpus * 60000) AS lhs FROM pod_minute GROUP BY ALL",
        """SELECT hour, sum(busy_gpu_ms + no_traffic_gpu_ms + starting_gpu_ms + stopping_gpu_ms + unmeasured_gpu_ms)
               AS rhs FROM work_window GROUP BY ALL""",
        "hour",
    ),
    "low = middle = high": _pair(
        "SELECT hour, sum(2 * effective_nano) AS lhs FROM new_ratio_hour GROUP BY ALL",
        "SELECT hour, sum(at_low_nano + at_high_nano) AS rhs FROM new_ratio_hour GROUP BY ALL",
        "hour",
    ),
    "billed and missing tokens = posted tokens": _pair(
        "SELECT charge_hour AS hour, sum(bill_tokens + missing_tokens) AS lhs FROM bucket_match GROUP BY ALL",
        "SELECT charge_hour AS hour, sum(tokens) AS rhs FROM api_posting GROUP BY ALL",
        "hour",
    ),
}

PERIOD_CONTROLS: dict[str, str] = {
    f"bill = ledger ({column})": _pair(
        f"""SELECT l.billing_period, l.billing_currency AS currency, sum(nano(l.{column}_cost)) AS lhs
            FROM billing_line AS l SEMI JOIN work_period AS p ON p.billing_period = l.billing_period GROUP BY ALL""",
        f"""SELECT billing_period, currency, sum(amount) AS rhs FROM (
                SELECT l.billing_period, l.currency, l.{column}_nano AS amount FROM ledger_hour AS l
                SEMI JOIN work_period AS p ON p.billing_period = l.billing_period WHERE l.basis = 'billed'
                UNION ALL SELECT o.billing_period, o.currency, o.{column}_nano FROM new_ledger_overlay AS o)
            GROUP BY ALL""",
        "billing_period, currency",
    )
    for column in ("effective", "billed")
}
