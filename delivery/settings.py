"""What delivery can be told: channels by name, their secrets' environment variables, and the retry policy."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator


class Settings(BaseModel):
    """Base of every settings model: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


OnUncertain = Literal["hold", "resend"]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class ChannelBase(Settings):
    """What every channel has."""

    timeout_seconds: float = Field(
        default=10, gt=0, le=60, description="for connecting, and for each wait for an answer"
    )
    on_uncertain: OnUncertain | None = Field(default=None, description="default: delivery.on_uncertain")


class SlackSettings(ChannelBase):
    """A Slack incoming webhook. Its URL is a secret."""

    kind: Literal["slack"]
    url_env: Variable = Field(
        default="SLACK_WEBHOOK_URL", description="environment variable that holds the webhook's URL"
    )


class WebhookSettings(ChannelBase):
    """A JSON POST, signed with HMAC-SHA256, to an address of your own."""

    kind: Literal["webhook"]
    url_env: Variable = Field(description="environment variable that holds the URL")
    secret_env: Variable | None = Field(
        default=None, description="environment variable with the signing key; none: unsigned"
    )


class EmailSettings(ChannelBase):
    """Email through an SMTP server."""

    kind: Literal["email"]
    host: str
    port: int = Field(default=587, ge=1, le=65535)
    security: Literal["starttls", "tls", "none"] = "starttls"
    sender: str
    recipients: tuple[str, ...] = Field(min_length=1)
    username_env: Variable | None = None
    password_env: Variable | None = None

    @field_validator("sender", "recipients")
    @classmethod
    def _looks_like_an_address(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for address in (value,) if isinstance(value, str) else value:
            if address.count("@") != 1 or not address.isascii() or any(c in address for c in "\r\n<> ,"):
                raise ValueError(f"`{address}` is no email address; write one such as costs@example.com")
        return value

    @model_validator(mode="after")
    def _login(self) -> "EmailSettings":
        if (self.username_env is None) != (self.password_env is None):
            raise ValueError("write both `username_env` and `password_env`, or neither")
        if self.username_env is not None and self.security == "none":
            raise ValueError("`security: none` would send the password in the clear; write starttls or tls")
        return self


ChannelSettings = Annotated[SlackSettings | WebhookSettings | EmailSettings, Field(discriminator="kind")]


class BackOffSettings(Settings):
    """How long to wait between attempts: doubling, capped, and spread so that channels do not knock together."""

    first_seconds: float = Field(default=30, gt=0)
    longest_seconds: float = Field(default=900, gt=0)
    give_up_after_hours: float = Field(default=168, gt=0, description="then the message is `failed`, kept and reported")


class DeliverySettings(Settings):
    """Everything the delivery room reads from the configuration."""

    channels: dict[str, ChannelSettings] = Field(default_factory=dict)
    back_off: BackOffSettings = BackOffSettings()
    lease_seconds: float = Field(default=120, ge=30, description="after this a worker that says nothing counts as dead")
    on_uncertain: OnUncertain = Field(
        default="hold",
        description="an attempt whose outcome is unknown: hold it for a person, or send it again, marked (may repeat)",
    )
