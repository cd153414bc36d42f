"""What a Capacity Block's payment becomes: the cost of the block's hours; see capacity_block.sql."""

import duckdb

from collector.queries import queries

TABLES = ("billing_line", "cross_check_line")


def spread(connection: duckdb.DuckDBPyConnection, export_name: str) -> None:
    """Settle the effective cost of every line of a block that an export paid or used, in all its billing periods.

    A function of the lines that stand, so that months may come in any order and any number of times. Hours of other
    months whose cost changes are touched. Session variables: those of bill.sql.
    """
    sql = queries("billing/capacity_block.sql")
    connection.execute("SET VARIABLE export_name = ?", [export_name])
    for table in TABLES:
        connection.execute(sql["blocks"].replace("{{table}}", table))
        if connection.execute("SELECT count(*) FROM capacity_block").fetchone() == (0,):
            continue
        connection.execute(sql["macros"])
        connection.execute(sql["costs"].replace("{{table}}", table))
        if table == "billing_line":
            connection.execute(sql["touch"])
        connection.execute(sql["settle"].replace("{{table}}", table))
        connection.execute("DROP TABLE block_cost")
    connection.execute("DROP TABLE capacity_block")
