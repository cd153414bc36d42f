"""A second engine for tests: the same rules, step by step, charging every sequence in every step."""

from fractions import Fraction

from demo.fleet.jobs import NO_ADAPTER, Job
from demo.fleet.steps import EngineSpec

SMALL = EngineSpec(
    gpus=2,
    step_ns=9_000_001,
    prompt_token_ns=70_000,
    cached_token_ns=500,
    sequence_ns=31_000,
    context_token_ns=113,
    attention_ps=2_100,
    adapter_ns=400_003,
    host_ns=600_000,
    token_budget=512,
    max_sequences=5,
    kv_tokens=100_000,
    caches_prefixes=False,
)


class Stepwise:
    """Simulates jobs without preemption, time-outs or caching, one step after the other."""

    def __init__(self, spec: EngineSpec, jobs: list[Job]) -> None:
        self.spec = spec
        self.used: dict[int, Fraction] = {job.number: Fraction(0) for job in jobs}
        self.first_ns: dict[int, int] = {}
        self.end_ns: dict[int, int] = {}
        self.stepping_ns = 0
        self.steps = 0
        self._run(jobs)

    def _run(self, jobs: list[Job]) -> None:
        now, coming, running = 0, list(jobs), []
        read = {job.number: 0 for job in jobs}
        written = {job.number: 0 for job in jobs}
        while coming or running:
            if not running and coming[0].arrive_ns > now:
                now = coming[0].arrive_ns
            decoding = [job for job in running if read[job.number] == job.prompt]
            budget = self.spec.token_budget - len(decoding)
            chunks: list[tuple[Job, int]] = []
            for job in running:
                if job not in decoding and budget > 0:
                    tokens = min(job.prompt - read[job.number], budget)
                    chunks.append((job, tokens))
                    budget -= tokens
            while coming and coming[0].arrive_ns <= now and budget > 0 and len(running) < self.spec.max_sequences:
                job = coming.pop(0)
                running.append(job)
                tokens = min(job.prompt, budget)
                chunks.append((job, tokens))
                budget -= tokens
            now += self._step(decoding, chunks, read, written) + self.spec.host_ns
            for job, tokens in chunks:
                read[job.number] += tokens
                if read[job.number] == job.prompt:
                    written[job.number] = 1
                    self.first_ns[job.number] = now
            for job in decoding:
                written[job.number] += 1
            for job in list(running):
                if written[job.number] == job.output:
                    self.end_ns[job.number] = now
                    running.remove(job)

    def _step(
        self, decoding: list[Job], chunks: list[tuple[Job, int]], read: dict[int, int], written: dict[int, int]
    ) -> int:
        """GPU time of one step; each sequence is charged with its own part and its share of the fixed cost."""
        spec = self.spec
        own: dict[int, int] = {}
        for job in decoding:
            own[job.number] = spec.sequence_ns + spec.context_token_ns * (job.prompt + written[job.number])
        for job, tokens in chunks:
            pairs = sum(read[job.number] + before for before in range(tokens))
            own[job.number] = spec.sequence_ns + spec.prompt_token_ns * tokens + spec.attention_ps * pairs // 1000
        batch = [*decoding, *(job for job, _ in chunks)]
        adapters = [job.adapter for job in batch if job.adapter != NO_ADAPTER]
        for job in batch:
            self.used[job.number] += own[job.number] + Fraction(spec.step_ns, len(batch))
            if job.adapter != NO_ADAPTER:
                self.used[job.number] += Fraction(spec.adapter_ns, adapters.count(job.adapter))
        took = spec.step_ns + sum(own.values()) + spec.adapter_ns * len(set(adapters))
        self.stepping_ns += took
        self.steps += 1
        return took
