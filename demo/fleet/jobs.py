"""What one engine is asked to do, and what became of it."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import IntEnum

SHARE_BITS = 20
"""Shares of a step are kept in 2^-20 ns, so that what equal shares leave over stays far below a microsecond."""

NO_ADAPTER = -1


class State(IntEnum):
    """Where a job is; the first four are still on the engine."""

    WAITING = 0
    PREFILLING = 1
    DECODING = 2
    DONE = 3
    ABORTED = 4  # the client went away
    LOST = 5  # the engine died


@dataclass(slots=True, eq=False)
class Job:
    """One request on one engine. Instants in nanoseconds since the epoch, tokens, costs in nanoseconds of step time.

    `chain`: the conversation, `shared_tokens` of whose tokens (system prompt included) an earlier turn had, too;
    `transferred`: keys and values of the whole prompt come from a prefill engine.
    """

    number: int
    arrive_ns: int
    prompt: int
    output: int
    system_chain: Hashable = None
    system_tokens: int = 0
    chain: Hashable = None
    shared_tokens: int = 0
    adapter: int = NO_ADAPTER
    abort_ns: int = 0  # 0: never
    ends_by_length: bool = False
    transferred: bool = False
    # what the engine keeps while it works
    state: State = State.WAITING
    left: int = 0  # prompt tokens still to compute
    computed: int = 0  # context tokens that are there
    private: int = 0  # tokens of memory that no other request can use
    from_step: int = 0
    finish_step: int = 0
    context_at_start: int = 0
    share_at_start: int = 0
    adapter_share_at_start: int = 0
    pins: list[Hashable] = field(default_factory=list)
    # what became of it
    cached: int = 0  # prompt tokens found in the prefix cache when it was first admitted
    generated: int = 0
    counted: bool = False  # the prompt is in the engine's counter
    preemptions: int = 0
    first_token_ns: int = 0
    end_ns: int = 0
    prefill_ns: int = 0
    cached_ns: int = 0
    decode_ns: int = 0
    prefill_share: int = 0
    decode_share: int = 0

    @property
    def used_shares(self) -> tuple[int, int, int]:
        """Step time used by prefill, cached tokens and decode, in 2^-20 ns."""
        return (
            (self.prefill_ns << SHARE_BITS) + self.prefill_share,
            self.cached_ns << SHARE_BITS,
            (self.decode_ns << SHARE_BITS) + self.decode_share,
        )
