"""`inferledger demo`: a company made up, its files written, and the whole way gone with them."""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from delivery.channels import Channel, open_channels
from inferledger import config as configurations
from inferledger import jobs, options, summary_text
from inferledger import summary as figures
from inferledger.commands.dashboard import serve
from inferledger.config import Configuration
from inferledger.console import batches, complain, out, say, spinner
from inferledger.exits import UsageError
from inferledger.figures import count, money
from inferledger.folder_channel import folder_channel
from inferledger.rows import dollars

STAMP = ".made"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(demo)


def demo(
    days: Annotated[
        int, typer.Option("--days", min=1, max=366, help="How many days the company has used models.")
    ] = 30,
    scale: Annotated[
        float, typer.Option("--scale", min=0.001, max=100, help="1 is about 340,000 calls in 30 days.")
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, another company.")] = 7,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Where everything is written.")] = Path(".demo"),
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port of the dashboard.")] = 8501,
    no_serve: Annotated[bool, typer.Option("--no-serve", help="Do not open the dashboard at the end.")] = False,
) -> None:
    """Go the whole way with a company made up: bill, gateway log and GPU metrics in, ledger, alerts, report and
    pages out.

    Needs no cloud and no account. The files are in the formats that AWS, LiteLLM and Prometheus write. A second time,
    it goes on from what is there.
    """
    from demo import organisation  # every other command starts faster without it

    began = time.monotonic()
    as_of = _write(data, days, scale, seed)
    configuration = configurations.load(data / configurations.FILE_NAME)
    options.state().configuration = configuration
    _ledger(configuration, as_of, "first delivery of the bill")
    before = jobs.snapshot(configuration)
    organisation.deliver_restatement(data)
    _ledger(configuration, as_of, "the bill restated")
    changed = _restated(
        before.sql("SELECT sum(effective_nano) FROM bill_day").column(0)[0].as_py(),
        jobs.snapshot(configuration).sql("SELECT sum(effective_nano) FROM bill_day").column(0)[0].as_py(),
    )
    if changed:
        say(f"  {changed}")
    _tell(configuration, data)
    out().print()
    summary_text.show(out(), figures.summary(jobs.snapshot(configuration)))
    say(f"Done in {time.monotonic() - began:.0f} s. Go on with these, from this folder:")
    named = "" if data == configurations.DEMO_FILE.parent else f" --config {data / configurations.FILE_NAME}"
    for command in (
        "summary --by team,model",
        f"explain --team search --day {as_of - timedelta(days=4):%Y-%m-%d}",
        "doctor",
        "dashboard",
    ):
        say(f"  inferledger {command}{named}")
    if not no_serve:
        raise typer.Exit(serve(configuration, port, None, headless=False))


@contextmanager
def _step(what: str) -> Iterator[list[str]]:
    """One line a step: what, how long it took, and what came out."""
    began = time.monotonic()
    said: list[str] = []
    yield said
    out().print(
        f"[green]✓[/] {what} [dim]{time.monotonic() - began:.1f} s[/]" + "".join(f"\n  {line}" for line in said)
    )


def _write(folder: Path, days: int, scale: float, seed: int) -> datetime:
    """The company's files; those of the same company are kept. Its present: the instant at which the company is."""
    from demo import organisation

    stamp = f"days={days} scale={scale} seed={seed} {_version()}"
    if (folder / STAMP).exists() and (folder / STAMP).read_text() == stamp:
        out().print(f"[green]✓[/] the company is in {folder} already")
    else:
        if folder.exists() and any(folder.iterdir()) and not (folder / organisation.FACTS).exists():
            raise UsageError(f"{folder} holds files of something else. Name an empty folder with --data.")
        shutil.rmtree(folder, ignore_errors=True)
        with (
            _step("a company's bill (CUR 2.0), gateway log (LiteLLM) and GPU metrics (OpenMetrics)") as said,
            spinner("making up a company"),
        ):
            half = folder.with_name(f"{folder.name}.half")
            shutil.rmtree(half, ignore_errors=True)
            made = organisation.write(half, seed=seed, days=days, scale=scale)
            half.rename(folder)
            said.append(
                f"{count(made.gateway_calls)} calls, {count(made.bill_lines)} bill lines, "
                f"{count(made.files)} files in {folder}"
            )
        (folder / configurations.FILE_NAME).write_text(organisation.config())
        (folder / STAMP).write_text(stamp)
    facts = json.loads((folder / organisation.FACTS).read_text())
    return datetime.fromisoformat(facts["as_of"])


def _version() -> str:
    """Changes when the way the company is made up changes."""
    import demo as demo_room

    digest = hashlib.sha256()
    for path in sorted(Path(demo_room.__path__[0]).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _ledger(configuration: Configuration, as_of: datetime, what: str) -> None:
    """Collect, attribute, publish."""
    with _step(f"collected: {what}") as said:
        with batches() as moved:
            collected = jobs.collect(configuration, None, as_of, moved)
        families = jobs.sources(configuration)
        samples = sum(each.result.rows_loaded for each in collected.loaded if families.get(each.source) == "metrics")
        said.append(
            f"{count(collected.total('rows_loaded') - samples)} rows"
            + (f" and {count(samples)} metric samples" if samples else "")
            + f" in {count(len(collected.loaded))} batches"
            + (f", {count(collected.total('rows_rejected'))} rejected" if collected.total("rows_rejected") else "")
        )
    complain([str(finding) for finding in collected.findings])
    with _step("attributed") as said:
        with spinner("attributing") as progress:
            attributed = jobs.attribute(configuration, as_of, progress)
        said.append(f"{count(attributed.hours)} hours worked on, {count(attributed.events)} calls")
    with _step("published") as said:
        with spinner("publishing") as progress:
            published = jobs.publish(configuration, progress)
        said.append(f"snapshot {published.manifest[:8]}")


def _restated(before: int | None, after: int | None) -> str | None:
    if before == after or before is None or after is None:
        return None
    return f"the restatement moved the bill by {money(dollars(after - before))}; the ledger followed"


def _channels(configuration: Configuration, data: Path) -> dict[str, Channel]:
    """The configured channels whose secrets are there; else a folder."""
    usable = {
        name: channel
        for name, channel in open_channels(configuration.delivery, os.environ).items()
        if not channel.check()
    }
    return usable or folder_channel(data / "messages")


def _tell(configuration: Configuration, data: Path) -> None:
    """Alerts and the daily report, to the configured channels or a folder."""
    channels = _channels(configuration, data)
    with _step("alert rules evaluated") as said:
        done = jobs.alert(configuration, channels=channels)
        said.append(
            f"{count(len(done.evaluation.firing))} firing, {count(done.evaluation.messages)} new message(s) to "
            + (f"{data / 'messages'}" if "folder" in channels else ", ".join(channels))
        )
    complain([*done.evaluation.problems, *done.delivery.problems])
    with _step("daily report made") as said:
        told = jobs.report(configuration, by_hand=True, channels=channels)
        said += [str(page.path) for run in told.runs for page in run.pages]
    complain(told.problems)
