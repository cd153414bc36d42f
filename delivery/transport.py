"""What every way of sending offers, and how it reads its secrets."""

import socket
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from delivery.message import Message
from delivery.outcome import Outcome

Started = Callable[[], None]


@dataclass(frozen=True)
class Envelope:
    """A message on its way: its key, when it was written (UTC), and whether it may have arrived before."""

    key: str
    channel: str
    message: Message
    created_at: datetime
    may_repeat: bool


class Transport(Protocol):
    """One way of sending. Secrets are read from the environment at each use, so that they can be rotated."""

    def send(self, envelope: Envelope, started: Started) -> Outcome:
        """Try once. Calls `started` just before the first byte after which the message may be accepted.

        Everything that goes wrong on the way is an outcome; what `started` raises passes through.
        """
        ...

    def check(self) -> tuple[str, ...]:
        """What stops it from sending and how to mend it, one line each; sends nothing."""
        ...

    def secrets(self) -> tuple[str, ...]:
        """Texts that must never be stored, logged or shown."""
        ...


@dataclass(frozen=True)
class Secret:
    """A value in an environment variable."""

    variable: str
    environ: Mapping[str, str]

    def read(self) -> str | None:
        """The value without surrounding space; None when it is absent or empty."""
        return self.environ.get(self.variable, "").strip() or None

    @property
    def missing(self) -> str:
        return f"the environment variable {self.variable} is not set"


@dataclass(frozen=True)
class SecretUrl(Secret):
    """An http(s) address in an environment variable: whoever knows it can post to it."""

    def problem(self) -> str | None:
        """Why it cannot be used; None when it can."""
        url = self.read()
        if url is None:
            return self.missing
        try:
            parts = urllib.parse.urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isascii()
        except ValueError:
            usable = False
        return None if usable and not any(c.isspace() for c in url) else f"{self.variable} holds no http(s) address"

    def secrets(self) -> tuple[str, ...]:
        url = self.read()
        if url is None:
            return ()
        tail = url.split("://", 1)[-1].partition("/")[2]
        return tuple(text for text in (url, tail) if len(text) > 3)

    def check(self, timeout_seconds: float) -> tuple[str, ...]:
        problem = self.problem()
        if problem is not None:
            return (f"{problem}; export {self.variable}=https://...",)
        parts = urllib.parse.urlsplit(self.read() or "")
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        if parts.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
            return (f"{self.variable} is http, which sends its secret in the clear; use https",)
        if parts.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(host):
            return ()
        return reach(host, port, timeout_seconds)


def reach(host: str, port: int, timeout_seconds: float) -> tuple[str, ...]:
    """Whether `host:port` takes a connection; the line to show when it does not."""
    try:
        socket.create_connection((host, port), timeout_seconds).close()
    except OSError as error:
        return (f"{host}:{port} cannot be reached ({error}); check the name, the network and the firewall",)
    return ()


def redact(text: str, secrets: Iterable[str]) -> str:
    """`text` without any of `secrets`."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
