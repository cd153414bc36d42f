"""What the page of reconciliation asks: the identities, the bill against the log, what was restated and refused."""

import pandas as pd

from dashboards.queries import Row, cached, frame, rows
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot


@cached
def identities(snapshot: Snapshot) -> list[Row]:
    """Per billing period, currency and cost basis: the bill, the sums over kinds and over owners, the difference."""
    return rows(
        snapshot.sql(
            """
            WITH posting AS (
                SELECT billing_period, currency, 'effective' AS cost_basis, kind, team, effective_nano AS nano
                FROM cost_day WHERE basis = 'billed'
                UNION ALL
                SELECT billing_period, currency, 'billed', kind, team, billed_nano FROM cost_day WHERE basis = 'billed'
            ),
            kinds AS (
                SELECT billing_period, currency, cost_basis, sum(nano) AS nano FROM (
                    SELECT billing_period, currency, cost_basis, kind, sum(nano) AS nano FROM posting GROUP BY ALL)
                GROUP BY ALL
            ),
            owners AS (
                SELECT billing_period, currency, cost_basis, sum(nano) AS nano,
                    sum(nano) FILTER (team IS NULL) AS ownerless
                FROM (SELECT billing_period, currency, cost_basis, team, sum(nano) AS nano FROM posting GROUP BY ALL)
                GROUP BY ALL
            ),
            sums AS (
                SELECT b.billing_period, b.currency, b.cost_basis, b.status,
                    b.bill_usd AS bill, b.rounding_usd AS rounding,
                    CAST(coalesce(k.nano, 0) AS DECIMAL(28, 0)) * CAST(0.000000001 AS DECIMAL(10, 9)) AS by_kind,
                    CAST(coalesce(o.nano, 0) AS DECIMAL(28, 0)) * CAST(0.000000001 AS DECIMAL(10, 9)) AS by_owner,
                    CAST(coalesce(o.ownerless, 0) AS DECIMAL(28, 0)) * CAST(0.000000001 AS DECIMAL(10, 9)) AS ownerless
                FROM balance AS b
                LEFT JOIN kinds AS k USING (billing_period, currency, cost_basis)
                LEFT JOIN owners AS o USING (billing_period, currency, cost_basis)
            )
            SELECT billing_period, currency, cost_basis, status, bill, by_kind, by_owner, ownerless, rounding,
                CAST(bill - rounding - by_kind AS DECIMAL(38, 18)) AS kind_difference,
                CAST(bill - rounding - by_owner AS DECIMAL(38, 18)) AS owner_difference
            FROM sums ORDER BY billing_period DESC, currency, cost_basis DESC
            """
        )
    )


@cached
def parts(snapshot: Snapshot, billing_period: str, currency: str, by: str) -> pd.DataFrame:
    """The bill of one period by `kind` or `team`, both cost bases."""
    column = {"kind": "kind", "team": "team"}[by]
    return frame(
        snapshot.sql(
            f"""
            SELECT {column} AS name, sum(effective_nano) / 1e9 AS effective, sum(billed_nano) / 1e9 AS billed
            FROM cost_day WHERE basis = 'billed' AND billing_period = ? AND currency = ?
            GROUP BY ALL ORDER BY effective DESC
            """,
            [billing_period, currency],
        )
    )


@cached
def out_of_scope(snapshot: Snapshot, billing_period: str, currency: str) -> pd.DataFrame:
    """The part of the bill that is not inference, by service."""
    return frame(
        snapshot.sql(
            """
            SELECT service_name AS service,
                sum(effective_nano) / 1e9 AS effective, sum(billed_nano) / 1e9 AS billed
            FROM cost_day WHERE kind = 'out_of_scope' AND billing_period = ? AND currency = ?
            GROUP BY ALL ORDER BY effective DESC
            """,
            [billing_period, currency],
        )
    )


@cached
def flows(snapshot: Snapshot, billing_period: str, currency: str) -> pd.DataFrame:
    """The bill of one period by service, line class, kind and team: whole nano-dollars, of either sign."""
    return frame(
        snapshot.sql(
            """
            SELECT coalesce(service_name, 'no service') AS service, line_class, kind, team,
                CAST(sum(effective_nano) AS BIGINT) AS nano
            FROM cost_day WHERE basis = 'billed' AND billing_period = ? AND currency = ?
            GROUP BY ALL HAVING sum(effective_nano) <> 0 ORDER BY ALL
            """,
            [billing_period, currency],
        )
    )


