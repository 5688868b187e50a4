"""A PostgreSQL database of an earlier test, made equal to the one that it was copied from.

That takes a tenth of the time of a new copy.
"""

from __future__ import annotations

import json
from typing import Any

_CATALOGUE = {
    "pg_class": "oid",
    "pg_attribute": "attrelid, attnum",
    "pg_attrdef": "oid",
    "pg_constraint": "oid",
    "pg_index": "indexrelid",
    "pg_trigger": "oid",
    "pg_db_role_setting": "setdatabase",
}
# By whom each entry was written: a change of anything but rows leaves a trace there.
_SHAPE = "SELECT ARRAY[{}]".format(
    ", ".join(
        f"(SELECT sum(hashtext(concat_ws(' ', {key}, xmin))) FROM {table})"
        for table, key in _CATALOGUE.items()
    )
)
_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
)
_SEQUENCES = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'"


class Template:
    """What a new database is like, by the URL of one."""

    def __init__(self, url: str) -> None:
        with _connected(url) as connection:
            self._shape = _column(connection, _SHAPE)
            lines = ["SET session_replication_role = replica"]  # in any order
            for table in _column(connection, _TABLES):
                lines.append(f"DELETE FROM {table}")
                (rows,) = _column(connection, f"SELECT json_agg({table}) FROM {table}")
                if rows:
                    text = json.dumps(rows).replace("'", "''")
                    lines.append(
                        f"INSERT INTO {table} "
                        f"SELECT * FROM json_populate_recordset(null::{table}, '{text}')"
                    )
            sequences = _column(connection, _SEQUENCES)
            lines += [f"SELECT setval('{one}', 1, false)" for one in sequences]
        self._statements = ";".join(lines)

    def restore(self, url: str) -> bool:
        """Make it as it was; not, and false, where more than rows was changed."""
        with _connected(url) as connection:
            if self._shape != _column(connection, _SHAPE):
                return False
            connection.execute(self._statements)
        return True


def _connected(url: str) -> Any:
    import psycopg  # noqa: PLC0415  (tests that need no PostgreSQL run without it)

    return psycopg.connect(url, autocommit=True)


def _column(connection: Any, query: str) -> list[Any]:
    return [row[0] for row in connection.execute(query)]
