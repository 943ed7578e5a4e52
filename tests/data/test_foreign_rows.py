"""Data of other libraries are read in pieces, and give the map that their values give."""

from __future__ import annotations

from pathlib import Path

import dask.array
import datasets
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from dre import DRE
from dre.data import foreign_rows as adapters
from dre.data.foreign_rows import foreign_rows
from dre.data.rows import is_rows

X = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
NAMES = list("abcd")
OPTIONS = {"schedule": "x: gaussian(5) -> kl * 2", "encoder": "mlp(8)", "random_state": 0, "device": "cpu"}


class Items(Dataset):
    """A map-style dataset of rows and labels."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(X[i]), i % 3


class Stream(IterableDataset):
    def __iter__(self):
        return iter(X)


def vectors(size: int = 4) -> pa.Table:
    return pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(X[:, :size].ravel()), size)})


def arrow() -> pa.Table:
    return pa.table({name: X[:, i] for i, name in enumerate(NAMES)})


def files(folder: Path) -> str:
    for i in range(3):
        pl.DataFrame(X[i * 40 : (i + 1) * 40], schema=NAMES).write_parquet(folder / f"{i}.parquet", row_group_size=15)
    return str(folder)


def dask_array(folder: Path):
    return dask.array.from_array(X, chunks=(50, 4))


def hugging_face(folder: Path):
    return datasets.Dataset(arrow())


KINDS = {
    "torch dataset": lambda folder: Items(),
    "tensor dataset": lambda folder: TensorDataset(torch.from_numpy(X)),
    "data loader": lambda folder: DataLoader(Items(), batch_size=7, shuffle=True),
    "arrow table": lambda folder: arrow(),
    "arrow vectors": lambda folder: vectors(),
    "arrow dataset": lambda folder: pyarrow.dataset.dataset(files(folder)),
    "lazy frame": lambda folder: pl.scan_parquet(files(folder) + "/*.parquet"),
    "lazy vectors": lambda folder: pl.LazyFrame({"v": X.tolist()}, schema={"v": pl.List(pl.Float32)}),
    "dask": dask_array,
    "hugging face": hugging_face,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_map_is_that_of_the_values(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters, "BLOCK_VALUES", 60)  # several blocks
    data = KINDS[kind](tmp_path)
    wanted = DRE(**OPTIONS).fit(X)
    found = DRE(**OPTIONS).fit(data)
    np.testing.assert_allclose(found.embedding_, wanted.embedding_, atol=1e-4)
    np.testing.assert_allclose(found.transform(data), wanted.transform(X), atol=1e-4)
    names = getattr(found, "feature_names_in_", None)
    has_names = kind in ("arrow table", "arrow dataset", "lazy frame", "hugging face")
    assert (None if names is None else list(names)) == (NAMES if has_names else None)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_read_in_any_order(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters, "BLOCK_VALUES", 60)
    rows = foreign_rows(KINDS[kind](tmp_path))
    if not is_rows(rows):
        assert kind == "tensor dataset"
        return
    assert tuple(rows.shape) == X.shape
    np.testing.assert_array_equal(rows.read(10, 95).numpy(), X[10:95])
    ids = torch.tensor([119, 3, 3, 50, 0])
    np.testing.assert_array_equal(rows.take(ids).numpy(), X[ids])


def test_columns_of_the_fit_are_found_by_name_later() -> None:
    model = DRE(**OPTIONS).fit(arrow())
    others = arrow().append_column("kind", pa.array(["x"] * len(X))).select(["kind", "d", "b", "a", "c"])
    np.testing.assert_array_equal(model.transform(others), model.transform(arrow()))
    with pytest.raises(ValueError, match="X has no column 'd'"):
        model.transform(arrow().select(["a", "b", "c"]))


@pytest.mark.parametrize("kind", ["arrow table", "arrow dataset", "lazy frame", "hugging face"])
def test_columns_can_be_chosen(kind: str, tmp_path: Path) -> None:
    table = arrow().append_column("kind", pa.array(["x"] * len(X)))
    pl.from_arrow(table).write_parquet(tmp_path / "rows.parquet")
    data = {
        "arrow table": lambda: table,
        "arrow dataset": lambda: pyarrow.dataset.dataset(tmp_path / "rows.parquet"),
        "lazy frame": lambda: pl.scan_parquet(tmp_path / "rows.parquet"),
        "hugging face": lambda: datasets.Dataset(table),
    }[kind]()
    for columns, names in (("numbers", NAMES), (["c", "a"], ["c", "a"])):
        rows = foreign_rows(data, columns)
        assert rows.columns == names
        np.testing.assert_array_equal(rows.read(0, 120).numpy(), X[:, [NAMES.index(name) for name in names]])
    assert DRE(columns="numbers", **OPTIONS).fit(data).transform(data).shape == (120, 2)
    with pytest.raises(ValueError, match=r"do not hold numbers: 'kind'\. Choose others: columns='numbers'"):
        foreign_rows(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Stream(), "can't be read twice"),
        (DataLoader(Stream()), "can't be read twice"),
        (pa.table({"a": ["x", "y"]}), "can't be mapped: 'a'"),
        (pa.table({"a": [[1.0], [2.0]], "b": [[1.0], [2.0]]}), "columns of vectors: a, b"),
        (pa.table({"a": [[1.0, 2.0], [2.0]]}), "different lengths"),
        (pa.table({"a": [[1.0, 2.0], None]}), "without a vector"),
        (pa.table({"a": [1.0, None], "b": [1.0, 2.0]}), "NaN, first in row 1"),
    ],
)
def test_what_can_not_be_read_is_named(data: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        DRE(**OPTIONS).fit(data)


def test_items_of_different_shapes_are_named() -> None:
    class Ragged(Items):
        def __getitem__(self, i: int):
            return torch.zeros(4 if i < 100 else 5)

    with pytest.raises(ValueError, match="item 100 has the shape"):
        DRE(**OPTIONS).fit(Ragged())
