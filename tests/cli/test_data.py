"""DATA as commands read it: a column that is a label is no feature, whatever kind of rows it stands in."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from dre.cli.data import labelled
from dre.cli.without import Without
from dre.cli.wrong_use import WrongUseError
from dre.rows import HostRows, is_rows, whole
from dre.sources import Source

X = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
LABELS = np.arange(20) % 3


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix, HostRows])
@pytest.mark.parametrize("column", [0, 2, 4])
def test_a_column_of_labels_is_taken_out_of_rows_of_any_kind(monkeypatch, kind, column):
    monkeypatch.setattr("dre.rows.CHUNK_VALUES", 5 * 7)  # several pieces
    rows = np.insert(X, column, LABELS, axis=1)
    names = [f"c{i}" for i in range(4)]
    found, labels = labelled(Source(kind(rows), [*names[:column], "kind", *names[column:]]), "kind")
    assert found.columns == names
    assert labels.tolist() == LABELS.tolist()
    assert labels.dtype.kind == "i"
    dense = whole(found.rows) if is_rows(found.rows) else found.rows
    np.testing.assert_array_equal(dense.toarray() if scipy.sparse.issparse(dense) else dense, X)


def test_rows_that_are_read_piece_by_piece_stay_so():
    rows = Without(HostRows(np.insert(X, 1, LABELS, axis=1)), 1)
    assert rows.shape == X.shape
    np.testing.assert_array_equal(rows.read(3, 9), X[3:9])
    np.testing.assert_array_equal(rows.take(torch.tensor([7, 2])), X[[7, 2]])


def test_fractions_stay_fractions():
    _, labels = labelled(Source(X, list("abcd")), "b")
    np.testing.assert_array_equal(labels, X[:, 1])


def test_a_label_that_is_empty_is_named_with_its_row():
    with pytest.raises(WrongUseError, match="that of row 2 is empty"):
        labelled(Source(X[:3], metadata={"kind": np.array(["a", "b", ""])}), "kind")


def test_what_stands_beside_the_rows_comes_before_a_column_and_a_file():
    found, labels = labelled(Source(X, list("abcd"), metadata={"a": LABELS}), "a")
    assert found.rows is X
    assert labels is LABELS
