"""FOCUS as AWS tells it: purchases fund use, what nobody used has lines of its own, words are the specification's."""

from decimal import Decimal
from pathlib import Path

import pytest

from demo.billing import export
from demo.billing.delivery import Delivery, Export, Format, Layout
from demo.billing.discounts import Discounts
from tests.demo.bill_files import DECEMBER, LATER, NOVEMBER, Written, number, write

FOCUS = [of for of in Format if of.table.startswith("focus")]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[Format, Written]:
    """November in every table of FOCUS."""
    return {of: write(tmp_path_factory.mktemp(of.name), of, Layout.CREATE_NEW) for of in FOCUS}


@pytest.mark.parametrize("of", FOCUS)
def test_in_focus_purchases_fund_use_and_each_commitment_adds_up(written: dict[Format, Written], of: Format) -> None:
    """An effective cost of nothing on purchases; used and unused of the no-upfront plan: 24 h of 10, less a tenth."""
    one = written[of]
    assert one.sql(
        f"SELECT sum({number('EffectiveCost')}) FROM file "
        "WHERE ChargeCategory = 'Purchase' AND CommitmentDiscountId <> ''"
    ) == [(0,)]
    assert one.sql(
        f"""
        SELECT CommitmentDiscountStatus, sum({number("EffectiveCost")}), count(nullif(ConsumedQuantity::VARCHAR, ''))
        FROM file
        WHERE ChargeCategory = 'Usage' AND CommitmentDiscountId = (
            SELECT CommitmentDiscountId FROM file WHERE ChargeDescription = '1 year No Upfront ComputeSavingsPlans'
            AND BilledCost::DOUBLE = 9 LIMIT 1)
        GROUP BY 1 ORDER BY 1
        """
    ) == [("Unused", Decimal("1.9") * 24 * Decimal("0.9"), 0), ("Used", Decimal("8.1") * 24 * Decimal("0.9"), 48)]


@pytest.mark.parametrize("of", FOCUS)
def test_focus_tells_december_although_its_block_was_paid_in_november(tmp_path: Path, of: Format) -> None:
    truth = DECEMBER.truth(Discounts.COLUMNS)
    one = write(tmp_path, of, Layout.CREATE_NEW, number=1)
    assert one.sql(f"SELECT sum({number('BilledCost')}), sum({number('EffectiveCost')}) FROM file") == [
        (truth.billed, truth.effective)
    ]


@pytest.mark.parametrize("of", FOCUS)
def test_focus_uses_only_its_own_words(written: dict[Format, Written], of: Format) -> None:
    words = {
        "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
        "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
        "CommitmentDiscountStatus": {"Used", "Unused"},
        "CommitmentDiscountCategory": {"Spend", "Usage"},
        "PricingCategory": {"Standard", "Committed", "Dynamic", "Other"},
    }
    one = written[of]
    for column, allowed in words.items():
        found = {word for (word,) in one.sql(f"SELECT DISTINCT nullif({column}, '') FROM file")} - {None}
        assert found <= allowed, column


def test_focus_refuses_a_bill_whose_discounts_are_lines(tmp_path: Path) -> None:
    wanted = Export("bill", "1", Format.FOCUS_1_2_CSV)
    with pytest.raises(ValueError, match="discounts in the columns"):
        export.write(tmp_path, NOVEMBER.table(Discounts.LINES), wanted, Delivery(NOVEMBER.month.period, LATER))
    assert list(tmp_path.iterdir()) == []
