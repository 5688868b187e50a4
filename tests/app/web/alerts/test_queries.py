import pytest
from starlette.requests import Request

from app.errors import BadParameterError
from app.web.alerts import queries


def request(query: str) -> Request:
    return Request({"type": "http", "query_string": query.encode(), "headers": []})


def test_what_is_given_is_read_and_a_blank_is_as_good_as_none():
    assert {"rule": "a"} == queries.read(
        request("rule=a&state=&limit=%20"), "rule", "state", "limit"
    )


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("ruel=a", "Did you mean rule?"),
        ("zzz=a", "Parameters are rule, limit."),
        ("rule=a&rule=b", "given twice"),
    ],
)
def test_what_is_not_known_or_given_twice_is_refused(query, said):
    with pytest.raises(BadParameterError) as caught:
        queries.read(request(query), "rule", "limit")
    assert said in str(caught.value)


def test_a_route_without_parameters_takes_none():
    with pytest.raises(BadParameterError, match="It takes none"):
        queries.read(request("a=1"))


@pytest.mark.parametrize("text", ["0" * 8 + "1" + "0" * 5_000, "0" * 9 + "7", "000000001999999"])
def test_a_limit_is_judged_by_all_its_digits(text):
    with pytest.raises(BadParameterError, match="limit cannot be that"):
        queries.limit({"limit": text})


def test_a_limit_has_a_default_and_bounds():
    assert (50, 1, 500) == (
        queries.limit({}),
        queries.limit({"limit": "1"}),
        queries.limit({"limit": "500"}),
    )
    for text in ("0", "501", "-1", "x", "1.0", "٣", "9" * 5_000):
        with pytest.raises(BadParameterError):
            queries.limit({"limit": text})


def test_openapi_is_told_the_names():
    assert ["a", "b"] == [each["name"] for each in queries.parameters("a", "b")["parameters"]]
