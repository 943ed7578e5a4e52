"""Activities: nested, counted, and told of when they end."""

from __future__ import annotations

import time

import pytest

from dre.progress.activity import Activity, activities, activity, begin, end, listening


def test_inner_activities_come_last_and_leave_when_they_end():
    with activity("outer") as outer, activity("inner", 3) as inner:
        assert activities() == [outer, inner]
    assert activities() == []
    with pytest.raises(KeyError), activity("outer"):
        raise KeyError
    assert activities() == []


def test_an_activity_ends_once():
    begun, ended = begin("reading"), []
    with listening(ended.append):
        end(begun)
        end(begun)
    assert ended == [begun]
    assert activities() == []


@pytest.mark.parametrize(("total", "done", "known"), [(None, 3, False), (10, 0, False), (10, 5, True), (10, 11, False)])
def test_the_time_left_is_told_when_it_can_be(total, done, known):
    work = Activity("work", total)
    work.began = time.monotonic() - 20
    work.advance(done)
    assert (work.seconds_left is not None) == known
    if known:
        assert work.seconds_left == pytest.approx(20, abs=1)
