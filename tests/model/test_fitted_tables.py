"""Tables with numbers, categories and gaps: fit, transform, save and load, in pandas and polars, and what goes wrong."""

import copy
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from dre import DRE, DeepTSNE, DeepUMAP, ModelFileError
from dre.data.preparation import Prepared
from model_file_parts import Parts

PENGUINS = Path(__file__).parents[1] / "data" / "penguins.csv"
PANDAS = pd.read_csv(PENGUINS).drop(columns="species")
POLARS = pl.read_csv(PENGUINS, null_values="NA").drop("species")


def cheap(**options):
    options = {"schedule": "x: gaussian(10) -> kl * 2", "encoder": "mlp(8, depth=1)"} | options
    return DRE(random_state=0, device="cpu", **options)


@pytest.fixture(scope="module")
def model():
    return cheap(missing="median").fit(PANDAS)


def test_a_table_is_mapped_in_pandas_as_in_polars(model):
    again = cheap(missing="median").fit(POLARS)
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    np.testing.assert_array_equal(again.transform(POLARS), model.transform(PANDAS))
    assert model.feature_names_in_.tolist() == PANDAS.columns.tolist()
    assert model.n_features_in_ == 7
    assert model.row_shape_ == (10,)


def test_the_map_is_that_of_the_prepared_rows_and_so_are_its_scores(model):
    rows = model.prepare(PANDAS)
    plain = cheap().fit(rows)
    np.testing.assert_array_equal(plain.embedding_, model.embedding_)
    np.testing.assert_array_equal(model.metric_rows(PANDAS), rows)
    done = Prepared(rows[:5], model.preparation_, are_rows=True)
    np.testing.assert_array_equal(model.transform(done), model.transform(PANDAS)[:5])
    np.testing.assert_array_equal(model.metric_rows(done), rows[:5])


def test_numbers_in_a_frame_keep_the_map_that_they_have_as_an_array():
    numbers = PANDAS.dropna().select_dtypes("number")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of units
        model = cheap().fit(numbers)
        np.testing.assert_array_equal(model.embedding_, cheap().fit(numbers.to_numpy()).embedding_)
    assert model.preparation_ is None


def test_the_units_of_a_mixed_table_are_settled_once():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # body_mass_g would outweigh all others
        plain = cheap(missing="mean").fit(PANDAS)
    standardized = cheap(missing="mean", standardize=True).fit(PANDAS)
    np.testing.assert_array_equal(plain.embedding_, standardized.embedding_)


