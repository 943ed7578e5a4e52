"""The comparison on data of one's own, in Python and from the command line."""

import json
import sys
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas
import pytest
import scipy.sparse
import torch
from sklearn.datasets import load_digits

import dre.compare.measure
import dre.compare.run
from dre.baselines import make
from dre.cli import main
from dre.compare import Comparison, compare
from dre.compare.comparison import SCORES
from dre.compare.run import default_methods
from dre.metrics import trustworthiness

mpl.use("Agg")
DIGITS = load_digits()
X, LABELS = DIGITS.data[:240], DIGITS.target[:240]
TWO_STAGES = "x: gaussian(5) -> kl * 2\nh1: gaussian(5) -> kl * 2"


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs ``dre compare`` in a folder of its own: gives the exit code, and what was printed."""
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "y.txt").write_text("\n".join(map(str, LABELS)))
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dre", "compare", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run


@pytest.fixture
def quick(monkeypatch):
    """Our networks with a few steps: what is shown of them is tested here, and not how good they are."""

    def few_steps(name, **given):
        return make(name, **given, **({"schedule": TWO_STAGES} if name == "dre" else {}))

    monkeypatch.setattr(dre.compare.measure, "make", few_steps)


@pytest.fixture
def nothing_is_fitted(monkeypatch):
    def fit(*given, **named):
        raise AssertionError("a method was fitted before all was checked")

    monkeypatch.setattr(dre.compare.run, "measure", fit)


def broken(monkeypatch, name, problem):
    """A method that fails when it is made."""

    def fails(wanted, **given):
        if wanted == name:
            raise problem
        return make(wanted, **given)

    monkeypatch.setattr(dre.compare.measure, "make", fails)


def test_every_method_is_fitted_to_the_same_rows_and_scored_on_the_same_others():
    found = compare(X, LABELS, methods=["pca", "eigenmaps", "pca"])
    rows = {row["method"]: row for row in found.to_records()}
    assert list(rows) == ["pca", "eigenmaps"]
    assert rows["pca"]["in_sample"] is False
    assert rows["eigenmaps"]["in_sample"] is True
    assert found.dataset.train.rows.shape[0] == 180
    assert found.dataset.test.rows.shape[0] == 60
    assert "(in-sample): can't embed new rows" in str(found)
    assert len(pandas.DataFrame(found.to_records())) == 2
    assert len(found.figure().axes) == 2


def test_the_default_methods_are_those_that_are_installed(monkeypatch):
    assert default_methods() == ["pca", "umap", "open-tsne", "dre"]
    monkeypatch.setattr(dre.compare.run, "find_spec", lambda name: None)
    assert default_methods() == ["pca", "dre"]


def test_the_map_before_the_recursion_comes_from_the_same_fit(quick):
    found = compare(X, LABELS, methods=["pca", "dre"])
    assert list(found.results) == ["pca", "dre"]
    before, after = found.to_records()[1:]
    assert [before["method"], after["method"]] == ["dre, before recursion", "dre"]
    stages = found.results["dre"].record["stages"]
    assert before["trustworthiness"] == stages[0]["scores"]["trustworthiness"]
    assert after["trustworthiness"] == stages[1]["scores"]["trustworthiness"]
    assert before["fit_seconds"] == stages[0]["seconds"] < after["fit_seconds"]
    assert before["transform_seconds"] is None
    drawn = [axis.collections[0].get_offsets() for axis in found.figure().axes if axis.get_title().startswith("dre")]
    for points, stage in zip(drawn, (0, 1), strict=True):
        assert {tuple(point) for point in np.float32(points)} == {tuple(p) for p in found.results["dre"].maps[f"test-{stage}"]}


def test_a_recursion_that_was_undone_is_not_in_the_table(monkeypatch):
    schedule = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 2 optional; h1: gaussian(5) -> kl * 2 optional"
    monkeypatch.setattr(dre.compare.measure, "make", lambda name, **given: make(name, **given, schedule=schedule))
    trust = iter([0.5, 0.9])  # after the stage, and before it
    monkeypatch.setattr("dre.training.optional.sample_trust", lambda *given: next(trust))
    found = compare(X, LABELS, methods=["dre"], device="cpu")
    assert not found.failed
    assert [row["method"] for row in found.to_records()] == ["dre"]
    assert len(found.results["dre"].record["stages"]) == 1


def test_names_mean_what_they_mean_in_the_baselines(monkeypatch):
    made = []
    monkeypatch.setattr(dre.compare.measure, "make", lambda name, **given: made.append((name, given)) or make("pca"))
    compare(X, LABELS, methods=["paper-deep-tsne"], random_state=3, device="cpu")
    assert made == [("paper-deep-tsne", {"random_state": 3, "device": "cpu"})]


def test_a_record_has_the_command_that_made_it(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/home/me/study.py", "--all"])
    assert compare(X, methods=["pca"]).results["pca"].record["command"] == "study --all"


def test_the_table_has_scores_seconds_and_full_names(quick):
    lines = str(compare(X, LABELS, methods=["pca", "dre"])).splitlines()
    assert lines[0].split("  ")[-1].strip() == "dre"
    assert lines[1].strip() == "recursion"
    assert max(map(len, lines)) <= 80
    heads = [line[:20].strip() for line in lines[2:11]]
    assert heads[:2] == ["1-NN accuracy", "neighborhood hit"]
    assert heads[-2:] == ["fit, seconds", "embed, seconds"]
    assert lines[10].split()[3] == "-"  # that of the map before the recursion is not measured
    assert "Fitted to 180 rows, scored on 60 held-out rows" in lines[12]


def test_without_labels_the_scores_that_need_none_are_there():
    found = compare(X, methods=["pca"])
    row = found.to_records()[0]
    assert "trustworthiness" in row
    assert "nearest_neighbor" not in row
    assert "Without labels" in str(found)
    axis = found.figure().axes[0]
    assert axis.get_xlabel().startswith("trustworthiness 0.")
    assert not axis.texts


def test_labels_that_are_a_scale_give_colors_and_no_scores():
    found = compare(X, np.linspace(0, 1, 240), methods=["pca"])
    assert "nearest_neighbor" not in found.to_records()[0]
    assert "continuous labels" in str(found)
    assert len(found.figure().axes) == 2  # the map, and the bar of its colors


@pytest.mark.parametrize(
    "labels",
    [
        np.array([f"2026-01-{1 + i % 28:02}" for i in range(240)]),
        np.datetime64("2026-01-01") + np.arange(240),
        np.arange(240) * 10,
    ],
)
def test_dates_and_integers_of_many_values_give_colors_and_no_scores(labels):
    found = compare(X, pandas.Series(labels, name="seen"), methods=["pca"])
    assert "nearest_neighbor" not in found.to_records()[0]
    assert "continuous labels" in str(found)
    assert [axis.get_ylabel() for axis in found.figure().axes] == ["", "seen"]


@pytest.mark.slow
def test_integers_that_can_be_classes_are_scored():
    assert "nearest_neighbor" in compare(X, LABELS * 7, methods=["pca"]).to_records()[0]
    assert "nearest_neighbor" in compare(X, np.arange(240) % 40 * 7, methods=["pca"]).to_records()[0]


def test_short_names_are_written_into_the_maps_and_long_ones_below_them():
    short = compare(X, LABELS, methods=["pca"]).figure()
    assert sorted(text.get_text() for text in short.axes[0].texts) == [str(digit) for digit in range(10)]
    assert not short.legends
    long = compare(X, [f"a cell of the kind {label}" for label in LABELS], methods=["pca"]).figure()
    assert not long.axes[0].texts
    assert [text.get_text() for text in long.legends[0].get_texts()] == [f"a cell of the kind {label}" for label in range(10)]
    assert long.get_figheight() > short.get_figheight()


def test_many_maps_are_drawn_in_several_lines():
    result = compare(X, LABELS, methods=["pca"])
    many = Comparison(result.dataset, {f"method {i}": result.results["pca"] for i in range(5)}, {})
    figure = many.figure()
    assert [axis.get_title() for axis in figure.axes if axis.axison] == [f"method {i}" for i in range(5)]
    assert len({axis.get_subplotspec().rowspan.start for axis in figure.axes}) == 2
    assert "embed" in figure.axes[0].get_xlabel()


def test_a_class_of_one_row_is_no_obstacle():
    labels = LABELS.astype(str)
    labels[0] = "alone"
    assert compare(X, labels, methods=["pca"]).to_records()[0]["nearest_neighbor"] > 0.2


@pytest.mark.slow
def test_sparse_rows_and_images_are_compared_like_others():
    dense = compare(X, LABELS, methods=["pca"]).to_records()[0]["continuity"]
    assert compare(scipy.sparse.csr_matrix(X), LABELS, methods=["pca"]).to_records()[0]["continuity"] == dense
    assert compare(X.reshape(-1, 8, 8), LABELS, methods=["pca"]).to_records()[0]["continuity"] == dense


@pytest.mark.slow
def test_a_stream_is_compared_like_the_array_of_its_rows():
    class Stream:
        shape = X.shape

        def read(self, start, stop):
            return torch.from_numpy(X[start:stop]).float()

        def take(self, ids):
            return torch.from_numpy(X)[ids].float()

    streamed, held = (compare(rows, LABELS, methods=["pca"]).to_records()[0] for rows in (Stream(), X.astype(np.float32)))
    assert {name: streamed[name] for name in SCORES if name in streamed} == {
        name: held[name] for name in SCORES if name in held
    }
    assert "nearest_neighbor" in streamed


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, pandas.DataFrame, scipy.sparse.csr_matrix])
def test_complex_numbers_are_refused_in_one_line(kind, nothing_is_fitted):
    with pytest.raises(
        ValueError, match=r"^Complex data not supported: X holds complex numbers, pass their real and imaginary parts[^\n]*$"
    ):
        compare(kind(X * 1j), methods=["pca"])


@pytest.mark.parametrize("problem", [RuntimeError("out of memory\nat line 7"), KeyError("out of memory"), MemoryError()])
def test_a_method_that_fails_is_named_with_the_reason_and_the_others_run(monkeypatch, problem):
    broken(monkeypatch, "umap", problem)
    messages = []
    found = compare(X, LABELS, methods=["umap", "pca"], log=messages.append)
    assert list(found.results) == ["pca"]
    last = str(found).splitlines()[-1]
    assert last.startswith("umap failed: ")
    assert last.split(": ", 1)[1] in ("out of memory", "KeyError: 'out of memory'", "MemoryError")
    assert last in messages[1]


def test_a_method_that_is_not_installed_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    assert "pip install" in compare(X, LABELS, methods=["pca", "umap"]).failed["umap"]


def test_when_no_method_runs_that_is_an_error_with_all_reasons(monkeypatch):
    broken(monkeypatch, "pca", RuntimeError("it is broken"))
    with pytest.raises(ValueError, match=r"every method failed:\n *pca: it is broken"):
        compare(X, LABELS, methods=["pca"])


def test_who_looks_for_the_reason_gets_the_error_itself(monkeypatch):
    monkeypatch.setenv("DRE_DEBUG", "1")
    broken(monkeypatch, "umap", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        compare(X, LABELS, methods=["umap", "pca"])


def test_a_method_does_not_change_the_threads_of_the_next(monkeypatch):
    before = torch.get_num_threads()

    def meddles(name, **given):
        torch.set_num_threads(before + 1)
        return make(name, **given)

    monkeypatch.setattr(dre.compare.measure, "make", meddles)
    compare(X, methods=["pca"])
    assert torch.get_num_threads() == before


def test_what_is_going_on_is_said_with_the_seconds():
    messages = []
    compare(X, methods=["pca", "eigenmaps"], log=messages.append)
    assert [line.split(" s  ")[1] for line in messages] == ["fitting pca (1 of 2)", "fitting eigenmaps (2 of 2)", "done"]
    seconds = [float(line.split(" s  ")[0]) for line in messages]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels": LABELS[:10]}, r"10 labels, but X has 240 rows"),
        ({"labels": [None, *LABELS[1:]]}, r"missing"),
        ({"methods": ["pca", "opentsne"]}, r"unknown method 'opentsne'.*Did you mean 'open-tsne'\?"),
        ({"methods": []}, r"no method to compare"),
        ({"test_size": 0.0}, r"test_size=0\.0: expected the share .* between 0 and 1"),
        ({"test_size": 1.5}, r"test_size=1\.5: expected the share .* between 0 and 1"),
        ({"test_size": float("nan")}, r"between 0 and 1"),
        ({"test_size": 0.01}, r"X has 240 rows: test_size=0\.01 leaves 237 to fit and 3 to score.*at least 15.*test_size=0\.5"),
        ({"X": X[:20]}, r"X has 20 rows.*at least 15; pass more rows$"),
        ({"device": "gpu"}, r"device='gpu'"),
    ],
)
def test_what_can_not_be_compared_is_refused_before_anything_is_fitted(nothing_is_fitted, given, message):
    with pytest.raises(ValueError, match=message):
        compare(**{"X": X, "methods": ["pca"], **given})


def test_the_least_rows_are_enough():
    assert compare(X[:30], LABELS[:30], methods=["pca"], test_size=0.5).to_records()[0]["trustworthiness"] > 0.5


def test_from_the_command_line(command, tmp_path):
    arguments = ["x.npy", "--labels", "y.txt", "--methods", "pca, eigenmaps", "-o", "there/c.png"]
    (tmp_path / "there").mkdir()
    code, out, err = command(*arguments)
    assert code == 0
    assert "1-NN accuracy" in out
    assert "fitting pca (1 of 2)" in err
    assert (tmp_path / "there" / "c.png").read_bytes()[:4] == b"\x89PNG"
    written = json.loads((tmp_path / "there" / "c.json").read_text())
    assert [row["method"] for row in written["results"]] == ["pca", "eigenmaps"]
    assert written["command"].startswith("dre compare x.npy --labels y.txt")
    assert (written["rows"], written["test_rows"], written["failed"]) == (180, 60, {})
    code, _, err = command(*arguments)
    assert code == 2  # nothing is written over
    assert "--force" in err
    assert command(*arguments, "--force")[0] == 0


def test_labels_may_be_a_column_of_the_table(command, tmp_path):
    table = pandas.DataFrame(X, columns=[f"pixel {i}" for i in range(64)]).assign(digit=LABELS)
    table.to_csv("x.csv", sep=";")
    code, _, err = command("x.csv", "--labels", "digit", "--methods", "pca", "-o", "column.png")
    assert code == 0
    assert "row names" in err
    assert "variance" not in err
    assert command("x.npy", "--labels", "y.txt", "--methods", "pca", "-o", "file.png")[0] == 0
    column, file = (json.loads((tmp_path / name).read_text())["results"][0] for name in ("column.json", "file.json"))
    scores = {name: file[name] for name in SCORES if name in file}
    # arrays in files are read as float32, tables as float64
    assert {name: column[name] for name in SCORES if name in column} == pytest.approx(scores, abs=1e-5)


def test_data_are_what_they_are_for_other_commands(command, tmp_path):
    np.savez("x.npz", x=X, digit=LABELS)
    pandas.DataFrame(X, columns=[f"p{i}" for i in range(64)]).assign(digit=LABELS).to_parquet("x.parquet")
    for data in ("x.npz", "x.parquet", "digits"):
        assert command(data, "--labels", "digit", "--methods", "pca", "-o", "c.png", "--force")[0] == 0
        assert json.loads((tmp_path / "c.json").read_text())["results"][0]["nearest_neighbor"] > 0.3


def test_a_picture_that_fails_leaves_no_part_of_it(command, tmp_path, monkeypatch):
    def fails(figure, path, **given):
        path.write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fails)
    monkeypatch.setattr("dre.cli.compare._check_format", lambda path: None)
    assert command("x.npy", "--methods", "pca", "-o", "c.png")[0] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy", "y.txt"]


def test_a_column_that_outweighs_all_others_is_said_before_the_fits(command):
    pandas.DataFrame(X[:, 1:5], columns=list("abcd")).assign(weight=1000 * LABELS).to_csv("x.csv", index=False)
    code, _, err = command("x.csv", "--methods", "pca")
    assert code == 0
    first, *others = err.splitlines()
    assert first.startswith("dre: column 'weight' makes up 99 %")
    assert "fitting pca" in others[0]


def test_a_failure_is_no_obstacle_to_the_picture_and_none_is_drawn_of_nothing(command, tmp_path, monkeypatch):
    broken(monkeypatch, "umap", RuntimeError("it is broken"))
    code, out, _ = command("x.npy", "--methods", "umap,pca", "-o", "some.svg")
    assert code == 0
    assert "umap failed: it is broken" in out
    assert json.loads((tmp_path / "some.json").read_text())["failed"] == {"umap": "it is broken"}
    code, _, err = command("x.npy", "--methods", "umap", "-o", "none.png")
    assert code == 1
    assert "every method failed" in err
    assert not (tmp_path / "none.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "c.json"], "use .png, .pdf or .svg"),
        (["-o", "c.PNGG"], "use .png, .pdf or .svg"),
        (["-o", "c"], "such as c.png"),
        (["-o", "."], "such as comparison.png"),
        (["-o", "y.png", "--labels", "y.json", "--force"], "would be overwritten"),
        (["-o", "folder.png", "--force"], "is a folder"),
        (["--methods", "pcaa"], "Did you mean 'pca'?"),
        (["--test-size", "2"], "between 0 and 1"),
        (["--labels", "short.txt"], "has 3 labels for 240 rows"),
        (["--labels", "nowhere.txt"], "nowhere.txt: neither a column nor"),
        (["--labels", "digit"], "neither a column nor"),
        (["-o", "no/c.png"], "not a writable folder"),
    ],
)
def test_the_command_refuses_before_anything_is_fitted(command, nothing_is_fitted, tmp_path, arguments, message):
    (tmp_path / "y.json").write_text(json.dumps(LABELS.tolist()))
    (tmp_path / "short.txt").write_text("a\nb\na\n")
    (tmp_path / "folder.png").mkdir()
    code, _, err = command("x.npy", *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_the_help_has_examples_and_the_names_of_all_methods(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = command("--help")
    assert code == 0
    assert out.count("dre compare ") >= 4
    assert "parametric-tsne, dl-tsne" in out


def in_different_units():
    columns = np.random.default_rng(0).normal(size=(240, 4))
    columns[:, :2] += (LABELS % 2 * 20)[:, None]  # the classes, hidden by the column in large units
    columns[:, 2] *= 1e4
    return columns


def test_all_methods_get_the_same_rows_standardized_by_the_training_rows():
    rows = in_different_units()
    plain, scaled = (compare(rows, LABELS % 2, methods=["pca", "eigenmaps"], standardize=each) for each in (False, True))
    train = scaled.dataset.train.rows
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(train.std(0), 1)
    assert np.abs(scaled.dataset.test.rows.mean(0)).max() > 1e-6  # by the training rows, not by their own
    before, after = (found.to_records()[0]["nearest_neighbor"] for found in (plain, scaled))
    assert before < 0.8 < 0.95 < after


def test_a_constant_column_can_be_standardized():
    constant = np.concatenate([X[:, 1:6], np.full((240, 1), 7.0)], axis=1)
    assert not compare(constant, methods=["pca"], standardize=True).dataset.train.rows[:, -1].any()


def test_images_have_no_columns_to_standardize(nothing_is_fitted):
    with pytest.raises(ValueError, match=r"standardize=True .*\(8, 8\).*flatten"):
        compare(X.reshape(-1, 8, 8), methods=["pca"], standardize=True)


@pytest.mark.parametrize("methods", [["pca"], ["dre"]])
def test_a_dominant_column_gives_one_warning_whatever_the_methods(quick, methods, recwarn):
    compare(in_different_units(), methods=methods)
    assert [str(each.message).partition(" makes")[0] for each in recwarn if "makes up" in str(each.message)] == ["column 2"]
    recwarn.clear()
    compare(pandas.DataFrame(in_different_units(), columns=list("abcd")), methods=methods)
    assert [str(each.message).partition(" makes")[0] for each in recwarn if "makes up" in str(each.message)] == ["column 'c'"]
    recwarn.clear()
    compare(in_different_units(), methods=methods, standardize=True)
    assert not [each for each in recwarn if "makes up" in str(each.message)]


@pytest.mark.slow
def test_the_command_warns_once_and_standardizes(command, quick, tmp_path):
    np.save("units.npy", in_different_units())
    arguments = ["units.npy", "--labels", "y.txt", "--methods", "pca,dre", "-o", "c.png"]
    code, _, err = command(*arguments)
    assert code == 0
    assert err.count("makes up") == 1
    assert "column 2 makes up" in err
    assert "--standardize" in err
    code, _, err = command(*arguments, "--standardize", "--force")
    assert code == 0
    assert "makes up" not in err
    assert json.loads((tmp_path / "c.json").read_text())["standardize"] is True


@pytest.mark.slow
def test_a_metric_reaches_the_methods_that_take_one_and_the_scores() -> None:
    rows = np.random.default_rng(0).random((120, 6)) + 0.1
    result = compare(rows, methods=["pca", "umap"], metric="canberra", device="cpu")
    for name, found in result.results.items():
        wanted = trustworthiness(result.dataset.test.rows.astype(np.float32), found.maps["test-0"], metric="canberra")
        assert found.record["stages"][0]["scores"]["trustworthiness"] == pytest.approx(wanted), name
    euclidean = compare(rows, methods=["pca", "umap"], device="cpu")
    same = {
        name: np.allclose(result.results[name].maps["test-0"], euclidean.results[name].maps["test-0"])
        for name in result.results
    }
    assert same == {"pca": True, "umap": False}


@pytest.mark.parametrize(
    ("options", "message"), [({"metric": "precomputed"}, "rows of features"), ({"metric": "cosin"}, "cosine")]
)
def test_a_metric_that_compares_no_rows_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(np.eye(60), methods=["pca"], **options)
