import pytest

from app import setting_kinds as kinds
from app.errors import SettingsError
from app.setting_layers import Layer, unknown_key
from app.setting_table import Setting

TABLE = {
    setting.name: setting
    for setting in (
        Setting("size", kinds.integer(0), 1, "A size."),
        Setting("word", kinds.SECRET, None, "A secret.", secret=True),
    )
}


def read(given, *, as_text=False, prefix="", name="the file"):
    return Layer(name, given, TABLE, as_text=as_text, prefix=prefix).read()


def refused(given, **more):
    with pytest.raises(SettingsError) as caught:
        read(given, **more)
    return caught.value


def test_values_are_checked_as_they_are_or_read_from_text():
    assert {"size": 2} == read({"size": 2}) == read({"size": "2"}, as_text=True)
    assert "size in the file must be a whole number" in str(refused({"size": "2"}))


def test_a_key_is_told_as_it_is_written_in_its_source():
    shown = refused({"size": "x"}, as_text=True, prefix="WARMLINE_", name="the environment")
    assert "WARMLINE_SIZE in the environment" in str(shown)
    assert "--size on" in str(refused({"size": "x"}, as_text=True, prefix="--"))


def test_an_unknown_key_is_told_with_the_nearest():
    refusal = refused({"sise": 2})
    assert ("There is no setting sise (in the file).", "The nearest one is size.") == (
        refusal.message,
        refusal.hint,
    )


def test_only_a_secret_may_come_from_a_file(tmp_path):
    file = tmp_path / "secret"
    file.write_text("12345678\n")
    assert {"word": "12345678"} == read({"word_file": str(file)})
    assert "no setting size_file" in str(refused({"size_file": str(file)}))
    assert "both word and word_file" in str(refused({"word": "x" * 8, "word_file": str(file)}))


def test_a_file_that_cannot_be_read_is_told_without_its_name(tmp_path):
    refusal = refused({"word_file": str(tmp_path / "not-there")})
    assert "not-there" not in str(refusal)
    assert "FileNotFoundError" in str(refusal)


def test_the_hint_for_what_kubernetes_sets_is_its_remedy():
    error = unknown_key("WARMLINE_SERVICE_HOST", "the environment", ["WARMLINE_HOST"])
    assert "enableServiceLinks" in (error.hint or "")
