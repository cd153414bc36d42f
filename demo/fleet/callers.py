"""Who uses the fleet: applications of the company's teams, most of them through the gateway."""

from dataclasses import dataclass

from demo import shapes
from demo.agents import Habit
from demo.models import WRITE_5M
from demo.people import APP_INDEX, APPS, App
from demo.shapes import CONSUMER, OFFICE, ROUND_THE_CLOCK, DayShape, Quantiles

BATCH_NIGHT = DayShape((60, 100, 100, 80, 30) + (0,) * 19, weekend=0.9, burst=0.08)
"""Job queues are handed over in bursts: most of a night's documents arrive within some minutes."""

WORKDAYS = DayShape(OFFICE.hours, weekend=0.004, burst=2.0)
"""Nearly nothing at week-ends, and yet never nothing."""

CHAT_TURNS = Habit(
    requests=Quantiles((0.0, 0.5, 0.9, 1.0), (1, 3, 9, 30)),
    first_input=Quantiles((0.0, 0.5, 0.9, 1.0), (1350, 2100, 4200, 12000)),
    growth=Quantiles((0.0, 0.5, 0.9, 1.0), (90, 480, 1500, 6000)),
    output=shapes.CONVERSATION_OUTPUT,
    first_token_s=shapes.FIRST_TOKEN_S,
    think_s=Quantiles((0.0, 0.25, 0.5, 0.9, 1.0), (6, 15, 45, 300, 1800)),
    prefix_tokens=1280,
    prefix_warm=0.0,
    ttl_s=0,
    write_class=WRITE_5M,
    compact_at=48_000,
    compact_to=12_000,
    wide_compact_at=48_000,
)
REVIEW_TASK = Habit(
    requests=Quantiles((0.0, 0.25, 0.5, 0.9, 1.0), (3, 7, 13, 34, 80)),
    first_input=Quantiles((0.0, 0.5, 0.9, 1.0), (8000, 13000, 22000, 30000)),
    growth=shapes.SUB_AGENT_GROWTH,
    output=Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (30, 90, 240, 900, 3000)),
    first_token_s=shapes.FIRST_TOKEN_S,
    think_s=shapes.SUB_AGENT_THINK_S,
    prefix_tokens=7200,
    prefix_warm=0.0,
    ttl_s=0,
    write_class=WRITE_5M,
    compact_at=64_000,
    compact_to=16_000,
    wide_compact_at=64_000,
)
SUPPORT_TASK = Habit(
    requests=Quantiles((0.0, 0.5, 0.9, 1.0), (2, 6, 15, 35)),
    first_input=Quantiles((0.0, 0.5, 1.0), (5200, 7000, 14000)),
    growth=Quantiles((0.0, 0.5, 0.9, 1.0), (120, 700, 2600, 8000)),
    output=shapes.SUPPORT_OUTPUT,
    first_token_s=shapes.FIRST_TOKEN_S,
    think_s=Quantiles((0.0, 0.25, 0.5, 0.9, 1.0), (4.0, 10, 40, 240, 1500)),
    prefix_tokens=4800,
    prefix_warm=0.0,
    ttl_s=0,
    write_class=WRITE_5M,
    compact_at=48_000,
    compact_to=12_000,
    wide_compact_at=48_000,
)


@dataclass(frozen=True)
class Caller:
    """One application's use of one served name.

    `per_month`: conversations, tasks or single requests a month at scale 1; `inputs`, `outputs`: of single requests;
    `home`: (cluster, weight); `time_out_s`: how long the caller waits; `logged`: False where the caller reaches the
    service within the cluster, past the gateway.
    """

    app: str
    team: str
    served: str
    per_month: int
    shape: DayShape
    home: tuple[tuple[str, float], ...]
    habit: Habit | None = None
    inputs: Quantiles | None = None
    outputs: Quantiles | None = None
    system_tokens: int = 0
    features: tuple[str, ...] = ("default",)
    agent: str | None = None
    time_out_s: int = 120
    stream: bool = True
    logged: bool = True

    @property
    def organisation_app(self) -> App | None:
        """The application as people.py knows it; None for what runs inside a cluster only."""
        return APPS[APP_INDEX[self.app]] if self.logged else None


