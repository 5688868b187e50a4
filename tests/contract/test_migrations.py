"""The migrations make exactly the schema of the models, on an empty and on a used database."""

import dataclasses
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from app.ledger import database, series
from app.ledger.database import alembic_config, migration_engine, open_engine, prepare, upgrade
from app.ledger.filters import Filter
from app.ledger.models import Base
from app.ledger.retention import prune
from app.ledger.rollups.contribution import DAY, HOUR, QUARTER
from app.ledger.summary import summarize
from app.ledger.writer import write_rows
from app.paths import ALEMBIC
from tests.support import postgres
from tests.support.databases import fresh
from tests.support.rows import START_MS, make_row


def schema(engine) -> dict:
    """What a database looks like, in the words that both ways of making it share."""
    look = inspect(engine)
    return {
        table: (
            [(c["name"], str(c["type"]), c["nullable"]) for c in look.get_columns(table)],
            sorted(
                (i["name"], tuple(i["column_names"]), bool(i["unique"]))
                for i in look.get_indexes(table)
            ),
            look.get_pk_constraint(table)["constrained_columns"],
        )
        for table in look.get_table_names()
        if table != "alembic_version"
    }


def test_migrating_an_empty_database_gives_the_schema_of_the_models(tmp_path: Path):
    migrated = prepare(str(tmp_path / "migrated.sqlite3"))
    declared = create_engine("sqlite://")
    Base.metadata.create_all(declared)
    assert schema(declared) == schema(migrated)
    with migrated.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert [] == compare_metadata(context, Base.metadata)
    migrated.dispose()
    declared.dispose()


def test_the_alembic_command_finds_nothing_to_do_on_an_upgraded_database(tmp_path: Path):
    database = str(tmp_path / "ledger.sqlite3")
    prepare(database).dispose()
    result = subprocess.run(
        [sys.executable, "-m", "alembic", "-x", f"url={database}", "check"],
        cwd=ALEMBIC.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "No new upgrade operations detected.\n") == (result.returncode, result.stdout)


def goes_down_and_up_again(database: str, before: object) -> None:
    """All steps back, then all of them again: ``before`` is the schema as it was."""
    migrations = migration_engine(database)
    with migrations.begin() as connection:
        command.downgrade(alembic_config(connection), "base")
    assert {} == schema(migrations)
    with migrations.begin() as connection:
        command.upgrade(alembic_config(connection), "head")
    assert before == schema(migrations)
    migrations.dispose()


def test_each_step_goes_down_and_up_again(tmp_path: Path):
    database = str(tmp_path / "ledger.sqlite3")
    prepare(database).dispose()
    engine = open_engine(database)
    before = schema(engine)
    engine.dispose()
    goes_down_and_up_again(database, before)


def test_postgresql_is_migrated_to_the_schema_of_the_models_too():
    with postgres.server().ledger() as url:
        migrated = prepare(url)
        with migrated.connect() as connection:
            context = MigrationContext.configure(
                connection, opts={"compare_type": True, "compare_server_default": True}
            )
            assert [] == compare_metadata(context, Base.metadata)
        before = schema(migrated)
        migrated.dispose()
        goes_down_and_up_again(url, before)


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
@pytest.mark.parametrize("kept_days", [3, 1])
def test_sums_of_deleted_rows_outlive_a_change_of_what_they_are_summed_up_by(
    backend: str, kept_days: int, tmp_path: Path
):
    first = START_MS - START_MS % DAY
    known = [
        make_row(
            started_at=first + number * 7 * QUARTER,
            session=f"session-{number // 20}",
            ttft_ms=400.0,
        )
        for number in range(90)
    ]
    edges = range(first, first + 7 * DAY + 1, QUARTER)

    def figures(engine) -> tuple:
        view, wide = Filter(start=first, end=first + 9 * DAY), edges[::96]
        return (
            dataclasses.asdict(summarize(engine, view)),
            series.continuity(engine, view, edges),
            series.ttft(engine, view, edges),
            [series.residency(engine, Filter(start=a, end=b)) for a, b in pairwise(wide)],
        )

    with fresh(backend, tmp_path) as url:
        engine = prepare(url)
        write_rows(engine, known)
        # Of the rows, three days are left; or none, so that hours are gone that are not over.
        prune(engine, first + 8 * DAY, row_days=kept_days, rollup_days=0)
        before = figures(engine)
        assert before[0]["total"] == len(known)
        migrations = migration_engine(url)
        with migrations.begin() as connection:
            command.downgrade(alembic_config(connection), "0005")
        upgrade(url)
        assert before == figures(engine)
        # The next turn, by which hours are summed up, is taken.
        write_rows(engine, [make_row(started_at=first + 8 * DAY + HOUR)])
        assert summarize(engine, Filter(start=first, end=first + 9 * DAY)).total == len(known) + 1
        engine.dispose()
        migrations.dispose()


def test_postgresql_sorts_every_text_by_its_bytes_as_sqlite_does():
    with postgres.server().ledger() as url:
        engine = open_engine(url)
        with engine.connect() as connection:
            found = connection.execute(
                text(
                    "SELECT table_name, column_name FROM information_schema.columns "
                    "WHERE table_schema = 'public' AND data_type IN ('text', 'character varying') "
                    "AND collation_name IS DISTINCT FROM 'C' AND table_name <> 'alembic_version'"
                )
            ).all()
        engine.dispose()
    assert [] == found


def test_migrations_form_one_line_and_are_numbered_in_its_order(tmp_path: Path):
    engine = migration_engine(str(tmp_path / "ledger.sqlite3"))
    with engine.begin() as connection:
        scripts = ScriptDirectory.from_config(alembic_config(connection))
    engine.dispose()
    assert 1 == len(scripts.get_heads())
    order = [script.revision for script in scripts.walk_revisions()][::-1]
    assert order == list(reversed(database._revisions()))
    assert [f"{number:04d}" for number in range(1, len(order) + 1)] == order


def test_the_directory_is_no_package_since_it_would_shadow_the_library():
    assert not (ALEMBIC / "__init__.py").exists()


def test_migrations_import_nothing_of_the_application_that_may_change_later():
    for script in (ALEMBIC / "versions").glob("*.py"):
        assert (
            re.search(r"^(from|import) (app|engine)\b", script.read_text(), re.MULTILINE) is None
        ), script