def test_saved_models_and_copies_read_tables(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = DRE.load(tmp_path / "model")
    assert loaded.missing == "median"
    for each in (loaded, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(each.transform(POLARS), model.transform(PANDAS))
        with pytest.raises(ValueError, match="X has no column 'sex'"):
            each.transform(PANDAS.drop(columns="sex"))
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_gaps_are_refused_by_default_with_the_remedy():
    with pytest.raises(ValueError, match=r"11 in 'sex', the first in row 3\. Fit with missing='median'"):
        cheap().fit(PANDAS)
    with pytest.raises(ValueError, match=r"in column 'bill_length_mm'.*fit with missing='median'"):
        cheap(columns="numbers").fit(PANDAS)
    complete = cheap().fit(PANDAS.dropna())
    with pytest.raises(ValueError, match=r"missing values in 11 of 344 rows"):
        complete.transform(PANDAS)


def test_a_column_beside_the_fit_changes_nothing(model):
    np.testing.assert_array_equal(model.transform(PANDAS.assign(note="?")[["note", *PANDAS]]), model.transform(PANDAS))


def test_unknown_categories_are_placed_with_one_warning(model):
    with pytest.warns(UserWarning, match="'island' that the fit did not have") as told:
        Y = model.transform(PANDAS.head(20).assign(island="Moon"))
    assert len(told) == 1
    assert np.isfinite(Y).all()


@pytest.mark.parametrize("kind", [DeepTSNE, DeepUMAP])
def test_all_estimators_take_tables(kind):
    model = kind(missing="mean", encoder="mlp(4, depth=1)", batch_size=100, random_state=0, device="cpu")
    model._overrides = lambda: cheap()._overrides()  # a schedule of seconds
    assert model.fit(PANDAS).transform(POLARS).shape == (344, 2)


def test_a_pipeline_searches_over_tables():
    frame = pd.read_csv(PENGUINS)
    pipeline = make_pipeline(cheap(), KNeighborsClassifier())
    search = GridSearchCV(pipeline, {"dre__missing": ["mean", "median"]}, cv=2).fit(
        frame.drop(columns="species"), frame.species
    )
    assert search.best_score_ > 0.4
    assert clone(search.best_estimator_[0]).missing in ("mean", "median")


def test_set_output_names_the_rows_of_a_table(model):
    named = copy.deepcopy(model).set_output(transform="pandas").transform(PANDAS.set_index(PANDAS.index + 100))
    assert named.columns.tolist() == ["dre1", "dre2"]


def test_weights_repeat_rows_of_a_table():
    weights = np.ones(344)
    weights[::7] = 2
    weighted = cheap(missing="mean").fit(PANDAS, sample_weight=weights)
    repeated = cheap(missing="mean")
    repeated.fit(Prepared(np.repeat(weighted.prepare(PANDAS), weights.astype(int), 0), weighted.preparation_, are_rows=True))
    np.testing.assert_array_equal(weighted.transform(PANDAS), repeated.transform(PANDAS))


def test_the_module_reads_what_prepare_gives(model):
    rows = torch.from_numpy(model.prepare(PANDAS))
    np.testing.assert_allclose(model.module()(rows).detach().numpy(), model.transform(PANDAS), atol=1e-5)


def test_the_module_fills_gaps_of_numbers():
    X = PANDAS[["bill_length_mm", "bill_depth_mm"]].to_numpy()
    model = cheap(missing="mean").fit(X)
    np.testing.assert_allclose(model.module()(torch.from_numpy(X)).detach().numpy(), model.transform(X), atol=1e-5)
    assert model.transform(torch.from_numpy(X)).shape == (344, 2)


@pytest.mark.slow
def test_onnx_files_read_what_prepare_gives_and_say_how_it_is_made(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    model.to_onnx(tmp_path / "map.onnx")
    session = runtime.InferenceSession(tmp_path / "map.onnx")
    (Y,) = session.run(None, {"x": model.prepare(PANDAS).astype(np.float32)})
    np.testing.assert_allclose(Y, model.transform(PANDAS), atol=1e-4)
    about = session.get_modelmeta().custom_metadata_map
    assert '"categories": ["Biscoe", "Dream", "Torgersen"]' in about["dre.preparation"]
    assert '"sex=male"' in about["dre.feature_names"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda columns: columns[0].update(categories=["Biscoe"]),  # of another width than the network
        lambda columns: columns[1].update(scale=0),
        lambda columns: columns[1].update(name=columns[2]["name"]),
        lambda columns: columns.clear(),
        lambda columns: columns.append(3),
    ],
)
def test_an_edited_file_is_refused(model, tmp_path, edit):
    model.save(tmp_path / "model")
    parts = Parts.read(tmp_path / "model")
    edit(parts.configuration["preparation"]["config"]["columns"])
    parts.sign()
    parts.write(tmp_path / "edited")
    with pytest.raises(ModelFileError, match="edited"):
        DRE.load(tmp_path / "edited")


def test_a_file_with_an_unknown_policy_is_refused(model, tmp_path):
    model.save(tmp_path / "model")
    parts = Parts.read(tmp_path / "model")
    parts.configuration["about"]["parameters"]["missing"] = "mode"
    parts.sign()
    parts.write(tmp_path / "edited")
    with pytest.raises(ModelFileError, match="missing='mode'"):
        DRE.load(tmp_path / "edited")


@pytest.mark.slow
def test_categories_help_to_find_what_was_left_out():
    frame = pd.read_csv(PENGUINS)
    species, table = frame.species, frame.drop(columns=["species", "year"])
    scores = {}
    for columns in ("numbers", None):
        model = DRE("fast", columns=columns, missing="median", standardize=columns is not None, random_state=0, device="cpu")
        Y = model.fit(table.iloc[::2]).transform(table)
        near = KNeighborsClassifier(7).fit(Y[::2], species[::2])
        scores[columns] = near.score(Y[1::2], species[1::2])
    assert scores[None] > 0.93
    assert scores[None] > scores["numbers"] - 0.03


def test_fills_of_a_file_fill_arrays_too_and_end_with_the_next_fit():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    model = cheap().fit(frame)
    model.fill_values_ = {"b": 0.5}
    gap = frame.copy()
    gap.iloc[3, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the names that an array lacks
        np.testing.assert_array_equal(model.transform(gap.to_numpy()), model.transform(gap))
        with pytest.raises(ValueError, match="masked array with 1 masked value"):
            model.transform(np.ma.masked_invalid(gap.to_numpy()))
    model.fit(frame)
    with pytest.raises(ValueError, match="contains NaN"):
        model.transform(gap)
