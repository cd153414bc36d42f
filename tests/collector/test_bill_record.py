"""Several exports of one bill: one is the record, the others are compared and never counted."""

from datetime import datetime
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import duckdb
import pytest

from collector.source import CollectError
from tests.collector.conftest import House
from tests.collector.test_cur2 import bill
from tests.collector.writing import Export, bedrock, line

OTHER_PAYER = {"bill_payer_account_id": "100000000002"}
LINES = "SELECT export_name, billed_cost FROM {} ORDER BY ALL"


def source(export: Export, name: str, **more: Any) -> dict[str, Any]:
    return {**bill(export.root, **more), "name": name}


@pytest.fixture
def exports(tmp_path: Path) -> tuple[Export, Export]:
    """Two exports of one payer account: `a` and `b`; `b` also tells another payer's line."""
    a, b = Export(tmp_path / "a", "a"), Export(tmp_path / "b", "b")
    a.deliver([bedrock(1.0, 1), bedrock(2.0, 2)])
    b.deliver([bedrock(1.0, 1), bedrock(2.5, 2)])
    return a, b


def test_the_second_export_of_a_bill_is_kept_and_not_counted(house: House, exports: tuple[Export, Export]) -> None:
    a, b = exports
    report = house.collect(source(a, "one"), source(b, "two"))
    assert report.ok
    assert house.rows(LINES.format("billing_line")) == [
        ("100000000001/a", Decimal(1)),
        ("100000000001/a", Decimal(2)),
    ]
    assert house.rows(LINES.format("cross_check_line")) == [
        ("100000000001/b", Decimal(1)),
        ("100000000001/b", Decimal("2.5")),
    ]
    (note,) = [note for note in report.notes if "cross-check" in note]
    assert "100000000001/b is a cross-check and not counted" in note
    assert "2026-11: account 100000000001 by 100000000001/a" in note
    assert "role: record" in note


def test_whatever_the_order_of_loading_the_record_is_the_same(tmp_path: Path, exports: tuple[Export, Export]) -> None:
    a, b = exports
    found = []
    for number, order in enumerate(permutations([source(a, "one"), source(b, "two")])):
        house = House(tmp_path / f"data{number}")
        for each in order:
            assert house.collect(each).ok
        found.append(house.evidence())
    assert found[0] == found[1]


def test_what_becomes_a_cross_check_touches_its_hours(house: House, exports: tuple[Export, Export]) -> None:
    a, b = exports
    house.collect(source(b, "two"))
    house.rows("SELECT 1")
    assert [row[0] for row in house.rows("SELECT hour FROM touched_hour ORDER BY ALL")] == [
        datetime(2026, 11, 2, hour) for hour in (1, 2)
    ]
    forget(house)
    house.collect(source(a, "one"), source(b, "two"))
    # the line of hour 1 is the same in both; its id in the bill is not, its content is
    assert house.rows("SELECT hour, reason FROM touched_hour ORDER BY ALL") == [
        (datetime(2026, 11, 2, 2), "billing"),
    ]


def forget(house: House) -> None:
    with duckdb.connect(str(house.layout.warehouse)) as connection:
        connection.execute("DELETE FROM touched_hour")


def test_accounts_that_only_one_export_tells_are_counted_from_it(house: House, tmp_path: Path) -> None:
    a, b = Export(tmp_path / "a", "a"), Export(tmp_path / "b", "b")
    a.deliver([bedrock(1.0, 1)])
    b.deliver([bedrock(1.0, 1), bedrock(7.0, 3, **OTHER_PAYER)])
    house.collect(source(a, "one"), source(b, "two"))
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (Decimal(8),)
    assert house.row("SELECT sum(billed_cost) FROM cross_check_line") == (Decimal(1),)


def test_a_source_that_is_set_to_be_the_record_is_it(house: House, exports: tuple[Export, Export]) -> None:
    a, b = exports
    house.collect(source(a, "one"), source(b, "two", role="record"))
    assert house.rows("SELECT DISTINCT export_name FROM billing_line") == [("100000000001/b",)]


def test_exports_that_are_all_set_to_be_the_record_complete_each_other(
    house: House, exports: tuple[Export, Export]
) -> None:
    a, b = exports
    house.collect(source(a, "one", role="record"), source(b, "two", role="record"))
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (Decimal("6.5"),)


def test_a_cross_check_counts_nothing_even_when_it_is_alone(house: House, exports: tuple[Export, Export]) -> None:
    a, _ = exports
    house.collect(source(a, "one", role="cross_check"))
    assert house.row("SELECT count(*) FROM billing_line") == (0,)
    assert house.row("SELECT count(*) FROM cross_check_line") == (2,)


def test_a_new_delivery_of_the_cross_check_leaves_the_record_alone(
    house: House, exports: tuple[Export, Export]
) -> None:
    a, b = exports
    house.collect(source(a, "one"), source(b, "two"))
    forget(house)
    b.deliver([bedrock(4.0, 5)], "20261104T040000Z")
    house.collect(source(a, "one"), source(b, "two"))
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (Decimal(3),)
    assert house.rows(LINES.format("cross_check_line")) == [("100000000001/b", Decimal(4))]
    assert house.rows("SELECT * FROM touched_hour") == []


