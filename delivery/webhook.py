"""The generic webhook: one signed JSON POST per message."""

import hashlib
import hmac
import json
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime

from delivery.message import MAY_REPEAT
from delivery.outcome import Failed, Outcome, Retry
from delivery.transport import Envelope, Secret, SecretUrl, Started
from delivery.wire import BROKEN, Exchange, judge

SIGNATURE = "X-InferLedger-Signature"
TIMESTAMP = "X-InferLedger-Timestamp"


@dataclass(frozen=True)
class WebhookTransport:
    """Posts `body(envelope)`; `Idempotency-Key` lets the receiver recognise a repetition.

    With a key in `secret`, `X-InferLedger-Signature` is `v1=` and the hex HMAC-SHA256 of timestamp, dot, body.
    """

    url: SecretUrl
    secret: Secret | None
    timeout_seconds: float

    def send(self, envelope: Envelope, started: Started) -> Outcome:
        problem = self._problem()
        if problem is not None:
            return Retry(problem)
        content = body(envelope)
        timestamp = str(int(datetime.now(UTC).timestamp()))
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "InferLedger",
            "Idempotency-Key": hashlib.sha256(envelope.key.encode()).hexdigest(),
            TIMESTAMP: timestamp,
        }
        if self.secret is not None:
            headers[SIGNATURE] = sign(self.secret.read() or "", timestamp, content)
        # S310 warns of other schemes than http(s), which `problem` has refused.
        request = urllib.request.Request(self.url.read() or "", content, headers, method="POST")  # noqa: S310
        exchange = Exchange(started)
        try:
            outcome = judge(exchange.open(request, self.timeout_seconds))
        except BROKEN as error:
            return exchange.outcome_of(error)
        if isinstance(outcome, Failed):
            return Failed(outcome.detail, f"check {self.url.variable} and what the receiver expects")
        return outcome

    def check(self) -> tuple[str, ...]:
        if self.secret is not None and self.secret.read() is None:
            return (f"{self.secret.missing}; export {self.secret.variable}=...", *self.url.check(self.timeout_seconds))
        return self.url.check(self.timeout_seconds)

    def secrets(self) -> tuple[str, ...]:
        key = self.secret.read() if self.secret is not None else None
        return (*self.url.secrets(), *((key,) if key else ()))

    def _problem(self) -> str | None:
        if self.secret is not None and self.secret.read() is None:
            return self.secret.missing
        return self.url.problem()


def body(envelope: Envelope) -> bytes:
    """UTF-8 JSON: key, channel, created_at, may_repeat, subject, text, data."""
    mark = f"{MAY_REPEAT} " if envelope.may_repeat else ""
    content = {
        "key": envelope.key,
        "channel": envelope.channel,
        "created_at": envelope.created_at.isoformat(),
        "may_repeat": envelope.may_repeat,
        "subject": mark + envelope.message.subject,
        "text": mark + envelope.message.text,
        "data": envelope.message.data,
    }
    return json.dumps(content, ensure_ascii=False).encode()


def sign(key: str, timestamp: str, content: bytes) -> str:
    """The signature header's value for `content` sent at `timestamp` (Unix seconds as text)."""
    digest = hmac.new(key.encode(), timestamp.encode() + b"." + content, hashlib.sha256).hexdigest()
    return f"v1={digest}"
