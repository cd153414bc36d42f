"""One inference engine with continuous batching, chunked prefill, paged memory, preemption and a prefix cache.

Time goes from change to change of the batch: between an arrival, a chunk of a prompt, an end and a preemption all steps
are alike but for the growing context, and have a closed form (steps.py). A sequence's share of the steps it was in is a
difference of cumulative sums (batch.py), so an event costs the same whatever the length of the answers.
"""

import heapq
from bisect import bisect_right
from collections import deque

from demo.fleet.batch import Batch
from demo.fleet.counters import Counters
from demo.fleet.jobs import NO_ADAPTER, Job, State
from demo.fleet.memory import Memory
from demo.fleet.steps import EngineSpec, steps_to_reach, steps_within
from demo.fleet.watch import Situation, Watch


class Engine:
    """One process of an engine, from its start to its end."""

    def __init__(self, spec: EngineSpec, start_ns: int, marks_ns: list[int], adapters: int = 0) -> None:
        """`marks_ns`: ascending instants at which the counters are wanted; `adapters`: how many LoRA adapters."""
        self.spec = spec
        self.now = start_ns
        self.counters = Counters()
        self.memory = Memory(spec)
        self.batch = Batch(spec, adapters)
        self.waiting: deque[Job] = deque()
        self.prefilling: list[Job] = []
        self.last_end_ns = start_ns
        self._watch = Watch(spec, marks_ns, self.counters)
        self._fresh: list[Job] = []  # transferred jobs: their first token comes with their first step
        self._aborts: list[tuple[int, int, Job]] = []
        self._arrivals: list[int] = []
        self._arrived = 0

    def run(self, jobs: list[Job], stop_ns: int) -> None:
        """Serve the jobs, which are in order of arrival, until `stop_ns`; what is not done by then stays as it is."""
        self._arrivals = [job.arrive_ns for job in jobs]
        while True:
            while self._arrived < len(jobs) and self._arrivals[self._arrived] <= self.now:
                self._enqueue(jobs[self._arrived])
                self._arrived += 1
            self._abort_due()
            chunks = self._compose() if self.waiting or self.prefilling else []
            if chunks:
                if not self._mixed_step(chunks, stop_ns):
                    break
            elif self.batch.jobs:
                if not self._decode(stop_ns):
                    break
            elif not self.waiting:  # else: what was preempted last is alone now, and fits
                if self._arrived == len(jobs) or self._arrivals[self._arrived] >= stop_ns:
                    break
                self._watch.still(self._arrivals[self._arrived], self.now, self._situation(), self._still_waiting)
                self.now = self._arrivals[self._arrived]
        self._watch.still(stop_ns + 1, self.now, self._situation(), self._still_waiting)

    def end(self, at_ns: int, died: bool) -> None:
        """Settle what is still on the engine when it dies, or when nobody looks any more."""
        for job in [*self.batch.jobs.values(), *self.prefilling, *self.waiting]:
            if job.state == State.DECODING:
                self.batch.settle(job)
            job.end_ns = at_ns
            if died:
                job.state = State.LOST

    # ---- what comes and goes

    def _enqueue(self, job: Job) -> None:
        if job.prompt + job.output >= self.spec.kv_tokens:
            raise ValueError(f"{job.prompt} + {job.output} tokens never fit into {self.spec.kv_tokens}")
        self.waiting.append(job)
        if job.abort_ns:
            heapq.heappush(self._aborts, (job.abort_ns, job.number, job))

    def _abort_due(self) -> None:
        while self._aborts and (self._aborts[0][0] <= self.now or self._aborts[0][2].state >= State.DONE):
            job = heapq.heappop(self._aborts)[2]
            if job.state < State.DONE:
                self.counters.abort += 1
                self._leave(job, State.ABORTED)

    def _leave(self, job: Job, state: State) -> None:
        """The job is over: its memory is free, and what was read stays in the cache while there is room."""
        held = job.computed
        if job.number in self.batch.jobs:
            self.batch.settle(job)
            held = job.prompt + job.generated - 1
        elif job.state == State.PREFILLING:
            self.prefilling.remove(job)
        elif job.state == State.WAITING:
            self.waiting.remove(job)
        if state == State.DONE:
            if job.ends_by_length:
                self.counters.length += 1
            else:
                self.counters.stop += 1
        job.state, job.end_ns = state, self.now
        self.last_end_ns = self.now
        self.memory.free(job, held)

    def _preempt(self) -> None:
        """Who came last goes back to the queue, without its memory: its context is computed again."""
        job = next(reversed(self.batch.jobs.values()))
        self.batch.settle(job)
        self.memory.free(job, 0)
        job.state = State.WAITING
        job.preemptions += 1
        self.counters.preemptions += 1
        self.waiting.appendleft(job)

    # ---- scheduling

    def _compose(self) -> list[tuple[Job, int]]:
        """Chunks of prompts for the next step, first come first served; admits waiting jobs while there is room."""
        spec, chunks = self.spec, []
        budget = spec.token_budget - len(self.batch.jobs)
        for job in self.prefilling:
            if budget <= 0:
                break
            tokens = min(job.left, budget)
            chunks.append((job, tokens))
            budget -= tokens
        while self.waiting and budget > 0 and len(self.batch.jobs) + len(self.prefilling) < spec.max_sequences:
            job = self.waiting[0]
            if not self._admit(job):
                break
            self.waiting.popleft()
            tokens = min(job.left, budget) or 1
            budget -= tokens
            if job.state == State.PREFILLING:
                chunks.append((job, tokens))
        return chunks

    def _admit(self, job: Job) -> bool:
        """Start a job, if there is memory for its context; look its prompt up in the prefix cache."""
        hit = self.memory.admit(job, alone=not self.batch.jobs and not self.prefilling)
        if hit is None:
            return False
        if job.transferred and not job.preemptions:
            job.cached = job.prompt - 1  # the engine computes a prompt's last token itself
            self._count_prompt(job)
            self.batch.add(job, job.prompt)
            self._fresh.append(job)
            return True
        if self.spec.caches_prefixes and not job.preemptions:
            self.counters.queries += job.prompt
            self.counters.hits += hit
            job.cached = hit
        job.left, job.computed, job.state = job.prompt + job.generated - hit, hit, State.PREFILLING
        self.prefilling.append(job)
        return True

    # ---- steps

    def _decode(self, stop_ns: int) -> bool:
        """Run steps that only decode, up to the next change of the batch; False if `stop_ns` comes before it."""
        while self.batch.jobs and self.memory.room < len(self.batch.jobs):
            self._preempt()
        count, users = len(self.batch.jobs), self.batch.adapter_users
        if not count:
            return True
        gpu_ns, growth = self.batch.fixed_ns(users) + self.batch.own_ns(), self.spec.context_token_ns * count
        first_ns = gpu_ns + self.spec.host_ns
        steps = min(self.batch.next_end(), self.memory.room // count)
        change = self._arrivals[self._arrived] if self._arrived < len(self._arrivals) else stop_ns
        if self._aborts:
            change = min(change, self._aborts[0][0])
        if change > self.now:
            steps = min(steps, steps_to_reach(change - self.now, first_ns, growth))
        possible = steps_within(stop_ns - self.now, first_ns, growth)
        stopped, steps = possible < steps, min(steps, possible)
        took_ns = gpu_ns * steps + growth * (steps * (steps - 1) // 2)
        until = self.now + took_ns + self.spec.host_ns * steps
        if self._watch.due(until):
            situation = self._situation()
            self._watch.decoding(until, self.now, situation, self._still_waiting, first_ns, growth)
        if steps:
            self._first_tokens(self.now + first_ns)
            self._take_steps(steps, took_ns, until, 0, users)
            self._finish()
        return not stopped

    def _mixed_step(self, chunks: list[tuple[Job, int]], stop_ns: int) -> bool:
        """One step with chunks of prompts; False if it would not end by `stop_ns`."""
        while self.batch.jobs and self.memory.room < len(self.batch.jobs):
            self._preempt()
        users = list(self.batch.adapter_users)
        for job, _ in chunks:
            if job.adapter != NO_ADAPTER:
                users[job.adapter] += 1
        own = [self.spec.prompt_chunk_ns(tokens, job.computed) for job, tokens in chunks]
        # before its first chunk a job has written nothing to its memory: that chunk looks up what is cached
        lookup = [self.spec.cached_token_ns * job.computed if job.left == job.private else 0 for job, _ in chunks]
        took_ns = self.batch.fixed_ns(users) + self.batch.own_ns() + sum(own) + sum(lookup)
        until = self.now + took_ns + self.spec.host_ns
        if until > stop_ns:
            return False
        if self._watch.due(until):
            self._watch.one_step(until, self.now, self._situation(), self._still_waiting)
        share, per_adapter = self._take_steps(1, took_ns, until, len(chunks), users)
        for (job, tokens), own_ns, lookup_ns in zip(chunks, own, lookup, strict=True):
            job.prefill_ns += own_ns
            job.cached_ns += lookup_ns
            job.prefill_share += share + (per_adapter[job.adapter] if job.adapter != NO_ADAPTER else 0)
            job.computed += tokens
            job.left -= tokens
            self.counters.computed += tokens
        self._first_tokens(until)
        for job, _ in chunks:
            if job.left == 0:
                self._end_prefill(job)
        self._finish()
        return True

    def _take_steps(self, steps: int, took_ns: int, until: int, others: int, users: list[int]) -> tuple[int, list[int]]:
        """The batch decodes `steps` tokens each, in `took_ns` on the GPU, and time moves on."""
        decoded = len(self.batch.jobs) * steps
        self.memory.grow(decoded)
        self.counters.generation += decoded
        self.counters.steps += steps
        self.counters.stepping_ns += took_ns
        self.counters.running_ns += took_ns + self.spec.host_ns * steps
        self.now = until
        return self.batch.take_steps(steps, others, users)

    def _first_tokens(self, at_ns: int) -> None:
        for job in self._fresh:
            job.first_token_ns = job.first_token_ns or at_ns
        self._fresh.clear()

    def _end_prefill(self, job: Job) -> None:
        """The prompt is read: the same step gives the first token, and others may use the blocks."""
        self.prefilling.remove(job)
        self._count_prompt(job)
        job.first_token_ns = job.first_token_ns or self.now
        job.generated += 1
        self.counters.generation += 1
        self.memory.publish_system(job)
        self.batch.add(job, job.prompt + job.generated)

    def _count_prompt(self, job: Job) -> None:
        if job.counted:
            return
        job.counted = True
        self.counters.prompt += job.prompt
        if job.transferred:
            self.counters.transferred += job.cached
        else:
            self.counters.cached += job.cached

    def _finish(self) -> None:
        for job in self.batch.ended():
            self._leave(job, State.DONE)

    # ---- observation

    def _situation(self) -> Situation:
        bits = sum(1 << number for number, count in enumerate(self.batch.adapter_users) if count)
        for job in self.prefilling:
            if job.adapter != NO_ADAPTER:
                bits |= 1 << job.adapter
        sequences = len(self.batch.jobs)
        return sequences, sequences + len(self.prefilling), self.memory.used, bits

    def _still_waiting(self, at_ns: int) -> int:
        return len(self.waiting) + bisect_right(self._arrivals, at_ns) - self._arrived
