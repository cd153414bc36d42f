"""A command line to call, a hand-made ledger to read, and a small company with a log and no bill."""

import json
import logging
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from inferledger.cli import app
from tests.fleet_world import fill_fleet
from tests.world import World
from warehouse.settings import WarehouseSettings

OWNERS = [
    {"when": {"key_alias": "search-*"}, "set": {"team": "search", "app": "finder"}},
    {"when": {"key_alias": "support-*"}, "set": {"team": "support"}},
]
LOG = """id,ended,model,key,task,input,output
a,2026-10-01T10:10:00Z,nova-pro,search-1,t-1,1000000,200000
b,2026-10-01T11:10:00Z,nova-pro,search-1,t-1,500000,100000
c,2026-10-02T09:00:00Z,nova-pro,nobody-1,,100000,1000
d,2026-10-02T09:30:00Z,mystery-9,support-1,,7000,100
"""
COMPANY = """
data: ./data
sources:
  - name: calls
    kind: generic
    format: csv
    location: ./log
    columns:
      record_id: id
      started_at: ended
      ended_at: ended
      provider: "'aws.bedrock'"
      model_raw: model
      task_id: task
      uncached_input_tokens: input
      output_tokens: output
    claims: {key_alias: key}
owners:
  - {when: {key_alias: "search-*"}, set: {team: search}}
  - {when: {key_alias: "support-*"}, set: {team: support}}
prices:
  catalogue: none
  contract:
    - {provider: aws.bedrock, model: nova-pro, input: 1, output: 5}
engine: {lock_wait_seconds: 0}
"""


class Cli:
    """`inferledger` in this process."""

    def __call__(self, *words: str) -> Result:
        """Run it; nothing it does may raise past its own handling."""
        result = CliRunner().invoke(app, list(words))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return result

    def json(self, *words: str, code: int = 0) -> Any:
        """Run it with `--format json` and read what it prints."""
        result = self(*words, "--format", "json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cli]:
    """The command line, in an empty folder and without anything from the environment; leaves the process as it was."""
    monkeypatch.delenv("INFERLEDGER_CONFIG", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    root, numbers = logging.getLogger(), (signal.SIGTERM, signal.SIGINT)
    handlers, level, signals = root.handlers[:], root.level, [signal.getsignal(number) for number in numbers]
    yield Cli()
    root.handlers[:] = handlers
    root.setLevel(level)
    for number, handler in zip(numbers, signals, strict=True):
        signal.signal(number, handler)


def fill(world: World) -> None:
    """Three kinds of cost: used, explained by nobody, and not inference; and a call the bill has not reached."""
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, uncached_input=60, task_id="t-1")
    world.call("2026-10-01 10:40", {"key_alias": "support-1"}, uncached_input=35)
    world.line("2026-10-01 10:00", "0.1000000000004", token_class="uncached_input", tokens=100)
    world.line("2026-10-02 10:00", "12.345", service_name="Amazon EC2")
    world.price(uncached_input="3")
    world.call("2026-10-09 23:40", {"key_alias": "stranger"}, uncached_input=1_000_000)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty ledger, to be filled by hand."""
    return World(tmp_path / "data", WarehouseSettings.model_validate({"owners": OWNERS}))


@pytest.fixture
def published(world: World, cli: Cli) -> Callable[[], None]:
    """Publish the hand-made ledger where the command line reads it."""

    def publish() -> None:
        world.publish()
        Path("inferledger.yaml").write_text(f"data: {world.data}\n")

    return publish


@pytest.fixture(scope="session")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = World(tmp_path_factory.mktemp("filled") / "data", WarehouseSettings.model_validate({"owners": OWNERS}))
    fill(world)
    world.publish()
    return world.data


@pytest.fixture
def filled(filled_once: Path, cli: Cli) -> None:
    """The command line reads a ledger that `fill` has filled."""
    shutil.copytree(filled_once, "data")
    Path("inferledger.yaml").write_text("currency: USD\n")


@pytest.fixture
def company(cli: Cli) -> Path:
    """A configuration and a log in the current folder; nothing was collected yet."""
    write_company(Path())
    return Path("inferledger.yaml").absolute()


def write_company(folder: Path) -> None:
    (folder / "log").mkdir()
    (folder / "log" / "calls.csv").write_text(LOG)
    (folder / "inferledger.yaml").write_text(COMPANY)


@pytest.fixture(scope="session")
def ledger_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("company")
    write_company(folder)
    for words in (("collect",), ("attribute", "--as-of", "2026-10-10T00:00Z"), ("publish",)):
        result = CliRunner().invoke(app, [*words, "--config", str(folder / "inferledger.yaml")])
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def ledger(ledger_once: Path, cli: Cli) -> Path:
    """The company in the current folder, its log collected, attributed and published."""
    shutil.copytree(ledger_once, Path(), dirs_exist_ok=True)
    return Path("inferledger.yaml").absolute()


@pytest.fixture(scope="session")
def fleet_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = World(tmp_path_factory.mktemp("fleet") / "data", WarehouseSettings.model_validate({"owners": OWNERS}))
    fill_fleet(world)
    world.publish()
    return world.data


@pytest.fixture
def with_fleet(fleet_once: Path, cli: Cli) -> World:
    """The command line reads a ledger with a GPU fleet in it; more may be put into it."""
    shutil.copytree(fleet_once, "data")
    Path("inferledger.yaml").write_text("currency: USD\n")
    settings = WarehouseSettings.model_validate({"owners": OWNERS})
    return World(Path("data").absolute(), settings, calls=100, lines=100)