@cached
def matches(snapshot: Snapshot, where: Filters, with_class: bool) -> pd.DataFrame:
    """Bill tokens against logged tokens, by model or by model and token class."""
    keys = "model, token_class" if with_class else "model"
    conditions, parameters = ["day BETWEEN ? AND ?"], [where.first_day, where.last_day]
    for column in ("model", "provider"):
        values = getattr(where, column)
        if values:
            conditions.append(f"({column} IN (SELECT unnest(?::VARCHAR[])) OR ({column} IS NULL AND ?))")
            parameters += [[value for value in values if value is not None], None in values]
    return frame(
        snapshot.sql(
            f"""
            SELECT {keys}, sum(bill_tokens) AS bill_tokens, sum(event_tokens) AS event_tokens,
                sum(unexplained_tokens) AS unexplained_tokens, sum(missing_tokens) AS missing_tokens,
                sum(variance_tokens) AS variance_tokens,
                sum(unexplained_tokens) / nullif(sum(bill_tokens), 0) AS unexplained_share,
                sum(variance_tokens) / nullif(sum(event_tokens), 0) AS variance_share,
                sum(effective_nano) / 1e9 AS effective, sum(unattributed_nano) / 1e9 AS unattributed,
                sum(estimated_nano) / 1e9 AS estimated,
                sum(event_tokens) FILTER (is_settled) / nullif(sum(event_tokens), 0) AS settled_share
            FROM match_day WHERE {" AND ".join(conditions)} GROUP BY ALL ORDER BY effective DESC, {keys}
            """,
            parameters,
        )
    )


@cached
def controls(snapshot: Snapshot) -> pd.DataFrame:
    """Every control with both sides."""
    return frame(
        snapshot.sql(
            "SELECT name, subject, lhs, rhs, difference, ok, explanation FROM control ORDER BY ok, name, subject"
        )
    )


@cached
def restatements(snapshot: Snapshot, currency: str, limit: int = 200) -> list[Row]:
    """Days of a bill that a later delivery changed, but for its last day, which was still filling and grew."""
    return rows(
        snapshot.sql(
            """
            SELECT v.export_name, v.billing_period, v.delivery, v.charge_day, v.service_name,
                CAST(v.billed_change_usd AS DECIMAL(38, 9)) AS billed_change,
                CAST(v.effective_change_usd AS DECIMAL(38, 9)) AS effective_change
            FROM bill_version AS v
            INNER JOIN (
                SELECT export_name, billing_period, delivery + 1 AS delivery, max(charge_day) AS last_day
                FROM bill_version WHERE billed_usd <> 0 OR effective_usd <> 0 GROUP BY ALL
            ) AS b USING (export_name, billing_period, delivery)
            WHERE v.currency = ? AND v.charge_day < b.last_day
                AND (v.billed_change_usd <> 0 OR v.effective_change_usd <> 0)
            ORDER BY abs(v.effective_change_usd) DESC, v.charge_day, v.service_name LIMIT ?
            """,
            [currency, limit],
        )
    )


@cached
def revisions(snapshot: Snapshot, limit: int = 50) -> pd.DataFrame:
    """Figures that had been published and then changed."""
    return frame(
        snapshot.sql(
            """
            SELECT day, team, provider, model, kind, basis, effective_nano_before / 1e9 AS before,
                effective_nano_after / 1e9 AS after,
                (coalesce(effective_nano_after, 0) - coalesce(effective_nano_before, 0)) / 1e9 AS change
            FROM revision WHERE currency = ? ORDER BY abs(change) DESC, day, team, model LIMIT ?
            """,
            [snapshot.currency, limit],
        )
    )


@cached
def sources(snapshot: Snapshot) -> pd.DataFrame:
    """What each source gave, and how far it reaches."""
    return frame(
        snapshot.sql(
            "SELECT source, kind, batches, first_at, last_at, loaded_at, rows_read, rows_loaded, rows_rejected, "
            "rows_filtered FROM source_state ORDER BY kind, source"
        )
    )


@cached
def watermarks(snapshot: Snapshot) -> list[Row]:
    """How far the bill reaches, by account: the end of the last hour with billed tokens."""
    return rows(
        snapshot.sql(
            """
            SELECT provider, account_id, max(hour) + INTERVAL 1 HOUR AS billed_until FROM cost_hour
            WHERE basis = 'billed' AND token_class IS NOT NULL AND line_class = 'model_api'
                AND kind IN ('usage', 'unattributed')
            GROUP BY ALL ORDER BY billed_until, account_id
            """
        )
    )


@cached
def rejected(snapshot: Snapshot) -> pd.DataFrame:
    """Rows that were refused, by reason, with an example."""
    return frame(
        snapshot.sql(
            "SELECT source, reason, rows, detail, example_location, example_line FROM rejected "
            "ORDER BY rows DESC, source, reason"
        )
    )
