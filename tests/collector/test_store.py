"""Local folders and S3: listing, fetching, and errors that say what to do. S3 is moto's server, over HTTP."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest

from collector.source import CollectError
from collector.store import LocalStore, S3Store
from tests.collector.conftest import House
from tests.collector.writing import Export, bedrock, lines, payload

pytestmark = pytest.mark.s3


def bucket(endpoint: str, name: str = "logs") -> Any:
    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket=name)
    return client


def upload(client: Any, folder: Path, prefix: str = "", name: str = "logs") -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            client.put_object(Bucket=name, Key=f"{prefix}{path.relative_to(folder)}", Body=path.read_bytes())


def store(endpoint: str, prefix: str = "", name: str = "logs") -> S3Store:
    return S3Store(name, prefix, "us-east-1", None, endpoint)


def gateway(endpoint: str, location: str = "s3://logs/litellm") -> dict[str, Any]:
    return {"name": "gateway", "kind": "litellm", "location": location, "endpoint_url": endpoint}


def test_a_bucket_gives_what_a_folder_gives(s3: str, tmp_path: Path, build: Any) -> None:
    folder = tmp_path / "log"
    lines(folder / "2026-11-02" / "a.jsonl.gz", [payload(1), payload(2)])
    lines(folder / "2026-11-02" / "b.jsonl", [payload(3), "{broken"])
    for n in range(4, 30):
        lines(folder / "2026-11-03" / f"{n}.json", [payload(n)])
    upload(bucket(s3), folder, "litellm/")
    local, remote = build(), build()
    local.collect({"name": "gateway", "kind": "litellm", "location": str(folder)})
    report = remote.collect(gateway(s3))
    assert report.ok, report.findings
    assert remote.evidence() == local.evidence()
    assert remote.row("SELECT count(*) FROM usage_record") == (29,)


def test_a_bill_in_a_bucket(s3: str, tmp_path: Path, house: House) -> None:
    export = Export(tmp_path / "cur2")
    export.deliver([bedrock(1.0), bedrock(2.0, 3)], files=2)
    upload(bucket(s3, "billing"), export.root, "exports/cur2/", "billing")
    source = {"name": "bill", "kind": "bill", "location": "s3://billing/exports/cur2", "endpoint_url": s3}
    assert house.collect(source).ok
    assert house.row("SELECT count(*), sum(billed_cost) FROM billing_line") == (2, 3)
    assert house.collect(source).loaded == ()


def test_only_new_and_changed_objects_are_read_again(s3: str, house: House) -> None:
    client = bucket(s3)
    for n in (1, 2):
        client.put_object(Bucket="logs", Key=f"litellm/d/{n}.json", Body=_json(n))
    house.collect(gateway(s3))
    client.put_object(Bucket="logs", Key="litellm/d/3.json", Body=_json(3))
    client.put_object(Bucket="logs", Key="litellm/d/1.json", Body=_json(4))
    report = house.collect(gateway(s3))
    assert report.total("rows_read") == 2
    assert house.row("SELECT count(*) FROM usage_record") == (4,)


def _json(number: int) -> bytes:
    import json

    return json.dumps(payload(number)).encode()


def test_a_listing_goes_on_past_a_thousand_objects(s3: str) -> None:
    client = bucket(s3)
    for n in range(1005):
        client.put_object(Bucket="logs", Key=f"p/{n:04d}", Body=b"x")
    client.put_object(Bucket="logs", Key="other/1", Body=b"x")
    found = store(s3, "p").list()
    assert len(found) == 1005
    assert found[0].key == "0000"


def test_an_object_that_changes_between_listing_and_reading_is_not_read(s3: str, tmp_path: Path) -> None:
    client = bucket(s3)
    client.put_object(Bucket="logs", Key="a.json", Body=b"one")
    found = store(s3).list()
    client.put_object(Bucket="logs", Key="a.json", Body=b"two")
    for read in (lambda: store(s3).read(found[0]), lambda: store(s3).fetch(found, tmp_path)):
        with pytest.raises(CollectError, match="changed while it was being read"):
            read()


def test_an_object_that_is_deleted_meanwhile(s3: str, tmp_path: Path) -> None:
    client = bucket(s3)
    client.put_object(Bucket="logs", Key="a.json", Body=b"one")
    found = store(s3).list()
    client.delete_object(Bucket="logs", Key="a.json")
    with pytest.raises(CollectError, match="is not there any more"):
        store(s3).fetch(found, tmp_path)


def test_a_bucket_that_does_not_exist(s3: str, house: House) -> None:
    report = house.collect(gateway(s3, "s3://nothere/x"))
    assert report.findings[0].what == "there is no bucket `nothere`"
    assert "location" in report.findings[0].remedy


def test_no_credentials(s3: str, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    report = house.collect(gateway(s3))
    assert report.findings[0].what == "no AWS credentials were found"
    assert "aws sso login" in report.findings[0].remedy


def test_a_profile_that_does_not_exist(s3: str, house: House) -> None:
    report = house.collect({**gateway(s3), "profile": "nobody"})
    assert report.findings[0].what == "the AWS profile `nobody` does not exist"


def test_a_store_that_cannot_be_reached(s3: str, house: House, free_port: int, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(1)])
    local = {"name": "other", "kind": "litellm", "location": str(tmp_path / "log")}
    report = house.collect(gateway(f"http://127.0.0.1:{free_port}"), local)
    assert "cannot be reached" in report.findings[0].what
    assert "endpoint_url" in report.findings[0].remedy
    assert house.row("SELECT count(*) FROM usage_record") == (1,), "the other source went on"


@pytest.fixture
def refusing() -> Iterator[Any]:
    """A server that answers every request with one S3 error, as AWS words it."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            code, status = self.server.refusal  # type: ignore[attr-defined]
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = _answer

        def log_message(self, format: str, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("code", "status", "what", "remedy"),
    [
        ("ExpiredToken", 400, "the AWS credentials have expired", "aws sso login"),
        ("RequestExpired", 403, "the AWS credentials have expired", "Renew them"),
        ("AccessDenied", 403, "access is denied", "s3:ListBucket on logs"),
        ("InvalidAccessKeyId", 403, "the AWS credentials are not valid for this store", "get-caller-identity"),
        ("SignatureDoesNotMatch", 403, "the AWS credentials are not valid for this store", "AWS_SECRET_ACCESS_KEY"),
        ("RequestTimeTooSkewed", 403, "this machine's clock is wrong by more than 15 minutes", "NTP"),
        ("PermanentRedirect", 301, "the bucket is in another region", "`region`"),
        ("SomethingNew", 409, "the store answers SomethingNew", "aws s3 ls"),
    ],
)
def test_what_aws_refuses_is_said_with_its_remedy_and_nothing_loaded_is_lost(
    s3: str, house: House, refusing: Any, code: str, status: int, what: str, remedy: str
) -> None:
    client = bucket(s3)
    client.put_object(Bucket="logs", Key="litellm/a.json", Body=_json(1))
    house.collect(gateway(s3))
    before = house.evidence()

    refusing.refusal = (code, status)
    report = house.collect(gateway(f"http://127.0.0.1:{refusing.server_port}"))
    assert report.findings[0].what == what
    assert remedy in report.findings[0].remedy
    assert house.evidence() == before


def test_a_local_file_that_changes_between_listing_and_reading_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("one")
    local = LocalStore(tmp_path)
    found = local.list()
    path.write_text("other")
    with pytest.raises(CollectError, match="changed while it was being read"):
        local.fetch(found, tmp_path)
    path.unlink()
    with pytest.raises(CollectError, match="cannot be read"):
        local.fetch(found, tmp_path)


def test_hidden_files_are_not_evidence(tmp_path: Path) -> None:
    (tmp_path / ".staging").mkdir()
    (tmp_path / ".staging" / "a.jsonl").write_text("x")
    (tmp_path / ".b.jsonl").write_text("x")
    (tmp_path / "c.jsonl").write_text("x")
    assert [found.key for found in LocalStore(tmp_path).list()] == ["c.jsonl"]
