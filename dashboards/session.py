"""The snapshot a reader sees. Each rerun looks at the pointer, so a new publication shows without a restart."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from dashboards.filters import View
from warehouse.publish import read_pointer
from warehouse.snapshot import NothingPublished, Scope, Snapshot, SnapshotIncomplete

DESK = "desk"


class Unreadable(Exception):
    """There is a snapshot and it cannot be read; the message says what to do."""


@dataclass(frozen=True)
class Desk:
    """What the router lays out for the page: the snapshot and what is chosen of it."""

    snapshot: Snapshot
    view: View


def lay_out(desk: Desk) -> None:
    """Leave the desk for the page of this rerun."""
    st.session_state[DESK] = desk


def current() -> tuple[Snapshot, View]:
    """The desk that the router laid out."""
    desk: Desk = st.session_state[DESK]
    return desk.snapshot, desk.view


def open_snapshot(published: Path, scope: Scope) -> Snapshot:
    """The current snapshot through `scope`; raises NothingPublished or Unreadable."""
    try:
        pointer = read_pointer(published)
        # The pointer names the manifest and what hangs beside it: holds, deliveries, rejected rows.
        version = hashlib.sha256(json.dumps(pointer, sort_keys=True).encode()).hexdigest()
        return _snapshot(published, version, scope)
    except SnapshotIncomplete as error:
        raise Unreadable(str(error)) from error
    except NothingPublished:
        raise
    except Exception as error:
        raise Unreadable(
            f"The snapshot under {published} cannot be read: {error}. `inferledger publish` writes a new one; "
            "`inferledger doctor` says what is wrong."
        ) from error


def holds(published: Path) -> tuple[str, ...]:
    """Controls that keep a first publication from happening."""
    pointer = read_pointer(published)
    return tuple(pointer.get("held", ())) if pointer else ()


@st.cache_resource(max_entries=16, show_spinner=False)
def _snapshot(published: Path, version: str, scope: Scope) -> Snapshot:
    return Snapshot.open(published, scope)
