"""DATA as commands read it: labels and model columns are found in any kind of rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from dre import DRE
from dre.cli.data import as_fitted, match_columns, open_data, split_labels
from dre.cli.options import UsageError
from dre.data.rows import HostRows, is_rows, read_all
from dre.data.subsample import to_array
from dre.io.readers import ReadOptions, Source
from dre.io.readers.arrays import ColumnSubset

X = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
LABELS = np.arange(20) % 3


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix, HostRows])
@pytest.mark.parametrize("column", [0, 2, 4])
def test_a_column_of_labels_is_taken_out_of_rows_of_any_kind(monkeypatch, kind, column):
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 5 * 7)  # several pieces
    rows = np.insert(X, column, LABELS, axis=1)
    names = [f"c{i}" for i in range(4)]
    found, labels = split_labels(Source(kind(rows), [*names[:column], "kind", *names[column:]]), "kind")
    assert found.columns == names
    assert labels.tolist() == LABELS.tolist()
    assert labels.dtype.kind == "i"
    dense = read_all(found.rows) if is_rows(found.rows) else found.rows
    np.testing.assert_array_equal(dense.toarray() if scipy.sparse.issparse(dense) else dense, X)


def test_rows_that_are_read_piece_by_piece_stay_so():
    rows = ColumnSubset(HostRows(np.insert(X, 1, LABELS, axis=1)), [0, *range(2, X.shape[1] + 1)])
    assert rows.shape == X.shape
    np.testing.assert_array_equal(rows.read(3, 9), X[3:9])
    np.testing.assert_array_equal(rows.take(torch.tensor([7, 2])), X[[7, 2]])


def test_fractions_stay_fractions():
    _, labels = split_labels(Source(X, list("abcd")), "b")
    np.testing.assert_array_equal(labels, X[:, 1])


def test_a_label_that_is_empty_is_no_label_and_no_error():
    _, labels = split_labels(Source(X[:3], metadata={"kind": np.array(["a", "b", ""])}), "kind")
    assert labels.tolist() == ["a", "b", ""]


def test_what_stands_beside_the_rows_comes_before_a_column_and_a_file():
    found, labels = split_labels(Source(X, list("abcd"), metadata={"a": LABELS}), "a")
    assert found.rows is X
    assert labels is LABELS


class Known:
    """As much of a fitted model as is asked for its columns."""

    n_features_in_, row_shape_, preparation_ = 4, (4,), None

    def __init__(self, names=None):
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix, HostRows])
def test_a_model_finds_its_columns_by_their_names_and_the_others_are_told_of_the_rows(kind):
    rows = np.column_stack([LABELS, X[:, ::-1], 0.5 * LABELS])
    found = match_columns(Known(list("abcd")), Source(kind(rows), ["label", "d", "c", "b", "a", "half"]))
    assert found.columns == list("abcd")
    np.testing.assert_array_equal(to_array(found.rows), X)
    assert found.metadata["label"].tolist() == LABELS.tolist()
    assert found.metadata["half"].tolist() == (0.5 * LABELS).tolist()


def test_a_column_that_is_missing_is_named():
    with pytest.raises(UsageError, match=r"lacks 1 .*: c$"):
        match_columns(Known(list("abcd")), Source(X, ["a", "b", "d", "e"]))


def test_without_names_a_color_is_left_out_where_that_leaves_as_many_as_the_model_takes():
    wide = Source(np.column_stack([X, LABELS]), [*"abcd", "label"])
    assert match_columns(Known(), wide, "label").columns == list("abcd")
    with pytest.raises(UsageError, match="rows of 5 values"):
        match_columns(Known(), wide)
    assert match_columns(Known(), Source(X, list("abcd")), "a").columns == list("abcd")


@pytest.mark.parametrize("missing", ["error", "median"])
def test_rows_of_an_array_are_kept_where_the_model_fills_their_gaps(tmp_path, missing):
    X = np.random.default_rng(0).normal(size=(40, 3))
    gappy = X.copy()
    gappy[::8, 1] = np.nan
    model = DRE(schedule="x: gaussian(5) -> kl * 3", encoder="mlp(8)", missing=missing, random_state=0, device="cpu")
    model.fit(gappy if missing == "median" else X)
    np.save(tmp_path / "rows.npy", gappy)
    source = open_data(str(tmp_path / "rows.npy"), as_fitted(model, ReadOptions(missing="drop", where_possible=True)))
    if missing == "error":  # nothing fills them
        assert source.rows.shape == (35, 3)
        return
    assert source.dropped is None
    assert np.isfinite(source.rows).all()
    assert np.array_equal(model.transform(source.rows), model.embedding_)
