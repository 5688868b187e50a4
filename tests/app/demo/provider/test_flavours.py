"""How the speakers of the protocol differ."""

import pytest

from app.demo.provider.flavours import FLAVOURS, flavour


def test_only_the_codex_backend_keeps_nothing_and_repeats_nothing():
    odd = {f.name for f in FLAVOURS.values() if not f.stores and not f.lists_terminal_output}
    assert odd == {"codex"}


def test_an_unknown_name_is_refused_with_the_known_ones():
    assert flavour("azure").name == "azure"
    with pytest.raises(ValueError, match="'x'; known are openai, codex, azure, xai, vercel"):
        flavour("x")


@pytest.mark.parametrize(
    ("model", "served"),
    [
        ("gpt-5.4", True),
        ("openai/gpt-5.5-mini", True),
        ("gpt-6", True),
        ("openai/gpt-6.1-sol", True),
        ("gpt-5", False),
        ("gpt-5.3-codex", False),
        ("anthropic/claude-x", False),
        ("gpt-image", False),
    ],
)
def test_vercel_takes_openais_models_from_5_4_on_over_websockets(model, served):
    assert served == FLAVOURS["vercel"].serves(model)
    assert FLAVOURS["openai"].serves(model)


def test_only_vercel_ends_connections_by_silence():
    assert {"vercel"} == {f.name for f in FLAVOURS.values() if f.idle_seconds is not None}
