"""A preparation is part of the model: fit, transform, module, save and load include it, and hostile files are refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from dre import DRE, ModelFileError
from dre.data.preparation import PREPARATIONS, Preparation, Prepared
from model_file_parts import Parts

SCHEDULE = "x: gaussian(10) -> kl * 3"


class Chosen(Preparation):
    """Columns of a dict of arrays, times a factor for each."""

    kind = "test-chosen"

    def __init__(self, columns, factors):
        self.columns, self.factors = list(columns), factors
        self.names_out = [f"{name} scaled" for name in columns]

    def transform(self, X):
        lacking = [name for name in self.columns if name not in X]
        if lacking:
            raise ValueError(f"X has no column {lacking[0]!r}")
        return np.column_stack([X[name] for name in self.columns]) * self.factors.numpy()

    def state(self):
        return {"columns": self.columns}, {"factors": self.factors}

    @classmethod
    def restore(cls, config, tensors):
        if tensors.keys() != {"factors"} or not tensors["factors"].isfinite().all():
            raise ValueError("its factors are not finite")
        return cls(config["columns"], tensors["factors"])

    def module(self):
        return Times(self.factors)


class Times(nn.Module):
    def __init__(self, factors):
        super().__init__()
        self.register_buffer("factors", factors)

    def forward(self, x):
        return x * self.factors


@pytest.fixture(scope="module", autouse=True)
def known():
    PREPARATIONS[Chosen.kind] = f"{__name__}.Chosen"
    yield
    del PREPARATIONS[Chosen.kind]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=80) for name in "abcd"}


@pytest.fixture(scope="module")
def preparation():
    return Chosen(["c", "a", "b"], torch.tensor([1.0, 2.0, 0.5], dtype=torch.double))


@pytest.fixture(scope="module")
def model(X, preparation):
    return DRE(schedule=SCHEDULE, encoder="mlp(8, depth=1)", random_state=0, device="cpu").fit(Prepared(X, preparation))


def test_the_map_is_that_of_the_prepared_rows(model, X, preparation):
    rows = preparation.transform(X)
    plain = DRE(schedule=SCHEDULE, encoder="mlp(8, depth=1)", random_state=0, device="cpu").fit(rows)
    assert np.array_equal(model.embedding_, plain.embedding_)
    assert np.array_equal(model.transform(X), plain.transform(rows))
    assert np.array_equal(model.prepare(X), rows)
    assert np.array_equal(model.metric_rows(X), plain.metric_rows(rows))


def test_the_model_names_the_columns_that_it_reads(model):
    assert list(model.feature_names_in_) == ["c", "a", "b"]
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match="no column 'c'"):
        model.transform({"a": [1.0], "b": [2.0]})


def test_an_error_about_a_value_names_the_prepared_column(model, X):
    with pytest.raises(ValueError, match="in column 'a scaled'"):
        model.transform(X | {"a": np.full(80, 1e200)})


def test_a_saved_model_prepares_rows_by_itself(model, X, tmp_path):
    model.save(tmp_path / "model")
    loaded = DRE.load(tmp_path / "model")
    assert np.array_equal(loaded.transform(X), model.transform(X))
    assert list(loaded.feature_names_in_) == ["c", "a", "b"]
    assert loaded.n_features_in_ == 3
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_file_without_a_preparation_has_the_format_of_before(X, tmp_path):
    DRE(schedule=SCHEDULE, random_state=0, device="cpu").fit(np.column_stack(list(X.values()))).save(tmp_path / "model")
    configuration = Parts.read(tmp_path / "model").configuration
    assert configuration["format"] == 2
    assert "preparation" not in configuration


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_prepare_rows_too(model, X, clone):
    assert np.array_equal(clone(model).transform(X), model.transform(X))


def test_the_module_begins_with_the_preparation(model, X):
    raw = torch.from_numpy(np.column_stack([X[name] for name in "cab"]))
    assert torch.allclose(model.module()(raw), torch.from_numpy(model.transform(X)), atol=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "no such", "config": {}},
        {"kind": "test-chosen", "config": {"columns": ["a", "b"]}},
        {"kind": "test-chosen", "config": {"columns": ["a", "b", "a"]}},
        {"kind": "test-chosen", "config": {"columns": ["a", "b", "d"]}},
        {"kind": "test-chosen", "config": {}},
        {"kind": "test-chosen", "config": [1]},
        {"kind": ["test-chosen"], "config": {}},
        {"kind": "test-chosen"},
        None,
    ],
)
def test_a_preparation_that_was_edited_is_refused(model, tmp_path, changes):
    model.save(tmp_path / "model")
    parts = Parts.read(tmp_path / "model")
    parts.configuration["preparation"] = changes
    parts.sign()
    parts.write(tmp_path / "edited")
    with pytest.raises(ModelFileError, match="edited"):
        DRE.load(tmp_path / "edited")


def test_tensors_of_a_preparation_that_the_file_does_not_have_are_refused(model, tmp_path):
    model.save(tmp_path / "model")
    parts = Parts.read(tmp_path / "model")
    del parts.configuration["preparation"]
    parts.configuration["format"] = 2
    parts.sign()
    parts.write(tmp_path / "edited")
    with pytest.raises(ModelFileError, match="do not belong"):
        DRE.load(tmp_path / "edited")


def test_one_row_is_too_few_to_fit(preparation):
    with pytest.raises(ValueError, match="minimum of 2"):
        DRE("fast").fit(Prepared({name: np.ones(1) for name in "abc"}, preparation))


def test_each_column_needs_a_name(X, preparation):
    wrong = Chosen(["a", "b"], torch.ones(2, dtype=torch.double))
    wrong.names_out = ["a"]
    with pytest.raises(ValueError, match="one column per name"):
        DRE("fast").fit(Prepared(X, wrong))
