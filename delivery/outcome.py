"""How one attempt to send ended. Values, not exceptions: each has its own next step."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sent:
    """The other side has it. `detail` names what it said beside yes, e.g. recipients that it refused."""

    detail: str | None = None


@dataclass(frozen=True)
class Retry:
    """The other side certainly does not have it; another attempt is safe, after `after_seconds` if it asked so."""

    detail: str
    after_seconds: float | None = None


@dataclass(frozen=True)
class Failed:
    """The other side refuses it for good; `remedy` says what a person can do."""

    detail: str
    remedy: str


@dataclass(frozen=True)
class Uncertain:
    """The request went out and no clear answer came back: the other side may have it, or not."""

    detail: str


Outcome = Sent | Retry | Failed | Uncertain


class LeaseLost(Exception):
    """Another worker took the message over before this one sent anything; nothing went out from here."""
