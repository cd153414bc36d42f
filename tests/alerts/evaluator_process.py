"""An evaluation in a process of its own, which dies around its commit.

python -m tests.alerts.evaluator_process URL before-commit|after-commit
"""

import os
import signal
import sys

from sqlalchemy import Engine, event

from alerts import evaluate
from alerts.settings import SHIPPED_RULES, AlertSettings
from tests.alerts import ledger
from warehouse import operations


def evaluate_once(engine: Engine) -> evaluate.EvaluationReport:
    """One rule, one snapshot, one message: the same in every process."""
    book = ledger.Ledger()
    book.book("2026-11-29", "150")
    snapshot = book.publish("2026-11-30 06:00")
    rule = {"kind": "threshold", "name": "limit", "measure": "inference_cost_usd", "above": 100}
    settings = AlertSettings.model_validate({"rules": [rule], "without": [shipped.name for shipped in SHIPPED_RULES]})
    return evaluate.run(snapshot, settings, engine, ("ops",), snapshot.as_of, measures=ledger)


def main(url: str, point: str) -> None:
    engine = operations.connect(url)
    wrote = False

    def executed(_c: object, _cursor: object, statement: str, *_: object) -> None:
        nonlocal wrote
        wrote = wrote or "INSERT INTO outbox_message" in statement

    def die(*_: object) -> None:
        if wrote:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(engine, "after_cursor_execute", executed)
    event.listen(engine, "commit" if point == "before-commit" else "checkin", die)
    evaluate_once(engine)


if __name__ == "__main__":
    main(*sys.argv[1:])
