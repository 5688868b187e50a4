"""The texts of the catalogue."""

import itertools
import re

import pytest

from app.analysis.catalogue import AFTER_A_FAULT, FIELDS, HISTORY, LOST, REASONS
from app.analysis.explain import LOST as SENTENCES_OF_LOST
from app.setting_table import UPSTREAM_SETTINGS
from engine.model import ColdCause, Reason

ENTRIES = {
    **{f"history {name}": advice for name, advice in HISTORY.items()},
    **{f"field {name}": advice for name, advice in FIELDS.items()},
    **{f"reason {name}": advice for name, advice in REASONS.items()},
    **{f"lost {name}": advice for name, advice in LOST.items()},
    "after a fault": AFTER_A_FAULT,
}


@pytest.mark.parametrize("name", ENTRIES)
def test_cause_and_remedy_are_plain_sentences(name):
    for text in (ENTRIES[name].cause, ENTRIES[name].remedy):
        assert re.fullmatch(r"[A-Z][^\n]*[^ ]\.", text)
        assert "  " not in text
        assert len(text) <= 220


def test_no_two_entries_say_the_same_but_those_that_are_shared_on_purpose():
    pairs = itertools.combinations(ENTRIES.items(), 2)
    same = {one for (one, a), (_, b) in pairs if a.cause == b.cause}
    assert {"history instruction", "history instruction_volatile"} == same


def test_the_remedy_for_metadata_that_moves_is_a_setting_by_its_name():
    named = re.findall("setting `(.*?)`", HISTORY["metadata_moved"].remedy)
    assert ["freeze"] == [name for name in named if name in {s.name for s in UPSTREAM_SETTINGS}]


def test_reasons_and_causes_are_the_engines_words():
    assert set(REASONS) <= set(Reason)
    beside = {"handshake_changed", "diagnostics_refused"}
    assert set(LOST) <= {str(cause) for cause in ColdCause} | beside
    assert set(LOST) <= set(SENTENCES_OF_LOST)
