from pathlib import Path

import pytest

from app import setting_kinds as kinds
from app.setting_kinds import Kind

GOOD = [
    (kinds.choice("a", "b"), "a", "a"),
    (kinds.integer(0, 10), 10, 10),
    (kinds.integer(-5), -5, -5),
    (kinds.NUMBER, 3, 3.0),
    (kinds.NUMBER, 0.5, 0.5),
    (kinds.FLAG, True, True),
    (kinds.WORDS, ["a", "b"], ("a", "b")),
    (kinds.WORDS, [], ()),
    (kinds.KEYS, ["_meta", "off"], ("_meta", "off")),
    (kinds.KEYS, "off", ()),
    (kinds.KEYS, [], ()),
    (kinds.FILE, "/a/b", Path("/a/b")),
    (kinds.HOST, "::1", "::1"),
    (kinds.HOST, "0.0.0.0", "0.0.0.0"),
    (kinds.HOSTS, ["warm.example", "[::1]", "10.0.0.1"], ("warm.example", "[::1]", "10.0.0.1")),
    (kinds.BASE_URL, "https://host:8443/v1/", "https://host:8443/v1"),
    (kinds.BASE_URL, "http://[::1]:80", "http://[::1]:80"),
    (kinds.DATABASE, "a.sqlite3", "a.sqlite3"),
    (kinds.DATABASE, "postgresql+psycopg://u@h/n", "postgresql+psycopg://u@h/n"),
    (kinds.SECRET, "12345678", "12345678"),
]
BAD = [
    (kinds.choice("a", "b"), "c", "one of a, b"),
    (kinds.choice("a", "b"), ["a"], "one of a, b"),
    (kinds.integer(0, 10), 11, "a whole number from 0 to 10"),
    (kinds.integer(0, 10), -1, "from 0 to 10"),
    (kinds.integer(0), True, "of 0 or more"),
    (kinds.integer(0), 1.0, "of 0 or more"),
    (kinds.integer(0), "1", "of 0 or more"),
    (kinds.NUMBER, -1, "a number of 0 or more"),
    (kinds.NUMBER, True, "a number"),
    (kinds.NUMBER, float("nan"), "a number"),
    (kinds.NUMBER, float("inf"), "a number"),
    (kinds.FLAG, 1, "true or false"),
    (kinds.WORDS, "a", "a list of words"),
    (kinds.KEYS, "_meta", '"off" or a list of JSON keys'),
    (kinds.KEYS, False, '"off" or a list of JSON keys'),
    (kinds.KEYS, [""], '"off" or a list of JSON keys'),
    (kinds.WORDS, [1], "a list of words"),
    (kinds.WORDS, [" "], "a list of words"),
    (kinds.FILE, "", "the path of a file"),
    (kinds.FILE, 3, "the path of a file"),
    (kinds.HOST, "a b", "an address"),
    (kinds.HOSTS, ["http://a"], "without scheme"),
    (kinds.HOSTS, ["a:80"], "without scheme"),
    (kinds.HOSTS, "a", "without scheme"),
    (kinds.BASE_URL, "ftp://host", "http://"),
    (kinds.BASE_URL, "host/v1", "http://"),
    (kinds.BASE_URL, "https://", "http://"),
    (kinds.BASE_URL, "https://user:pw@host", "without credentials"),
    (kinds.BASE_URL, "https://host/v1?key=x", "without credentials"),
    (kinds.BASE_URL, "https://host:port", "http://"),
    (kinds.BASE_URL, "https://host/ v1", "http://"),
    (kinds.BASE_URL, 5, "http://"),
    (kinds.DATABASE, "mysql://h/n", "sqlite:///PATH"),
    (kinds.DATABASE, "", "sqlite:///PATH"),
    (kinds.SECRET, "short", "at least 8"),
    (kinds.SECRET, "with blank in it", "without blanks"),
    (kinds.SECRET, "umläutig", "ASCII"),
    (kinds.SECRET, None, "at least 8"),
]
TEXT = [
    (kinds.integer(0), "12", 12),
    (kinds.NUMBER, "0.5", 0.5),
    (kinds.FLAG, "TRUE", True),
    (kinds.FLAG, "0", False),
    (kinds.WORDS, "a, b,", ("a", "b")),
    (kinds.KEYS, "off", ()),
    (kinds.KEYS, "_meta, at", ("_meta", "at")),
    (kinds.HOSTS, "a.example,b.example", ("a.example", "b.example")),
]


@pytest.mark.parametrize(("kind", "given", "expected"), GOOD)
def test_a_fitting_value_is_taken(kind: Kind, given, expected):
    found = kind.check(given)
    assert (expected, type(expected)) == (found, type(found))


@pytest.mark.parametrize(("kind", "given", "wanted"), BAD)
def test_another_value_is_refused_with_what_is_wanted(kind: Kind, given, wanted: str):
    with pytest.raises(ValueError) as caught:
        kind.check(given)
    assert wanted in str(caught.value)


@pytest.mark.parametrize(("kind", "given", "expected"), TEXT)
def test_text_is_read_as_the_value_it_stands_for(kind: Kind, given: str, expected):
    assert expected == kind.check(kind.text(given))


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (kinds.integer(0), "1e3"),
        (kinds.integer(0), "٣"),
        (kinds.integer(0), ""),
        (kinds.NUMBER, "nan"),
        (kinds.NUMBER, "1_0"),
        (kinds.FLAG, "yes"),
    ],
)
def test_text_that_stands_for_no_value_is_refused(kind: Kind, given: str):
    with pytest.raises(ValueError):
        kind.check(kind.text(given))


def test_what_was_given_is_not_repeated_since_it_may_be_a_secret():
    for kind in (kinds.SECRET, kinds.DATABASE, kinds.BASE_URL):
        with pytest.raises(ValueError) as caught:
            kind.check("mysql://user:hunter2@host ")
        assert "hunter2" not in str(caught.value)
