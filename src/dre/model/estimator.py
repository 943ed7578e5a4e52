"""DRE: the method as an estimator of scikit-learn."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from dre.affinity import clamping_silently
from dre.atomic import check_absent
from dre.augment import Augment
from dre.batches import Batches
from dre.data.dataframes import check_columns, check_has_columns, fill_gaps, is_dataframe, select_features
from dre.data.device_array import give_back, is_device_array, open_device_array, to_host, wants_container
from dre.data.fingerprint import fingerprint
from dre.data.image_items import dataset_labels
from dre.data.image_layout import model_shape
from dre.data.metric import PRECOMPUTED
from dre.data.mixed_table import fit_table
from dre.data.moments import Moments
from dre.data.preparation import Preparation, Prepared, apply, to_file
from dre.data.random_sample import check_sample, choose_rows
from dre.data.range_error import RangeError
from dre.data.rows import RowSlice, is_rows, read_all
from dre.data.scaling import Scaling
from dre.data.subsample import to_array
from dre.data.table_preparation import check_missing
from dre.data.validation import check_labels, check_names, check_rows, check_seed, warn_of_one_label
from dre.data.weights import RowWeights, repeat_rows
from dre.encoder import Encoder
from dre.encoder.backbone import Backbone
from dre.model.archive import save_map
from dre.model.digest import digest
from dre.model.encoding import encode
from dre.model.export import ExportJob, write_onnx, write_program
from dre.model.fitted import Array, FittedMap, MapModule
from dre.model.fitting import Data, MapFit, Saving, Share, compute_versions, fit_map, open_checkpoints
from dre.model.input_distances import InputDistances
from dre.model.partial_fit import Memory, concatenate_rows, fit_further, to_memory
from dre.model.portable import place_on_device, portable_state
from dre.model.saved import describe, open_model
from dre.model.shown_labels import shown_labels
from dre.observe import Observer, check_observers
from dre.observe.progress import PartsNote, Progress, Verbose
from dre.optimizer import Optimizer
from dre.plan.overrides import Overrides, apply_overrides, default_sample, describe_sample, explain, parse_overrides
from dre.plan.recipe import DataSpec, Recipe
from dre.plan.schedule import Schedule
from dre.progress.display import say, shown
from dre.runtime import Runtime, available_bytes, resolve_device
from dre.runtime.caller import level_of_caller
from dre.runtime.ranks import OwnRows, Ranks
from dre.runtime.threads import one_thread_on
from dre.runtime.torch_state import plain_torch
from dre.training.run import Weights

TORCH = (Dataset, DataLoader)


class DRE(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Deep Recursive Embedding: a network that learns the map.

    Parameters
    ----------
    recipe : str or Recipe, default="auto"
        ``"auto"``: the best map for these data on this device. ``"fast"``: a third of its steps. ``"paper"``,
        ``"paper-tsne"``, ``"paper-umap"``: as published. ``"deep-tsne"``, ``"deep-umap"``: no recursion. Or a ``Recipe``.
        The parameters below override the recipe; None keeps its value.
    n_components : int, default=2
        Dimensions of the map.
    metric : str or callable, default="euclidean"
        Distance between rows. ``"euclidean"``, ``"cosine"`` and ``"correlation"`` act as a transform of the rows that is part
        of the model (see ``dre.data.metric``). ``"manhattan"``, ``"chebyshev"``, ``"minkowski"``, ``"canberra"``,
        ``"braycurtis"``, ``"hamming"``, ``"jaccard"`` and a function ``f(x, y)`` of two vectors say which rows are neighbors,
        and the network reads the rows. With ``"precomputed"`` X are the distances between all rows, and ``transform`` takes
        those of new rows to the fitted ones; in a sparse X the stored entries are the neighbors, and only ``embedding_`` is
        there.
    metric_kwds : dict, optional
        Keywords of the metric: ``{"p": 3}`` of ``"minkowski"``, weights ``{"w": ...}`` of the columns, those of a function.
    sample : int, optional
        Fit a random sample of so many rows, and embed the others by the network. By default ``"auto"`` and ``"fast"`` do so
        beyond a million rows on a CPU and 4 million on a GPU, or where the memory is too small for the graph of all rows.
        The number of rows or more fits all of them.
    perplexity : float, optional
        Perplexity of every Gaussian affinity, as in t-SNE.
    n_neighbors : int, optional
        Neighbors of every fuzzy affinity, as in UMAP. In a recipe without one, such as ``"auto"``, it sets the perplexity:
        both count the neighbors that matter.
    min_dist : float, optional
        As in UMAP, for recipes with UMAP's loss: ``"paper"``, ``"paper-umap"``, ``"deep-umap"``.
    recursions : int, optional
        How often the neighborhoods are computed again from the network's hidden layers. Those that ``"auto"`` and ``"fast"``
        choose themselves are skipped or undone if they do not improve the map; those asked for here are kept.
    schedule : str or Schedule, optional
        The stages: ``"x: gaussian(30) -> kl * 30; h1: gaussian(30) -> kl * 15"``. A stage may say how it is solved:
        ``"x: gaussian(30) -> kl * 40 from pca free 350 follow 10 against bank"`` optimizes the coordinates of all rows
        first, lets the network follow them, and then takes the loss against all rows. A stage that ends in ``optional`` is
        skipped or undone, and the fit ends, if it does not improve the map.
    encoder : str, Encoder or nn.Module, optional
        ``"model-a"``, ``"model-b(norm=true)"``, ``"mlp(256, depth=3)"``; ``Backbone(module)``, a pretrained network before an
        mlp; or a module of your own, which reads vectors as (b, d) and images as (b, c, h, w), scaled.
    augment : str, Augment or callable, optional
        Random changes to the rows in training: ``"noise(0.5)"``, ``"local-noise(0.5)"``, ``"affine + flip"``, a function
        from a batch of scaled rows to one of the same shape; ``"none"`` turns off that of the recipe.
    batch_size : int, str or Batches, optional
        Rows in a training step, or a batch sampler: ``"edges(1024)"``, ``"shuffled(500)"``.
    learning_rate : float, optional
        Learning rate of the optimizer; the peak of a one-cycle policy.
    optimizer : str or Optimizer, optional
        ``"adam(0.001, policy=constant, clip=1.0)"``, ``"adam(0.01, beta2=0.99, warmup=0.1, whiten=true)"``.
        ``learning_rate`` overrides its first value.
    standardize : bool, default=False
        Divide each column by its standard deviation: for columns in different units. The numbers of a table with categories or
        booleans beside them are divided in any case.
    columns : "numbers" or list of str, optional
        Columns of a DataFrame to map: those that hold numbers, or these. By default all: numbers, booleans, categories, and
        texts of at most 20 values. Categories and booleans beside numbers are encoded, and the numbers standardized (see
        ``dre.data.table_preparation``).
    missing : {"error", "mean", "median"}, default="error"
        What stands for missing values of a DataFrame or an array, also in ``transform``: that of each column in the fit.
        Categories and booleans get their most frequent value.
    device : str, default="auto"
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"mps"`` for an Apple GPU, which ``"auto"`` does not choose.
    random_state : int, RandomState or None, default=None
        The same seed gives the same bits with the same rows and parameters, type of CPU, and versions of dre, torch, numpy and
        numba, whatever the number of threads, the load, and the state of torch that the caller has set. Two kinds of networks
        are computed by several threads of torch, whose number may change the last bits: modules of your own, and networks other
        than ``mlp`` and ``patch-mlp`` with a billion products or more in the forward pass of a step. On a GPU, maps of the same
        seed are alike, not equal.
    verbose : bool or None, default=None
        None shows a progress bar in a terminal or a notebook, and nothing elsewhere. True also prints what was chosen and,
        in a log, a line every half minute.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components), float32
        The map of the fitted rows. It is not saved.
    recipe_, schedule_ : Recipe, Schedule
        What was to be run; ``stages_`` is shorter if the fit was ended early or an optional stage was skipped or undone.
    stages_ : list of dict or None
        The weights at the end of each stage that was kept; None where they were left out of the file.
    history_ : list of dict
        One record per epoch, with stage, source, epoch, against, loss, rows and seconds. ``against`` is what a batch was
        compared with: ``"coordinates"`` that the network followed, the ``"bank"`` of all rows, or the ``"batch"`` itself.
    encoder_ : nn.Module
        The trained network.
    row_shape_ : tuple of int
        Shape of one row.
    preparation_ : Preparation or None
        The step from a table with categories or gaps, or from genes, to rows of numbers; None if X is such rows.
    sample_indices_ : ndarray or None
        Rows that were fitted, if they are a sample; None: all.
    interrupted_ : bool
        Whether Ctrl-C ended the fit early.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images[:200]
    >>> model = DRE("fast", random_state=0).fit(X)
    >>> model.transform(X[:5]).shape
    (5, 2)
    """

    sample_indices_: Array | None
    _map: FittedMap
    _memory: Memory

    def __init__(
        self,
        recipe: str | Recipe = "auto",
        *,
        n_components: int = 2,
        metric: str | Callable[..., float] = "euclidean",
        metric_kwds: Mapping[str, Any] | None = None,
        sample: int | None = None,
        perplexity: float | None = None,
        n_neighbors: int | None = None,
        min_dist: float | None = None,
        recursions: int | None = None,
        schedule: str | Schedule | None = None,
        encoder: str | Encoder | nn.Module | None = None,
        augment: str | Augment | Callable[[Tensor], Tensor] | None = None,
        batch_size: int | str | Batches | None = None,
        learning_rate: float | None = None,
        optimizer: str | Optimizer | None = None,
        standardize: bool = False,
        columns: str | Sequence[str] | None = None,
        missing: str = "error",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.recipe = recipe
        self.n_components = n_components
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.sample = sample
        self.perplexity = perplexity
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.recursions = recursions
        self.schedule = schedule
        self.encoder = encoder
        self.augment = augment
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.standardize = standardize
        self.columns = columns
        self.missing = missing
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        observers: Iterable[Observer] = (),
        live: bool = False,
        precomputed_knn: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        checkpoint_minutes: float = 5.0,
    ) -> Self:
        """Learn the map of X.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Rows of shape (n, d), (n, h, w), (n, h, w, c) or (n, c, h, w)
            Vectors or images. Rows are anything with ``shape``, ``read(start, stop)`` and ``take(ids)``, such as
            ``dre.datasets.infimnist(70_000, 370_000)``: batches and chunks are read when they are needed. Only the features
            from which a stage takes its neighbors, and the output of a PCA front, are kept, in scratch files if they are large.
        y : array-like of shape (n,), optional
            Labels, for losses that read them; otherwise they only color the map that a notebook shows of the model. By default
            those of a torch dataset, for such losses.
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 acts as three rows, also where gaps of a table are filled and its columns encoded; one of weight 0
            is not fitted, and embedded by the network. Weights are not normalized. A weight between two whole numbers is
            rounded up or down at random, up with the probability of its fraction.
        observers : iterable of callables
            Called with every event of the run, which they may end: ``[EarlyStopping(patience=20)]``.
        live : bool, default=False
            Redraw the map below the cell of a notebook while it is trained, colored by y: ``dre.observe.live.Live``.
        precomputed_knn : (indices, distances) or sparse matrix, optional
            Neighbors of each row, two arrays (n, k), in place of a search; or a sparse matrix (n, n) of distances, such as
            ``adata.obsp["distances"]``. The row itself may be listed or not. Fewer than the perplexity needs lower it.
        checkpoint : path-like, optional
            Folder for checkpoints, from which the fit can be resumed. The last two are kept.
        resume : bool, default=False
            Continue from the last checkpoint in the folder, or begin if there is none. Data, parameters and versions must be
            those of the checkpoint. On a CPU the result has the same bits as that of a fit that was not interrupted.
        checkpoint_minutes : float, default=5
            Time between two checkpoints. One is also written when a stage has ended, and when Ctrl-C, SIGTERM or SIGHUP ends
            the fit.

        Returns
        -------
        self
        """
        ranks = Ranks.current()
        with (
            _all_or_nothing(self),
            shown(self.verbose if ranks.is_first else False),
            plain_torch(),
            one_thread_on(resolve_device(self.device)),
            ranks.sharing_errors(),
        ):
            y = dataset_labels(X) if y is None and isinstance(X, TORCH) and self._reads_labels else y
            share = Share(ranks, is_own=isinstance(X, OwnRows))
            X = X.rows if isinstance(X, OwnRows) else X
            watching = [*check_observers(observers), *(_live(y) if live and ranks.is_first else ())]
            opening = open_checkpoints(checkpoint, resume=resume, minutes=checkpoint_minutes, ranks=ranks)
            if sample_weight is not None:
                self._check_weighting(ranks, precomputed_knn)
                with opening as saving:
                    self._fit_weighted(X, y, sample_weight, watching, saving, share=share)
                    return self._show_labels(y)
            X, preparation = self._prepare(X)
            if ranks.is_connected:
                self._agree(X, share, preparation, checkpoint=str(checkpoint), resume=str(resume))
            with _naming_columns(self._names_of(preparation)), opening as saving:
                self._fit(X, y, watching, precomputed_knn, saving, share=share, made_by=preparation)
                return self._show_labels(y)

    def partial_fit(self, X: Any, y: Any = None, *, memory: Any = None, observers: Iterable[Observer] = ()) -> Self:
        """Learn the map of X in the first call; in a further one, add the rows of X to it and keep it where it is.

        Of all rows seen, a random sample of 5,000 is remembered with the model, as they were passed. They stay where they are
        in the map while the new rows find their places among them. ``save`` writes no rows; a pickle has those remembered.

        Parameters
        ----------
        X : as in ``fit``
            All columns must be there from the first call on. Their scaling is that of the first call, as are the axes of a PCA
            front: begin with rows of many kinds.
        y : array-like, optional
            For the first call.
        memory : as in ``fit``, optional
            Rows that a model has seen, to go on with one that remembers none: after ``fit`` or ``load``. Without them such a
            model stays as it is, with a warning.
        observers : iterable of callables

        Returns
        -------
        self
            ``embedding_`` has the map of X, ``transform`` that of any row.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> X = load_digits().images
        >>> model = DRE("fast", random_state=0).partial_fit(X[:150])
        >>> model.partial_fit(X[150:200]).embedding_.shape
        (50, 2)
        """
        if self.metric == PRECOMPUTED:
            raise ValueError("metric='precomputed' has no distances from new rows to those of an earlier call: use fit")
        if Ranks.current().is_connected:
            raise ValueError("partial_fit works in one process: call it inside `with dre.alone():`, or use fit")
        if not self.__sklearn_is_fitted__():
            self.fit(X, y, observers=observers)
            self._memory = Memory.of(self.prepare(X), check_seed(self.random_state))
            return self
        self._check_features("partial_fit")
        if memory is None and "_memory" not in vars(self):
            warnings.warn(
                "this model remembers no rows, since it comes from fit or load: the network places the new rows as it is. To "
                "learn them, pass rows that it has seen, partial_fit(X, memory=X_before), or call partial_fit from the start",
                stacklevel=2,
            )
            self._embedding, self.sample_indices_ = self._map.embed(self.prepare(X)), None
            return self._show_labels(None)
        with (
            _all_or_nothing(self),
            shown(self.verbose),
            plain_torch(),
            one_thread_on(self._map.device),
            _naming_columns(self._names_of(self._map.preparation)),
        ):
            seen = self._memory if memory is None else Memory.of(self.prepare(memory), check_seed(self.random_state))
            new = to_memory(self.prepare(X))
            distances = InputDistances.of(concatenate_rows(seen.rows, new), self.metric, self.metric_kwds)
            planned, watching = self._plan(distances.X.shape, None), check_observers(observers)
            bars = self._default_observers(distances.X.shape)
            self._map, self._embedding, self.interrupted_ = fit_further(
                self._map, new, seen, planned, distances, observers=[*bars, *watching]
            )
            self._memory, self.sample_indices_ = seen.add(new), None
        return self._show_labels(None)

    def _show_labels(self, y: Any) -> Self:
        self._shown_labels = shown_labels(y, len(self._embedding))
        return self

    def _check_weighting(self, ranks: Ranks, precomputed_knn: Any) -> None:
        """Raise a ValueError if what is fitted has no rows of its own that could be repeated."""
        is_known = isinstance(self.metric, str) and self.metric == PRECOMPUTED
        if ranks.is_connected or precomputed_knn is not None or is_known:
            raise ValueError(
                "sample_weight repeats rows: fit in one process, without precomputed_knn and metric='precomputed', or "
                "repeat the rows yourself"
            )

    def _fit_weighted(
        self, X: Any, y: Any, sample_weight: Any, observers: Iterable[Observer], saving: Saving | None, *, share: Share
    ) -> Self:
        """Fit each row as often as its weight says, and embed each once."""
        seed = self._seed(saving)  # one for both, which the checkpoint has: a resumed fit rounds the weights in the same way
        weights = RowWeights(sample_weight, seed)
        X, made_by = self._prepare(X, weights)
        with _naming_columns(self._names_of(made_by)):
            ids = weights.ids(X.shape[0])
            labels = check_labels(y, X.shape[0]).numpy()[ids] if y is not None and self._reads_labels else None
            share = share._replace(repeats=ids, n=X.shape[0])
            self._fit(repeat_rows(X, ids), labels, observers, None, saving, share=share, made_by=made_by, seed=seed)
            sample = self.sample_indices_
            fitted = np.unique(ids if sample is None else ids[sample])
            self.sample_indices_ = None if len(fitted) == X.shape[0] else fitted
            self._embedding = self._map.embed(X)
        return self

    def _prepare(self, X: Any, weights: RowWeights | None = None) -> tuple[Any, Preparation | None]:
        """Return the rows to fit, and the preparation that made them of X; None if they are X itself."""
        self.__dict__.pop("fill_values_", None)  # those of an earlier fit
        columns = check_columns(self.columns)
        if not isinstance(X, Prepared):
            check_has_columns(X, columns)
            found = fit_table(X, columns, check_missing(self.missing), weights)
            if found is None:
                rows = check_rows(self, open_device_array(select_features(X, columns)), fitting=True)
                self._say_how_read(rows)
                return rows, None
            X = Prepared(X, found)
        preparation, rows = X.preparation, apply(X.preparation, X)
        check_rows(
            self,
            np.broadcast_to(np.float32(0), (rows.shape[0], len(preparation.columns or preparation.names_out))),
            fitting=True,
        )
        if preparation.columns is not None:
            self.feature_names_in_ = np.array(preparation.columns, dtype=object)
        return rows, preparation

    def prepare(self, X: Any) -> Any:
        """Return the rows of numbers that the model makes of X, before it scales them; X itself, checked, if it is such rows.

        ``module()`` reads these rows if the step that makes them is no module.
        """
        check_is_fitted(self)
        if self._map.preparation is not None:
            return apply(self._map.preparation, X)
        selected = self._selected(X)
        # scikit-learn would call an image's height its features
        if len(self._map.shape) > 1 or len(getattr(selected, "shape", (0, 0))) > 2:
            self._map.check_shape(np.shape(selected))
        rows = check_rows(self, open_device_array(selected), fitting=False)
        self._say_how_read(rows)
        return rows

    def _selected(self, X: Any) -> Any:
        """Return the columns of the fit of a DataFrame; gaps of tables and arrays are filled if a file did so in the fit."""
        fills, names = getattr(self, "fill_values_", {}), getattr(self, "feature_names_in_", None)
        selected = select_features(X, check_columns(self.columns), names, self._map.shape)
        if self.columns is None and names is not None and is_dataframe(selected):
            check_names(self, selected)
        return fill_gaps(selected, fills, names) if fills else selected

    def _say_how_read(self, rows: Any) -> None:
        """Print how the images of a dataset are read: resized, for example."""
        for line in getattr(rows, "messages", []) if self.verbose is not False else []:
            say(f"dre: {line}")

    def _names_of(self, preparation: Preparation | None) -> Any:
        """Return the names of the numbers in a row, for messages; None if they have none."""
        return getattr(self, "feature_names_in_", None) if preparation is None else preparation.names_out

    def _agree(self, X: Any, share: Share, made_by: Preparation | None, **facts: str) -> None:
        """Check that all ranks fit the same map."""
        made = "none"
        if made_by is not None:
            content, learned = to_file(made_by)
            made = f"{made_by.kind} {digest(content, {name: value.cpu() for name, value in learned.items()})[:16]}"
        share.ranks.agree({"preparation": made}, remedy=PREPARED_ONCE)  # before the rows, whose shapes come from it
        rows = f"{tuple(X.shape)} of each rank" if share.is_own else fingerprint(X)
        own = ("device", "verbose", "random_state")  # which may differ, or have no text
        parameters = {name: encode(value) for name, value in self.get_params(deep=False).items() if name not in own}
        versions = "\n".join(f"{name} {version}" for name, version in compute_versions().items())
        share.ranks.agree({"rows": rows, "parameters": str(parameters), "versions": versions, **facts})

    def _fit(
        self,
        X: Any,
        y: Any,
        observers: Iterable[Observer],
        knn: Any,
        saving: Saving | None,
        *,
        share: Share,
        made_by: Preparation | None = None,
        seed: int | None = None,
    ) -> Self:
        if not isinstance(self.n_components, (int, np.integer)) or self.n_components < 1:
            raise ValueError(f"n_components={self.n_components!r}: must be a whole number from 1 up")
        if not isinstance(self.standardize, (bool, np.bool_)):
            raise TypeError(f"standardize={self.standardize!r}: expected True or False")
        ranks, device = share.ranks, share.ranks.device(resolve_device(self.device))
        has_units = made_by is not None and made_by.sets_units
        standardize = bool(self.standardize) and not has_units
        distances = InputDistances.of(X, self.metric, self.metric_kwds, knn)
        distances.metric.check_standardize(standardize)
        X, are_given = distances.X, distances.are_given
        sample = check_sample(self.sample) if share.is_own else ranks.on_first(lambda: self._sample(tuple(X.shape), are_given))
        seed = self._seed(saving) if seed is None else seed
        if self.random_state is None:
            seed = ranks.broadcast(seed)
        ranks.agree({"random_state": str(seed)})
        rows = choose_rows(X, sample, seed, ranks, is_own=share.is_own)
        distances.check_rows(is_sample=rows.ids is not None, is_shared=ranks.is_connected)
        n = rows.X.shape[0]

        def merge(found: Moments) -> Moments:
            return Moments.merged(ranks.collect(found.cpu())) if ranks.is_connected else found

        scaling = Scaling.fit(rows.scaled, device, metric=distances.metric.transform, standardize=standardize, merge=merge)
        if scaling.is_constant:
            warnings.warn(
                "all rows are equal where the metric compares them: their map is one spot, and differences in it mean nothing. "
                "Check the values and columns of X.",
                stacklevel=level_of_caller(),
            )
        if distances.read_units and not has_units:
            self._warn_of_units(scaling, self._names_of(made_by))
        all_rows = rows.n if share.is_own else X.shape[0]
        recipe = self._clamp(self._plan((all_rows, *X.shape[1:]), sample), n, ranks.size)
        _check_pixels(recipe, self.metric, standardize=self.standardize)
        quiet = self.verbose is False or not ranks.is_first
        recipe, neighbors, landmarks = distances.follow(
            recipe, rows.X, scaling, device, is_chosen=self._chooses_affinity, quiet=quiet
        )
        reads_labels = y is not None and any(stage.loss.reads_labels for stage in recipe.schedule)
        labels = check_labels(y, X.shape[0]) if reads_labels else None
        if labels is not None:
            warn_of_one_label(labels)
        work = MapFit(
            rows.X,
            scaling,
            recipe,
            n_components=int(self.n_components),
            runtime=Runtime.on(device, recipe.precision),
            seed=seed,
            random_state=self.random_state,
            labels=labels if labels is None or rows.ids is None else labels[torch.from_numpy(rows.ids)],
            neighbors=neighbors,
            landmarks=landmarks,
            metric=distances.metric,
            ids=share.ids_of(rows.ids),
            data=Data(X, labels, sample),
            share=share._replace(order=rows.order),
            preparation=made_by,
        )
        shown_to_user = self._default_observers((rows.n, *X.shape[1:])) if ranks.is_first else []
        self._map, embedding, self.interrupted_ = fit_map(work, [*shown_to_user, *observers], saving)
        self.__dict__.pop("_memory", None)
        self.sample_indices_, self._is_first, self._lacks_features = rows.sample, ranks.is_first, distances.lack_features
        self._embedding = embedding if rows.ids is None else self._embed_together(X, ranks)
        return self

    def _seed(self, saving: Saving | None) -> int:
        """Return the user's seed; without one, that of the checkpoint to resume from, or a new one."""
        return saving.seed if saving is not None and self.random_state is None else check_seed(self.random_state)

    def _embed_together(self, X: Any, ranks: Ranks) -> Array:
        """Embed all rows, each rank a range of them."""
        n = X.shape[0]
        start, stop = n * ranks.rank // ranks.size, n * (ranks.rank + 1) // ranks.size
        part = RowSlice(X, start, stop) if is_rows(X) else X[start:stop]
        try:
            parts = ranks.collect(self._map.embed(part))
        except RangeError as problem:
            raise problem.located(first_row=start) from None
        return np.concatenate(parts) if ranks.is_connected else parts[0]

    def plan(self, shape: tuple[int, ...]) -> Recipe:
        """Return the recipe that ``fit`` would run on rows of this shape, without reading any.

        Examples
        --------
        >>> print(DRE("paper", recursions=0, device="cpu").plan((60_000, 50)).schedule)
        x: gaussian(30, scope=batch) -> kl * 100
        x: fuzzy(15, scope=batch) -> ce(min_dist=0.001) * 100 @ 0.0001
        """
        if self.sample is not None:
            return self._plan(shape, check_sample(self.sample))
        recipe, overrides = self._overrides()
        return self._plan(shape, default_sample(recipe, self._data_spec(shape), overrides))

    def _plan(self, shape: tuple[int, ...], sample: int | None) -> Recipe:
        recipe, overrides = self._overrides()
        data = self._data_spec(shape)
        if sample is not None and sample < data.n:
            data = replace(data, n=sample, sampled=True)
        return apply_overrides(recipe, data, overrides)

    def _sample(self, shape: tuple[int, ...], are_given: bool) -> int | None:
        """Return the number of rows to fit: as the user says, or as the default recipe chooses and then says; None for all."""
        if self.sample is not None or are_given:  # neighbors that were passed are those of all rows
            return check_sample(self.sample)
        recipe, overrides = self._overrides()
        data = self._data_spec(shape)
        sample = default_sample(recipe, data, overrides)
        if sample is not None and self.verbose is not False:
            say(describe_sample(sample, data))
        return sample

    def _data_spec(self, shape: tuple[int, ...]) -> DataSpec:
        device = resolve_device(self.device).type
        device = "cpu" if device == "mps" else device  # the plans for GPUs were measured on CUDA
        free = available_bytes(device) if device in ("cpu", "cuda") else None
        return DataSpec(shape[0], model_shape(tuple(shape[1:])), device, int(self.n_components), free=free)

    def transform(self, X: Any, *, stage: int | None = None) -> Any:
        """Embed rows by a forward pass, chunk by chunk.

        Parameters
        ----------
        X : as in ``fit``
        stage : int, optional
            Use the weights at the end of this stage, counted from 0; default: the last stage.

        Returns
        -------
        ndarray of shape (n, n_components), float32
            A tensor on the same device if X is a tensor, and an array of the same library if X has ``__dlpack__``, as those of
            CuPy. With ``set_output``, a DataFrame.

        Raises
        ------
        ValueError
            If X has NaN or infinity, or a row that is too far from those of the fit for float32. The error names the first row.
        """
        check_is_fitted(self)
        self._check_features("transform")
        with plain_torch(), one_thread_on(self._map.device), _naming_columns(self._names_of(self._map.preparation)):
            rows = self.prepare(X)
            self._map.warn_of_range(rows)
            return self._like(X, self._map.coordinates(rows, stage))

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Equivalent to ``fit(X).transform(X)``, with the parameters of ``fit``."""
        Y = self.fit(X, y, **fit_params).embedding_
        return self._like(X, torch.from_numpy(Y.copy())) if is_device_array(X) else Y

    def _like(self, X: Any, Y: Tensor) -> Any:
        """Return a map as an array of the library that X comes from; a numpy array if it becomes a DataFrame."""
        return Y.cpu().numpy() if wants_container(self) else give_back(Y, X)

    def _check_features(self, method: str) -> None:
        if getattr(self, "_lacks_features", False):
            raise ValueError(
                f"{method}: the model was fitted to a sparse matrix of distances, which has nothing that a network could read "
                "of new rows. Fit features with the matrix beside them, fit(X, precomputed_knn=D). embedding_ has the map of "
                "the fitted rows."
            )

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the map's columns, as in the files that the command line writes: dre1, dre2, …

        Parameters
        ----------
        input_features : ignored
            Exists for scikit-learn.
        """
        check_is_fitted(self)
        return np.array([f"dre{i}" for i in range(1, self._map.n_components + 1)], dtype=object)

    def module(self, *, stage: int | None = None) -> MapModule:
        """Return the learned map as one plain ``nn.Module`` from raw rows to the embedding.

        Scaling, front and encoder are inside. It works with ``torch.export``, and agrees with ``transform``, but does not check
        the rows: those that ``transform`` refuses become NaN. Of a table with categories, it reads ``prepare(X)``.

        Examples
        --------
        >>> import numpy as np, torch
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> model = DRE("fast", random_state=0, device="cpu").fit(X)
        >>> torch.allclose(model.module()(torch.from_numpy(X)), torch.from_numpy(model.transform(X)), atol=1e-6)
        True
        """
        check_is_fitted(self)
        self._check_features("module")
        with plain_torch():
            return self._map.module(stage)

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        *,
        stage: int | None = None,
        opset: int | None = None,
        dtype: str = "float32",
        check: bool = True,
        force: bool = False,
    ) -> None:
        """Write the learned map as an ONNX file, from raw rows ``x`` (n, ...) to their ``embedding`` (n, n_components).

        Scaling, front and encoder are inside, and n is free. Like ``module``, it does not check the rows. What turns a
        table or counts of genes into numbers stays outside: the file takes what ``prepare`` gives, and a warning says so.

        Parameters
        ----------
        path : path-like
        stage : int, optional
            Use the weights at the end of this stage, counted from 0; default: the last stage.
        opset : int, optional
            Version of ONNX's operators, 18 or newer; default: 18.
        dtype : {"float32", "float64", "uint8", "int32", "int64"}, default="float32"
            Type of the rows that the file takes; inside, they are scaled in float64.
        check : bool, default=True
            Compare the file with ``transform`` by onnxruntime. If coordinates differ by more than 1e-4, raise an error and
            write nothing.
        force : bool, default=False
            Overwrite an existing file.

        Raises
        ------
        ExportError
            If torch can't export an encoder of your own, or if the check fails. It is a ValueError.
        """
        job = self._export_job(stage=stage, opset=opset, dtype=dtype, check=check)
        write_onnx(path, job, force=force)

    def to_torch_export(
        self,
        path: str | os.PathLike[str],
        *,
        stage: int | None = None,
        dtype: str = "float32",
        check: bool = True,
        force: bool = False,
    ) -> None:
        """Write the learned map as a program of ``torch.export``, which ``torch.export.load`` reads without this package.

        The parameters are those of ``to_onnx``.
        """
        job = self._export_job(stage=stage, dtype=dtype, check=check)
        write_program(path, job, force=force)

    def _export_job(self, **options: Any) -> ExportJob:
        check_is_fitted(self)
        self._check_features("export")
        names = self._names_of(self._map.preparation)
        return ExportJob(self._map, feature_names=None if names is None else list(names), **options)

    def metric_rows(self, X: Any) -> Array:
        """Return rows in the units in which the model measures distances: standardized if it was fitted so.

        Metrics of the map compare distances in the map with distances between these rows, under the model's ``metric``.
        """
        check_is_fitted(self)
        if self._map.preparation is not None:
            X = apply(self._map.preparation, X)
            X = read_all(X, np.float64) if is_rows(X) else X
        else:
            X = self._selected(X)
        X = to_array(to_host(X, "X"))
        X = X if X.flags.writeable else X.copy()  # torch warns of read-only memory
        rows: Array = self._map.scaling.standardized(torch.from_numpy(X)).numpy()
        return rows

    def features(self, X: Any, source: str = "features", *, stage: int | None = None) -> Array:
        """Return the output of a submodule of the encoder for rows: what a stage with this source has its neighbors among.

        Parameters
        ----------
        X : as in ``fit``
        source : str, default="features"
            ``"features"``, the output of a PCA front or of a backbone; a hidden block such as ``"h1"``, or any other submodule.
        stage : int, optional
            Use the weights at the end of this stage, counted from 0; default: the last stage.

        Returns
        -------
        ndarray of shape (n, d), float32

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> X = load_digits().images[:100]
        >>> DRE("fast", encoder="patch-mlp(32)", random_state=0).fit(X).features(X, "h1").shape
        (100, 32)
        """
        check_is_fitted(self)
        self._check_features("features")
        with plain_torch(), one_thread_on(self._map.device), _naming_columns(self._names_of(self._map.preparation)):
            return self._map.features(self.prepare(X), source, stage)

    def save(self, path: str | os.PathLike[str], *, stages: bool = True, force: bool = False) -> None:
        """Write one safetensors file with weights and configuration; no training data and no embedding.

        Parameters
        ----------
        path : path-like
        stages : bool, default=True
            Whether to keep the weights at the end of each stage; False keeps those of the last.
        force : bool, default=False
            Overwrite an existing file.

        Of several ranks, the first one writes, and the others do nothing.
        """
        check_is_fitted(self)
        self._check_features("save")
        if not getattr(self, "_is_first", True):
            return
        check_absent(path, force=force)
        save_map(path, self._map, describe(self), stages=stages)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, encoder: nn.Module | Backbone | None = None, device: str | None = None
    ) -> DRE:
        """Read a model that ``save`` wrote.

        Parameters
        ----------
        path : path-like
        encoder : nn.Module or Backbone, optional
            For a model with a module of your own, also as a backbone: that module again, ``encoder=MyModule()``. Its weights
            come from the file.
        device : str, optional
            In place of the one in the file. None uses that one, or stays on the CPU with a warning if it is not there.
        """
        model: DRE = open_model(cls, path, encoder, device)
        return model

    @property
    def embedding_(self) -> Array:
        self._fitted()
        if "_embedding" not in vars(self):
            raise AttributeError("the embedding is not saved with a model: transform(X) computes it again")
        return self._embedding

    @property
    def encoder_(self) -> nn.Module:
        return self._fitted().encoder

    @property
    def recipe_(self) -> Recipe:
        return self._fitted().recipe

    @property
    def schedule_(self) -> Schedule:
        return self._fitted().recipe.schedule

    @property
    def history_(self) -> list[dict[str, Any]]:
        return self._fitted().history

    @property
    def stages_(self) -> list[Weights | None]:
        return self._fitted().stages

    @property
    def preparation_(self) -> Preparation | None:
        return self._fitted().preparation

    @property
    def row_shape_(self) -> tuple[int, ...]:
        return self._fitted().shape

    def _fitted(self) -> FittedMap:
        if "_map" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet: call fit(X) first")
        return self._map

    def _html_repr(self) -> str:
        """Return what a notebook shows: a summary of the fit, or scikit-learn's diagram before it."""
        if not self.__sklearn_is_fitted__():
            return str(super()._html_repr())
        from dre.model.notebook import model_html  # here and below: drawing is loaded where something is drawn

        ended = ("Ctrl-C ended the fit early",) if self.interrupted_ else ()
        own = vars(self)
        embedding, labels = own.get("_embedding"), own.get("_shown_labels")
        return model_html(type(self).__name__, repr(self), self._map, embedding, labels=labels, remarks=ended)

    def __getstate__(self) -> dict[str, Any]:
        state = portable_state(super().__getstate__())
        state.pop("_shown_labels", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self.__sklearn_is_fitted__():
            place_on_device(self._map, self.device)

    def __sklearn_is_fitted__(self) -> bool:
        return "_map" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == PRECOMPUTED
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _overrides(self) -> tuple[str | Recipe, Overrides]:
        """Return the recipe and the user's overrides."""
        if not isinstance(self.recipe, (str, Recipe)):
            raise TypeError(f"recipe={self.recipe!r}: expected a name, such as 'auto' or 'paper', or a Recipe")
        names = ("perplexity", "n_neighbors", "min_dist", "recursions", "schedule", *TRAINING)
        return self.recipe, parse_overrides(**{name: getattr(self, name) for name in names})

    @property
    def _reads_labels(self) -> bool:
        """Whether a stage of the user's has a loss that reads labels; those of the named recipes have none."""
        recipe, overrides = self._overrides()
        schedule = overrides.schedule or (recipe.schedule if isinstance(recipe, Recipe) else ())
        return any(stage.loss.reads_labels for stage in schedule)

    def _warn_of_units(self, scaling: Scaling, names: Any) -> None:
        if scaling.dominant_columns is None:
            return
        found = scaling.dominant_columns.describe(names)
        warnings.warn(
            f"{found}: the map shows little else. If the columns have different units, pass standardize=True.",
            stacklevel=level_of_caller(),
        )

    def _clamp(self, recipe: Recipe, n: int, ranks: int = 1) -> Recipe:
        """Lower the perplexity for few rows, with a warning if the user has chosen it."""
        with nullcontext() if self._chooses_affinity else clamping_silently():  # a filter of warnings is that of all threads
            return recipe.clamp_to(n, ranks)

    @property
    def _chooses_affinity(self) -> bool:
        """Whether perplexity and n_neighbors come from the user."""
        chosen = not isinstance(self.recipe, str) if hasattr(self, "recipe") else True
        return chosen or any(getattr(self, name) is not None for name in ("perplexity", "n_neighbors", "schedule"))

    def _default_observers(self, shape: tuple[int, ...]) -> list[Observer]:
        if not self.verbose:
            return [Progress(), PartsNote()] if self.verbose is None else []
        recipe, overrides = self._overrides()
        return [Progress(), Verbose(explain(recipe, self._data_spec(shape), overrides))]


PREPARED_ONCE = (
    "A table with categories or gaps is prepared by what its rank has of it. Fit one preparation to the whole table first, "
    "with dre.data.mixed_table.fit_table, and pass it to each rank: "
    "fit(OwnRows(dre.data.preparation.Prepared(rows, preparation)))."
)
TRAINING = ("encoder", "augment", "batch_size", "learning_rate", "optimizer")  # parameters that every recipe takes


def _check_pixels(recipe: Recipe, metric: Any, *, standardize: bool) -> None:
    """Raise a ValueError if a backbone would not get pixels, or the metric would compare them in place of features."""
    if isinstance(recipe.encoder, Backbone) and (metric != "euclidean" or standardize):
        what = "standardize=True" if standardize else f"metric={metric!r}"
        raise ValueError(
            f"{what} changes or compares pixels, but behind a backbone neighbors are those of its features: leave it out. For "
            "the cosine of features, let the module end in a layer that divides them by their norm."
        )


def _live(y: Any) -> list[Observer]:
    """What ``live=True`` adds: pictures, colored by y if it has one value for each row."""
    from dre.observe.live import Live

    shape = np.shape(y)
    is_color = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
    if y is not None and not is_color:
        found = f"live=True: y of shape {shape} has several values for a row, and does not color the points"
        warnings.warn(found, stacklevel=3)
    return [Live(labels=y if is_color else None)]


@contextmanager
def _all_or_nothing(model: DRE) -> Iterator[None]:
    """Leave the model unchanged if a fit fails."""
    before = dict(model.__dict__)
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise


@contextmanager
def _naming_columns(names: Any) -> Iterator[None]:
    """Add the names of the columns, if there are any, to an error about a value."""
    try:
        yield
    except RangeError as problem:
        raise problem.located(columns=names) from None
