"""HTTP for channels: says exactly whether a request's bytes may have gone out when something breaks."""

import email.utils
import functools
import http.client
import math
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from delivery.outcome import Failed, Outcome, Retry, Sent, Uncertain
from delivery.transport import Started

REPLY_BYTES = 65_536
DETAIL_CHARACTERS = 300

# What urllib raises for a broken exchange.
BROKEN = (OSError, http.client.HTTPException)


@dataclass(frozen=True)
class Reply:
    """What the other side answered; `body` is cut at 64 KiB."""

    status: int
    headers: Mapping[str, str]
    body: str


class Exchange:
    """One request. `started` runs once, when the connection stands and before the first byte of the request."""

    def __init__(self, started: Started) -> None:
        self._started = started
        self.began = False

    def open(self, request: urllib.request.Request, timeout_seconds: float) -> Reply:
        """Send it, and give the answer whatever its status. Redirects are not followed: a POST would become a GET.

        Raises one of `BROKEN`, or what `started` raises; `outcome_of` turns the former into an outcome.
        """
        opener = urllib.request.build_opener(_Http(self._connected), _Https(self._connected), _NoRedirect())
        try:
            answer = opener.open(request, timeout=timeout_seconds)
        except urllib.error.HTTPError as refused:
            answer = refused
        with answer:
            body = answer.read(REPLY_BYTES).decode("utf-8", "replace")
            return Reply(int(answer.status), dict(answer.headers.items()), body)

    def outcome_of(self, error: Exception) -> Retry | Uncertain:
        """Before the request began nothing can have arrived; afterwards nobody here can tell."""
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        what = f"{type(reason).__name__}: {reason}" if str(reason) else type(reason).__name__
        if self.began:
            return Uncertain(f"the request went out and no answer came back ({what})")
        return Retry(f"no connection ({what})")

    def _connected(self) -> None:
        self._started()
        self.began = True


def judge(reply: Reply, *, now: datetime | None = None) -> Outcome:
    """What an HTTP status means for a message; channels refine it.

    2xx sent. 408, 425, 429 and 5xx: not accepted, try again. 504: a gateway gave up waiting for an answer, so it is
    uncertain. Everything else: refused for good.
    """
    said = f"HTTP {reply.status}" + (f": {reply.body.strip()[:DETAIL_CHARACTERS]}" if reply.body.strip() else "")
    if 200 <= reply.status < 300:
        return Sent()
    if reply.status == 504:
        return Uncertain(said)
    if reply.status in (408, 425, 429) or reply.status >= 500:
        return Retry(said, retry_after_seconds(reply.headers, now or datetime.now(UTC)))
    return Failed(said, "check the address in the channel's environment variable and what the receiver expects")


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """The Retry-After header in seconds from `now`, whether written as seconds or as a date; None without one."""
    value = next((v.strip() for k, v in headers.items() if k.lower() == "retry-after"), "")
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (email.utils.parsedate_to_datetime(value) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


class _Connection(http.client.HTTPConnection):
    def __init__(self, host: str, connected: Started, **options: Any) -> None:
        super().__init__(host, **options)
        self._connected = connected

    def connect(self) -> None:
        super().connect()
        self._connected()


class _TlsConnection(http.client.HTTPSConnection):
    def __init__(self, host: str, connected: Started, **options: Any) -> None:
        super().__init__(host, **options)
        self._connected = connected

    def connect(self) -> None:
        super().connect()
        self._connected()


class _Http(urllib.request.HTTPHandler):
    def __init__(self, connected: Started) -> None:
        super().__init__()
        self._connected = connected

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        def connection(host: str, /, **options: Any) -> http.client.HTTPConnection:
            return _Connection(host, self._connected, **options)

        return self.do_open(connection, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, connected: Started) -> None:
        self._tls = _tls_context()
        super().__init__(context=self._tls)
        self._connected = connected

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        def connection(host: str, /, **options: Any) -> http.client.HTTPConnection:
            return _TlsConnection(host, self._connected, context=self._tls, **options)

        return self.do_open(connection, req)


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """One for all: reading the system's certificates takes longer than sending a message."""
    return ssl.create_default_context()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None
