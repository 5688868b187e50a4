"""Looking up many values at once, in one parameter.

A list with a parameter for each value costs more to send than to answer: its statement is written
anew each time.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from sqlalchemy import ColumnElement, Connection, any_, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY


def among(
    connection: Connection,
    column: ColumnElement[str] | ColumnElement[int],
    values: Collection[str | int],
) -> ColumnElement[bool]:
    """Whether a column has one of the values."""
    if connection.dialect.name == "postgresql":
        return column == any_(bindparam(None, list(values), type_=ARRAY(column.type)))
    return column.in_(
        select(func.json_each(json.dumps(list(values))).table_valued("value").c.value)
    )
