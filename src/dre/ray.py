"""Fit and transform on a Ray cluster: Ray Data holds the rows, Ray Train the processes that fit.

A local Ray of this machine is started if none is connected. Needs ``deep-recursive-embedding[ray]`` on every node.
"""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dre.data.dataframes import check_columns
from dre.data.foreign_rows import NUMBERS, ForeignRows, foreign_rows
from dre.data.validation import check_seed
from dre.encoder.backbone import Backbone
from dre.model.estimator import DRE
from dre.runtime.ranks import PATIENCE, OwnRows, RankError
from dre.runtime.scratch import empty

Array = np.ndarray[Any, Any]
Dataset = Any  # ray.data.Dataset: Ray is imported where it is used
Table = Any  # pyarrow.Table
FILE = "model.safetensors"
FEATURES = "x"  # the column of the dataset that is fitted
LISTED, LONGEST = 5, 500  # columns and letters that an error repeats


class ClusterError(RuntimeError):
    """Work on a cluster failed; the message names the worker and its error."""


# Transform


def transform(
    dataset: Dataset,
    model: DRE | str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    vector: str | None = None,
    stage: int | None = None,
    batch_size: int = 4096,
    concurrency: int | tuple[int, int] | None = None,
    num_cpus: float = 1,
    num_gpus: float = 0,
    max_restarts: int = 3,
) -> Dataset:
    """Append the embedding to a dataset, as columns dre1, dre2, … beside those that it has.

    Each worker loads the model once. A worker that dies is started again and repeats its task, so that each row comes out
    once. Rows may come out in another order; carry an id.

    Parameters
    ----------
    dataset : ray.data.Dataset
    model : DRE or path-like
        A fitted model, or its file, which is read here and sent to the workers.
    columns : sequence of str, optional
        Columns of the features, in the order of the fit; by default those with the names of the fit.
    vector : str, optional
        One column of vectors or images, in place of ``columns``.
    stage : int, optional
        As in ``DRE.transform``.
    batch_size : int, default=4096
        Rows that a worker embeds at a time.
    concurrency : int or (int, int), optional
        Number of workers, or the fewest and the most; by default as many as the cluster has room for.
    num_cpus, num_gpus : float
        Of each worker. With a GPU, or a part of one, the model computes there.
    max_restarts : int, default=3
        How often a worker may die, and a task may be lost with it, before that is an error; -1 for any number.

    Returns
    -------
    ray.data.Dataset
        It is computed when it is read or written.

    Examples
    --------
    >>> import dre.ray, ray  # doctest: +SKIP
    >>> rows = ray.data.read_parquet("cells/")  # doctest: +SKIP
    >>> dre.ray.transform(rows, "cells.safetensors").write_parquet("embedded/")  # doctest: +SKIP
    """
    _start()
    _check_dataset(dataset)
    import ray.data

    packed = PackedModel.of(model)
    fitted = packed.load("cpu")
    features = _features_of_fit(dataset, fitted, columns, vector)
    coordinates = [str(name) for name in fitted.get_feature_names_out()]
    taken = [name for name in coordinates if name in dataset.schema().names]
    if taken:
        raise ValueError(f"the dataset has a column {taken[0]!r} already: rename it, or drop_columns([{taken[0]!r}])")
    if stage is not None:
        fitted.module(stage=stage)  # fails early on a wrong stage
    fewest, most = concurrency if isinstance(concurrency, tuple) else (concurrency or 1, concurrency)
    return dataset.map_batches(
        Embedder,
        fn_constructor_args=(packed, features, stage, "cuda" if num_gpus else "cpu"),
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(min_size=fewest, max_size=most),
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        max_restarts=max_restarts,
        max_task_retries=max_restarts,
    )


