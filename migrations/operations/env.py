"""Alembic's environment for the operations database: one transaction on SQLite and on PostgreSQL alike."""

import os

from alembic import context

from warehouse import operations

MIGRATION_LOCK = 0x1F1ED6E5  # PostgreSQL advisory lock: two processes that upgrade at once take turns


def run() -> None:
    if context.is_offline_mode():
        raise SystemExit("offline SQL is not provided: the revisions run on SQLite and on PostgreSQL, from Python")
    url = (
        context.config.attributes.get("url")
        or os.environ.get("INFERLEDGER_OPERATIONS_URL")
        or context.config.get_main_option("sqlalchemy.url")
    )
    engine = operations.connect(url)
    try:
        with engine.connect().execution_options(sqlite_begin="BEGIN IMMEDIATE") as connection, connection.begin():
            if engine.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
            context.configure(connection=connection, transactional_ddl=True)
            with context.begin_transaction():
                context.run_migrations()
    finally:
        engine.dispose()


run()
