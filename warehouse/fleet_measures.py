"""Measures of the own fleet: GPU time, engine tokens and money by what GPUs did, and the interval of weights."""

from warehouse.measure_types import Component, Measure

IN_POOL = "pool IS NOT NULL"
# GPU time of hours that the bill has reached; no other has a cost to divide.
IN_BILLED_POOL = "pool IS NOT NULL AND effective_nano IS NOT NULL"
HELD_MS = "busy_gpu_ms + no_traffic_gpu_ms + starting_gpu_ms + stopping_gpu_ms + unmeasured_gpu_ms"
KNOWN_MS = "busy_gpu_ms + no_traffic_gpu_ms + starting_gpu_ms + stopping_gpu_ms + not_requested_gpu_ms"
IDLE_NANO = "no_traffic_nano + starting_nano + stopping_nano + not_requested_nano + not_in_cluster_nano"
ENGINE_TOKENS = "uncached_input_tokens + cache_read_tokens + output_tokens"


def _of_nodes(column: str, where: str = "TRUE") -> Component:
    """GPU time of pools and of nodes; a row of money alone (billed time outside a node's life) has none."""
    return Component("pool_hour", column, where, unknown="FALSE")


def _of_pools(column: str, where: str = IN_POOL, unknown: str | None = None) -> Component:
    """What pools held, did or counted."""
    return Component("pool_hour", column, where, unknown=unknown, has_gaps=True)


def _fleet_money(column: str) -> Component:
    """Effective cost by what GPUs did; unknown in hours that the bill has not reached."""
    return Component("pool_hour", column, money=True, has_gaps=True)


COMPONENTS: dict[str, Component] = {
    "fleet": _fleet_money("effective_nano"),
    "fleet_productive": _fleet_money("productive_nano"),
    "fleet_under_used": _fleet_money("under_used_nano"),
    "fleet_idle": _fleet_money(IDLE_NANO),
    "fleet_no_traffic": _fleet_money("no_traffic_nano"),
    "fleet_starting": _fleet_money("starting_nano"),
    "fleet_stopping": _fleet_money("stopping_nano"),
    "fleet_not_requested": _fleet_money("not_requested_nano"),
    "fleet_not_in_cluster": _fleet_money("not_in_cluster_nano"),
    "fleet_unmeasured": _fleet_money("unmeasured_nano"),
    "fleet_shared": _fleet_money("shared_nano"),
    "fleet_no_log": _fleet_money("unattributed_nano"),
    "fleet_gpus": _fleet_money("effective_nano - shared_nano"),
    "gpu_ms": _of_nodes(f"{HELD_MS} + not_requested_gpu_ms"),
    "known_gpu_ms": _of_nodes(KNOWN_MS),
    "billed_gpu_ms": _of_nodes(f"{HELD_MS} + not_requested_gpu_ms", "effective_nano IS NOT NULL"),
    "unbilled_gpu_ms": _of_nodes(f"{HELD_MS} + not_requested_gpu_ms", "effective_nano IS NULL"),
    "held_gpu_ms": _of_pools(HELD_MS),
    "busy_gpu_ms": _of_pools("busy_gpu_ms"),
    "no_traffic_gpu_ms": _of_pools("no_traffic_gpu_ms"),
    "starting_gpu_ms": _of_pools("starting_gpu_ms"),
    "stopping_gpu_ms": _of_pools("stopping_gpu_ms"),
    "not_requested_gpu_ms": _of_nodes("not_requested_gpu_ms"),
    "unmeasured_gpu_ms": _of_nodes("unmeasured_gpu_ms"),
    "engine_input": _of_pools("uncached_input_tokens + cache_read_tokens"),
    "engine_uncached": _of_pools("uncached_input_tokens"),
    "engine_cached": _of_pools("cache_read_tokens"),
    "engine_output": _of_pools("output_tokens"),
    "engine_billed": _of_pools(ENGINE_TOKENS, IN_BILLED_POOL, "FALSE"),
    "fleet_pools": Component("pool_hour", "effective_nano", IN_POOL, money=True, has_gaps=True),
    "unknown_series": _of_pools("unknown_series"),
    "active_ppm": _of_pools("active_ppm_sum"),
    "active_samples": _of_pools("active_samples"),
    "memory_used": _of_pools("memory_used_sum"),
    "memory_total": _of_pools("memory_total_sum"),
    "ratio": Component("ratio_day", "effective_nano", money=True),
    "ratio_low": Component("ratio_day", "at_low_nano", money=True),
    "ratio_high": Component("ratio_day", "at_high_nano", money=True),
}