@dataclass(frozen=True)
class PackedModel:
    """A model as it travels: the bytes of its file, and the network if that is the user's own."""

    content: bytes
    encoder: nn.Module | Backbone | None = None

    @classmethod
    def of(cls, model: DRE | str | os.PathLike[str]) -> PackedModel:
        """Read the file of a model, or write that of a fitted one to memory."""
        if not isinstance(model, DRE):
            return cls(Path(model).read_bytes())
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / FILE)
            content = (Path(folder) / FILE).read_bytes()
        return cls(content, model.encoder if isinstance(model.encoder, nn.Module | Backbone) else None)

    def load(self, device: str) -> DRE:
        """Return the model on a device."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / FILE
            path.write_bytes(self.content)
            return DRE.load(path, encoder=self.encoder, device=device)


class Embedder:
    """A worker of ``transform``: called with a table, it returns the table with coordinates."""

    def __init__(self, packed: PackedModel, features: Features, stage: int | None, device: str) -> None:
        self.model, self.features, self.stage = packed.load(device), features, stage

    def __call__(self, table: Table) -> Table:
        import pyarrow as pa

        coordinates = np.empty((0, self.model.n_components), np.float32)
        if table.num_rows:
            coordinates = self.model.transform(ForeignRows(self.features.values(table)), stage=self.stage)
        for i, name in enumerate(self.model.get_feature_names_out()):
            table = table.append_column(str(name), pa.array(coordinates[:, i]))
        return table


# Fit


def fit(
    dataset: Dataset,
    *,
    num_workers: int = 2,
    use_gpu: bool = False,
    columns: str | Sequence[str] | None = None,
    vector: str | None = None,
    num_cpus: float | None = None,
    storage_path: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_minutes: float = 5.0,
    max_failures: int = 0,
    **parameters: Any,
) -> DRE:
    """Fit a model by several processes, each of which holds a random part of the rows.

    The parts are of the same size: up to ``num_workers - 1`` rows are left out. See ``docs/cluster.md`` for what differs from
    the fit of one process.

    Parameters
    ----------
    dataset : ray.data.Dataset
    num_workers : int, default=2
        Processes that train.
    use_gpu : bool, default=False
        Give each of them a GPU.
    columns : "numbers" or sequence of str, optional
        Columns to map: those that hold numbers, or these. By default all columns, which must hold numbers, or the only one,
        if that holds vectors.
    vector : str, optional
        One column of vectors or images, in place of ``columns``.
    num_cpus : float, optional
        CPUs of each worker; by default an equal share of this machine, or 1 on a cluster. One more must be free for Ray Data.
    storage_path : path-like, optional
        Folder or address where Ray Train keeps the result, which all nodes can reach. A single machine does without.
    checkpoint : path-like, optional
        Folder that all nodes can reach, for checkpoints. A fit that was interrupted goes on from there.
    checkpoint_minutes : float, default=5
        Time between two checkpoints.
    max_failures : int, default=0
        How often the workers are started again if one of them dies: from the last checkpoint, or else from the beginning.
    **parameters
        Parameters of ``DRE``, but for ``device``.

    Returns
    -------
    DRE
        The fitted model. It has no ``embedding_``; ``dre.ray.transform`` computes that.

    Raises
    ------
    ClusterError
        If a worker fails more than ``max_failures`` times.

    Examples
    --------
    >>> import dre.ray, ray  # doctest: +SKIP
    >>> rows = ray.data.read_parquet("cells/")  # doctest: +SKIP
    >>> model = dre.ray.fit(rows, num_workers=4, use_gpu=True, columns="numbers", random_state=0)  # doctest: +SKIP
    """
    if "device" in parameters:
        raise TypeError("device is chosen by use_gpu: leave it out")
    seed = parameters.pop("random_state", None)
    if checkpoint is not None and seed is None:
        raise ValueError("checkpoint needs a random_state: another fit goes on with the same rows and seed")
    seed = int(seed) if isinstance(seed, int | np.integer) else check_seed(seed)  # the same for all workers
    model = DRE(**parameters, random_state=seed, device="cuda" if use_gpu else "cpu")
    _start()
    _check_dataset(dataset)
    _check_storage(storage_path)
    features = _features_to_fit(dataset, columns, vector)
    model.set_params(columns=features.names)
    rows = _shuffled(dataset, features, seed)
    n_own = rows.count() // num_workers
    if n_own < 2:
        raise ValueError(f"{rows.count()} row(s) are too few for {num_workers} workers: each needs 2 or more")
    saving: dict[str, Any] = {}
    if checkpoint is not None:
        saving = {"checkpoint": str(Path(checkpoint).absolute()), "resume": True, "checkpoint_minutes": checkpoint_minutes}
    workers = Workers(num_workers, use_gpu, _cpus_of_worker(num_workers) if num_cpus is None else num_cpus, max_failures)
    return workers.run(FitJob(model, n_own, saving), rows, storage_path)


def _shuffled(dataset: Dataset, features: Features, seed: int) -> Dataset:
    """Return the features in a random order, which is the same whenever the fit is called: a checkpoint needs it."""
    own = dataset.copy(dataset, _deep_copy=True)  # else its context is that of the caller's
    own.context.execution_options = copy.copy(own.context.execution_options)
    own.context.execution_options.preserve_order = True
    return own.map_batches(features.column, batch_format="pyarrow").random_shuffle(seed=seed).materialize()


@dataclass(frozen=True)
class FitJob:
    """What each worker of ``fit`` does with its part of the rows."""

    model: DRE  # not fitted
    n_rows: int  # of each worker
    saving: dict[str, Any]  # arguments of ``DRE.fit``

    def __call__(self) -> None:
        import ray.train
        from ray.train.torch import get_device

        rows = _read_part(ray.train.get_dataset_shard("rows"), self.n_rows)
        columns = self.model.columns
        self.model.set_params(device=str(get_device()), columns=None)  # the rows are those columns, without names
        self.model.fit(OwnRows(rows), **self.saving)
        self.model.set_params(columns=columns)
        if columns is not None:
            self.model.feature_names_in_ = np.array(columns, dtype=object)
        with tempfile.TemporaryDirectory() as folder:
            result = None
            if ray.train.get_context().get_world_rank() == 0:
                self.model.save(Path(folder) / FILE)
                result = ray.train.Checkpoint.from_directory(folder)
            ray.train.report({}, checkpoint=result)


@dataclass(frozen=True)
class Workers:
    """The processes of a fit, on Ray Train."""

    count: int
    use_gpu: bool
    num_cpus: float
    max_failures: int

    def run(self, job: FitJob, rows: Dataset, storage_path: str | os.PathLike[str] | None) -> DRE:
        """Run the job on each worker with its part of the rows, and return the model of the first."""
        from ray.data import ExecutionOptions
        from ray.train import DataConfig, FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchConfig, TorchTrainer

        resources = {"CPU": self.num_cpus, **({"GPU": 1} if self.use_gpu else {})}
        with tempfile.TemporaryDirectory() as folder:
            trainer = TorchTrainer(
                job.__call__,
                torch_config=TorchConfig(
                    "cpu:gloo,cuda:nccl" if self.use_gpu else "gloo", timeout_s=int(PATIENCE.total_seconds())
                ),
                scaling_config=ScalingConfig(num_workers=self.count, use_gpu=self.use_gpu, resources_per_worker=resources),
                run_config=RunConfig(
                    storage_path=folder if storage_path is None else str(storage_path),
                    failure_config=FailureConfig(max_failures=self.max_failures),
                ),
                datasets={"rows": rows},
                # A worker that starts again gets the rows that it had, which its checkpoint needs.
                dataset_config=DataConfig(execution_options=ExecutionOptions(preserve_order=True)),
            )
            try:
                result = trainer.fit()
            except TrainingFailedError as problem:
                raise ClusterError(_explain(problem, self.max_failures)) from problem
            if result.checkpoint is None:
                raise ClusterError("the fit ended without a model")
            with result.checkpoint.as_directory() as place:
                own = job.model.encoder if isinstance(job.model.encoder, nn.Module | Backbone) else None
                return DRE.load(Path(place) / FILE, encoder=own, device="auto")


def _read_part(shard: Any, n: int) -> Tensor:
    """Return the rows of a worker, in memory or in a scratch file."""
    rows, filled = None, 0
    for batch in shard.iter_torch_batches(batch_size=2**14, device="cpu"):
        values = batch[FEATURES]
        if rows is None:
            rows = empty((n, *values.shape[1:]), torch.float32, what="the rows of a worker")
        rows[filled : filled + len(values)] = values
        filled += len(values)
    if rows is None or filled != n:
        raise ValueError(f"the dataset gave {filled} rows instead of {n} to a worker")
    return rows


def _cpus_of_worker(num_workers: int) -> float:
    """An equal share of this machine, less one CPU for Ray Data; 1 on a cluster, whose machines may differ."""
    import ray

    if sum(bool(node["Alive"]) for node in ray.nodes()) > 1:
        return 1
    share = (ray.cluster_resources().get("CPU", 1) - 1) / num_workers
    return int(share) if share >= 1 else float(share)


def _check_storage(storage_path: str | os.PathLike[str] | None) -> None:
    import ray

    if storage_path is None and sum(bool(node["Alive"]) for node in ray.nodes()) > 1:
        raise ValueError("storage_path: pass a folder or an address that all nodes of the cluster can reach")


def _explain(problem: Any, max_failures: int) -> str:
    """The message for a fit that failed: the first worker with an error, and what it said last."""
    failures = getattr(problem, "worker_failures", None) or {}
    if not failures:
        return f"the fit failed: {problem}"
    causes = {rank: error for rank, error in failures.items() if RankError.__name__ not in str(error)}  # not their echo
    rank, error = next(iter((causes or failures).items()))
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return (
        f"worker {rank} of the fit failed: {lines[-1][:LONGEST]}. Workers are started again max_failures={max_failures} "
        "times. With checkpoint=FOLDER, another fit goes on from there."
    )


# Rows


@dataclass(frozen=True)
class Features:
    """The columns of a dataset that are mapped: several of numbers, or one of vectors."""

    names: list[str] | None
    vector: str | None

    def values(self, table: Table) -> Array:
        """Return the features of a table, (m, d), or (m, h, w) for images, all finite."""
        column = None if self.vector is None else table[self.vector]
        if column is not None and hasattr(column.type, "extension_name"):  # a tensor of Ray or of Arrow
            parts = [getattr(part, "to_numpy_ndarray", part.to_numpy)() for part in column.chunks]
            found = np.concatenate(parts)
        else:
            rows = foreign_rows(table.select([self.vector] if self.names is None else self.names))
            found = rows.read(0, table.num_rows).numpy()
        if found.dtype != object:
            self._check_finite(found, table)
        return np.asarray(found)

    def _check_finite(self, values: Array, table: Table) -> None:
        """Raise a ValueError that names a row with gaps by its other columns: a dataset has no row numbers."""
        finite = np.isfinite(values).reshape(len(values), -1).all(1)
        if finite.all():
            return
        row = int(np.flatnonzero(~finite)[0])
        mapped = {self.vector, *(self.names or [])}
        others = [name for name in table.column_names if name not in mapped][:LISTED]
        named = ", ".join(f"{name}={table[name][row].as_py()!r}" for name in others) or f"number {row} of a batch"
        raise ValueError(f"the row with {named} has NaN or infinity: drop such rows first, or fill their gaps")

    def column(self, table: Table) -> dict[str, Array]:
        """Return the features as one column of float32."""
        return {FEATURES: self.values(table).astype(np.float32)}


def _features_of_fit(dataset: Dataset, model: DRE, columns: Sequence[str] | None, vector: str | None) -> Features:
    """Match the columns of a dataset to those that a model was fitted to."""
    if columns is None and vector is None:
        names = getattr(model, "feature_names_in_", None)
        vectors = [] if names is not None else _vectors(dataset)
        if names is None and len(vectors) != 1:
            raise ValueError("the model knows no names of columns: pass columns=[…] in the order of the fit, or vector=NAME")
        columns, vector = (names, None) if names is not None else (None, vectors[0])
    features = _named(dataset, None if columns is None else list(columns), vector)
    if features.names is not None and (len(features.names),) != model.row_shape_:
        raise ValueError(f"columns: {len(features.names)} were given, but the model was fitted on rows of {model.row_shape_}")
    return features


def _features_to_fit(dataset: Dataset, columns: str | Sequence[str] | None, vector: str | None) -> Features:
    chosen, numbers = check_columns(columns), _numbers(dataset)
    if chosen == NUMBERS and not numbers:
        raise ValueError("the dataset has no column of numbers")
    if chosen is None and vector is None:
        others = [name for name in dataset.schema().names if name not in numbers]
        if others and others == _vectors(dataset) and len(others) == 1 and not numbers:
            return Features(None, others[0])
        if others:
            listed = ", ".join(map(repr, others[:LISTED]))
            raise ValueError(f"columns that do not hold numbers: {listed}. Pass columns='numbers', a list, or vector=NAME")
    return _named(dataset, numbers if chosen in (None, NUMBERS) and vector is None else chosen, vector)


def _named(dataset: Dataset, columns: Any, vector: str | None) -> Features:
    """Check that the columns are there."""
    if columns is not None and vector is not None:
        raise ValueError("pass columns or vector, not both")
    known = dataset.schema().names
    lacking = [name for name in ([vector] if columns is None else columns) if name not in known]
    if lacking:
        raise ValueError(f"the dataset has no column {lacking[0]!r}; its columns: {', '.join(map(repr, known))}")
    return Features(columns, vector)


def _numbers(dataset: Dataset) -> list[str]:
    import pyarrow.types as kinds

    schema = dataset.schema()
    checks = (kinds.is_integer, kinds.is_floating, kinds.is_boolean)
    return [name for name, kind in zip(schema.names, schema.types, strict=True) if any(check(kind) for check in checks)]


def _vectors(dataset: Dataset) -> list[str]:
    """Columns of lists and tensors."""
    import pyarrow.types as kinds

    schema = dataset.schema()
    return [
        name
        for name, kind in zip(schema.names, schema.types, strict=True)
        if hasattr(kind, "extension_name") or kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
    ]


def _check_dataset(dataset: Any) -> None:
    import ray.data

    if not isinstance(dataset, ray.data.Dataset):
        kind = type(dataset).__name__
        raise TypeError(f"dataset is a {kind}: pass a ray.data.Dataset, such as ray.data.read_parquet(FOLDER)")
    if dataset.schema() is None:
        raise ValueError("the dataset has no rows")


def _start() -> None:
    """Start a local Ray, or connect to the cluster that RAY_ADDRESS names, unless the caller has done so."""
    try:
        import ray
    except ImportError:
        raise ImportError("dre.ray needs Ray: pip install 'deep-recursive-embedding[ray]'") from None

    if not ray.is_initialized():
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init()
