"""Slack incoming webhooks, through slack_sdk, with Block Kit."""

import html
import logging
import urllib.request
from dataclasses import dataclass
from typing import Any

from slack_sdk.webhook import WebhookClient, WebhookResponse

from delivery.message import MAY_REPEAT
from delivery.outcome import Failed, Outcome, Retry, Sent, Uncertain
from delivery.transport import Envelope, SecretUrl, Started
from delivery.wire import BROKEN, DETAIL_CHARACTERS, Exchange, Reply, judge

BLOCKS = 50
HEADER_CHARACTERS = 150
SECTION_CHARACTERS = 3_000
FIELDS = 10
FIELD_CHARACTERS = 2_000
TEXT_CHARACTERS = 4_000

REMEDIES = {
    "no_service": "the webhook was removed or switched off in Slack: make a new one and export it as {variable}",
    "no_team": "the workspace is gone: make a webhook in the right one and export it as {variable}",
    "invalid_token": "the webhook's URL is wrong: copy it again from Slack and export it as {variable}",
    "channel_not_found": "the channel was deleted: make a webhook for another one and export it as {variable}",
    "channel_is_archived": "the channel is archived: restore it, or make a webhook for another one",
    "posting_to_general_channel_denied": "only admins may post there: make a webhook for another channel",
    "action_prohibited": "an admin restricts posting there: ask for it, or make a webhook for another channel",
    "invalid_payload": "Slack cannot read this message: it is a defect of InferLedger, please report it",
    "invalid_blocks": "Slack cannot show this message: it is a defect of InferLedger, please report it",
}

# The SDK logs the webhook's URL, which is a secret, below WARNING; its failures come back to us as outcomes.
_sdk_log = logging.getLogger("delivery.slack.sdk")
_sdk_log.setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class SlackTransport:
    """Posts to the webhook that an environment variable names."""

    url: SecretUrl
    timeout_seconds: float

    def send(self, envelope: Envelope, started: Started) -> Outcome:
        problem = self.url.problem()
        if problem is not None:
            return Retry(problem)
        exchange = Exchange(started)
        client = _Client(self.url.read() or "", self.timeout_seconds, exchange)
        try:
            answer = client.send_dict(payload(envelope))
        except BROKEN as error:
            return exchange.outcome_of(error)
        return self._judge(Reply(answer.status_code, answer.headers, answer.body))

    def check(self) -> tuple[str, ...]:
        return self.url.check(self.timeout_seconds)

    def secrets(self) -> tuple[str, ...]:
        return self.url.secrets()

    def _judge(self, reply: Reply) -> Outcome:
        outcome = judge(reply)
        if isinstance(outcome, Sent) and reply.body.strip() != "ok":
            said = reply.body.strip()[:DETAIL_CHARACTERS]
            return Uncertain(f"HTTP {reply.status} without Slack's `ok`, from a proxy perhaps: {said}")
        if isinstance(outcome, Failed):
            remedy = REMEDIES.get(reply.body.strip(), "check the webhook in Slack and {variable}")
            return Failed(outcome.detail, remedy.format(variable=self.url.variable))
        return outcome


def payload(envelope: Envelope) -> dict[str, Any]:
    """The webhook's JSON: `text` for notifications, `blocks` cut to what Slack takes, so that it is never refused."""
    message = envelope.message
    mark = f"{MAY_REPEAT} " if envelope.may_repeat else ""
    body: dict[str, Any] = {"text": _cut(mark + html.escape(message.text, quote=False), TEXT_CHARACTERS)}
    if message.blocks:
        body["text"] = _cut(mark + html.escape(message.subject, quote=False), TEXT_CHARACTERS)
        blocks = [_fit(block) for block in message.blocks]
        if envelope.may_repeat:
            blocks.insert(0, _note(MAY_REPEAT))
        if len(blocks) > BLOCKS:
            blocks = [*blocks[: BLOCKS - 1], _note(f"{len(blocks) - BLOCKS + 1} more parts are not shown")]
        body["blocks"] = blocks
    return body


def _note(text: str) -> dict[str, Any]:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text}]}


def _fit(block: dict[str, Any]) -> dict[str, Any]:
    fitted = dict(block)
    if isinstance(block.get("text"), dict):
        limit = HEADER_CHARACTERS if block.get("type") == "header" else SECTION_CHARACTERS
        fitted["text"] = _fit_text(block["text"], limit)
    if isinstance(block.get("fields"), list):
        fitted["fields"] = [_fit_text(each, FIELD_CHARACTERS) for each in block["fields"][:FIELDS]]
    return fitted


def _fit_text(text: dict[str, Any], characters: int) -> dict[str, Any]:
    return {**text, "text": _cut(str(text.get("text", "")), characters)}


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"


class _Client(WebhookClient):
    """slack_sdk's client over a connection that says when the request begins, and without retries of its own.

    Its default handler repeats a request whose answer was lost, which would double a message; the outbox decides.
    """

    def __init__(self, url: str, timeout_seconds: float, exchange: Exchange) -> None:
        super().__init__(url, timeout=int(timeout_seconds) or 1, retry_handlers=[], logger=_sdk_log)
        self._exchange = exchange
        self._timeout_seconds = timeout_seconds

    def _perform_http_request_internal(self, url: str, req: urllib.request.Request) -> WebhookResponse:
        reply = self._exchange.open(req, self._timeout_seconds)
        return WebhookResponse(url=url, status_code=reply.status, body=reply.body, headers=dict(reply.headers))
