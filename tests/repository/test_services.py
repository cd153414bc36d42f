"""The servers that tests/conftest.py lends out work, and no test sees what another one left."""

import boto3
import pytest
import sqlalchemy


@pytest.mark.s3
@pytest.mark.parametrize("turn", [1, 2])
def test_s3_is_empty_for_each_test(s3, turn):
    client = boto3.client("s3", endpoint_url=s3)
    assert client.list_buckets()["Buckets"] == []
    client.create_bucket(Bucket="evidence")


@pytest.mark.postgres
@pytest.mark.parametrize("turn", [1, 2])
def test_a_database_is_empty_for_each_test(postgres_database, turn):
    engine = sqlalchemy.create_engine(postgres_database)
    with engine.begin() as connection:
        assert sqlalchemy.inspect(connection).get_table_names() == []
        connection.execute(sqlalchemy.text("CREATE TABLE outbox (id BIGINT)"))
    engine.dispose()
