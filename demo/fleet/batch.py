"""The sequences that an engine decodes together, and each one's share of the steps it takes part in."""

import heapq

from demo.fleet.jobs import NO_ADAPTER, SHARE_BITS, Job, State
from demo.fleet.steps import EngineSpec


class Batch:
    """Decoding sequences. Cumulative sums make a sequence's part in any number of steps a difference."""

    def __init__(self, spec: EngineSpec, adapters: int) -> None:
        self.spec = spec
        self.jobs: dict[int, Job] = {}  # in order of admission
        self.steps = 0  # of the engine, since its start
        self.context = 0  # tokens of all sequences, in the next step
        self.left_over = 0  # what equal shares did not give to anyone, 2^-20 ns
        self.adapter_users = [0] * adapters
        self._share = 0
        self._adapter_share = [0] * adapters
        self._ends: list[tuple[int, int, Job]] = []

    def add(self, job: Job, context: int) -> None:
        """A job decodes from the next step on, in which its context is `context` tokens."""
        job.state = State.DECODING
        job.from_step = self.steps
        job.finish_step = self.steps + job.output - job.generated
        job.context_at_start = context
        job.share_at_start = self._share
        if job.adapter != NO_ADAPTER:
            job.adapter_share_at_start = self._adapter_share[job.adapter]
            self.adapter_users[job.adapter] += 1
        self.jobs[job.number] = job
        self.context += context
        heapq.heappush(self._ends, (job.finish_step, job.number, job))

    def settle(self, job: Job) -> None:
        """Take a job out, and charge it with its part of the steps it was in."""
        steps = self.steps - job.from_step
        job.decode_ns += self.spec.decode_ns(steps, job.context_at_start)
        job.decode_share += self._share - job.share_at_start
        if job.adapter != NO_ADAPTER:
            job.decode_share += self._adapter_share[job.adapter] - job.adapter_share_at_start
            self.adapter_users[job.adapter] -= 1
        job.generated += steps
        job.private += steps
        self.context -= job.context_at_start + steps
        del self.jobs[job.number]

    def next_end(self) -> int:
        """Steps until the first sequence ends."""
        while not self._ends_now(self._ends[0]):
            heapq.heappop(self._ends)
        return self._ends[0][0] - self.steps

    def ended(self) -> list[Job]:
        """The jobs whose last step has been taken; each is returned once."""
        found = []
        while self._ends and self._ends[0][0] <= self.steps:
            end = heapq.heappop(self._ends)
            if self._ends_now(end):
                found.append(end[2])
        return found

    @staticmethod
    def _ends_now(end: tuple[int, int, Job]) -> bool:
        """False for what was preempted or aborted since it was entered."""
        return end[2].state == State.DECODING and end[2].finish_step == end[0]

    def own_ns(self) -> int:
        """What the next step costs for the sequences themselves: their tokens and reading their contexts."""
        return self.spec.sequence_ns * len(self.jobs) + self.spec.context_token_ns * self.context

    def fixed_ns(self, users: list[int]) -> int:
        """What a step costs whatever its size, with so many sequences per adapter."""
        return self.spec.step_ns + self.spec.adapter_ns * sum(1 for count in users if count)

    def take_steps(self, steps: int, others: int, users: list[int]) -> tuple[int, list[int]]:
        """All decode `steps` tokens, beside `others` sequences that read their prompts.

        The fixed cost is shared equally by the sequences in a step, an adapter's by the sequences that use it. Returns
        the shares of one step: per sequence, and per sequence of each adapter, in 2^-20 ns.
        """
        count = len(self.jobs)
        fixed, of_adapter = self.spec.step_ns << SHARE_BITS, self.spec.adapter_ns << SHARE_BITS
        share = fixed // (count + others)
        per_adapter = [of_adapter // using if using else 0 for using in users]
        left = fixed - share * (count + others)
        left += sum(of_adapter - each * using for each, using in zip(per_adapter, users, strict=True) if using)
        self.left_over += left * steps
        self._share += share * steps
        for adapter, each in enumerate(per_adapter):
            self._adapter_share[adapter] += each * steps
        self.steps += steps
        self.context += count * steps
        return share, per_adapter
