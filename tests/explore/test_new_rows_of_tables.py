"""New rows of a mixed table: numbers, yes and no, categories and gaps are prepared in the browser as in the fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from known_page import visit
from model_pages import bring, paste, placed

CLOSE = 1e-3


def mixed(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    frame = pd.DataFrame({
        "mass": np.array([3000.0, 4000, 5000])[codes] + rng.normal(size=n) * 100,
        "sex": np.array(["female", "male", "not known"])[rng.integers(0, 3, n)],
        "alive": np.array(["yes", "no"])[rng.integers(0, 2, n)],
        "island": np.array(["Biscoe", "Dream", "Torgersen"])[codes],
        "site": rng.integers(1, 4, n).astype(float),
    })  # fmt: skip
    frame.loc[::11, "mass"] = np.nan
    frame.loc[5::13, "sex"] = None
    return frame


def dre(*words: Any) -> str:
    done = subprocess.run([sys.executable, "-m", "dre", *map(str, words)], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_mixed_table_is_placed_where_dre_transform_places_it(browser: Any, tmp_path: Path) -> None:
    mixed(90).to_csv(tmp_path / "fit.csv", index=False)
    model, page = tmp_path / "m.safetensors", tmp_path / "map.html"
    dre(
        "fit", tmp_path / "fit.csv", "-o", model, "--categories", "--missing", "median", "--schedule", "x: fuzzy(10) -> ce * 20"
    )
    assert "of which the model takes" in dre("explore", model, tmp_path / "fit.csv", "-o", page, "--with-model", "--no-trust")
    assert '"table": null' not in page.read_text()  # the page has the preparation
    new = mixed(40, seed=1)
    new.loc[3, "island"] = "Anvers"
    new.to_csv(tmp_path / "new.csv", index=False)
    dre("transform", model, tmp_path / "new.csv", "-o", tmp_path / "new.npy")
    with visit(browser, page) as seen:
        message = bring(seen, ("new.csv", (tmp_path / "new.csv").read_bytes()))
        assert message.startswith("40 rows of new.csv placed. Missing values of ")
        assert message.endswith(" rows are filled in as in the fit. 1 value of categories did not occur in the fit.")
        assert np.abs(placed(seen) - np.load(tmp_path / "new.npy")).max() < CLOSE
        seen.page.locator("#new-clear").click()
        columns = ["island", "sex", "site", "mass", "alive"]
        paste(seen, new.head(5)[columns].to_csv(index=False, sep="\t").replace("yes", "true"))
        assert np.abs(placed(seen) - np.load(tmp_path / "new.npy")[:5]).max() < CLOSE
        assert seen.said == []
