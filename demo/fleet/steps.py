"""How long one step of an inference engine takes, and closed forms over runs of like steps. Whole nanoseconds.

A step computes one token for every sequence that decodes and a chunk of the prompt for some that do not yet. Its time
on the GPU is the sum of what its parts cost (reading the weights; computing prompt tokens; attention over what came
before; reading each sequence's keys and values), so a part can be charged to the sequence that caused it.
Orders of magnitude follow from parameter counts, memory bandwidth and arithmetic rates of the GPUs.
"""

from dataclasses import dataclass
from math import isqrt


@dataclass(frozen=True)
class EngineSpec:
    """One engine on its GPUs. Times in nanoseconds of one step; `gpus`: tensor-parallel size of one replica."""

    gpus: int
    step_ns: int  # t0: weights read once, all-reduces, kernel launches
    prompt_token_ns: int  # a: arithmetic of one computed prompt token
    cached_token_ns: int  # b: looking up and mapping one cached prompt token
    sequence_ns: int  # c: one sequence in the batch: its own token, sampling
    context_token_ns: int  # k: reading keys and values of one token of context
    attention_ps: int  # prefill attention, picoseconds per pair of tokens
    adapter_ns: int  # one LoRA adapter that any sequence of the batch uses
    host_ns: int  # between two steps: the scheduler on the CPU; requests run, the GPU does not
    token_budget: int  # computed tokens a step, prompt chunks and decodes together
    max_sequences: int
    kv_tokens: int
    block_tokens: int = 16
    caches_prefixes: bool = True

    def prompt_chunk_ns(self, tokens: int, before: int) -> int:
        """Own cost of computing `tokens` prompt tokens that follow `before` tokens of context."""
        pairs = tokens * before + tokens * (tokens - 1) // 2
        return self.sequence_ns + self.prompt_token_ns * tokens + self.attention_ps * pairs // 1000

    def decode_ns(self, steps: int, context: int) -> int:
        """Own cost of `steps` decode steps of one sequence whose context is `context` tokens in the first of them."""
        return steps * (self.sequence_ns + self.context_token_ns * context) + self.growth_ns(steps, 1)

    def growth_ns(self, steps: int, sequences: int) -> int:
        """What `steps` steps cost more because every sequence's context grows by a token a step."""
        return self.context_token_ns * sequences * (steps * (steps - 1) // 2)


def steps_within(elapsed_ns: int, first_ns: int, growth_ns: int) -> int:
    """How many whole steps end within `elapsed_ns`, when the first takes `first_ns` and each next `growth_ns` more."""
    if growth_ns == 0:
        return elapsed_ns // first_ns
    middle = 2 * first_ns - growth_ns
    return (isqrt(middle * middle + 8 * growth_ns * elapsed_ns) - middle) // (2 * growth_ns)


def steps_to_reach(elapsed_ns: int, first_ns: int, growth_ns: int) -> int:
    """The fewest steps that together last at least `elapsed_ns` (> 0)."""
    return steps_within(elapsed_ns - 1, first_ns, growth_ns) + 1
