"""What a record keeps of an item, rule by rule."""

import hashlib
import struct

import pytest
from msgspec import Raw

from engine import condensed
from engine import items as rules
from engine.condensed import Condensed, Entry
from engine.spelling import Items
from tests.support.transcripts import raw, said

KEY = b"k"
USER, MADE, OUTPUT = {"role": "user", "content": "x"}, said("x"), {"type": "function_call_output"}


def table(*entries):
    return Condensed(KEY).and_then(
        entry if isinstance(entry, Entry) else Entry(raw(entry), False, False) for entry in entries
    )


def records(kept):
    return [kept[index] for index in range(len(kept))]


def test_nothing_is_marked_that_was_not():
    assert [False] * 3 == [*table("x")[0][2:5]]
    for place, marks in enumerate([(True, False), (False, True), (False, False, True)]):
        assert table("y", Entry(raw("x"), *marks))[1][2:5] == tuple(i == place for i in range(3))


def test_what_the_model_made_is_told_by_kind_or_by_having_been_received():
    kept = table(USER, MADE, OUTPUT, Entry(raw(OUTPUT), True, False), {"type": "shell_call"})
    made = [False, True, False, True, True]
    assert made == [record.model_made for record in records(kept)]
    assert kept.made() == [
        record.digest for record, is_it in zip(records(kept), made, strict=True) if is_it
    ]


def test_what_is_sealed_or_frozen_was_not_made_by_the_model_for_that():
    kept = table(Entry(raw(USER), False, True, True), Entry(raw(USER), False, True))
    assert ([], [False] * 2) == (kept.made(), [record.model_made for record in records(kept)])


def test_what_is_frozen_is_told_by_its_place():
    frozen, others = Entry(raw("x"), False, True, True), [Entry(raw("x"), True, True), "x"]
    assert [0, 3] == table(frozen, *others, frozen, *others).frozen()


def test_a_kind_that_has_a_number_keeps_it_when_there_are_no_more():
    many = table(*({"type": f"t{n}"} for n in range(300)), {"type": "t7"}, {"type": "t298"})
    assert ["t254", "unknown"] == [many[n].kind for n in (254, 255)]
    assert ["t7", "unknown"] == [many[n].kind for n in (300, 301)]


def test_an_item_that_cannot_be_read_has_the_kind_of_nothing():
    deep = Raw(b'{"type":"x","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    kept = table(Entry(deep, False, False), Entry(Raw(b"\xff"), False, False))
    assert [rules.kind(None)] * 2 == [record.kind for record in records(kept)]


def test_a_record_has_room_for_the_longest_length_and_no_longer_one():
    assert struct.pack("<I", condensed._LONGEST) == b"\xff" * 4


def test_what_is_longer_than_a_record_can_tell_is_still_proven_by_its_digest(monkeypatch):
    monkeypatch.setattr(condensed, "_LONGEST", 5)
    kept = table("1234567")
    assert (kept[0].length, kept.length) == (5, 5)
    assert [True, False, False] == [
        kept.is_same(0, [raw(text)]) for text in ("1234567", "1234568", "12345678")
    ]


def test_a_record_weighs_its_bytes_and_a_kind_its_name():
    empty, one, more, other = (
        table(*[USER] * n, *[OUTPUT] * m).size for n, m in ((0, 0), (1, 0), (3, 0), (1, 1))
    )
    assert empty > other - one
    assert more - one == 2 * 22
    assert one - empty == other - one > 22


def test_the_first_of_them_are_the_first_and_none_where_none_is_asked_for():
    kept = table("a", "b", "c")
    assert [records(kept)[:n] for n in range(4)] == [records(kept.first(n)) for n in range(4)]
    assert kept.first(3) is kept.first(4) is kept


@pytest.mark.parametrize(
    ("received", "frozen", "sealed"),
    [(False, False, False), (True, False, False), (False, True, True), (True, True, True)],
)
def test_a_mark_says_what_the_body_does_not(received, frozen, sealed):
    kept = table("a", Entry(raw("x"), received, sealed, frozen), "b")
    same = [(1, received, frozen, sealed)] if received or sealed else []
    assert same == [*kept.marks([raw("a"), raw("x"), raw("b")])]
    assert [(1, received, frozen, True)] == [*kept.marks([raw("a"), raw("y"), raw("b")])]


def test_the_digest_of_a_requests_item_is_worked_out_once(monkeypatch):
    kept, now = table("a", "b"), Items((raw("a"), raw("c")))
    assert [kept.repeated(now, 2), kept.is_same(0, now)] == [1, True]
    assert {0: kept[0].digest, 1: kept.digest(raw("c"))} == now.digests
    monkeypatch.setattr(Condensed, "digest", pytest.fail)
    assert [kept.digest_at(index, now) == kept[index].digest for index in (0, 1)] == [True, False]
    monkeypatch.undo()
    assert kept.digest_at(1, [raw("a"), raw("b")]) == kept[1].digest


def test_items_are_repeated_up_to_the_first_other_one_or_as_many_as_were_asked_for():
    kept, now = table("a", "b", "c"), [raw("a"), raw("b"), raw("d")]
    assert [0, 1, 2, 2] == [kept.repeated(now, upto) for upto in range(4)]


def test_a_digest_says_nothing_to_those_who_have_not_the_key_or_have_it_for_something_else():
    def plain(key):
        return hashlib.blake2b(b"a", key=key, digest_size=16).digest()

    mine, other = (Condensed(key).digest(raw("a")) for key in (KEY, b"other"))
    assert len({mine, other, plain(KEY), plain(b"")}) == 4
    assert table("a")[0].digest == mine


def test_bytes_of_another_length_are_not_digested(monkeypatch):
    kept = table("a")
    monkeypatch.setattr(Condensed, "digest", pytest.fail)
    assert not kept.is_same(0, [raw("ab")])
