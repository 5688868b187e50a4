"""docs/ledger.md, "Evidence": every key and word of it, and none that is not there."""

import json
from dataclasses import fields

from msgspec import Raw

from app.ledger.facts import to_row
from engine.field_divergence import FIELDS, KEYS, MOST, describe_fields
from engine.model import DivergenceClass, Evidence, Nature
from engine.places import Teller
from tests.support.markdown import section, table
from tests.support.rows import make_facts

NOT_OF_EVERY_ROW = {"field_details_left_out", "usage_reported"}


def tables() -> list[list[str]]:
    """First cells of each table of the section."""
    parts = section("ledger.md", "Evidence").split("\n\n")
    found = [part for part in parts if part.startswith("|")]
    return [[row[0].strip("`") for row in table(part)] for part in found]


def full() -> Evidence:
    known = {"klass": DivergenceClass.EDITED, "nature": Nature.TIME, "further": True,
             "changed_fields": ("model",), "field_details": ({"field": "model"},)}  # fmt: skip
    numbers = {"index", "length_before", "length_now", "offset", "line", "items_gone", "items_new",
               "value_length_before", "value_length_now"}  # fmt: skip
    return Evidence(
        **{
            field.name: known.get(field.name, 1 if field.name in numbers else "x")
            for field in fields(Evidence)
        }
    )


def test_every_key_of_the_evidence_is_documented_in_its_order():
    keys = tables()[0]
    shown = to_row(make_facts(evidence=full()), gateway_version=None).evidence_object
    assert list(shown) == [key for key in keys if key not in NOT_OF_EVERY_ROW]
    assert set(keys) >= NOT_OF_EVERY_ROW


def test_every_class_and_nature_is_documented():
    assert [list(map(str, DivergenceClass)), list(map(str, Nature))] == tables()[1:3]


def test_every_key_of_a_detail_is_documented():
    def tool(name, **more):
        return {"type": "function", "name": name, **more}

    before = {"model": "a", "instructions": "one\ntwo",
              "tools": [tool("a", description="x", strict=True), tool("b"), tool("c")]}  # fmt: skip
    many = [tool(f"t{n}") for n in range(MOST)]
    now = {"model": "b", "instructions": "one\nTwo",
           "tools": [tool("c"), tool("a", description="y", strict=False), *many]}  # fmt: skip
    sides = [{k: Raw(json.dumps(v).encode()) for k, v in side.items()} for side in (before, now)]
    short = [{**side, "tools": Raw(json.dumps(tools).encode())} for side, tools in
             zip(sides, (before["tools"], now["tools"][:2]), strict=True)]  # fmt: skip
    teller = Teller(b"k" * 32, FIELDS | KEYS)
    names = ("instructions", "model", "tools")
    details = [*describe_fields(*sides, names, teller), *describe_fields(*short, names, teller)]
    found = {key for detail in details for key in detail} | {"item"}
    assert found == set(tables()[3])
