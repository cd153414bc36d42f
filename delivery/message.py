"""What is sent: one message, in every form that a channel may need."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Message(BaseModel):
    """One message. A channel takes the richest form that it can show; `text` always stands on its own.

    subject  one line: the subject of an email, the notification of a chat
    text     plain text
    html     for email; without it an email is plain text
    blocks   Slack Block Kit; without them Slack shows `text`
    data     machine-readable content for the generic webhook; JSON, money as decimal text
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    subject: str = Field(min_length=1)
    text: str = Field(min_length=1)
    html: str | None = None
    blocks: tuple[dict[str, Any], ...] = ()
    data: dict[str, Any] = Field(default_factory=dict)


MAY_REPEAT = "(may repeat)"
