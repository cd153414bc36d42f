"""Publishing: killed anywhere and run again the snapshot is the same; readers keep what they opened."""

import json
import os
import time

import pytest

from tests.world import World
from warehouse import publish
from warehouse.engine import writing
from warehouse.publish import NothingAttributed
from warehouse.settings import WarehouseSettings
from warehouse.snapshot import NothingPublished, Scope, Snapshot, SnapshotIncomplete

WHOLE = Scope.everything("test")
A_WEEK = 7 * 86_400


def a_world(folder) -> World:
    world = World(folder, as_of="2026-10-05 00:00")
    world.call("2026-10-01 10:10", {"key_alias": "k"}, output=5)
    world.line("2026-10-01 10:00", "1", token_class="output", tokens=10)
    return world


def changed(world: World) -> World:
    world.line("2026-10-01 10:00", "2", token_class="output", tokens=10)
    return world


def age(folder) -> None:
    past = time.time() - A_WEEK
    for path in (folder / "published").rglob("*-*"):
        os.utime(path, (past, past))
    for path in (folder / "published" / "manifests").iterdir():
        os.utime(path, (past, past))


class Killed(BaseException):
    """Stands for kill -9 at a statement."""


@pytest.mark.parametrize(
    "step", ["_prepare", "_materialise", "_write_part", "_write_atomically", "_keep_revisions", "_history", "_sweep"]
)
def test_a_publisher_killed_at_any_step_leaves_the_old_snapshot_or_the_new_and_the_next_one_ends_the_work(
    tmp_path, monkeypatch, step
):
    calm = changed_after_publication(tmp_path / "calm")
    world = a_world(tmp_path / "killed")
    first = world.publish().manifest
    changed(world)

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(publish, step, killed)
        with pytest.raises(Killed):
            world.publish()
    between = Snapshot.open(world.layout.published, WHOLE).manifest_id
    assert between == (calm.manifest_id if step == "_sweep" else first)
    after = world.snapshot()
    assert after.manifest_id == calm.manifest_id
    revisions = "SELECT day, effective_nano_before, effective_nano_after FROM revision ORDER BY ALL"
    assert after.sql(revisions).to_pylist() == calm.sql(revisions).to_pylist() != []


def changed_after_publication(folder) -> Snapshot:
    world = a_world(folder)
    world.publish()
    return changed(world).snapshot()


def test_revisions_that_died_with_a_publisher_after_it_moved_the_pointer_are_made_up_for(tmp_path, monkeypatch):
    world = a_world(tmp_path)
    world.publish()
    move = publish._write_pointer

    def move_and_die(folder, pointer) -> None:
        move(folder, pointer)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(publish, "_write_pointer", move_and_die)
        with pytest.raises(Killed):
            changed(world).publish()
    assert world.rows("SELECT count(*) FROM ledger_revision") == [(0,)]
    assert world.snapshot().sql("SELECT count(*) AS n FROM revision").to_pylist() != [{"n": 0}]


def test_a_reader_keeps_its_files_for_a_day_after_they_were_replaced_however_old_they_are(tmp_path):
    world = a_world(tmp_path)
    reader = world.snapshot()
    age(tmp_path)
    for _ in range(3):
        changed(world).publish()
    assert reader.sql("SELECT count(*) AS n FROM cost_day").to_pylist() == [{"n": 2}]
    files = len(list((world.layout.published / "files").iterdir()))
    age(tmp_path)
    changed(world).publish()
    assert len(list((world.layout.published / "files").iterdir())) < files
    assert Snapshot.open(world.layout.published, WHOLE).sql("FROM cost_day").num_rows == 2


def test_nothing_is_published_before_there_is_a_ledger(tmp_path):
    world = a_world(tmp_path)
    with writing(world.layout, "test") as connection, pytest.raises(NothingAttributed, match="inferledger attribute"):
        publish.publish(connection, world.layout, WarehouseSettings())
    with pytest.raises(NothingPublished, match="Nothing has been published"):
        Snapshot.open(world.layout.published, WHOLE)


@pytest.mark.parametrize("what", ["manifest", "file"])
def test_a_snapshot_that_lost_a_part_says_so_and_is_mended_by_the_next_publication(tmp_path, what):
    world = a_world(tmp_path)
    good = world.publish().manifest
    folder = world.layout.published
    if what == "manifest":
        (folder / "manifests" / f"{good}.json").unlink()
    else:
        next((folder / "files").glob("cost_hour-*")).unlink()
    with pytest.raises(SnapshotIncomplete, match=rf"{what}.* is missing. Run `inferledger publish`"):
        Snapshot.open(folder, WHOLE)
    assert world.publish().manifest == good
    assert Snapshot.open(folder, WHOLE).manifest_id == good


def test_the_pointer_names_one_manifest_that_names_every_file(tmp_path):
    world = a_world(tmp_path)
    world.publish()
    pointer = json.loads((world.layout.published / "current.json").read_text())
    manifest = publish.read_manifest(world.layout.published, pointer["manifest"])
    assert all((world.layout.published / "files" / entry["file"]).exists() for entry in manifest["files"])


@pytest.mark.slow
def test_the_bytes_of_a_file_depend_on_its_rows_alone(tmp_path):
    world = a_world(tmp_path)
    world.publish()
    names = set()
    with writing(world.layout, "test") as connection:
        for threads, order in ((1, "i"), (2, "i DESC"), (8, "hash(i)")):
            connection.execute(f"SET threads = {threads}")
            connection.execute(
                "CREATE OR REPLACE TEMP TABLE mart_x AS SELECT 'all' AS partition, NULL::VARCHAR AS partition_team, "
                "i % 97 AS a, 'text ' || (i % 1000) AS b, i AS c, CASE WHEN i % 7 = 0 THEN NULL ELSE i * 0.1 END AS d "
                f"FROM range(300_000) AS r(i) ORDER BY {order}"
            )
            part = {"partition": "all", "partition_team": None, "rows": 300_000}
            names.add(publish._write_part(connection, world.layout.published, "x", part)["file"])
    assert len(names) == 1


def test_a_snapshot_of_another_version_says_what_to_do_and_is_written_again(tmp_path):
    world = a_world(tmp_path)
    published = world.publish()
    path = world.layout.published / "manifests" / f"{published.manifest}.json"
    path.write_text(path.read_text().replace(f'"format": {publish.FORMAT}', '"format": 1'))
    with pytest.raises(SnapshotIncomplete, match="another version"):
        Snapshot.open(world.layout.published, WHOLE)
    assert world.publish().carried == 0
    assert Snapshot.open(world.layout.published, WHOLE).sql("FROM usage_day").num_rows == 1
