"""A delivery worker in a process of its own, which may die at a chosen point.

    python -m tests.delivery.worker_process URL NOW POINT

POINT names the transaction, in the order the worker runs them, and whether to die before its commit or after it:
`none`, `after-claim`, `after-start`, `before-finish`.
"""

import os
import signal
import sys
from datetime import datetime

from sqlalchemy import event

from delivery.channels import open_channels
from delivery.settings import DeliverySettings, SlackSettings
from delivery.worker import deliver_due
from warehouse import operations

RECOVER, CLAIM, START, FINISH = 1, 2, 3, 4


def main(url: str, now: str, point: str) -> None:
    engine = operations.connect(url)
    done = {"begun": 0, "ended": 0}

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def committing(_: object) -> None:
        done["begun"] += 1
        if point == "before-finish" and done["begun"] == FINISH:
            die()

    def returned(*_: object) -> None:
        done["ended"] += 1
        if (point, done["ended"]) in (("after-claim", CLAIM), ("after-start", START)):
            die()

    event.listen(engine, "commit", committing)
    event.listen(engine, "checkin", returned)
    settings = DeliverySettings(channels={"ops": SlackSettings(kind="slack", timeout_seconds=5)})
    deliver_due(engine, open_channels(settings), datetime.fromisoformat(now))


if __name__ == "__main__":
    main(*sys.argv[1:])
