"""An hour of a GPU fleet with one of everything, beside a managed API; for tests of every room."""

from tests import fleet
from tests.world import World

HOUR = "2026-10-07 10:00"


def fill_fleet(world: World) -> None:
    """Three nodes of four GPUs at $12 each, a NAT line of the cluster, a managed call, and $7 of n9, in no cluster.

    n1: qwen-0, busy for search and support, and for tokens that no log explains.
    n2: llama-0 on two GPUs, up and without traffic; nobody requested the other two.
    n3: stray-0 without labels for half an hour, then blind-0 of qwen: no engine tells what either did.
    """

    def rising(step: int) -> list[int]:
        return [1000 + step * n for n in range(60)]

    with world.connected():
        for name in ("n1", "n2", "n3"):
            fleet.node(world, name, HOUR, 60)
            fleet.machine(world, name, HOUR, "12", x_line_item_id=f"item-{name}", x_file="bill-1.parquet")
        fleet.machine(world, "n9", HOUR, "7")
        fleet.pod(world, "qwen-0", "n1", HOUR, 60, app="qwen")
        fleet.engine(world, "qwen-0", HOUR, running=[1] * 60, prompt=rising(100), output=rising(10), born=[1] * 60)
        fleet.pod(world, "llama-0", "n2", HOUR, 60, gpus=2, app="llama")
        fleet.engine(world, "llama-0", HOUR, running=[0] * 60, prompt=[5] * 60, served="llama")
        fleet.pod(world, "stray-0", "n3", HOUR, 30)
        fleet.pod(world, "blind-0", "n3", "2026-10-07 10:30", 30, app="qwen")
        world.line(HOUR, "0.60", service_name="Amazon EC2 NAT", tags={"aws:eks:cluster-name": fleet.CLUSTER})
        for key, tokens, answer in (("search-1", 2000, 200), ("support-1", 950, 95)):
            fleet.asked(world, "2026-10-07 10:30", {"key_alias": key}, uncached_input=tokens, output=answer)
        fleet.asked(world, "2026-10-07 10:40", {"key_alias": "search-1"}, cache_read=0, output=0, task_id="t-own")
        fleet.asked(
            world, "2026-10-07 10:45", {"key_alias": "search-1"}, uncached_input=500, output=50, task_id="t-own"
        )
        world.call("2026-10-07 10:10", {"key_alias": "search-1"}, uncached_input=60)
        world.line(HOUR, "0.90", token_class="uncached_input", tokens=60)
    world.rows(
        """
        INSERT INTO load BY NAME
        SELECT 'm' AS load_id, 'dcgm-and-vllm' AS source, 'metrics' AS kind, 'i' AS identity, 1 AS rows_read,
            1 AS rows_loaded, 0 AS rows_rejected, 0 AS rows_filtered, TIMESTAMP '2026-10-07 10:00' AS first_at,
            TIMESTAMP '2026-10-07 10:59' AS last_at, TIMESTAMP '2026-10-07 11:00' AS loaded_at
        """
    )
