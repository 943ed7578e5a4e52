"""The loss is drawn per epoch and stage, and titles name what each stage matches."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dre import Schedule, plot

SCHEDULE = Schedule.parse("x: gaussian(30) -> kl * 20; h1: fuzzy(15) -> ce * 10")


def records() -> list[dict[str, Any]]:
    first = [{"stage": 0, "source": "x", "epoch": i, "loss": 5 / (i + 1), "seconds": 0.5} for i in range(20)]
    return first + [{"stage": 1, "source": "h1", "epoch": i, "loss": 0.2 - i / 100, "seconds": 2.0} for i in range(10)]


@pytest.mark.parametrize(("against", "end"), [("epoch", 30), ("seconds", 30)])
def test_every_epoch_is_drawn_once_and_time_goes_on_from_stage_to_stage(against: str, end: float) -> None:
    figure = plot.history(records(), SCHEDULE, against=against)
    lines = [axis.lines[0] for axis in figure.axes]
    assert np.allclose(np.concatenate([line.get_ydata() for line in lines]), [record["loss"] for record in records()])
    times = np.concatenate([line.get_xdata() for line in lines])
    assert (np.diff(times) > 0).all()
    assert times[-1] == pytest.approx(end)


def test_each_stage_is_named_with_its_plan_and_where_it_ended() -> None:
    first, second = (axis.get_title().replace("\n", " ") for axis in plot.history(records(), SCHEDULE).axes)
    assert "stage 0 · x" in first
    assert "gaussian(30) → kl" in first
    assert "loss 0.25" in first
    assert "stage 1 · h1" in second
    assert "fuzzy(15) → ce" in second


def test_titles_do_not_run_into_each_other() -> None:
    many = [{**record, "stage": stage} for stage in range(5) for record in records()[:20]]
    schedule = Schedule(*([SCHEDULE[1]] * 5))
    figure = plot.history(many, schedule)
    figure.canvas.draw()
    boxes = [axis.title.get_window_extent() for axis in figure.axes]
    assert all(a.x1 <= b.x0 for a, b in pairwise(boxes))


def test_a_loss_that_falls_far_is_on_a_scale_where_its_end_is_seen() -> None:
    falling = [{**record, "loss": 10.0 ** -record["epoch"]} for record in records()[:5]]
    assert plot.history(falling).axes[0].get_yscale() == "log"
    assert plot.history(records()).axes[0].get_yscale() == "linear"


def test_no_epochs_and_other_axes_are_refused() -> None:
    with pytest.raises(ValueError, match="history_"):
        plot.history([])
    with pytest.raises(ValueError, match="'epoch' or 'seconds'"):
        plot.history(records(), against="steps")
