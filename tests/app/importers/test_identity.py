from app.importers.identity import UNPLACED, Identity
from app.keys import Keys
from tests.support.rows import make_row

KEYS = Keys(b"k" * 32)
NAMES = {"session": "s", "root_session": "r", "turn_group": "g", "prompt_cache_key": "p"}


def logged(**changes):
    return make_row(turn_id="t", tenant=UNPLACED, session_key=UNPLACED, **{**NAMES, **changes})


def test_a_row_that_has_its_tenant_stays_as_it_is():
    row = make_row()
    assert row is Identity(KEYS).place(row)


def test_a_session_of_a_log_has_one_key_in_one_ledger_and_another_in_another():
    here, there = Identity(KEYS), Identity(Keys(b"x" * 32))
    one, again, other = (here.place(logged(session=name)) for name in ("s", "s", "t"))
    assert one == again
    assert here.tenant == one.tenant == other.tenant
    elsewhere = there.place(logged()), here.place(logged(upstream="u"))
    keys = {row.session_key for row in (one, other, *elsewhere)}
    assert 4 == len(keys)
    assert there.tenant != here.tenant
    assert {32} == {len(key) for key in keys}


def test_names_stay_or_are_hashed_as_those_of_the_gateway_are():
    def names(row):
        return {name: getattr(row, name) for name in NAMES}

    assert NAMES == names(Identity(KEYS).place(logged()))
    hidden = Identity(KEYS, pseudonymize=True).place(logged())
    assert {name: KEYS.pseudonym(value) for name, value in NAMES.items()} == names(hidden)
    assert hidden.session_key == Identity(KEYS).place(logged()).session_key
    unnamed = Identity(KEYS, pseudonymize=True).place(logged(root_session=None))
    assert unnamed.root_session is None


def test_a_chain_that_somebody_named_is_hashed_and_one_that_we_named_stays():
    hidden = Identity(KEYS, pseudonymize=True)
    for source, chain in (("import:neutral", KEYS.pseudonym("c")), ("import:codex", "c")):
        assert chain == hidden.place(logged(source=source, chain="c")).chain
    assert "c" == Identity(KEYS).place(logged(source="import:neutral", chain="c")).chain


def test_long_names_are_cut_and_their_sessions_stay_apart():
    one, other = (Identity(KEYS).place(logged(session="x" * 200 + end)) for end in "ab")
    assert (128, one.session) == (len(other.session), other.session)
    assert one.session_key != other.session_key
