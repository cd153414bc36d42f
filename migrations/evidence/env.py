"""Alembic's environment for the evidence warehouse (DuckDB).

DuckDB lets one process write: NullPool and `dispose` give the file back when the run ends. Revisions are plain SQL
through `op.execute`, or `op.get_bind().exec_driver_sql` where the SQL holds a colon.
"""

import os

from alembic import context
from alembic.ddl.impl import DefaultImpl
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool


class AlembicDuckDBImpl(DefaultImpl):
    """Alembic ships nothing for DuckDB; its DDL takes part in transactions."""

    __dialect__ = "duckdb"
    transactional_ddl = True


def run() -> None:
    if context.is_offline_mode():
        raise SystemExit("offline SQL is not provided: the revisions run on DuckDB, from Python")
    url = (
        context.config.attributes.get("url")
        or os.environ.get("INFERLEDGER_EVIDENCE_URL")
        or context.config.get_main_option("sqlalchemy.url")
    )
    engine = create_engine(url, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("SET TimeZone = 'UTC'")
            connection.exec_driver_sql("SET python_enable_replacements = false")
            connection.commit()
            context.configure(connection=connection)
            with context.begin_transaction():
                context.run_migrations()
    finally:
        engine.dispose()


run()