MEASURES: dict[str, Measure] = {
    "fleet_cost_usd": Measure(
        "Fleet cost", "usd", "fleet", about="all kinds of the own clusters that the bill has reached; effective"
    ),
    "fleet_productive_cost_usd": Measure(
        "Productive", "usd", "fleet_productive", about="busy up to the reference of the week before"
    ),
    "fleet_under_used_cost_usd": Measure(
        "Under-used", "usd", "fleet_under_used", about="busy below the reference of the week before"
    ),
    "fleet_idle_cost_usd": Measure("Idle", "usd", "fleet_idle", about="paid for and not busy, all causes"),
    "fleet_no_traffic_cost_usd": Measure(
        "No traffic", "usd", "fleet_no_traffic", about="idle: a replica was up and nothing ran"
    ),
    "fleet_starting_cost_usd": Measure(
        "Starting", "usd", "fleet_starting", about="idle: a pod held GPUs before its engine first answered"
    ),
    "fleet_stopping_cost_usd": Measure(
        "Stopping", "usd", "fleet_stopping", about="idle: within five minutes after an engine's last sample"
    ),
    "fleet_not_requested_cost_usd": Measure(
        "Not requested", "usd", "fleet_not_requested", about="idle: GPUs of a node that no pod asked for"
    ),
    "fleet_not_in_cluster_cost_usd": Measure(
        "Not in cluster", "usd", "fleet_not_in_cluster", about="idle: billed time before a node joined or after it left"
    ),
    "fleet_unmeasured_cost_usd": Measure(
        "Unmeasured", "usd", "fleet_unmeasured", about="no sample tells what the GPUs did; not idle, unknown"
    ),
    "fleet_shared_cost_usd": Measure(
        "Shared", "usd", "fleet_shared", about="control plane, network, storage, machines without GPUs; by GPU time"
    ),
    "fleet_no_log_cost_usd": Measure(
        "In no log", "usd", "fleet_no_log", about="a part of productive cost: engine tokens that no call explains"
    ),
    "gpu_ms": Measure("GPU-hours", "gpu_ms", "gpu_ms", about="of nodes: held by pods, requested by none, unseen"),
    "gpu_held_ms": Measure("GPU-hours held", "gpu_ms", "held_gpu_ms", about="GPUs x time that pods requested"),
    "gpu_busy_ms": Measure(
        "Busy", "gpu_ms", "busy_gpu_ms", about="anything ran or any counter rose in that minute; not efficiency"
    ),
    "gpu_no_traffic_ms": Measure("No traffic", "gpu_ms", "no_traffic_gpu_ms"),
    "gpu_starting_ms": Measure("Starting", "gpu_ms", "starting_gpu_ms"),
    "gpu_stopping_ms": Measure("Stopping", "gpu_ms", "stopping_gpu_ms"),
    "gpu_not_requested_ms": Measure("Not requested", "gpu_ms", "not_requested_gpu_ms"),
    "gpu_unmeasured_ms": Measure("Unmeasured", "gpu_ms", "unmeasured_gpu_ms"),
    "gpu_unbilled_ms": Measure(
        "Not billed yet", "gpu_ms", "unbilled_gpu_ms", about="GPU time that metrics show and the bill does not"
    ),
    "gpu_busy_share": Measure(
        "Busy share",
        "share",
        "busy_gpu_ms",
        "known_gpu_ms",
        about="busy / GPU time whose state is known; unmeasured time is on neither side",
    ),
    "gpu_unmeasured_share": Measure(
        "Unmeasured share", "share", "unmeasured_gpu_ms", "gpu_ms", about="GPU time that no sample tells of / GPU time"
    ),
    "engine_input_tokens": Measure(
        "Engine input", "tokens", "engine_input", about="as the engines count: computed and read from their cache"
    ),
    "engine_uncached_input_tokens": Measure("Engine computed input", "tokens", "engine_uncached"),
    "engine_cache_read_tokens": Measure("Engine cache reads", "tokens", "engine_cached"),
    "engine_output_tokens": Measure("Engine output", "tokens", "engine_output"),
    "input_tokens_per_gpu_second": Measure(
        "Input per GPU-second",
        "tokens_per_second",
        "engine_input",
        "held_gpu_ms",
        1000,
        "input tokens, cache reads included / GPU-seconds held",
    ),
    "computed_input_tokens_per_gpu_second": Measure(
        "Computed input per GPU-second",
        "tokens_per_second",
        "engine_uncached",
        "held_gpu_ms",
        1000,
        "input tokens that were computed / GPU-seconds held",
    ),
    "output_tokens_per_gpu_second": Measure(
        "Output per GPU-second",
        "tokens_per_second",
        "engine_output",
        "held_gpu_ms",
        1000,
        "output tokens / GPU-seconds held",
    ),
    "input_tokens_per_busy_gpu_second": Measure(
        "Input per busy GPU-second", "tokens_per_second", "engine_input", "busy_gpu_ms", 1000, "cache reads included"
    ),
    "computed_input_tokens_per_busy_gpu_second": Measure(
        "Computed input per busy GPU-second", "tokens_per_second", "engine_uncached", "busy_gpu_ms", 1000
    ),
    "output_tokens_per_busy_gpu_second": Measure(
        "Output per busy GPU-second", "tokens_per_second", "engine_output", "busy_gpu_ms", 1000
    ),
    "cost_per_gpu_hour_usd": Measure(
        "Cost per GPU-hour",
        "usd_each",
        "fleet_gpus",
        "billed_gpu_ms",
        3_600_000,
        "cost of nodes, without what is shared / GPU-hours of nodes, in hours the bill has reached",
    ),
    "engine_cost_per_mtok_usd": Measure(
        "Engine cost per million",
        "usd_per_mtok",
        "fleet_pools",
        "engine_billed",
        1_000_000,
        "all cost of pools (idle, under-used, unmeasured, shared included) / input and output tokens of their engines",
    ),
    "gpu_engine_active_share": Measure(
        "Engine active",
        "share",
        "active_ppm",
        "active_samples",
        1e-6,
        "mean of DCGM samples: time a GPU's engine was active; not efficiency",
    ),
    "gpu_memory_used_share": Measure(
        "Memory used", "share", "memory_used", "memory_total", about="DCGM: GPU memory in use / GPU memory"
    ),
    "unknown_counter_starts": Measure(
        "Counters of unknown start",
        "count",
        "unknown_series",
        about="series whose first value could not be told from what came before; not booked",
    ),
    "weighed_cost_usd": Measure(
        "Cost of use", "usd", "ratio", about="productive and under-used cost of the own fleet, as attributed"
    ),
    "weighed_low_cost_usd": Measure(
        "At the low weight", "usd", "ratio_low", about="the same with an output token at the lower end of its weight"
    ),
    "weighed_high_cost_usd": Measure(
        "At the high weight", "usd", "ratio_high", about="the same with an output token at the upper end of its weight"
    ),
}
