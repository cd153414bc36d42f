"""AWS's FOCUS tables: one invented month in each of them, read to the same lines and to the month's own truth."""

from decimal import Decimal
from pathlib import Path

import pytest

from demo.billing.delivery import Format, Layout
from demo.billing.discounts import Discounts
from tests.collector.focus_bills import Desk
from tests.demo.bill_files import NOVEMBER, write

TABLES = [of for of in Format if of.table.startswith("focus")]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"))


@pytest.mark.parametrize("of", TABLES)
def test_a_month_adds_up_to_its_truth(desk: Desk, tmp_path: Path, of: Format) -> None:
    staging = desk.stage_files(write(tmp_path, of, Layout.CREATE_NEW).data, NOVEMBER.month.period.label)
    truth = NOVEMBER.truth(Discounts.COLUMNS)
    assert (Decimal(staging.sums["billed_cost"]), Decimal(staging.sums["effective_cost"])) == (
        truth.billed,
        truth.effective,
    )
    assert staging.left_out == 0


def test_every_table_and_format_is_read_to_the_same_classes_and_tokens(desk: Desk, tmp_path: Path) -> None:
    told = set()
    for of in TABLES:
        desk.stage_files(write(tmp_path / of.name, of, Layout.CREATE_NEW).data)
        told.add(
            tuple(
                desk.rows(
                    "x_charge_family, x_model, x_token_class, sum(x_tokens), x_service_tier, x_scope, x_context_tier, "
                    "x_purchase_option, x_cost_class, sum(billed_cost), sum(effective_cost), count(*)",
                    "GROUP BY ALL ORDER BY ALL",
                )
            )
        )
    assert len(told) == 1
