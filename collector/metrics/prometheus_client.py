"""Talking to a server that speaks Prometheus's HTTP API: raw samples to files, errors to what a person can do.

Connection, the server's clock and discovery go through prometheus-api-client; raw samples are streamed through the same
session, for its own calls drop warnings and hold whole answers in memory (reference/metrics.md 4.6).
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import requests
from prometheus_api_client import PrometheusConnect
from requests.exceptions import ChunkedEncodingError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter
from urllib3.util.retry import Retry

from collector.source import CollectError

Answer = TypeVar("Answer")

BLOCK = 1024 * 1024
ANSWER_BYTES = 128 * 1024 * 1024
"""A longer answer is asked for in two halves."""

ATTEMPTS = 4
AGAIN = frozenset({429, 502, 503, 504})
TOO_MUCH = re.compile(
    r"too many (samples|chunks|series|bytes)|too large|exceed|limit|timed out|"
    r"max(imum)?[- _](query|samples|series|points|number)",
    re.IGNORECASE,
)


class TooMuch(Exception):
    """The server says that the query touches more than it allows: ask for less at once."""


class _Again(Exception):
    """An answer that may be another one in a moment."""

    def __init__(self, error: CollectError, is_too_much: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.is_too_much = is_too_much


@dataclass(frozen=True)
class Server:
    """One server, as configured.

    url          base, to which /api/v1/... is appended
    headers      header name: environment variable that holds its value
    bearer_env   environment variable of a bearer token
    tenant       X-Scope-OrgID of Mimir, Cortex, Loki-style gateways
    timeout      seconds for one answer to begin, and the server's own limit for one query
    pause        seconds before the first repetition
    """

    url: str
    headers: Mapping[str, str]
    bearer_env: str | None = None
    tenant: str | None = None
    timeout: float = 60
    pause: float = 1
    _gone: list[CollectError] = field(default_factory=list, repr=False)

    @cached_property
    def _sent(self) -> dict[str, str]:
        sent = {name: self._secret(variable) for name, variable in self.headers.items()}
        if self.bearer_env:
            sent["Authorization"] = f"Bearer {self._secret(self.bearer_env)}"
        if self.tenant:
            sent["X-Scope-OrgID"] = self.tenant
        return sent

    def _secret(self, variable: str) -> str:
        value = os.environ.get(variable)
        if not value:
            raise CollectError(
                f"the environment variable {variable} is not set",
                self.url,
                "Set it for the process that collects; its value is sent as a header",
            )
        return value

    @cached_property
    def _client(self) -> PrometheusConnect:
        session = requests.Session()
        session.max_redirects = 0  # a redirect would carry the headers elsewhere
        session.hooks["response"].append(self._whole)
        return PrometheusConnect(
            url=self.url,
            headers=self._sent,
            session=session,
            auth=_as_is,
            retry=Retry(total=0, raise_on_status=False),
            timeout=self.timeout,
        )

    def clock(self) -> float:
        """The server's own time, in seconds since the epoch."""

        def ask() -> float:
            answer: Any = self._client.custom_query("time()")
            # a scalar is [time, text]; VictoriaMetrics gives a vector of one
            return float(answer[0]["value"][1] if isinstance(answer[0], dict) else answer[1])

        return self._patiently(ask)

    def names(self, selectors: Sequence[str], start: float, end: float) -> list[str]:
        """Names of series that match any of the selectors, between two instants."""

        def ask() -> list[str]:
            wanted = {"match[]": list(selectors), "start": f"{start:.3f}", "end": f"{end:.3f}"}
            return sorted(self._client.get_label_values(label_name="__name__", params=wanted))

        return self._patiently(ask)

    def stream(self, query: str, time: float, path: Path) -> None:
        """The answer to an instant query into a file, as it comes; raises TooMuch or CollectError."""
        self._patiently(lambda: self._stream(query, time, path))

    def _stream(self, query: str, time: float, path: Path) -> None:
        with self._client._session.post(
            f"{self.url}/api/v1/query",
            data={"query": query, "time": f"{time:.3f}", "timeout": f"{0.8 * self.timeout:.0f}s"},
            headers=self._sent,
            auth=_as_is,
            timeout=self.timeout,
            stream=True,
        ) as answer:
            if answer.status_code != 200:
                raise self._refused(answer.status_code, _reason(answer.raw.read(BLOCK, decode_content=True)))
            size = 0
            with path.open("wb") as file:
                for block in answer.iter_content(BLOCK):
                    size += file.write(block)
                    if size > ANSWER_BYTES:
                        raise TooMuch(f"more than {ANSWER_BYTES // BLOCK} MB")

    def _whole(self, answer: requests.Response, **sent: Any) -> requests.Response:
        """A small answer must be a whole one: the client itself drops `warnings` and does not look at `status`."""
        if sent.get("stream"):
            return answer
        if answer.status_code != 200:
            raise self._refused(answer.status_code, _reason(answer.content))
        body = answer.json()
        if body.get("status") != "success":
            raise self._refused(answer.status_code, _reason(answer.content))
        if body.get("warnings") or body.get("isPartial"):
            raise partial(self.url)
        return answer

    def _refused(self, status: int, reason: str) -> Exception:
        said = f"answers {status}" + (f" ({reason})" if reason else "")
        if status in (401, 403):
            return CollectError(said, self.url, "Correct `bearer_token_env`, `headers_env` or `tenant` of the source")
        if status == 404:
            return CollectError(said, self.url, "Correct `location`: /api/v1/query must be below it")
        error = CollectError(
            f"the server {said}", self.url, "Nothing of the window was loaded; the next run asks again"
        )
        is_too_much = status in (400, 422, 503) and TOO_MUCH.search(reason) is not None
        if status in AGAIN:
            return _Again(error, is_too_much)
        return TooMuch(said) if is_too_much else error

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        """Ask again while the server may only be busy; then say what is wrong. Once unreachable, it is left alone."""
        if self._gone:
            raise self._gone[0]
        try:
            return Retrying(
                retry=retry_if_exception_type(
                    (_Again, requests.ConnectionError, requests.Timeout, ChunkedEncodingError)
                ),
                stop=stop_after_attempt(ATTEMPTS),
                wait=wait_exponential_jitter(initial=self.pause, max=30, jitter=self.pause),
                reraise=True,
            )(ask)
        except _Again as again:
            if again.is_too_much:
                raise TooMuch(str(again.error)) from None
            raise again.error from None
        except requests.TooManyRedirects:
            raise CollectError("the server redirects", self.url, "Set `location` to where it leads") from None
        except requests.Timeout:
            raise CollectError(
                f"no answer within {self.timeout:g} seconds", self.url, "Raise `timeout_seconds`, or narrow `match`"
            ) from None
        except requests.RequestException as error:
            gone = CollectError(
                f"cannot be reached ({type(error).__name__})", self.url, "Check `location` and the network"
            )
            self._gone.append(gone)
            raise gone from None
        except (ValueError, KeyError, IndexError, TypeError):
            raise CollectError(
                "does not answer as Prometheus does", self.url, "Correct the source's `location`"
            ) from None


def _as_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Without an `auth`, requests would let a .netrc replace the Authorization header."""
    return request


def partial(where: str) -> CollectError:
    """An answer with warnings (a store was away, a limit cut it): it looks complete and is not."""
    return CollectError(
        "the answer came with warnings: it may be partial",
        where,
        "Nothing of the window was loaded; look at the server's stores and limits, the next run asks again",
    )


def _reason(body: bytes) -> str:
    """`error` of an error answer; anything else in it stays out."""
    try:
        return str(json.loads(body).get("error", ""))[:300]
    except (ValueError, AttributeError):
        return ""
