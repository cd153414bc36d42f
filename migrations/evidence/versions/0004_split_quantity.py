"""Split costs: how much of its instance a pod had, so that placement can rest on them."""

from alembic import op

revision = "evidence_0004"
down_revision = "evidence_0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE split_cost_line ADD COLUMN quantity DECIMAL(38, 18)")


def downgrade() -> None:
    op.execute("ALTER TABLE split_cost_line DROP COLUMN quantity")