def plan(kind: str, cost: float, hour: int, **changes: Any) -> dict[str, Any]:
    return line(
        kind, cost, "ComputeSavingsPlans", hour,
        savings_plan_savings_plan_a_r_n="arn:aws:savingsplans::1:savingsplan/sp-1", **changes,
    )  # fmt: skip


def checks(house: House) -> dict[tuple[str, str], tuple[Decimal, Decimal]]:
    return {
        (name, subject): (lhs, rhs)
        for name, subject, lhs, rhs in house.rows("SELECT check_name, subject, lhs, rhs FROM bill_check")
    }


def test_a_savings_plan_that_negates_what_it_covered_and_is_amortised_adds_up(house: House, tmp_path: Path) -> None:
    """reference/billing.md 4.3, one hour: 10 an hour committed, 2 of them paid ahead, 8 used."""
    export = Export(tmp_path / "cur2")
    export.deliver(
        [
            plan("SavingsPlanCoveredUsage", 12.0, 1, savings_plan_savings_plan_effective_cost=8.0),
            plan("SavingsPlanNegation", -12.0, 1),
            plan(
                "SavingsPlanRecurringFee", 8.0, 1,
                savings_plan_total_commitment_to_date=10.0, savings_plan_used_commitment=8.0,
                savings_plan_amortized_upfront_commitment_for_billing_period=2.0,
                savings_plan_recurring_commitment_for_billing_period=8.0,
            ),
            plan("SavingsPlanUpfrontFee", 1440.0, 0),
        ]
    )  # fmt: skip
    assert house.collect(bill(export.root)).ok
    found = checks(house)
    assert found[("savings plans: covered + negated = 0", "arn:aws:savingsplans::1:savingsplan/sp-1")] == (0, 0)
    trued_up = found[("effective = billed - fees paid ahead + their part of the month", "all commitments")]
    assert trued_up == (Decimal(10), Decimal(10))


def test_a_negation_that_is_not_what_was_covered_is_seen(house: House, tmp_path: Path) -> None:
    export = Export(tmp_path / "cur2")
    export.deliver(
        [
            plan("SavingsPlanCoveredUsage", 12.0, 1, savings_plan_savings_plan_effective_cost=8.0),
            plan("SavingsPlanNegation", -11.0, 1),
            plan("SavingsPlanCoveredUsage", 11.0, 2, savings_plan_savings_plan_effective_cost=8.0),
            plan("SavingsPlanNegation", -12.0, 2),
        ]
    )
    house.collect(bill(export.root))
    found = checks(house)
    # over both hours the plan adds up; hour by hour it does not
    assert found[("savings plans: covered + negated = 0", "arn:aws:savingsplans::1:savingsplan/sp-1")] == (2, 0)


def pod(cost: float, unused: float, name: str, hour: int = 1) -> dict[str, Any]:
    return line(
        "Usage", 0.0, "AmazonEC2", hour, line_item_operation="EKSPod-EC2", line_item_resource_id=f"pod/{name}",
        line_item_usage_type="USE1-EKS-EC2-Accelerator-Hours", split_line_item_parent_resource_id="i-1",
        split_line_item_split_cost=cost, split_line_item_unused_cost=unused,
        resource_tags={"aws_eks_cluster_name": "east", "aws_eks_namespace": "llm", "aws_eks_workload_name": "qwen"},
    )  # fmt: skip


@pytest.mark.parametrize(("unused", "wrong_hours"), [(2.0, 0), (1.5, 1)])
def test_split_costs_are_kept_beside_the_bill_and_compared_with_their_instance(
    house: House, tmp_path: Path, unused: float, wrong_hours: int
) -> None:
    export = Export(tmp_path / "cur2")
    instance = line(
        "Usage", 10.0, "AmazonEC2", 1, line_item_usage_type="BoxUsage:p5.48xlarge", line_item_resource_id="i-1"
    )
    export.deliver([instance, pod(5.0, 1.0, "a"), pod(2.0, unused, "b")])
    assert house.collect(bill(export.root)).ok
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (Decimal(10),)
    assert house.rows(
        "SELECT parent_resource_id, resource_id, cluster, namespace, workload, split_cost FROM split_cost_line "
        "ORDER BY ALL"
    ) == [
        ("i-1", "pod/a", "east", "llm", "qwen", Decimal(5)),
        ("i-1", "pod/b", "east", "llm", "qwen", Decimal(2)),
    ]
    assert checks(house)[("split costs = cost of the instance", "1 instance-hours")] == (wrong_hours, 0)


def test_a_role_that_is_none_is_refused_by_name(house: House, exports: tuple[Export, Export]) -> None:
    with pytest.raises((ValueError, CollectError), match="role"):
        house.collect(source(exports[0], "one", role="main"))
