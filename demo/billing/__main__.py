"""Write the bill of every shape as every export AWS has: `python -m demo.billing OUT`."""

import sys
from pathlib import Path

from demo.billing import every_shape, export
from demo.billing.delivery import Delivery, Export, Format, layouts
from demo.billing.discounts import Discounts
from demo.clock import DAY


def main(out: Path) -> None:
    """A folder per format and layout, each with November (final) and December (open)."""
    bills = every_shape.bills()
    tables = [bill.table(Discounts.COLUMNS) for bill in (bills.november, bills.december)]
    for of in Format:
        for layout in layouts(of):
            name = f"{of.name.lower()}_{layout.name.lower()}"
            written = Export(name, bills.november.month.payer.id, of, layout)
            for bill, table in zip((bills.november, bills.december), tables, strict=True):
                made = bills.december.month.period.start_us + (9 * DAY if bill is bills.november else 2 * DAY)
                files = export.write(out, table, written, Delivery(bill.month.period, made), tables)
                print(f"{name} {bill.month.period.label}: {len(table)} lines, {len(files)} files")
    for bill in (bills.november, bills.december):
        truth = bill.truth(Discounts.COLUMNS)
        print(f"{bill.month.period.label}: billed {truth.billed}, effective {truth.effective}, list {truth.listed}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m demo.billing OUT")
    main(Path(sys.argv[1]))
