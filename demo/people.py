"""Who works at the company: seven teams, their applications, credentials and users."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from demo.models import INDEX
from demo.shapes import CONSUMER, NIGHT, OFFICE, DayShape

ORGANISATION_ID = "org-acme"


class Kind(StrEnum):
    """What an application does with a model; decides which generator makes its calls."""

    CHAT = "chat"
    RETRIEVAL = "rag"
    COMPLETION = "completion"
    DRAFT = "draft"
    DOCUMENT = "document"
    CODING_AGENT = "coding_agent"
    SUPPORT_AGENT = "support_agent"
    BATCH = "batch"


class Users(StrEnum):
    """Whose name a call carries: an employee, a customer of the product, or nobody."""

    STAFF = "staff"
    CUSTOMERS = "customers"
    NONE = "none"


TEAMS = {
    "search": "team-1c07",
    "support": "team-2f4a",
    "developer-experience": "team-3b91",
    "data-platform": "team-4e62",
    "marketing": "team-5d18",
    "finance": "team-6a3f",
    "platform": "team-7c55",
}
"""team alias: team id."""

STAFF = 200
CUSTOMERS = 2500


@dataclass(frozen=True)
class App:
    """One application.

    `per_month`: gateway calls a month at scale 1 (tasks for agents, sessions for documents, jobs for batch).
    `deployments`: (deployment name, weight); `environments`: (environment, weight), one credential each.
    """

    name: str
    team: str
    kind: Kind
    per_month: int
    deployments: tuple[tuple[str, float], ...]
    shape: DayShape = OFFICE
    users: Users = Users.STAFF
    features: tuple[str, ...] = ("default",)
    environments: tuple[tuple[str, float], ...] = (("prod", 0.95), ("staging", 0.05))
    agent: str | None = None
    sub_agents: tuple[str, ...] = ()
    sub_agent_deployment: str | None = None
    embedding_deployment: str | None = None
    has_credential: bool = True


APPS: tuple[App, ...] = (
    App(
        "product-search",
        "search",
        Kind.RETRIEVAL,
        25_000,
        (("sonnet-4-5-us-east-1-ai-prod", 0.6), ("sonnet-4-5-global-us-east-1-ai-prod", 0.4)),
        CONSUMER,
        Users.CUSTOMERS,
        ("answer", "compare", "recommend"),
        embedding_deployment="titan-embed-v2-us-east-1-ai-prod",
    ),
    App(
        "docs-assistant",
        "search",
        Kind.RETRIEVAL,
        7_000,
        (("haiku-4-5-eu-west-1-ai-prod", 1.0),),
        OFFICE,
        Users.CUSTOMERS,
        ("docs", "release-notes"),
        embedding_deployment="titan-embed-v2-eu-west-1-ai-prod",
    ),
    App(
        "support-agent",
        "support",
        Kind.SUPPORT_AGENT,
        3_800,
        (("sonnet-4-6-us-east-1-ai-prod", 0.65), ("sonnet-4-6-eu-west-1-ai-prod", 0.35)),
        CONSUMER,
        Users.CUSTOMERS,
        ("returns", "billing", "delivery"),
        agent="support-agent",
        sub_agents=("refund-checker",),
        sub_agent_deployment="haiku-4-5-us-east-1-ai-prod",
    ),
    App(
        "ticket-triage",
        "support",
        Kind.CHAT,
        8_000,
        (("nova-lite-us-east-1-ai-prod", 0.55), ("nova-pro-geo-eu-west-1-ai-prod", 0.45)),
        CONSUMER,
        Users.NONE,
        ("classify", "summarise"),
    ),
    App(
        "code-agent",
        "developer-experience",
        Kind.CODING_AGENT,
        1_080,
        (("opus-4-6-us-east-1-ai-dev", 1.0),),
        features=("feature", "bugfix", "refactor", "tests"),
        agent="coder",
        sub_agents=("explore", "plan"),
        sub_agent_deployment="haiku-4-5-us-east-1-ai-dev",
        environments=(("prod", 1.0),),
    ),
    App(
        "code-review",
        "developer-experience",
        Kind.CODING_AGENT,
        500,
        (("sonnet-4-5-us-east-1-ai-prod", 1.0),),
        features=("pull-request", "security"),
        agent="reviewer",
        sub_agents=("explore",),
        sub_agent_deployment="haiku-4-5-us-east-1-ai-prod",
        environments=(("prod", 1.0),),
    ),
    App(
        "code-complete",
        "developer-experience",
        Kind.COMPLETION,
        7_000,
        (("gpt-oss-120b-us-east-1-ai-dev", 1.0),),
        features=("inline",),
    ),
    App(
        "doc-extraction",
        "data-platform",
        Kind.BATCH,
        1_050,
        (
            ("sonnet-4-6-us-east-1-data-platform", 0.55),
            ("haiku-4-5-us-east-1-data-platform", 0.15),
            ("nova-pro-us-east-1-data-platform", 0.30),
        ),
        NIGHT,
        Users.NONE,
        ("contracts", "invoices"),
        environments=(("prod", 1.0),),
    ),
    App(
        "sql-copilot",
        "data-platform",
        Kind.RETRIEVAL,
        9_000,
        (("nova-pro-geo-us-east-1-data-platform", 0.5), ("sonnet-4-6-us-east-1-data-platform", 0.5)),
        features=("explain", "write-query"),
    ),
    App(
        "copy-studio",
        "marketing",
        Kind.DRAFT,
        15_000,
        (("sonnet-4-6-global-us-east-1-ai-prod", 1.0),),
        features=("campaign", "product-page", "newsletter"),
    ),
    App(
        "localisation",
        "marketing",
        Kind.BATCH,
        420,
        (("nova-lite-us-east-1-data-platform", 0.3), ("haiku-4-5-us-east-1-data-platform", 0.7)),
        NIGHT,
        Users.NONE,
        ("catalogue",),
        environments=(("prod", 1.0),),
    ),
    App(
        "filings-analyst",
        "finance",
        Kind.DOCUMENT,
        2_500,
        (("opus-4-6-us-east-1-ai-prod", 1.0),),
        features=("10-k", "contracts"),
    ),
    App(
        "invoice-reader",
        "finance",
        Kind.RETRIEVAL,
        9_000,
        (("nova-pro-us-east-1-ai-prod", 1.0),),
        CONSUMER,
        Users.NONE,
        ("match",),
    ),
    App(
        "assistant",
        "platform",
        Kind.CHAT,
        10_000,
        (("haiku-4-5-global-eu-west-1-ai-dev", 0.5), ("sonnet-4-6-global-eu-west-1-ai-dev", 0.5)),
        features=("chat", "summarise"),
        environments=(("prod", 1.0),),
    ),
    App(
        "migration-agent",
        "platform",
        Kind.CODING_AGENT,
        230,
        (("opus-4-6-global-eu-west-1-ai-dev", 1.0),),
        features=("java-21", "terraform"),
        agent="migrator",
        sub_agents=("general-purpose",),
        sub_agent_deployment="haiku-4-5-global-eu-west-1-ai-dev",
        environments=(("dev", 1.0),),
    ),
    App(
        "evals",
        "platform",
        Kind.RETRIEVAL,
        4_500,
        (
            ("sonnet-4-6-us-east-1-ai-dev", 0.4),
            ("haiku-4-5-us-east-1-ai-dev", 0.3),
            ("opus-4-6-us-east-1-ai-dev", 0.3),
        ),
        NIGHT,
        Users.NONE,
        ("regression",),
        environments=(("dev", 1.0),),
    ),
    # Runs only in the 'untagged' incident, with the gateway's master key: no credential of its own.
    App(
        "backfill-script",
        "data-platform",
        Kind.RETRIEVAL,
        0,
        (("sonnet-4-6-us-east-1-ai-prod", 1.0),),
        NIGHT,
        Users.NONE,
        has_credential=False,
    ),
)
APP_INDEX = {app.name: number for number, app in enumerate(APPS)}

AGENTS = ("coder", "reviewer", "migrator", "support-agent", "explore", "plan", "general-purpose", "refund-checker")
AGENT_INDEX = {name: number for number, name in enumerate(AGENTS)}


@dataclass(frozen=True)
class Credential:
    """A virtual key of the gateway: one per team, application and environment. Alias `<team>/<app>/<env>`."""

    app: App
    environment: str

    @property
    def alias(self) -> str:
        return f"{self.app.team}/{self.app.name}/{self.environment}"


CREDENTIALS = [Credential(app, name) for app in APPS if app.has_credential for name, _ in app.environments]
CREDENTIAL_INDEX = {(key.app.name, key.environment): number for number, key in enumerate(CREDENTIALS)}

for _app in APPS:
    for _name, _ in _app.deployments:
        if _name not in INDEX:
            raise LookupError(f"{_app.name} uses the deployment {_name}, which is not in models.DEPLOYMENTS")


def pick(rng: np.random.Generator, n: int, weighted: list[tuple[int, float]]) -> np.ndarray:
    """n draws of the weighted numbers, int64."""
    numbers = np.array([number for number, _ in weighted])
    weights = np.array([weight for _, weight in weighted])
    return numbers[_ranks(rng, n, weights)]


def pick_deployments(rng: np.random.Generator, app: App, n: int) -> np.ndarray:
    return pick(rng, n, [(INDEX[name], weight) for name, weight in app.deployments])


def pick_credentials(rng: np.random.Generator, app: App, n: int) -> np.ndarray:
    if not app.has_credential:
        return np.full(n, -1)
    return pick(rng, n, [(CREDENTIAL_INDEX[app.name, name], weight) for name, weight in app.environments])


def pick_users(rng: np.random.Generator, app: App, n: int) -> np.ndarray:
    """User numbers, -1 for none. A few use an application a lot: popularity falls with rank (Zipf)."""
    if app.users is Users.NONE:
        return np.full(n, -1)
    pool = members(app.team) if app.users is Users.STAFF else np.arange(CUSTOMERS)
    if app.name in ("assistant", "code-agent", "code-complete"):  # open to all employees
        pool = np.arange(STAFF)
    popularity = 1.0 / (np.arange(len(pool)) + 3.0)
    return pool[_ranks(rng, n, popularity)]


def _ranks(rng: np.random.Generator, n: int, weights: np.ndarray) -> np.ndarray:
    """n positions in `weights`, each drawn in proportion to its weight."""
    return np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(n)).clip(max=len(weights) - 1)


def members(team: str) -> np.ndarray:
    """The employees of a team: every seventh of the company."""
    return np.arange(list(TEAMS).index(team), STAFF, len(TEAMS))
