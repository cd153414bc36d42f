"""Evidence that changes: bill lines and records that come and go as a collector makes them, and a second opinion."""

import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.world import World
from warehouse import derived
from warehouse.publish import read_manifest, read_pointer


def add_line(world: World, start: str, cost: str, **facts: Any) -> None:
    """One billing line, with the touches of the collector: every hour of it, or the period's overlay."""
    with world.connected():
        world.line(start, cost, **facts)
        # World touches the first hour of whatever it adds; a collector touches the overlay of a long line only
        world.rows("DELETE FROM touched_hour WHERE rowid = (SELECT max(rowid) FROM touched_hour)")
        _touch(world, f"line_digest = 'line-{world.lines}'")


def remove_lines(world: World, condition: str) -> None:
    """Lines that a restated bill no longer has."""
    with world.connected():
        _touch(world, condition)
        world.rows(f"DELETE FROM billing_line WHERE {condition}")


def remove_records(world: World, condition: str) -> None:
    """Records that are withdrawn."""
    with world.connected():
        world.rows(
            "INSERT INTO touched_hour SELECT DISTINCT date_trunc('hour', ended_at), 'usage' "
            f"FROM usage_record WHERE {condition}"
        )
        world.rows(f"DELETE FROM usage_record WHERE {condition}")


def _touch(world: World, condition: str) -> None:
    overlay = "x_token_class IS NULL AND charge_period_end - charge_period_start > INTERVAL 1 DAY"
    world.rows(
        f"""
        INSERT INTO touched_hour
        SELECT CAST(billing_period || '-01' AS TIMESTAMP), 'overlay' FROM billing_line
        WHERE {condition} AND {overlay}
        UNION SELECT unnest(generate_series(date_trunc('hour', charge_period_start),
            greatest(charge_period_end - INTERVAL 1 MICROSECOND, charge_period_start), INTERVAL 1 HOUR)), 'billing'
        FROM billing_line WHERE {condition} AND NOT ({overlay})
        """
    )


def differences_from_one_run(world: World, folder: Path) -> list[str]:
    """Publish what the world holds, then the same evidence in one run from nothing; what differs between the two."""
    assert world.publish().held == ()
    shutil.copytree(world.data, folder)
    shutil.rmtree(folder / "published")
    fresh = World.__new__(World)
    fresh.data, fresh.settings, fresh.as_of = folder, world.settings, world.as_of
    fresh.layout, fresh._open = type(world.layout)(folder), None
    with fresh.connected() as c:
        derived.drop(c)
        for statement in derived.BOOKKEEPING.split("CREATE TABLE IF NOT EXISTS ")[1:]:
            c.execute(f"DROP TABLE {statement.split(' ')[0]}")
    assert fresh.publish().held == ()
    mine, theirs = (_files(each) for each in (world, fresh))
    return sorted(f"{mart} {partition} {team}" for mart, partition, team, _ in mine ^ theirs)


def _files(world: World) -> set[tuple[str, str, str | None, str]]:
    pointer = read_pointer(world.layout.published)
    assert pointer is not None
    manifest = read_manifest(world.layout.published, pointer["manifest"])
    assert manifest["as_of"] == datetime.fromisoformat(world.as_of).isoformat()
    return {(each["mart"], each["partition"], each["team"], each["file"]) for each in manifest["files"]}
