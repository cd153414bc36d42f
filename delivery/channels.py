"""Channels: a name from the configuration, the transport behind it, and the retry policy."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from delivery.mail import EmailTransport
from delivery.settings import (
    BackOffSettings,
    ChannelSettings,
    DeliverySettings,
    EmailSettings,
    OnUncertain,
    SlackSettings,
)
from delivery.slack import SlackTransport
from delivery.transport import Secret, SecretUrl, Transport
from delivery.webhook import WebhookTransport


@dataclass(frozen=True)
class Channel:
    """Where messages go, and what to do when they do not get there."""

    name: str
    transport: Transport
    on_uncertain: OnUncertain = "hold"
    back_off: BackOffSettings = field(default_factory=BackOffSettings)
    lease_seconds: float = 120

    def check(self) -> tuple[str, ...]:
        """What stops this channel from sending, one line each; sends nothing."""
        return tuple(f"channel `{self.name}`: {line}" for line in self.transport.check())


def open_channels(settings: DeliverySettings, environ: Mapping[str, str] = os.environ) -> dict[str, Channel]:
    """Every configured channel by name. A secret that is missing stops no other channel: its messages wait."""
    return {
        name: Channel(
            name,
            _transport(channel, environ),
            channel.on_uncertain or settings.on_uncertain,
            settings.back_off,
            settings.lease_seconds,
        )
        for name, channel in settings.channels.items()
    }


def _transport(settings: ChannelSettings, environ: Mapping[str, str]) -> Transport:
    if isinstance(settings, SlackSettings):
        return SlackTransport(SecretUrl(settings.url_env, environ), settings.timeout_seconds)
    if isinstance(settings, EmailSettings):
        username, password = _secret(settings.username_env, environ), _secret(settings.password_env, environ)
        return EmailTransport(settings, username, password)
    url, key = SecretUrl(settings.url_env, environ), _secret(settings.secret_env, environ)
    return WebhookTransport(url, key, settings.timeout_seconds)


def _secret(variable: str | None, environ: Mapping[str, str]) -> Secret | None:
    return Secret(variable, environ) if variable is not None else None
