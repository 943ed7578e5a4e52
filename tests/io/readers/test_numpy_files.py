"""Arrays of numpy: .npy is mapped and never read whole, .npz gives one of its arrays and what belongs to it."""

import re
import tracemalloc

import numpy as np
import pytest
import torch
from row_checks import same_rows

from dre import DRE
from dre.data.rows import HostRows, is_rows, read_all
from dre.io.readers import ReadOptions, SourceError, open_source

X = np.random.default_rng(0).normal(size=(12, 5))
KINDS = np.array(["B cell", "T cell"] * 6)


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4", "f2", "u1", "u2", "i8", "?"])
@pytest.mark.parametrize("shape", [(12, 5), (12, 4, 3), (12, 2, 2, 3)], ids=str)
def test_an_array_is_read_as_it_was_written(tmp_path, dtype, shape):
    values = (np.arange(np.prod(shape)).reshape(shape) % 251).astype(dtype)
    np.save(tmp_path / "x.npy", values)
    same_rows(open_source(tmp_path / "x.npy").rows, values.astype(values.dtype.newbyteorder("=")))


def test_columns_first_in_memory_are_no_obstacle(tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    same_rows(open_source(tmp_path / "x.npy").rows, X)


def test_a_large_file_is_opened_without_being_read(tmp_path):
    n, d = 500_000, 100  # 200 MB, of which nothing is on the disk but the header and one row
    path = tmp_path / "large.npy"
    large = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    large[123_456] = 7
    del large
    tracemalloc.start()
    rows = open_source(path).rows
    some = rows.take(torch.tensor([123_456, 5]))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows.shape == (n, d)
    assert some.sum(1).tolist() == [700, 0]
    assert most < 2**20


def test_what_is_mapped_is_checked_as_it_is_read(tmp_path):
    wrong = X.copy()
    wrong[8, 2] = np.nan
    np.save(tmp_path / "x.npy", wrong)
    rows = open_source(tmp_path / "x.npy").rows
    assert not isinstance(rows, HostRows)
    with pytest.raises(ValueError, match="contains NaN, first in row 8"):
        DRE(schedule="x: gaussian(3) -> kl * 1", device="cpu").fit(rows)


def test_rows_of_a_file_give_the_map_of_the_array(tmp_path):
    values = np.random.default_rng(1).normal(size=(60, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", values)
    options = {"schedule": "x: gaussian(5) -> kl * 1", "encoder": "mlp(8)", "random_state": 0, "device": "cpu"}
    fitted = DRE(**options).fit(open_source(tmp_path / "x.npy").rows)
    np.testing.assert_array_equal(fitted.transform(values), DRE(**options).fit(values).transform(values))


def test_rows_that_are_not_there_are_an_index_error(tmp_path):
    np.save(tmp_path / "x.npy", X)
    for ids in ([12], [-1, 3]):
        with pytest.raises(IndexError, match="there are 12"):
            open_source(tmp_path / "x.npy").rows.take(torch.tensor(ids))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.arange(5.0), r"shape (5,): expected rows with columns"),
        (np.float64(3), r"shape ()"),
        (X * 1j, "complex128, not real numbers"),
        (X.astype(str), "not real numbers"),
        (np.array([[None]]), "pickled objects are not read"),
    ],
    ids=["vector", "scalar", "complex", "text", "objects"],
)
def test_what_is_no_rows_is_named(tmp_path, values, message):
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(SourceError, match=re.escape(message)):
        open_source(tmp_path / "x.npy")


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_damaged_file_is_an_error_of_few_lines(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    np.save(path, X) if suffix == ".npy" else np.savez(path, X)
    whole = path.read_bytes()
    for content in (b"", b"no array", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=r"cannot be read as an array") as caught:
            open_source(path)
        assert len(str(caught.value).splitlines()) <= 2


def test_the_first_array_with_columns_is_taken_and_what_belongs_to_it(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, kind=KINDS, size=np.arange(12), X=X, other=np.arange(3), X_test=X[:4])
    found = open_source(path)
    np.testing.assert_array_equal(found.rows, X)
    assert list(found.metadata) == ["kind", "size"]
    assert found.metadata["kind"].tolist() == KINDS.tolist()
    assert found.messages == ["x.npz: using the array 'X', not X_test; choose one with x.npz:NAME"]


def test_an_array_can_be_named(tmp_path):
    np.savez(tmp_path / "x.npz", X=X, X_test=X[:4])
    for found in (open_source(f"{tmp_path}/x.npz:X_test"), open_source(tmp_path / "x.npz", part="X_test")):
        np.testing.assert_array_equal(found.rows, X[:4])
        assert found.messages == []
    with pytest.raises(SourceError, match=r"unknown array 'X_tets'; known: X, X_test. Did you mean 'X_test'"):
        open_source(f"{tmp_path}/x.npz:X_tets")


def test_without_columns_there_are_no_rows(tmp_path):
    np.savez(tmp_path / "x.npz", a=KINDS)
    with pytest.raises(SourceError, match=r"no array with columns; its arrays: a \(12,\)"):
        open_source(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
@pytest.mark.parametrize("policy", ["drop", "mean", "median"])
def test_gaps_of_an_array_are_dropped_or_filled(tmp_path, name, policy):
    X = np.random.default_rng(0).normal(size=(12, 3))
    X[4, 1], X[7, 0] = np.nan, np.inf
    if name == "x.npy":
        np.save(tmp_path / name, X)
    else:
        np.savez(tmp_path / name, X=X, kind=np.arange(12))
    found = open_source(tmp_path / name, options=ReadOptions(missing=policy))
    rows = read_all(found.rows, np.float64) if is_rows(found.rows) else found.rows
    if policy == "drop":
        kept = np.isfinite(X).all(1)
        np.testing.assert_array_equal(rows, X[kept])
        np.testing.assert_array_equal(found.dropped.kept, kept)
        assert found.messages == ["2 of 12 rows lack values and are left out"]
        assert name == "x.npy" or found.metadata["kind"].tolist() == np.arange(12)[kept].tolist()
        return
    middle = getattr(np, f"nan{policy}")
    expected = {"0": middle(np.delete(X[:, 0], 7)), "1": middle(X[:, 1]), "2": middle(X[:, 2])}
    assert found.fill == pytest.approx(expected)
    again = open_source(tmp_path / name, options=ReadOptions(fill={"0": 9.0, "1": 8.0}))
    assert (again.rows[7, 0], again.rows[4, 1]) == (9.0, 8.0)


def test_an_array_without_names_has_no_columns_to_choose(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(SourceError, match="no names of columns"):
        open_source(tmp_path / "x.npy", options=ReadOptions(columns=["a"]))
    with pytest.raises(SourceError, match="does not hold a folder of images: leave out the option size='8x8'"):
        open_source(tmp_path / "x.npy", options=ReadOptions(size=(8, 8)))
