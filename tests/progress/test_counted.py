"""Numbers with their noun."""

from __future__ import annotations

import pytest

from dre.progress.counted import agreeing, counted


@pytest.mark.parametrize("n", [0, 2, 21, 1001])
def test_all_but_one_have_the_plural(n: int) -> None:
    assert counted(n, "row", "have") == f"{n:,} rows have"
    assert agreeing(n, "lack") == "lack"


def test_one_has_the_singular_and_its_verb() -> None:
    verbs = {"have": "has", "are": "is", "were": "was", "lack": "lacks"}
    assert [counted(1, "row", verb) for verb in verbs] == [f"1 row {verb}" for verb in verbs.values()]
