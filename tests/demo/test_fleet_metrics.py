"""The fleet's samples: strict OpenMetrics, and counters that equal what requests got."""

import gzip
import itertools
import re
from collections import Counter, defaultdict
from datetime import UTC, datetime

import pytest

from tests.demo.conftest import Company

Samples = dict[tuple[str, str], list[tuple[float, float]]]
"""(name, labels) -> (instant, value) in the order of the file."""

LINE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\.)*",?)*\}) (\S+) (\d+\.\d{3})')
SUFFIXES = {"counter": ("_total", "_created"), "gauge": ("",), "unknown": ("",)}


@pytest.fixture(scope="module")
def samples(company: Company) -> dict[str, Samples]:
    """Every sample by cluster, read strictly as OpenMetrics."""
    found: dict[str, Samples] = {}
    for file in sorted((company.out / "metrics").rglob("*.om.gz")):
        read(gzip.decompress(file.read_bytes()).decode(), found.setdefault(file.parent.name, defaultdict(list)))
    return found


def read(text: str, into: Samples) -> None:
    """One file: families under their type and not twice, names as the type demands, metrics in order of time."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    families: set[str] = set()
    finished: set[str] = set()
    family = kind = labels = ""
    last = 0.0
    for line in lines[:-2]:
        if line.startswith("#"):
            _, _, family, kind = line.split(" ")
            assert family not in families
            assert not (kind == "counter" and family.endswith("_total"))
            families.add(family)
            finished, labels = set(), ""
            continue
        match = LINE.fullmatch(line)
        assert match, line
        name, of_series, value, stamp = match.groups()
        assert name.startswith(family)
        assert name.removeprefix(family) in SUFFIXES[kind]
        if of_series != labels:
            assert of_series not in finished
            finished.add(of_series)
            labels, last = of_series, 0.0
        assert float(stamp) >= last
        last = float(stamp)
        into[name, of_series].append((last, float(value)))


def values_of(samples: Samples, name: str, pod: str) -> list[tuple[float, float]]:
    (found,) = [rows for (metric, labels), rows in samples.items() if metric == name and f'pod="{pod}"' in labels]
    return found


def test_counters_count_the_tokens_of_the_truth(company: Company, samples: dict[str, Samples]) -> None:
    """The growth between two scrapes of a pod whose process lives on is what requests got in between."""
    pods = company.sql(
        """
        SELECT cluster, pod, role, count(*) FROM fleet_request WHERE pod IS NOT NULL GROUP BY ALL HAVING count(*) > 100
        """
    )
    assert {role for _, _, role, _ in pods} == {"mixed", "prefill", "decode"}
    for cluster, pod, role, _ in pods:
        prompts = values_of(samples[cluster], "vllm:prompt_tokens_total", pod)
        starts = values_of(samples[cluster], "process_start_time_seconds", pod)
        one_process = [at for at, started in starts if started == starts[-1][1]]
        begin, end = one_process[0], one_process[-1]
        grown = dict(prompts)[end] - dict(prompts)[begin]
        ((true,),) = company.sql(
            f"""
            SELECT coalesce(sum(prompt_tokens), 0)::BIGINT FROM fleet_request
            WHERE pod = '{pod}' AND first_token_at > to_timestamp({begin}) AND first_token_at <= to_timestamp({end})
            """
        )
        if role == "decode":  # counts a prompt when it comes in, a step before its first token
            assert abs(grown - true) <= 0.02 * true + 70_000
        else:
            assert grown == true


def test_counters_start_again_only_where_a_process_did(company: Company, samples: dict[str, Samples]) -> None:
    restarted = {event["pod"] for event in company.truth["fleet"]["planted"] if event["name"] == "engine_restart"}
    assert restarted
    fell = set()
    for of_cluster in samples.values():
        for (name, labels), rows in of_cluster.items():
            if name == "vllm:generation_tokens_total" and any(
                after < before for (_, before), (_, after) in itertools.pairwise(rows)
            ):
                fell.add(re.findall(r',pod="([^"]*)"', labels)[0])
    assert fell == restarted


def test_sources_of_prompt_tokens_add_up(samples: dict[str, Samples]) -> None:
    checked = 0
    for of_cluster in samples.values():
        sums: Counter[tuple[str, float]] = Counter()
        for (name, labels), rows in of_cluster.items():
            if name == "vllm:prompt_tokens_by_source_total":
                for at, value in rows:
                    sums[re.sub(r',source="\w+"', "", labels), at] += int(value)
        whole = {
            (labels, at): int(value)
            for (name, labels), rows in of_cluster.items()
            if name == "vllm:prompt_tokens_total"
            for at, value in rows
        }
        assert {key: whole[key] for key in sums} == dict(sums)
        checked += len(sums)
    assert checked > 10_000


def test_an_outage_of_prometheus_and_gaps_of_single_pods_are_in_the_samples(
    company: Company, samples: dict[str, Samples]
) -> None:
    dark = [event for event in company.truth["fleet"]["planted"] if event["name"] in ("metrics_outage", "scrape_gap")]
    assert {event["name"] for event in dark} == {"metrics_outage", "scrape_gap"}
    for event in dark:
        start, end = (datetime.fromisoformat(event[edge]).timestamp() for edge in ("start", "end"))
        within = [
            name
            for (name, labels), rows in samples[event["cluster"]].items()
            if f',pod="{event.get("pod", "")}' in labels and name.startswith(("vllm:", "process_"))
            for at, _ in rows
            if start <= at < end
        ]
        assert within == []


def test_samples_are_as_many_as_the_truth_says(company: Company, samples: dict[str, Samples]) -> None:
    counted = sum(len(rows) for of_cluster in samples.values() for rows in of_cluster.values())
    assert counted == company.truth["fleet"]["samples"] == company.organisation.samples
    assert 500_000 < counted < 3_000_000


def test_nodes_lead_from_a_pod_to_the_bill(company: Company, samples: dict[str, Samples]) -> None:
    instances = set()
    for of_cluster in samples.values():
        nodes = {
            re.findall(r'node="([^"]*)"', labels)[0]: re.findall(r'provider_id="aws:///[a-z0-9-]+/([^"]*)"', labels)[0]
            for name, labels in of_cluster
            if name == "kube_node_info"
        }
        pods = {re.findall(r',node="([^"]*)"', labels)[0] for name, labels in of_cluster if name == "kube_pod_info"}
        assert pods <= set(nodes)
        instances |= {nodes[node] for node in pods}
    billed = {
        found for (found,) in company.sql("SELECT instance_id FROM fleet_node_hour WHERE in_bill AND class = 'gpu'")
    }
    on_bill = {
        found
        for (found,) in company.sql(
            """
            SELECT line_item_resource_id FROM cur
            WHERE line_item_usage_type LIKE '%Usage:%' AND product['gpu'] IS NOT NULL
            """
        )
    }
    assert on_bill == billed
    assert len(instances & on_bill) > 20


def test_metrics_end_where_the_company_is(company: Company, samples: dict[str, Samples]) -> None:
    last = max(rows[-1][0] for of_cluster in samples.values() for rows in of_cluster.values())
    assert company.organisation.as_of.timestamp() - 120 < last < company.organisation.as_of.timestamp()
    assert company.organisation.as_of.tzinfo == UTC
