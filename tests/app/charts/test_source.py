from app.charts.source import Source
from tests.support.charts import ListSource, quarter_hours


def test_a_source_answers_per_bucket():
    source: Source = ListSource(quarter_hours(3))
    answers = (source.modes(), source.mismatches(), source.tokens(), source.ttft())
    assert {len(answer) for answer in answers} == {3}
