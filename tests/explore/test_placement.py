"""Maps in one square: turned, mirrored, sized and shifted as a whole, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from dre.explore.placement import place_maps

RNG = np.random.default_rng(0)
LAST = RNG.normal(size=(80, 2))


def test_a_turned_and_mirrored_map_lies_over_the_first_one() -> None:
    turned = 9 * LAST @ np.array([[0.0, 1.0], [1.0, 0.0]]) - 40
    (first,), (other,) = place_maps([[LAST], [turned]])
    assert other(turned) == pytest.approx(first(LAST), abs=1e-9)


def test_all_stages_of_all_maps_are_in_the_unit_square() -> None:
    maps = [[RNG.normal(size=(80, 2)) * 5 + 3, LAST], [RNG.normal(size=(80, 2)) * 100]]
    placed = [
        place(stage)
        for stages, places in zip(maps, place_maps(maps), strict=True)
        for stage, place in zip(stages, places, strict=True)
    ]
    assert np.concatenate(placed).min() >= -1e-9
    assert np.concatenate(placed).max() <= 1 + 1e-9


def test_distances_within_a_map_keep_their_ratios() -> None:
    stage = LAST + RNG.normal(size=(80, 2)) * 0.3
    ((before, _),) = place_maps([[stage, LAST]])
    apart = [np.linalg.norm(each[:1] - each[1:], axis=1) for each in (stage, before(stage))]
    ratio = apart[1] / apart[0]
    assert ratio == pytest.approx(ratio[0])


def test_maps_with_two_and_three_components_can_stand_side_by_side() -> None:
    solid = np.column_stack([LAST, RNG.normal(size=80) * 0.1])
    (flat,), (turning,) = place_maps([[LAST], [solid]])
    assert turning(solid)[:, :2] == pytest.approx(flat(LAST), abs=0.05)
    (turning,), (flat,) = place_maps([[solid], [LAST]])
    assert flat(LAST).shape == (80, 2)
    assert flat(LAST) == pytest.approx(turning(solid)[:, :2], abs=0.05)


def test_points_in_one_place_have_a_place() -> None:
    ((place,),) = place_maps([[np.full((5, 2), 3.0)]])
    assert np.isfinite(place(np.full((5, 2), 3.0))).all()
