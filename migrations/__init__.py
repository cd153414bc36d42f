"""Alembic: the evidence warehouse (DuckDB) and the operations database (SQLite or PostgreSQL)."""
