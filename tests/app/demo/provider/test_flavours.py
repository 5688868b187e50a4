"""How the speakers of the protocol differ."""

import pytest

from app.demo.provider.flavours import FLAVOURS, flavour


def test_only_the_codex_backend_keeps_nothing_and_repeats_nothing():
    odd = {f.name for f in FLAVOURS.values() if not f.stores and not f.lists_terminal_output}
    assert odd == {"codex"}


def test_an_unknown_name_is_refused_with_the_known_ones():
    assert flavour("azure").name == "azure"
    with pytest.raises(ValueError, match="'x'; known are openai, codex, azure"):
        flavour("x")
