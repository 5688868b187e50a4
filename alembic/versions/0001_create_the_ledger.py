"""Create the ledger: one row per turn, and the facts about the ledger itself."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

INDEXES = (
    ("started_at", "id"),
    ("recorded_at", "id"),
    ("session_key", "started_at"),
    ("fingerprint", "started_at"),
)


def upgrade() -> None:
    op.create_table(
        "ledger_facts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_ledger_facts")),
    )
    op.create_table(
        "turns",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=True),
        sa.Column("session_key", sa.Text(), nullable=False),
        sa.Column("root_session", sa.Text(), nullable=True),
        sa.Column("turn_group", sa.Text(), nullable=True),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=True),
        sa.Column("epoch", sa.Integer(), nullable=True),
        sa.Column("epoch_turn", sa.Integer(), nullable=True),
        sa.Column("client", sa.Text(), nullable=True),
        sa.Column("client_version", sa.Text(), nullable=True),
        sa.Column("client_transport", sa.Text(), nullable=True),
        sa.Column("gateway_version", sa.Text(), nullable=True),
        sa.Column("upstream", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("reasoning_effort", sa.Text(), nullable=True),
        sa.Column("service_tier", sa.Text(), nullable=True),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("epoch_reset_reason", sa.Text(), nullable=True),
        sa.Column("eligible", sa.Boolean(), nullable=False),
        sa.Column("changed_fields", sa.Text(), nullable=True),
        sa.Column("fallback_reason", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=True),
        sa.Column("connection", sa.Text(), nullable=True),
        sa.Column("previous_response_id", sa.Text(), nullable=True),
        sa.Column("response_id", sa.Text(), nullable=True),
        sa.Column("prompt_cache_key", sa.Text(), nullable=True),
        sa.Column("store", sa.Boolean(), nullable=True),
        sa.Column("items_total", sa.Integer(), nullable=True),
        sa.Column("items_sent", sa.Integer(), nullable=True),
        sa.Column("baseline_items", sa.Integer(), nullable=True),
        sa.Column("bytes_total", sa.BigInteger(), nullable=True),
        sa.Column("bytes_sent", sa.BigInteger(), nullable=True),
        sa.Column("frozen_items", sa.Integer(), nullable=True),
        sa.Column("diverged_at", sa.Integer(), nullable=True),
        sa.Column("diverged_kind", sa.Text(), nullable=True),
        sa.Column("diverged_path", sa.Text(), nullable=True),
        sa.Column("diverged_class", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("tools_digest", sa.Text(), nullable=True),
        sa.Column("instructions_digest", sa.Text(), nullable=True),
        sa.Column("prefix_digest", sa.Text(), nullable=True),
        sa.Column("baseline_digest", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("cached_tokens", sa.Integer(), nullable=True),
        sa.Column("cache_write_tokens", sa.Integer(), nullable=True),
        sa.Column("cache_write_long_tokens", sa.Integer(), nullable=True),
        sa.Column("non_cached_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=True),
        sa.Column("total_tokens", sa.Integer(), nullable=True),
        sa.Column("usage_state", sa.Text(), nullable=False),
        sa.Column("ttft_ms", sa.Double(), nullable=True),
        sa.Column("first_event_ms", sa.Double(), nullable=True),
        sa.Column("queue_ms", sa.Double(), nullable=True),
        sa.Column("connect_ms", sa.Double(), nullable=True),
        sa.Column("duration_ms", sa.Double(), nullable=True),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("cache_verdict", sa.Text(), nullable=True),
        sa.Column("cache_grade", sa.Text(), nullable=True),
        sa.Column("missed_tokens", sa.Integer(), nullable=True),
        sa.Column("provider_miss_reason", sa.Text(), nullable=True),
        sa.Column("shadow_mode", sa.Text(), nullable=True),
        sa.Column("shadow_reason", sa.Text(), nullable=True),
        sa.Column("cost_usd", sa.Numeric(18, 9), nullable=True),
        sa.Column("price_note", sa.Text(), nullable=True),
        sa.Column("import_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turns")),
        sqlite_autoincrement=True,
    )
    op.create_index("uq_turns_turn_id", "turns", ["turn_id"], unique=True)
    for columns in INDEXES:
        op.create_index(op.f("_".join(("ix_turns", *columns))), "turns", list(columns))


def downgrade() -> None:
    op.drop_table("turns")
    op.drop_table("ledger_facts")
