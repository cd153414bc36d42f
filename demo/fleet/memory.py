"""Memory of one engine for keys and values: what running requests hold, and the prefix cache in what is left."""

from demo.fleet.jobs import Job
from demo.fleet.prefix_cache import PrefixCache
from demo.fleet.steps import EngineSpec


class Memory:
    """Tokens of memory. `private`: held by running requests and of no use to others.

    Counted in tokens: what a request wastes in its last, partly filled block is left out.
    """

    def __init__(self, spec: EngineSpec) -> None:
        self.capacity = spec.kv_tokens
        self.caches_prefixes = spec.caches_prefixes
        self.private = 0
        self.cache = PrefixCache(spec.block_tokens)

    @property
    def used(self) -> int:
        """Tokens that running requests refer to: what `vllm:kv_cache_usage_perc` shows, as a share of the capacity."""
        return self.private + self.cache.pinned

    @property
    def room(self) -> int:
        """Tokens that running requests may still take; idle cached blocks give way."""
        return self.capacity - self.private - self.cache.pinned

    def admit(self, job: Job, alone: bool) -> int | None:
        """Give a job memory for its whole context; returns how much of it is cached already, None if it does not fit.

        An empty engine takes any prompt; one that works keeps a little memory for the answers that it is writing.
        """
        todo = job.prompt + job.generated
        hit = self._pin(job) if self.caches_prefixes and not job.transferred else 0
        wanted = todo - hit
        if wanted + (0 if alone else self.capacity // 100) > self.room:
            self._unpin(job)
            return None
        job.private = wanted
        self.grow(wanted)
        return hit

    def grow(self, tokens: int) -> None:
        """Running requests take more memory, from idle cached blocks if need be."""
        self.private += tokens
        over = self.private + self.cache.pinned + self.cache.idle - self.capacity
        if over > 0:
            self.cache.evict(over)

    def publish_system(self, job: Job) -> None:
        """The job has read its prompt: others may use the blocks of the system prompt."""
        if job.pins:
            grown = self.cache.extend(job.system_chain, job.system_tokens)
            job.private -= grown
            self.private -= grown

    def free(self, job: Job, held: int) -> None:
        """The job is over; the first `held` tokens of its context stay cached while there is room. 0: none of them."""
        self.private -= job.private
        job.private = 0
        if job.pins:
            self.cache.extend(job.chain, held - job.system_tokens)
            self._unpin(job)

    def _pin(self, job: Job) -> int:
        """Hold the chains of the job's prompt; returns how many of its first tokens are cached."""
        cache = self.cache
        job.pins = [job.system_chain, job.chain]
        for chain in job.pins:
            cache.pin(chain)
        system = cache.whole_blocks(job.system_tokens)
        hit = min(cache.length(job.system_chain), system)
        if hit == system:
            hit += cache.whole_blocks(min(cache.length(job.chain), max(0, job.shared_tokens - job.system_tokens)))
        # the last token is always computed: its output is the first token of the answer
        return min(hit, cache.whole_blocks(job.prompt + job.generated - 1))

    def _unpin(self, job: Job) -> None:
        for chain in job.pins:
            self.cache.unpin(chain)
        job.pins = []
