"""What recursions give on the panel's data, by the tails of their loss, and what is known before each of them.

    python benchmarks/recursions.py --data FOLDER

Held-out rows of one split are scored after every stage. Every recursion is made, also one that the default would skip; the
losses are those that it decides by: of the map, on the neighborhoods of the stage before and on its own.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dre import DRE, KL, Schedule
from dre.affinity.target import Target
from dre.metrics import evaluate
from dre.training.events import Event, StageBegan
from dre.training.optional import loss_of_map
from panel_data import DATA, load
from record import record, result_file

ALPHAS = (1.0, 0.5)
FEWEST, MOST = 500, 20_000  # rows for which the default has recursions on a CPU
SCORES = ("neighborhood_hit", "trustworthiness", "shepard_goodness")


class Losses:
    """An observer that notes the losses of the map before each recursion."""

    def __init__(self) -> None:
        self.found: list[list[float | None]] = []
        self._before: Target | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, StageBegan):
            run, targets = event.run, (self._before, event.target)
            if self._before is not None:
                self.found.append([loss_of_map(run, target, run.current_stage.loss) for target in targets])
            self._before = event.target


def measure(name: str, alpha: float, folder: Path) -> dict[str, Any] | None:
    """Fit one data set with the default's recursions, all of which are made; None if it has none."""
    split = load(name, 0, folder)
    if not FEWEST <= len(split.rows) < MOST:
        return None
    schedule = DRE(device="cpu").plan(split.rows.shape).schedule
    stages = [schedule[0], *(replace(stage, loss=KL(alpha=alpha), optional=False) for stage in list(schedule)[1:])]
    losses = Losses()
    model = DRE(schedule=Schedule(*stages), device="cpu", random_state=0).fit(split.rows, observers=[losses])
    rows = np.asarray(split.test_rows).reshape(len(split.test_rows), -1)
    scores: dict[str, list[float]] = {score: [] for score in SCORES}
    for stage in range(len(model.stages_)):
        reference = model.transform(split.rows, stage=stage), split.labels
        found = evaluate(rows, model.transform(split.test_rows, stage=stage), split.test_labels, reference=reference)
        for score in SCORES:
            scores[score].append(round(found[score], 4))
    return {"data": name, "rows": len(split.rows), "alpha": alpha, "losses": losses.found, **scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    small = [name for name in DATA if "mnist" not in name and name != "imdb"]
    parser.add_argument("--only", nargs="*", choices=list(DATA), default=small)
    parser.add_argument("--out", type=Path, default=result_file("recursions"))
    given = parser.parse_args()
    results = []
    for name in given.only:
        for alpha in ALPHAS:
            if (found := measure(name, alpha, given.data)) is not None:
                results.append(found)
                print(name, alpha, found["losses"], found["neighborhood_hit"], found["trustworthiness"], file=sys.stderr)
                record(given.out, results, seed=0)


if __name__ == "__main__":
    main()
