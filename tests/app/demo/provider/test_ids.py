"""Ids that look like the provider's and are the same in every run of the same seed."""

from app.demo.provider.ids import Ids, item_prefix


def test_ids_never_repeat_and_depend_on_nothing_but_the_seed():
    ids, same, other = Ids("a"), Ids("a"), Ids("b")
    mine = [ids("resp") for _ in range(100)]
    assert len(set(mine)) == 100
    assert mine == [same("resp") for _ in range(100)]
    assert not set(mine) & {other("resp") for _ in range(100)}


def test_the_prefix_names_the_kind():
    assert Ids()("resp").startswith("resp_")
    assert item_prefix("function_call") == "fc"
    assert item_prefix("hologram_call") == "item"
