"""Responses that the provider remembers."""

from app.demo.provider.held import Held, Shelf
from app.demo.provider.items import output_item
from app.demo.provider.replies import message


def held(name, *, stored=True, credential="k"):
    items = (output_item(message(name, id=f"msg_{name}")),)
    return Held(name, credential, items, items, {}, stored, warmup=False, connection=None)


def test_storage_belongs_to_its_customer():
    shelf = Shelf(None)
    shelf.put(held("a"))
    shelf.put(held("b", stored=False))
    assert shelf.stored("a", "k").response_id == "a"
    assert shelf.stored("a", "other") is None
    assert shelf.stored("b", "k") is None
    assert shelf.item("k", "msg_a").text == held("a").texts[0]
    assert shelf.item("other", "msg_a") is None
    assert shelf.item("k", "msg_b") is None


def test_the_oldest_goes_with_its_items():
    shelf = Shelf(2)
    for name in "abc":
        shelf.put(held(name))
    assert [h.response_id for h in shelf] == ["b", "c"]
    assert list(shelf.transcripts) == ["b", "c"]
    assert shelf.item("k", "msg_a") is None


def test_a_deleted_response_is_gone():
    shelf = Shelf(None)
    shelf.put(held("a"))
    shelf.delete("a")
    assert shelf.stored("a", "k") is None


def test_a_conversation_is_a_customers_own():
    shelf = Shelf(None)
    shelf.converse("k", "conv", held("a").items)
    assert len(shelf.conversation("k", "conv")) == 1
    assert shelf.conversation("other", "conv") == ()
