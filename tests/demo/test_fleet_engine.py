"""The engine: closed forms equal a loop over steps; memory, cache, preemption and time-outs behave as vLLM's do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demo.fleet.engine import Engine
from demo.fleet.jobs import SHARE_BITS, Job, State
from demo.fleet.prefix_cache import PrefixCache
from demo.fleet.steps import steps_to_reach, steps_within
from tests.demo.fleet_engines import SMALL, Stepwise

END = 10**15


def used_ns(job: Job) -> float:
    return float(sum(job.used_shares) / (1 << SHARE_BITS))


def random_jobs(seed: int, n: int) -> list[Job]:
    rng = np.random.default_rng(seed)
    arrivals = np.sort(rng.integers(0, 3_000_000_000, n)).tolist()
    return [
        Job(
            number,
            arrive_ns,
            int(rng.integers(1, 1500)),
            int(rng.integers(1, 120)),
            adapter=int(rng.integers(-1, 2)),
            chain=number,
        )
        for number, arrive_ns in enumerate(arrivals)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_closed_forms_equal_a_loop_over_every_step(seed: int) -> None:
    jobs = random_jobs(seed, 40)
    slow = Stepwise(SMALL, random_jobs(seed, 40))
    engine = Engine(SMALL, 0, [], adapters=2)
    engine.run(jobs, END)
    assert engine.counters.steps == slow.steps
    assert engine.counters.stepping_ns == slow.stepping_ns
    assert {job.number: job.end_ns for job in jobs} == slow.end_ns
    assert {job.number: job.first_token_ns for job in jobs} == slow.first_ns
    assert all(abs(used_ns(job) - float(slow.used[job.number])) < 1 for job in jobs)


@pytest.mark.parametrize("caches", [False, True])
def test_what_jobs_used_adds_up_to_the_stepping_time(caches: bool) -> None:
    """To the last 2^-20 ns, with preemptions, aborts and caching."""
    spec = replace(SMALL, kv_tokens=4_000, caches_prefixes=caches)
    jobs = random_jobs(3, 80)
    for job in jobs:
        job.system_chain, job.system_tokens, job.shared_tokens = "system", min(160, job.prompt), min(160, job.prompt)
        job.abort_ns = job.arrive_ns + 400_000_000 if job.number % 9 == 0 else 0
    engine = Engine(spec, 0, [], adapters=2)
    engine.run(jobs, END)
    assert engine.counters.preemptions > 0
    assert engine.counters.abort > 0
    assert (engine.counters.hits > 0) == caches
    total = sum(sum(job.used_shares) for job in jobs) + engine.batch.left_over
    assert total == engine.counters.stepping_ns << SHARE_BITS
    assert engine.batch.left_over >> SHARE_BITS < 1000
    assert engine.memory.private == engine.memory.cache.pinned == 0


def test_counters_equal_what_requests_got() -> None:
    jobs = random_jobs(5, 60)
    engine = Engine(replace(SMALL, caches_prefixes=True), 0, [], adapters=2)
    engine.run(jobs, END)
    counters = engine.counters
    assert counters.prompt == sum(job.prompt for job in jobs)
    assert counters.generation == sum(job.output for job in jobs) == sum(job.generated for job in jobs)
    assert counters.cached == counters.hits == sum(job.cached for job in jobs)
    assert counters.computed == counters.prompt - counters.cached
    assert counters.stop + counters.length == len(jobs)


def test_counters_at_an_instant_are_those_of_an_engine_that_stops_there() -> None:
    marks = list(range(100_000_000, 6_000_000_000, 170_000_001))
    watched = Engine(SMALL, 0, marks, adapters=2)
    watched.run(random_jobs(7, 40), END)
    seen = watched.counters.table()
    assert len(seen) == len(marks)
    for number in range(0, len(marks), 5):
        stopped = Engine(SMALL, 0, [], adapters=2)
        stopped.run(random_jobs(7, 40), marks[number])
        row = seen[number]
        assert row["generation"] == stopped.counters.generation
        assert row["prompt"] == stopped.counters.prompt
        assert row["steps"] == stopped.counters.steps
        assert row["kv_tokens"] == stopped.memory.used
        assert 0 <= row["stepping_ns"] - stopped.counters.stepping_ns <= row["running_ns"] - stopped.counters.running_ns


def test_the_next_turn_of_a_conversation_finds_its_prefix() -> None:
    spec = replace(SMALL, caches_prefixes=True)
    first = Job(1, 0, 500, 20, system_chain="s", system_tokens=100, chain="c", shared_tokens=100)
    second = Job(2, 10**10, 600, 5, system_chain="s", system_tokens=100, chain="c", shared_tokens=520)
    stranger = Job(3, 2 * 10**10, 600, 5, system_chain="s", system_tokens=100, chain="d", shared_tokens=100)
    Engine(spec, 0, []).run([first, second, stranger], END)
    assert (first.cached, second.cached, stranger.cached) == (0, 96 + 416, 96)
    assert second.prefill_ns < stranger.prefill_ns < first.prefill_ns * 2


def test_a_time_out_ends_a_job_and_frees_its_memory() -> None:
    job = Job(1, 0, 300, 5000, abort_ns=1_000_000_000, chain=1)
    engine = Engine(SMALL, 0, [])
    engine.run([job], END)
    assert job.state == State.ABORTED
    assert 0 < job.generated < 5000
    assert 1_000_000_000 <= job.end_ns < 1_030_000_000
    assert engine.memory.used == 0


def test_a_dying_engine_loses_what_is_on_it() -> None:
    jobs = [Job(number, 0, 300, 500, chain=number) for number in range(8)]
    engine = Engine(SMALL, 0, [])
    engine.run(jobs, 2_000_000_000)
    engine.end(2_000_000_000, died=True)
    assert {job.state for job in jobs} == {State.LOST}
    assert sum(job.generated for job in jobs) == engine.counters.generation > 0


def test_a_transferred_prompt_costs_no_prefill() -> None:
    job = Job(1, 0, 900, 10, transferred=True, chain=1)
    engine = Engine(SMALL, 0, [])
    engine.run([job], END)
    assert job.prefill_ns == 0
    assert engine.counters.steps == engine.counters.generation == 10
    assert (engine.counters.prompt, engine.counters.transferred) == (900, 899)


def test_a_prompt_that_can_never_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="never fit"):
        Engine(SMALL, 0, []).run([Job(1, 0, 99_990, 50)], END)


@given(st.integers(1, 10**12), st.integers(1, 10**8), st.integers(0, 10**5))
@settings(max_examples=200, deadline=None)
def test_steps_within_a_time_are_the_most_that_fit(elapsed: int, first: int, growth: int) -> None:
    def lasts(steps: int) -> int:
        return first * steps + growth * (steps * (steps - 1) // 2)

    steps = steps_within(elapsed, first, growth)
    assert lasts(steps) <= elapsed < lasts(steps + 1)
    enough = steps_to_reach(elapsed, first, growth)
    assert lasts(enough - 1) < elapsed <= lasts(enough)


def test_the_cache_evicts_tails_of_what_was_used_longest_ago_but_nothing_in_use() -> None:
    cache = PrefixCache(16)
    for chain, tokens in (("a", 64), ("b", 64), ("c", 64)):
        cache.pin(chain)
        cache.extend(chain, tokens)
    for chain in ("a", "b"):
        cache.unpin(chain)
    cache.evict(20)
    assert [cache.length(chain) for chain in ("a", "b", "c")] == [32, 64, 64]
    cache.evict(60)
    assert [cache.length(chain) for chain in ("a", "b", "c")] == [0, 32, 64]
    assert (cache.idle, cache.pinned) == (32, 64)
    with pytest.raises(ValueError, match="only 32 are idle"):
        cache.evict(40)