US, EU = "llm-us-east-1", "llm-eu-west-1"
SHORT_ANSWER = Quantiles((0.0, 0.5, 0.9, 1.0), (2, 14, 60, 300))
ARTICLE = Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (120, 350, 800, 1700, 3000))
DOCUMENT = Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (900, 1800, 4600, 12000, 30000))
EXTRACT = Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (60, 160, 380, 900, 2000))
PASSAGES = Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (1400, 2400, 5200, 11000, 24000))

CALLERS = (
    Caller("assistant", "platform", "qwen3-32b", 27_000, OFFICE, ((US, 0.55), (EU, 0.45)), CHAT_TURNS,
           features=("chat", "summarise")),
    Caller("docs-assistant", "search", "qwen3-32b", 30_000, OFFICE, ((EU, 1.0),), inputs=PASSAGES,
           outputs=shapes.RETRIEVAL_OUTPUT, system_tokens=1024, features=("docs", "release-notes")),
    Caller("ticket-triage", "support", "qwen3-32b-support", 66_000, CONSUMER, ((US, 0.7), (EU, 0.3)),
           inputs=shapes.CONVERSATION_INPUT, outputs=SHORT_ANSWER, system_tokens=960, stream=False, time_out_s=60,
           features=("classify", "summarise")),
    Caller("support-agent", "support", "qwen3-32b-support", 2_400, CONSUMER, ((US, 0.65), (EU, 0.35)), SUPPORT_TASK,
           features=("returns", "billing", "delivery"), agent="support-agent"),
    Caller("copy-studio", "marketing", "qwen3-32b-marketing", 33_000, OFFICE, ((US, 1.0),), inputs=PASSAGES,
           outputs=ARTICLE, system_tokens=2048, features=("campaign", "product-page", "newsletter")),
    Caller("code-complete", "developer-experience", "gpt-oss-120b", 120_000, WORKDAYS, ((US, 1.0),),
           inputs=shapes.COMPLETION_INPUT, outputs=shapes.COMPLETION_OUTPUT, time_out_s=20, features=("inline",)),
    Caller("code-review", "developer-experience", "gpt-oss-120b", 1_500, WORKDAYS, ((US, 1.0),), REVIEW_TASK,
           features=("pull-request", "security"), agent="reviewer", time_out_s=300),
    Caller("sql-copilot", "data-platform", "gpt-oss-120b", 30_000, WORKDAYS, ((US, 1.0),), inputs=PASSAGES,
           outputs=shapes.RETRIEVAL_OUTPUT, system_tokens=1600, features=("explain", "write-query")),
    Caller("doc-extraction", "data-platform", "qwen3-14b", 30_000, BATCH_NIGHT, ((US, 0.8), (EU, 0.2)), inputs=DOCUMENT,
           outputs=EXTRACT, system_tokens=640, stream=False, time_out_s=3600, features=("contracts", "invoices")),
    Caller("localisation", "marketing", "qwen3-14b", 18_000, BATCH_NIGHT, ((US, 0.6), (EU, 0.4)), inputs=DOCUMENT,
           outputs=ARTICLE, system_tokens=480, stream=False, time_out_s=3600, features=("catalogue",)),
    Caller("search-indexer", "search", "qwen3-32b", 33_000, ROUND_THE_CLOCK, ((US, 1.0),),
           inputs=shapes.CONVERSATION_INPUT, outputs=SHORT_ANSWER, system_tokens=320, stream=False, logged=False),
    Caller("log-summariser", "platform", "gpt-oss-120b", 21_000, WORKDAYS, ((US, 1.0),), inputs=PASSAGES,
           outputs=EXTRACT, system_tokens=400, stream=False, logged=False),
)  # fmt: skip
