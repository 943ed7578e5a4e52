"""Files as AnnData writes them, by hand: in its three encodings of tables, in HDF5 and in zarr."""

from __future__ import annotations

import h5py
import numpy as np
import scipy.sparse

COUNTS = np.random.default_rng(0).poisson(0.4, size=(12, 7)).astype(np.float32)
PCA = np.random.default_rng(1).normal(size=(12, 3))
CELLS = [f"cell {i}" for i in range(12)]
GENES = [f"gene {i}" for i in range(7)]
KINDS = ["B", "T", "<b>NK</b>", ""] * 3  # the last is missing
SIZES = np.arange(12)
TEXT = h5py.string_dtype()


def texts(values):
    return np.array(values, dtype=object)


def put(group, name, values):
    """An array, of texts too, in either kind of file."""
    if not isinstance(group, h5py.Group):
        values = np.asarray(values)
        array = group.create_array(name, shape=values.shape, dtype=str if values.dtype.kind in "OU" else values.dtype)
        array[...] = values
    elif np.asarray(values).dtype.kind in "OU":
        group.create_dataset(name, data=texts(values), dtype=TEXT)
    else:
        group.create_dataset(name, data=values)


def sparse(root, name, matrix, *, old=False):
    group = root.create_group(name)
    kind = matrix.format
    said = {"h5sparse_format": kind, "h5sparse_shape": list(matrix.shape)}
    group.attrs.update(said if old else {"encoding-type": f"{kind}_matrix", "shape": list(matrix.shape)})
    for each in ("data", "indices", "indptr"):
        put(group, each, getattr(matrix, each))


def codes():
    return np.array([0, 1, 2, -1] * 3, dtype=np.int8)


def new_obs(root):
    obs = root.create_group("obs")
    obs.attrs.update({"encoding-type": "dataframe", "_index": "barcode", "column-order": ["kind", "size", "depth"]})
    put(obs, "barcode", CELLS)
    put(obs, "size", SIZES)
    kind = obs.create_group("kind")
    kind.attrs["encoding-type"] = "categorical"
    put(kind, "codes", codes())
    put(kind, "categories", KINDS[:3])
    depth = obs.create_group("depth")
    depth.attrs["encoding-type"] = "nullable-integer"
    put(depth, "values", SIZES)
    put(depth, "mask", SIZES == 4)
    obs.create_group("odd").attrs["encoding-type"] = "awkward-array"


def middle_obs(root):
    obs = root.create_group("obs")
    obs.attrs.update({"encoding-type": "dataframe", "_index": "_index", "column-order": ["kind", "size"]})
    put(obs, "_index", CELLS)
    put(obs, "kind", codes())
    put(obs, "size", SIZES)
    put(obs.create_group("__categories"), "kind", KINDS[:3])


def old_obs(root):
    table = np.zeros(12, dtype=[("index", "S8"), ("kind", "i1"), ("size", "i8")])
    table["index"], table["kind"], table["size"] = CELLS, codes(), SIZES
    root.create_dataset("obs", data=table)
    put(root.create_group("uns"), "kind_categories", KINDS[:3])


def write_cells(root, X, obs=new_obs, *, old=False):
    """X dense or sparse, a variant of it, principal components, cells and genes."""
    if not old:
        root.attrs["encoding-type"] = "anndata"
    put(root, "X", X) if isinstance(X, np.ndarray) else sparse(root, "X", X, old=old)
    put(root.create_group("obsm"), "X_pca", PCA)
    sparse(root.create_group("layers"), "counts", scipy.sparse.csr_matrix(2 * COUNTS))
    raw = root.create_group("raw")
    put(raw, "X", COUNTS[:, :3])
    for group, genes in ((root, GENES), (raw, GENES[:3])):
        var = group.create_group("var")
        var.attrs.update({"_index": "_index", "column-order": []})
        put(var, "_index", genes)
    obs(root)
