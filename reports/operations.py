"""The table that says which report told which period, and with which snapshot."""

from sqlalchemy import Column, MetaData, String, Table, UniqueConstraint

from warehouse.operations import UtcDateTime

metadata = MetaData()

report_run = Table(
    "report_run",
    metadata,
    Column("id", String, primary_key=True),
    Column("report", String, nullable=False),
    Column("period_start", UtcDateTime, nullable=False),
    Column("period_end", UtcDateTime, nullable=False),
    Column("manifest", String, nullable=False),
    Column("message_key", String, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("report", "period_start", "period_end", name="report_run_period"),
)
