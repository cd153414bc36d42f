"""Fixtures that every room's tests may use, and the hook that turns skips into failures."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import needs

NEEDED_BY_MARKER: dict[str, Callable[[], Path]] = {
    "browser": needs.chromium,
    "postgres": needs.postgres,
    "prometheus": needs.prometheus,
    "samples": needs.samples,
    "spark": needs.java,
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, need in NEEDED_BY_MARKER.items():
        if item.get_closest_marker(marker):
            need()


# --- INFERLEDGER_NO_SKIPS=1: a skip is a failure, unless the samples folder is absent ---


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    # A test that is expected to fail (xfail) is reported as skipped too, but it ran.
    if os.environ.get("INFERLEDGER_NO_SKIPS") != "1" or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not reason.startswith(needs.SAMPLES_ABSENT):
        report.outcome = "failed"
        report.longrepr = f"Skipped, and INFERLEDGER_NO_SKIPS=1 forbids it: {reason}"


# --- Servers ---


@pytest.fixture
def free_port() -> int:
    return _free_port()


def _free_port() -> int:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    from moto.server import ThreadedMotoServer  # takes a second to import; most tests don't need it

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The endpoint of an empty S3, with made-up credentials in the environment and none of the developer's own."""
    urllib.request.urlopen(f"{s3_server}/moto-api/reset", data=b"", timeout=30).close()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-aws-credentials"))
    return s3_server


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server for this session, as an SQLAlchemy URL. Tests that write take `postgres_database`."""
    programs = needs.postgres()
    # Not pytest's own folder, which only its owner may enter; and short, for a socket's path may have 107 bytes.
    home = Path(tempfile.mkdtemp(prefix="inferledger-postgres-", dir="/tmp"))
    # PostgreSQL refuses to run as root; Debian's package comes with a user for it.
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(home, account.pw_uid, account.pw_gid)
        as_user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    port = _free_port()
    try:
        subprocess.run(
            [programs / "initdb", "--pgdata", home / "data", "--username", "inferledger", "--auth", "trust",
             "--encoding", "UTF8", "--no-locale", "--no-sync"],
            check=True, cwd=home, capture_output=True, text=True, timeout=120, **as_user,
        )  # fmt: skip
        with (home / "log").open("w") as log:
            server = subprocess.Popen(
                [programs / "postgres", "-D", home / "data", "-p", str(port), "-c", "listen_addresses=127.0.0.1",
                 "-c", f"unix_socket_directories={home}", "-c", "fsync=off"],
                cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **as_user,
            )  # fmt: skip
        try:
            _wait_for_postgres(server, port, home / "log")
            yield f"postgresql+psycopg://inferledger@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # "fast shutdown": clients are cut off
            server.wait(timeout=60)
    finally:
        shutil.rmtree(home)


def _wait_for_postgres(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="inferledger", dbname="postgres").close()
            return
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text()}") from error
        time.sleep(0.1)


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """A new, empty database for one test, as an SQLAlchemy URL."""
    server = postgres_url.replace("+psycopg", "", 1)
    name = f"test_{time.monotonic_ns()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgres_url.rsplit("/", 1)[0] + f"/{name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
