from hypothesis import given
from hypothesis import strategies as st

from app.importers.codex_forks import Descent, Whose, made_at
from tests.support.rollouts import BEGAN, THREAD, thread

A, B, C, D = ((n,) for n in range(4))
NOW = round(BEGAN.timestamp() * 1_000)


def child(parents=lambda _session: None, *, copies=True, name="child"):
    found = Descent(parents)
    found.born(name, NOW)
    found.came_from("parent", copies=copies)
    return found


def whose(descent, *vectors, at=NOW):
    return "".join(descent.of(vector, at).name[0] for vector in vectors)


def test_a_session_of_no_other_has_copied_nothing():
    alone = Descent(lambda _session: [A])
    alone.born("s", NOW)
    assert ("O", Whose.OWN) == (whose(alone, A, at=0), alone.of_turn())


def test_the_parents_sequence_tells_where_its_own_begins():
    history = {"parent": [A, B, C]}.get
    assert "CCO" == whose(child(history), A, B, D)
    assert "COO" == whose(child(history), A, D, B), "what comes after its own is its own"
    assert "CCO" == whose(child(history), B, C, D), "a part of the history"
    assert "OO" == whose(child(history), D, A), "nothing was copied"


def test_what_the_parent_did_afterwards_is_no_copy():
    assert "CO" == whose(child({"parent": [A, B, C]}.get), A, D)


def test_a_line_that_the_copy_has_lost_ends_no_copy():
    assert "CCO" == whose(child({"parent": [A, B, C]}.get), A, C, D)


def test_without_the_parent_the_boundary_is_unverified():
    assert "UU" == whose(child(), A, B)
    assert Whose.UNVERIFIED is child().of_turn()
    assert "OO" == whose(child(copies=False), A, B), "a sub-agent that says nothing of a copy"


def test_lines_from_before_the_session_are_copies():
    assert "CU" == whose(child(), A, at=NOW - 1) + whose(child(), A, at=NOW)


def test_an_id_tells_when_it_was_made():
    assert NOW == made_at(THREAD) == made_at(thread(9))
    assert made_at("7b2ee6f4-2f1c-4cf5-a2c7-5bb0c6a2b1aa") is None
    assert made_at(None) is made_at("turn-1") is None


def test_turns_from_before_the_session_are_copies_and_later_ones_its_own():
    found = child(name=thread(1, at=10))
    found.turn(thread(2, at=9.9))
    assert ("C", Whose.COPIED) == (whose(found, A), found.of_turn())
    found.turn(thread(3, at=10.001))
    assert ("O", Whose.OWN) == (whose(found, A), found.of_turn())
    found.turn(None)
    assert "O" == whose(found, A)


def test_a_record_is_of_the_thread_that_it_names():
    found = child()
    assert [Whose.COPIED, Whose.UNVERIFIED] == [found.of_thread("parent", A), found.of_turn()]
    assert [Whose.OWN, Whose.OWN] == [found.of_thread("child", A), found.of_turn()]
    assert Whose.UNVERIFIED is child().of_thread(None, A)


def test_the_parent_is_the_one_whose_history_is_copied():
    found = Descent({"elder": [A]}.get)
    found.born("child", NOW)
    found.came_from("root", copies=False)
    found.came_from("elder", copies=True)
    assert "CO" == whose(found, A, B)


@given(st.data())
def test_a_copy_of_any_part_of_a_history_is_told_from_what_came_after(data):
    length = data.draw(st.integers(1, 12))
    history = [(n, n * 7) for n in range(length)]
    start = data.draw(st.integers(0, length))
    copied = history[start : data.draw(st.integers(start, length))]
    own = [(100 + n, 1) for n in range(data.draw(st.integers(0, 5)))]
    found = child({"parent": history}.get)
    assert "C" * len(copied) + "O" * len(own) == whose(found, *copied, *own)
