"""Plans read from a folder: ``data.toml``, ``methods.toml``, and the folders ``tables``, ``figures`` and ``claims``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dre.compare.plan import Claim, Comparison, Data, Explained, Figure, Method, NotRun, Row, Run, Table, sides
from dre.notation import unknown


class PlanError(ValueError):
    """A plan that says what can't be carried out; the message names the file."""


@dataclass(frozen=True)
class Plans:
    data: dict[str, Data]
    runs: dict[str, Run]
    methods: dict[str, Method]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]

    @classmethod
    def read(cls, folder: Path) -> Plans:
        """All plans of a folder; what they name must be there."""
        if not (folder / "methods.toml").is_file():
            raise PlanError(f"no plans in {folder}: pass --plans FOLDER, the folder benchmarks of a checkout of the project")
        data = {name: Data(name, **_tuples(each)) for name, each in _toml(folder / "data.toml").items()}
        told = _toml(folder / "methods.toml")
        methods = {name: Method(name, **{"run": name, **each}) for name, each in told["methods"].items()}
        runs = {name: Run(name, **{"baseline": name, **each}) for name, each in told["runs"].items()}
        plans = cls(
            data,
            runs,
            methods,
            tuple(_table(path) for path in _files(folder / "tables")),
            tuple(_figure(path) for path in _files(folder / "figures")),
            tuple(_claim(path) for path in _files(folder / "claims")),
        )
        plans.check()
        return plans

    def check(self) -> None:
        for method in self.methods.values():
            _known("run", method.run, self.runs)
        for table in self.tables:
            for name in table.data:
                _known(f"{table.name}: data", name, self.data)
            for name in table.methods:
                _known(f"{table.name}: method", name, self.methods)
        for figure in self.figures:
            for row in figure.rows:
                _known(f"{figure.name}: data", row.data, self.data)
                for name in row.methods:
                    _known(f"{figure.name}: method", name, self.methods)
        for claim in self.claims:
            for comparison in claim.comparisons:
                for side in sides(comparison):
                    _known(f"{claim.name}: method", side.method, self.methods)
                    _known(f"{claim.name}: data", side.data, self.data)

    def quick(self, rows: int, test_rows: int) -> Plans:
        """The same plans on few rows, with quick options and one seed: to see that all of it works."""
        prefixes = {prefix: _share(prefix, data, test_rows) for data in self.data.values() for prefix in data.prefixes}
        runs = {name: replace(run, options={**run.options, **run.quick}) for name, run in self.runs.items()}
        return replace(
            self,
            data={name: _few(data, rows, test_rows) for name, data in self.data.items()},
            runs=runs,
            tables=tuple(
                replace(table, seeds=1, seeds_of={}, not_run=(), scores=tuple(_on(score, prefixes) for score in table.scores))
                for table in self.tables
            ),
            claims=tuple(
                replace(
                    claim,
                    seeds=1,
                    comparisons=tuple(
                        replace(each, this=_on(each.this, prefixes), that=_on(each.that, prefixes))
                        for each in claim.comparisons
                    ),
                )
                for claim in self.claims
            ),
        )


def _few(data: Data, rows: int, test_rows: int) -> Data:
    """Spread over the whole: some sets are sorted by their labels."""
    return replace(
        data,
        rows=min(rows, data.rows or rows),
        test_rows=test_rows,
        spread=True,
        options={**data.options, **({"train": rows} if "train" in data.options else {})},
        prefixes=tuple(_share(prefix, data, test_rows) for prefix in data.prefixes),
    )


def _share(prefix: int, data: Data, test_rows: int) -> int:
    return test_rows * prefix // max(data.prefixes)


def _on(text: str, prefixes: dict[int, int]) -> str:
    """A score or a side of a comparison, with the prefix that takes the place of its own."""
    name, _, prefix = text.partition("#")
    return f"{name}#{prefixes[int(prefix)]}" if prefix else text


def _table(path: Path) -> Table:
    told = _tuples(_toml(path))
    told["not_run"] = tuple(NotRun(**_tuples(each)) for each in told.get("not_run", ()))
    told["explained"] = tuple(Explained(**_tuples(each)) for each in told.get("explained", ()))
    return Table(path.stem, **told)


def _figure(path: Path) -> Figure:
    told = _toml(path)
    rows = tuple(Row(**_tuples(row)) for row in told.pop("row"))
    return Figure(path.stem, rows=rows, **told)


def _claim(path: Path) -> Claim:
    """A comparison whose ``data`` is a list stands for one on each."""
    told = _toml(path)
    comparisons = []
    for each in told.pop("compare"):
        names = each.pop("data", "")
        comparisons += [Comparison(data=name, **each) for name in (names if isinstance(names, list) else [names])]
    return Claim(path.stem, comparisons=tuple(comparisons), **told)


def _tuples(told: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.toml"))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as problem:
        raise PlanError(f"{path} can't be read: {problem}") from problem


def _known(what: str, name: str, among: dict[str, Any]) -> None:
    if name not in among:
        raise PlanError(unknown(what, name, list(among)))
