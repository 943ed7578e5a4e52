"""A real local Ray of two workers, one of which is killed: each row comes out once, with the values of a single process."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import dre.ray
from dre import DRE

ray = pytest.importorskip("ray", reason="Ray is not installed")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray warns of itself
N, D = 600, 6
NAMES = [f"gene{i}" for i in range(D)]
OPTIONS: dict[str, Any] = {"schedule": "x: gaussian(5) -> kl * 2", "encoder": "mlp(8)", "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Two workers and Ray Data get a slot each, whatever the number of cores."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = "0.2"
    ray.init(
        "local",
        num_cpus=6,
        object_store_memory=128 * 2**20,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)


@pytest.fixture(scope="module")
def model(X: np.ndarray) -> DRE:
    return DRE(**OPTIONS).fit(pa.table(dict(zip(NAMES, X.T, strict=True))))


def table(X: np.ndarray) -> pa.Table:
    """Columns in another order than that of the fit, with an id and a text."""
    columns = {name: X[:, i] for i, name in reversed(list(enumerate(NAMES)))}
    return pa.table({"id": np.arange(N), **columns, "kind": [f"kind {i % 3}" for i in range(N)]})


def dataset(X: np.ndarray, blocks: int = 6) -> Any:
    return ray.data.from_arrow(table(X)).repartition(blocks)


def by_id(result: Any) -> Any:
    """The rows of a result; each id must be there once."""
    frame = result.to_pandas().sort_values("id", ignore_index=True)
    assert frame["id"].tolist() == list(range(N))
    return frame


def coordinates(result: Any) -> np.ndarray:
    return by_id(result)[["dre1", "dre2"]].to_numpy(np.float32)


def test_the_embedding_is_that_of_one_process_and_other_columns_stay(X: np.ndarray, model: DRE, tmp_path: Path) -> None:
    model.save(tmp_path / "model.safetensors")
    result = dre.ray.transform(dataset(X), tmp_path / "model.safetensors", batch_size=50, concurrency=2)
    frame = by_id(result)
    assert list(frame.columns) == ["id", *reversed(NAMES), "kind", "dre1", "dre2"]
    assert frame["kind"].tolist() == table(X)["kind"].to_pylist()
    np.testing.assert_allclose(frame[["dre1", "dre2"]].to_numpy(np.float32), model.transform(X), atol=1e-5)
    assert result.schema().types[-1] == pa.float32()


def kill_in_third_batch(monkeypatch: pytest.MonkeyPatch, mark: Path, times: int) -> None:
    """Let workers of transform die so often, after they have embedded two batches of a block."""

    class Killed(dre.ray.Embedder):
        calls = 0

        def __call__(self, rows: pa.Table) -> pa.Table:
            self.calls += 1
            deaths = len(mark.read_text()) if mark.exists() else 0
            if self.calls == 3 and deaths < times:
                mark.write_text("x" * (deaths + 1))
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(rows)

    monkeypatch.setattr(dre.ray, "Embedder", Killed)


def test_a_worker_that_is_killed_loses_no_row_and_gives_none_twice(
    X: np.ndarray, model: DRE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_in_third_batch(monkeypatch, tmp_path / "deaths", times=1)
    result = dre.ray.transform(dataset(X), model, batch_size=20, concurrency=2)
    np.testing.assert_allclose(coordinates(result), model.transform(X), atol=1e-5)
    assert (tmp_path / "deaths").read_text() == "x"


def test_workers_that_always_die_are_an_error(
    X: np.ndarray, model: DRE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_in_third_batch(monkeypatch, tmp_path / "deaths", times=100)
    result = dre.ray.transform(dataset(X), model, batch_size=20, concurrency=1, max_restarts=1)
    with pytest.raises(ray.exceptions.RayError, match=r"died|dead"):
        result.materialize()
    assert len((tmp_path / "deaths").read_text()) == 2


def test_vectors_and_columns_of_other_names(X: np.ndarray, model: DRE) -> None:
    expected = model.transform(X)
    ids = np.arange(N)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), D)
    listed = ray.data.from_arrow(pa.table({"id": ids, "v": lists}))
    np.testing.assert_allclose(coordinates(dre.ray.transform(listed, model, vector="v")), expected, atol=1e-5)
    unnamed = DRE(**OPTIONS).fit(X)
    tensors = ray.data.from_numpy(X).map_batches(lambda batch: {"id": np.flatnonzero(np.ones(len(batch["data"]))), **batch})
    found = coordinates(dre.ray.transform(tensors, unnamed))  # the only column of vectors
    np.testing.assert_allclose(found, unnamed.transform(X), atol=1e-5)
    renamed = dataset(X).rename_columns({name: name.upper() for name in NAMES})
    found = coordinates(dre.ray.transform(renamed, model, columns=[name.upper() for name in NAMES], concurrency=(1, 2)))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_module_of_the_user_travels_with_the_model(X: np.ndarray) -> None:
    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(D, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)

    fitted = DRE(**{**OPTIONS, "encoder": Own()}).fit(X)
    result = dre.ray.transform(dataset(X), fitted, columns=NAMES)
    np.testing.assert_allclose(coordinates(result), fitted.transform(X), atol=1e-5)


def test_what_does_not_fit_is_named_before_any_work(X: np.ndarray, model: DRE) -> None:
    rows = dataset(X)
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (X, {}, "dataset is a ndarray: pass a ray.data.Dataset"),
        (rows.drop_columns(["gene3"]), {}, "no column 'gene3'; its columns: 'id'"),
        (rows, {"vector": "v"}, "no column 'v'"),
        (rows, {"vector": "kind", "columns": NAMES}, "columns or vector, not both"),
        (rows, {"columns": NAMES[:2]}, "2 were given, but the model was fitted on rows of"),
        (rows.rename_columns({"kind": "dre1"}), {}, "has a column 'dre1' already"),
        (rows, {"stage": 7}, "stage=7: this model has 1 stage"),
    ]
    for data, options, message in wrong:
        with pytest.raises((ValueError, TypeError), match=message):
            dre.ray.transform(data, model, **options)
    with pytest.raises(ValueError, match="knows no names of columns"):
        dre.ray.transform(rows, DRE(**OPTIONS).fit(X))


def test_a_row_with_a_gap_is_named_by_its_id(X: np.ndarray, model: DRE) -> None:
    gap = X.copy()
    gap[417, 2] = np.nan
    with pytest.raises(Exception, match=r"the row with id=417, kind='kind 0' has NaN or infinity: drop"):
        dre.ray.transform(dataset(gap), model).materialize()


def two_clusters(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are sorted by class, and the classes."""
    labels = np.arange(n) * 2 // n
    return np.random.default_rng(1).normal(size=(n, D)).astype(np.float32) + 6 * labels[:, None].astype(np.float32), labels


