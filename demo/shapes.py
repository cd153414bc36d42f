"""Shapes of real LLM traffic as quantile tables, and sampling from them.

The tables were read off the public traces listed in samples/README.md (Azure 2023, Mooncake FAST'25, Claude Code tasks
of kv-cache-tester). They are parameters here, so the demonstration needs no file of those traces.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Quantiles:
    """A distribution of positive numbers, given by its quantiles; logarithmic interpolation between them."""

    probabilities: tuple[float, ...]
    values: tuple[float, ...]

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """n draws, float64."""
        return self.at(rng.random(n))

    def at(self, probability: np.ndarray) -> np.ndarray:
        return np.exp(np.interp(probability, self.probabilities, np.log(self.values)))

    def tokens(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """n draws, rounded to whole tokens (at least one)."""
        return np.maximum(1, np.rint(self.sample(rng, n))).astype(np.int64)


_TAILS = (0.0, 0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1.0)

# Azure 2023 conversation: input p50 1,020, p99 4,142; output p50 129; means 1,155 and 211
CONVERSATION_INPUT = Quantiles(_TAILS, (20, 60, 160, 280, 590, 1020, 1500, 2300, 2900, 4142, 14000))
CONVERSATION_OUTPUT = Quantiles(_TAILS, (1, 4, 12, 24, 60, 129, 320, 480, 560, 700, 1000))

# Azure 2023 code: input p50 1,469, p99 7,436; output p50 13
COMPLETION_INPUT = Quantiles(_TAILS, (3, 17, 75, 147, 578, 1469, 2745, 5188, 7303, 7436, 7437))
COMPLETION_OUTPUT = Quantiles(_TAILS, (6, 6, 6, 7, 9, 13, 24, 55, 90, 251, 1899))

# Mooncake FAST'25 conversation: input p50 6,909, p95 39,551; output p50 350
RETRIEVAL_INPUT = Quantiles(_TAILS, (890, 894, 901, 964, 2307, 6909, 15367, 27367, 39551, 85400, 120000))
RETRIEVAL_OUTPUT = Quantiles(_TAILS, (1, 3, 10, 24, 157, 350, 472, 597, 698, 1119, 2000))
EMBEDDED_QUERY = Quantiles((0.0, 0.5, 0.9, 1.0), (4, 18, 60, 400))
EMBEDDED_CHUNKS = Quantiles((0.0, 0.5, 1.0), (2000, 6500, 8192))

# Claude Code tasks: 3-561 requests (median 45), request input p10/p50/p90/p99 42k/104k/234k/499k, output
# 105/216/898/3,686, API time p50 6.1 s, p99 61 s, start to start p50/p90/p95/p99 17/128/283/1,900 s
CODING_REQUESTS = Quantiles(_TAILS, (3, 3, 4, 7, 18, 45, 91, 150, 211, 342, 561))
CODING_FIRST_INPUT = Quantiles(_TAILS, (9000, 10215, 13036, 15496, 18625, 24259, 90000, 165000, 230000, 420000, 700000))
CODING_GROWTH = Quantiles(_TAILS, (100, 120, 145, 181, 324, 657, 1594, 3757, 6861, 20433, 45000))
CODING_OUTPUT = Quantiles(_TAILS, (20, 57, 88, 104, 138, 218, 426, 893, 1538, 3721, 16000))
CODING_FIRST_TOKEN_S = Quantiles(_TAILS, (0.7, 0.98, 1.45, 1.61, 1.96, 2.51, 3.81, 6.58, 9.84, 19.6, 60.0))
CODING_THINK_S = Quantiles(_TAILS, (0.2, 0.5, 3, 4, 5, 10, 27, 110, 270, 1880, 14000))

SUB_AGENT_REQUESTS = Quantiles((0.0, 0.5, 0.9, 1.0), (3, 10, 24, 45))
SUB_AGENT_FIRST_INPUT = Quantiles((0.0, 0.5, 1.0), (8000, 12500, 22000))
SUB_AGENT_GROWTH = Quantiles((0.0, 0.5, 0.9, 1.0), (150, 1200, 6000, 18000))
SUB_AGENT_THINK_S = Quantiles((0.0, 0.5, 0.9, 1.0), (0.2, 1.0, 4.0, 30.0))

SUPPORT_TURNS = Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (1, 3, 9, 22, 60))
SUPPORT_FIRST_INPUT = Quantiles((0.0, 0.5, 1.0), (9500, 14000, 30000))
SUPPORT_GROWTH = Quantiles((0.0, 0.5, 0.9, 1.0), (150, 2400, 7500, 20000))
SUPPORT_OUTPUT = Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (15, 60, 190, 420, 1500))
SUPPORT_THINK_S = Quantiles((0.0, 0.25, 0.5, 0.9, 1.0), (1.0, 8, 40, 240, 1500))

FILING_QUESTIONS = Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (1, 2, 6, 14, 40))
FILING_TOKENS = Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (15000, 45000, 92000, 150000, 185000))
FILING_GROWTH = Quantiles((0.0, 0.5, 0.9, 1.0), (300, 1500, 3000, 6000))
FILING_OUTPUT = Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (80, 300, 900, 2200, 6000))
FILING_THINK_S = Quantiles((0.0, 0.25, 0.5, 0.9, 0.97, 1.0), (5, 40, 110, 900, 4000, 9000))

DRAFT_INPUT = Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (1500, 4000, 11000, 26000, 60000))
DRAFT_OUTPUT = Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (300, 1300, 3100, 6000, 12000))

FIRST_TOKEN_S = Quantiles((0.0, 0.5, 0.9, 0.99, 1.0), (0.15, 0.55, 1.4, 4.0, 15.0))
TOKENS_PER_SECOND = 75.0
"""Fits the API time of the Claude Code tasks: p50 6.1 s, p99 61 s."""


@dataclass(frozen=True)
class DayShape:
    """How an application's calls spread over the week. `hours`: 24 weights of UTC hours; `weekend`: factor."""

    hours: tuple[float, ...]
    weekend: float
    burst: float = 2.0
    """Gamma shape of the load of one minute: smaller is burstier (Azure 2023 code: peak minute 3.8 x the mean)."""


OFFICE = DayShape(
    (1, 1, 1, 1, 2, 4, 10, 30, 60, 80, 85, 80, 70, 85, 95, 100, 95, 85, 70, 50, 35, 20, 8, 3), weekend=0.18, burst=3.0
)
CONSUMER = DayShape(
    (25, 18, 14, 12, 12, 15, 22, 35, 50, 60, 65, 70, 75, 75, 78, 80, 85, 90, 98, 100, 95, 80, 60, 40), weekend=0.8
)
NIGHT = DayShape((30, 100, 100, 90, 60, 20, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10), weekend=0.9)
ROUND_THE_CLOCK = DayShape((1.0,) * 24, weekend=1.0, burst=8.0)
