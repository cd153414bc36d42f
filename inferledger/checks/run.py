"""Every check, in the order in which evidence flows."""

from datetime import datetime

from inferledger import jobs
from inferledger.checks import bill, databases, fleet, ledger, setting_up
from inferledger.checks.check import Check
from inferledger.config import Configuration
from warehouse.publish import read_pointer
from warehouse.snapshot import NothingPublished


def run(configuration: Configuration, now: datetime) -> list[Check]:
    """Look at everything; nothing is changed, and no finding stops another check."""
    found = [
        *setting_up.config(configuration),
        *setting_up.credentials(configuration),
        *setting_up.sources(configuration),
        *setting_up.channels(configuration),
        *databases.warehouse(configuration),
        *databases.operations(configuration, now),
    ]
    try:
        snapshot = jobs.snapshot(configuration, "doctor")
    except NothingPublished:
        return [*found, _unpublished(configuration)]
    return [
        *found,
        *ledger.published(snapshot, now),
        *ledger.freshness(snapshot, now),
        *ledger.rejected(snapshot),
        *ledger.controls(snapshot),
        *bill.bill(snapshot),
        *ledger.unknown(snapshot),
        *fleet.fleet(snapshot),
    ]


def _unpublished(configuration: Configuration) -> Check:
    held = (read_pointer(configuration.layout.published) or {}).get("held", [])
    if held:
        what = f"the first snapshot is held back, because controls do not hold: {'; '.join(held[:5])}"
        return Check("snapshot", "published", "fail", what, "report this as a defect")
    remedy = "run `inferledger collect`, `attribute` and `publish`, or leave `inferledger run` running"
    return Check("snapshot", "published", "fail", "nothing has been published yet", remedy)