FIT: dict[str, Any] = {"schedule": "x: gaussian(10) -> kl * 30", "encoder": "mlp(16)", "random_state": 0}


def separated(model: DRE, X: np.ndarray, labels: np.ndarray) -> bool:
    """Whether the nearest neighbor in the map is of the same class, for all rows."""
    Y = torch.from_numpy(model.transform(X))
    distances = torch.cdist(Y, Y).fill_diagonal_(torch.inf)
    return bool((labels[distances.argmin(1).numpy()] == labels).all())


def test_two_workers_fit_one_model() -> None:
    X, labels = two_clusters()
    data = ray.data.from_arrow(pa.table({"kind": [str(c) for c in labels], **dict(zip(NAMES, X.T, strict=True))}))
    model = dre.ray.fit(data, num_workers=2, columns="numbers", **FIT)
    assert list(model.feature_names_in_) == NAMES
    assert separated(model, X, labels)
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]
    found = dre.ray.transform(data, model).to_pandas()[["dre1", "dre2"]].to_numpy(np.float32)
    np.testing.assert_allclose(np.sort(found, 0), np.sort(model.transform(X), 0), atol=1e-4)


def test_the_same_seed_gives_workers_the_same_rows(X: np.ndarray, tmp_path: Path) -> None:
    dataset(X).write_parquet(str(tmp_path))
    features = dre.ray.Features(NAMES, None)

    def shuffled() -> np.ndarray:
        rows = dre.ray._shuffled(ray.data.read_parquet(str(tmp_path), override_num_blocks=6), features, 0)
        return np.concatenate([batch["x"] for batch in rows.iter_batches(batch_size=None)])

    first = shuffled()
    assert not np.array_equal(first, X)
    np.testing.assert_array_equal(np.sort(first, 0), np.sort(X, 0))
    for _ in range(2):
        np.testing.assert_array_equal(shuffled(), first)


