import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.alerts.records import (
    Observation,
    memory_from_dict,
    memory_to_dict,
    reading_from_dict,
    reading_to_dict,
)
from app.alerts.signals import Lack, Measure, Reading
from app.alerts.states import Memory, State, Told

many = settings(suppress_health_check=list(HealthCheck), deadline=None)

times = st.none() | st.integers(0, 2**42)
numbers = st.none() | st.floats(0, 1e15)
wholes = st.integers(0, 2**53)
memories = st.builds(
    Memory,
    state=st.sampled_from(State),
    since=times,
    pending_since=times,
    clear_since=times,
    started_at=times,
    ended_at=times,
    absence=st.booleans(),
    peak=numbers,
    absent=wholes,
    resume=st.none() | st.sampled_from(State),
    told=st.none() | st.sampled_from(Told),
    told_at=times,
    told_times=wholes,
    hushed=st.booleans(),
)
readings = st.builds(
    Reading,
    st.builds(Measure, wholes, wholes, wholes, wholes, wholes),
    numbers,
    numbers,
    st.none() | st.sampled_from(Lack),
)
GOOD_READING = reading_to_dict(
    Reading(Measure(5, 1, 4, 4, 0), 0.25, 0.05, None), at=60, window_start=0, window_end=50
)


@many
@given(memory=memories)
def test_a_memory_comes_back_from_json_as_it_was(memory):
    text = json.dumps(memory_to_dict(memory), allow_nan=False)
    assert memory_from_dict(json.loads(text)) == memory


@many
@given(reading=readings, at=wholes, start=wholes, end=wholes)
def test_a_reading_comes_back_from_json_with_its_window(reading, at, start, end):
    values = reading_to_dict(reading, at=at, window_start=start, window_end=end)
    text = json.dumps(values, allow_nan=False)
    assert reading_from_dict(json.loads(text)) == Observation(reading, at, start, end)


def test_samples_are_not_kept():
    measure = Measure(2, 0, 0, 2, 0, (1.0, 2.0))
    values = reading_to_dict(Reading(measure, 2.0, 2.0, None), at=1, window_start=0, window_end=1)
    assert "samples" not in values
    assert reading_from_dict(values).reading.measure.samples == ()


@pytest.mark.parametrize("name", sorted(memory_to_dict(Memory())))
def test_a_memory_without_one_of_its_fields_is_refused(name):
    values = memory_to_dict(Memory())
    del values[name]
    with pytest.raises(ValueError, match=name):
        memory_from_dict(values)


@pytest.mark.parametrize("name", sorted(memory_to_dict(Memory())))
def test_a_memory_with_a_value_of_another_kind_is_refused(name):
    with pytest.raises(ValueError):
        memory_from_dict(memory_to_dict(Memory()) | {name: "nonsense"})


@pytest.mark.parametrize("name", sorted(GOOD_READING))
def test_a_reading_with_a_value_of_another_kind_or_without_one_is_refused(name):
    with pytest.raises(ValueError):
        reading_from_dict(GOOD_READING | {name: "nonsense"})
    with pytest.raises(ValueError, match=name):
        reading_from_dict({key: value for key, value in GOOD_READING.items() if key != name})


@pytest.mark.parametrize("name", ["rows", "at", "value"])
def test_a_truth_value_is_no_number(name):
    with pytest.raises(ValueError, match=name):
        reading_from_dict(GOOD_READING | {name: True})


def test_an_unknown_field_is_refused():
    with pytest.raises(ValueError, match="mood"):
        memory_from_dict(memory_to_dict(Memory()) | {"mood": "good"})


@pytest.mark.parametrize("worst", [float("nan"), float("inf")])
def test_what_is_no_finite_number_is_never_written_or_read(worst):
    with pytest.raises(ValueError, match="peak"):
        memory_to_dict(Memory(peak=worst))
    with pytest.raises(ValueError, match="value"):
        reading_to_dict(Reading(Measure(), worst, None, None), at=1, window_start=0, window_end=1)
    with pytest.raises(ValueError, match="bound"):
        reading_from_dict(GOOD_READING | {"bound": worst})
