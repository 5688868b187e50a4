"""Sort text by its bytes on PostgreSQL, as SQLite does.

Without this it is sorted by the rules of a language: slower, different from one database to the
next, and indexes become wrong when an update of the system changes these rules.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_SET = """
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT table_name,
               string_agg(
                   format('ALTER COLUMN %I TYPE text COLLATE {collation}', column_name), ', '
               ) AS changes
        FROM information_schema.columns
        WHERE table_schema = current_schema() AND data_type = 'text' AND table_name IN (
            'ledger_facts', 'turns', 'alert_states', 'alert_silences', 'alert_rules',
            'alert_receivers', 'alert_events', 'alert_deliveries', 'alert_attempts'
        )
        GROUP BY table_name
    LOOP
        EXECUTE format('ALTER TABLE %I %s', one.table_name, one.changes);
    END LOOP;
END $$
"""


def upgrade() -> None:
    _collate('"C"')


def downgrade() -> None:
    _collate('"default"')


def _collate(collation: str) -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute(_SET.format(collation=collation))