def test_the_example_fits_and_transforms_files(X: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset(X).write_parquet(str(tmp_path / "in"))
    words = [str(tmp_path / "in"), str(tmp_path / "out"), "--recipe", "fast", "--columns", *NAMES]
    monkeypatch.setattr(sys, "argv", ["ray_job.py", *words])
    runpy.run_path(str(Path(__file__).parents[1] / "examples" / "ray_job.py"), run_name="__main__")
    frame = by_id(ray.data.read_parquet(str(tmp_path / "out")))
    assert np.isfinite(frame[["dre1", "dre2"]].to_numpy(np.float32)).all()
    assert frame["kind"].tolist() == table(X)["kind"].to_pylist()


def kill_second_worker(monkeypatch: pytest.MonkeyPatch, folder: Path, times: int) -> None:
    """Let the second worker of a fit die so often, as soon as there is a checkpoint; write down the rows of all workers."""

    class Killed(dre.ray.FitJob):
        def __call__(self) -> None:
            rank = ray.train.get_context().get_world_rank()
            attempt = len(list(folder.glob(f"rows-{rank}-*.npy")))
            read = dre.ray._read_part

            def recorded(shard: Any, n: int) -> torch.Tensor:
                rows = read(shard, n)
                np.save(folder / f"rows-{rank}-{attempt}.npy", rows.numpy())
                return rows

            def kill() -> None:
                while not list((folder / "saved").glob("checkpoint-*")):
                    time.sleep(0.001)
                os.kill(os.getpid(), signal.SIGKILL)

            dre.ray._read_part = recorded
            if rank == 1 and attempt < times:
                threading.Thread(target=kill, daemon=True).start()
            super().__call__()

    run = dre.ray.Workers.run
    monkeypatch.setattr(
        dre.ray.Workers, "run", lambda workers, job, *rest: run(workers, Killed(job.model, job.n_rows, job.saving), *rest)
    )


def test_a_fit_goes_on_if_a_worker_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_second_worker(monkeypatch, tmp_path, times=1)
    X, labels = two_clusters(401)
    options = {**FIT, "schedule": "x: gaussian(10) -> kl * 60"}
    data = ray.data.from_numpy(X).repartition(7)
    model = dre.ray.fit(data, checkpoint=tmp_path / "saved", checkpoint_minutes=0, max_failures=1, **options)
    parts = [[np.load(tmp_path / f"rows-{rank}-{attempt}.npy") for rank in range(2)] for attempt in range(2)]
    np.testing.assert_array_equal(parts[0], parts[1])
    both = np.concatenate(parts[0])
    assert len(np.unique(both, axis=0)) == len(both) == 400  # of 401
    assert {row.tobytes() for row in both} <= {row.tobytes() for row in X}
    assert [record["epoch"] for record in model.history_] == list(range(60))
    assert separated(model, X, labels)


def test_a_fit_whose_workers_always_die_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_second_worker(monkeypatch, tmp_path, times=100)
    X, _ = two_clusters()
    with pytest.raises(
        dre.ray.ClusterError, match=r"worker \d of the fit failed: .*(died|can't reach the others).* max_failures=0"
    ):
        dre.ray.fit(ray.data.from_numpy(X), checkpoint=tmp_path / "saved", checkpoint_minutes=0, **FIT)


def test_a_gap_and_other_wrong_data_are_named(X: np.ndarray) -> None:
    rows = dataset(X)
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (rows, {}, r"columns that do not hold numbers: 'kind'. Pass columns='numbers'"),
        (rows, {"columns": ["gene1", "gene9"]}, "no column 'gene9'"),
        (rows.limit(3), {"columns": NAMES}, r"3 row\(s\) are too few for 2 workers"),
        (rows, {"columns": NAMES, "device": "cpu"}, "device is chosen by use_gpu"),
        (rows, {"columns": NAMES, "perplexitty": 3}, "perplexitty"),
    ]
    for data, options, message in wrong:
        with pytest.raises((ValueError, TypeError), match=message):
            dre.ray.fit(data, **options)
    gap = X.copy()
    gap[417, 2] = np.inf
    with pytest.raises(Exception, match=r"the row with id=417, kind='kind 0' has NaN or infinity: drop"):
        dre.ray.fit(dataset(gap), columns=NAMES)
