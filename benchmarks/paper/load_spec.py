"""Read the specification of the benchmark from TOML files.

``data.toml``, ``methods.toml``, and one file per table, figure and claim in the folders of these names.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from paper.spec import Claim, ClaimComparison, Data, Explained, Figure, Method, NotRun, Row, RunSpec, Spec, SpecError, Table


def load_spec(folder: Path) -> Spec:
    """Read and check the specification in a folder.

    >>> spec = load_spec(Path(__file__).parents[1])
    >>> spec.methods["paper-deep-tsne"].run
    'paper'
    """
    if not (folder / "methods.toml").is_file():
        raise SpecError(f"{folder} has no methods.toml: pass --spec FOLDER, the folder benchmarks of a checkout")
    methods = _read(folder / "methods.toml")
    spec = Spec(
        data={name: Data(name, **_tuples(each)) for name, each in _read(folder / "data.toml").items()},
        runs={name: RunSpec(name, **{"baseline": name, **each}) for name, each in methods["runs"].items()},
        methods={name: Method(name, **{"run": name, **each}) for name, each in methods["methods"].items()},
        tables=tuple(_table(path) for path in _files(folder / "tables")),
        figures=tuple(_figure(path) for path in _files(folder / "figures")),
        claims=tuple(_claim(path) for path in _files(folder / "claims")),
    )
    spec.check()
    return spec


def _table(path: Path) -> Table:
    fields = _tuples(_read(path))
    fields["not_run"] = tuple(NotRun(**_tuples(each)) for each in fields.get("not_run", ()))
    fields["explained"] = tuple(Explained(**_tuples(each)) for each in fields.get("explained", ()))
    return Table(path.stem, **fields)


def _figure(path: Path) -> Figure:
    fields = _read(path)
    rows = tuple(Row(**_tuples(row)) for row in fields.pop("row"))
    return Figure(path.stem, rows=rows, **fields)


def _claim(path: Path) -> Claim:
    """A comparison whose ``data`` is a list stands for one on each."""
    fields = _read(path)
    comparisons = []
    for each in fields.pop("compare"):
        names = each.pop("data", "")
        comparisons += [ClaimComparison(data=name, **each) for name in (names if isinstance(names, list) else [names])]
    return Claim(path.stem, comparisons=tuple(comparisons), **fields)


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.toml"))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as problem:
        raise SpecError(f"can't read {path}: {problem}") from problem
