"""Two weeks of a small organisation with GPUs of its own, sampled every five minutes.

The route `qwen` is served by one mixed pool (half of its node is requested by nobody, no traffic at night), `llama` by
a prefill and a decode pool. The first week has no reference; in the second `qwen` does a quarter of its work, and on
the 14th nothing tells of the decode pool. `qwen` is bought from a managed API too. The bill ends a day early.
"""

from datetime import datetime, timedelta
from pathlib import Path

from tests import fleet
from tests.world import World
from warehouse.settings import WarehouseSettings

FIRST = datetime(2026, 10, 5)
DAYS = 14
MINUTES = DAYS * 1440
AS_OF = "2026-10-19 00:00"
OPENS, CLOSES = 8, 20
SKIPPED = frozenset(minute for minute in range(MINUTES) if minute % 5)
UNSEEN = frozenset(range(9 * 1440, 10 * 1440))
POOLS = {"qwen-mixed": ("n1", 8, 4), "llama-prefill": ("n2", 4, 4), "llama-decode": ("n3", 4, 4)}
COSTS = {"n1": "24", "n2": "10", "n3": "12"}
SETTINGS = WarehouseSettings.model_validate(
    {
        "owners": [
            {"when": {"key_alias": "search-*"}, "set": {"team": "search", "app": "answers"}},
            {"when": {"key_alias": "ads-*"}, "set": {"team": "ads", "app": "copy"}},
        ]
    }
)


def build(data: Path) -> World:
    """The organisation's evidence; publish it with `world.publish()`."""
    world = World(data, SETTINGS, as_of=AS_OF)
    with world.connected():
        world.price("qwen", uncached_input="0.5", output="2")
        for pool, (node, gpus, held) in POOLS.items():
            _machine(world, node, gpus)
            _replica(world, pool, node, held)
        for day in range(DAYS):
            _calls(world, FIRST + timedelta(days=day))
        _bill(world)
    return world


def busy(minute: int) -> bool:
    """Whether there is traffic in this minute of the two weeks."""
    return OPENS <= minute % 1440 // 60 < CLOSES


def _machine(world: World, node: str, gpus: int) -> None:
    fleet.node(world, node, FIRST.isoformat(), MINUTES, gpus=gpus, skip=SKIPPED)


def _replica(world: World, pool: str, node: str, gpus: int) -> None:
    route, _, role = pool.partition("-")
    start = FIRST.isoformat()
    fleet.pod(world, pool, node, start, MINUTES, gpus=gpus, skip=SKIPPED, app=route, role=role, inference_pool=pool)
    prompt, output = [], []
    counted = [0, 0]
    for minute in range(MINUTES):
        prompt.append(counted[0])
        output.append(counted[1])
        if busy(minute):
            less = 4 if route == "qwen" and minute >= 7 * 1440 else 1
            # The curve of a day: most at noon.
            rate = 6000 - 800 * abs(minute % 1440 // 60 - 13)
            counted[0] += rate // less
            counted[1] += rate // 10 // less if role != "prefill" else 10
    skipped = SKIPPED | UNSEEN if role == "decode" else SKIPPED
    fleet.engine(
        world,
        pool,
        start,
        skip=skipped,
        served=route,
        running=[3 if busy(minute) else 0 for minute in range(MINUTES)],
        prompt=prompt,
        cached=[each // 4 for each in prompt],
        output=output,
        born=[1] * MINUTES,
    )
    for concept, values in {
        "gpu_engine_active": [800_000 if busy(minute) else 10_000 for minute in range(MINUTES)],
        "memory_used": [60_000_000_000] * MINUTES,
        "memory_free": [20_000_000_000] * MINUTES,
    }.items():
        labels = {"pod": pool, "gpu": "0"}
        fleet._series(world, "dcgm", concept, labels, pod=pool)
        fleet._minutes(world, "gpu_minute", concept, labels, start, values, skipped)


def _calls(world: World, day: datetime) -> None:
    for hour in (9, 12, 15, 18):
        at = (day + timedelta(hours=hour, minutes=30)).isoformat()
        less = 4 if day >= FIRST + timedelta(days=7) else 1
        for alias, model, tokens, answered in (
            ("search-1", "qwen", 160_000 // less, 4_000 // less),
            ("ads-1", "qwen", 40_000 // less, 14_000 // less),
            ("search-1", "llama", 190_000, 19_000),
        ):
            fleet.asked(
                world, at, {"key_alias": alias}, model=model, uncached_input=tokens, output=answered,
                started_at=at, first_token_at=at,
            )  # fmt: skip
        world.call(at, {"key_alias": "search-2"}, model="qwen", uncached_input=200_000, output=20_000)


def _bill(world: World) -> None:
    for hour in range((DAYS - 1) * 24):
        start = FIRST + timedelta(hours=hour)
        for node, cost in COSTS.items():
            fleet.machine(world, node, start.isoformat(), cost)
        world.line(start.isoformat(), "0.10", service_name="Amazon EKS", x_service_code="AmazonEKS",
                   resource_id="arn:aws:eks:us-east-1:111122223333:cluster/east")  # fmt: skip
        if start.hour in (9, 12, 15, 18):
            for token_class, cost, tokens in (("uncached_input", "0.10", 200_000), ("output", "0.04", 20_000)):
                world.line(start.isoformat(), cost, token_class=token_class, tokens=tokens, x_model="qwen")
    world.line("2026-10-06 10:00", "400", service_name="Amazon RDS")
    world.line("2026-10-01 00:00", "310", end="2026-11-01 00:00", service_name="AWS Support", x_charge_family="support")
    world.line("2026-10-01 00:00", "-620", end="2026-11-01 00:00", service_name="Credits", x_charge_family="credit")
