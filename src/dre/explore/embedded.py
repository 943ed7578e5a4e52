"""The model inside a page: its row program, what it reads, and rows with known coordinates by which a browser checks itself."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch

from dre.data.image_layout import image_layout
from dre.data.preparation import Preparation
from dre.data.subsample import evenly_spaced_ids, to_array
from dre.data.table_columns import ANSWERS
from dre.explore.encode import element, encode_array
from dre.explore.thumbnails import ImageView
from dre.io.readers.table import MISSING
from dre.model.estimator import DRE
from dre.model.fitted import MapModule
from dre.model.lowering import lower
from dre.model.probe import probe_rows
from dre.model.program_builder import LoweringError, TracingError
from dre.model.row_program import RowProgram, RowStep

Array = np.ndarray[Any, Any]
MAX_BYTES = 64_000_000  # of the weights: in text they are a third larger, and a browser has to decode them
TOLERANCE = 1e-3  # of a coordinate, and of its size where it is larger than 1: the browser's may deviate so much
LOWERED_TOLERANCE = 1e-4  # what the steps may deviate before they are written
CHECK_ROWS = 4  # with known coordinates
ON_MAP_ROWS = 16  # of the page, that are placed again
PROBES, MEAN_COUNT = 16, 4  # made rows of a model whose preparation is a module, and the mean of their counts
PILLOW_ROWS_FIRST = 13  # version
CHANNELS = (1, 3)  # that images of a browser have
READ_BY_PAGE = ("table",)  # kinds of preparations that the page computes itself, from the JSON of a model's file
LEAVE_OUT = "Leave the model out of the page, and place new rows by transform"
OTHER_RUNTIME = "Leave the model out of the page, or export it as ONNX for a runtime that has all operators"
NO_BRANCHES = f"{LEAVE_OUT}; or write the module without branches of Python on the values of rows"


class EmbeddedModelError(ValueError):
    """A model that a page can't hold; the message says why, and what to do."""


@dataclass(frozen=True)
class ImageRows:
    """How pixels become a row: the size and layout of images, and what 0 and 255 become.

    Parameters
    ----------
    height, width, channels : int
    layout : {"hw", "hwc", "chw"}
    low, high : float
    rows_first : bool
        Whether Pillow removes the rows of tall images before it resizes across, as it does from version 13 on.
    """

    height: int
    width: int
    channels: int
    layout: str
    low: float
    high: float
    rows_first: bool


@dataclass(frozen=True, eq=False)
class EmbeddedModel:
    """A model as a page holds it.

    Parameters
    ----------
    program : RowProgram
    about : dict
        What the page reads of it, as JSON: names and number of the columns, what fills gaps, and images.
    rows, expected : array
        Rows (n, d), and the coordinates that ``transform`` gives them.
    """

    program: RowProgram
    about: dict[str, Any]
    rows: Array
    expected: Array

    @cached_property
    def texts(self) -> dict[str, str]:
        """The constants and the known rows, encoded."""
        arrays = {**self.program.constants, "rows": self.rows, "expected": self.expected}
        return {name: encode_array(values) for name, values in arrays.items()}

    @property
    def nbytes(self) -> int:
        """In the page."""
        return sum(map(len, self.texts.values()))

    def elements(self) -> list[str]:
        """The constants and the known rows as elements of the page."""
        return [element(f"model-{name}", text) for name, text in self.texts.items()]

    def description(self) -> dict[str, Any]:
        """What the page reads before it decodes anything."""
        program, steps = self.program, [vars(step) for step in self.program.steps]
        constants = {name: values.dtype.name for name, values in program.constants.items()}
        described = {"size": program.size, "steps": steps, "output": program.output, "scaled": self.about["scaled"]}
        return {**self.about, "program": described, "constants": constants, "tolerance": TOLERANCE}


def embed_model(model: DRE, *, images: ImageView | None = None) -> EmbeddedModel:
    """Make of a fitted model what a page holds, and compare it with the model.

    Parameters
    ----------
    model : DRE
    images : ImageView, optional
        The rows of the page as images: they tell the range of the pixels, and the size of images that are flattened. Without
        them the page places no images.

    Raises
    ------
    EmbeddedModelError
        If the model has an operator that row programs lack, or too many weights.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> embedded = embed_model(DRE("fast", random_state=0).fit(X))
    >>> embedded.about["width"], embedded.expected.shape
    (3, (4, 2))
    """
    module, table = _module(model)
    size = sum(tensor.nbytes for tensor in module.state_dict().values())
    if size > MAX_BYTES:
        raise EmbeddedModelError(
            f"the model has {size / 1e6:,.0f} MB of weights, and a page holds {MAX_BYTES / 1e6:.0f} MB: leave the model out, "
            "fit a smaller encoder, such as mlp(128), or export the model as ONNX"
        )
    names = getattr(model, "feature_names_in_", None)
    rows = _made_rows(module, 0 if names is None else len(names))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        expected = module(torch.from_numpy(rows)).numpy()
        try:
            program = lower(module, torch.from_numpy(rows[:1]).double())
        except LoweringError as problem:
            remedy = NO_BRANCHES if isinstance(problem, TracingError) else OTHER_RUNTIME
            raise EmbeddedModelError(f"the model can't run in a page: {problem}. {remedy}") from problem
    _compare(program.run(rows), expected)
    about = {
        "names": None if names is None else list(map(str, names)),
        "width": program.size,
        "fill": {name: float(value) for name, value in getattr(model, "fill_values_", {}).items()},
        "table": table,
        "missing": list(MISSING),
        "answers": [list(pair) for pair in ANSWERS],
        "image": None if model.preparation_ is not None else _about_images(model.row_shape_, images),
        "scaled": None if module.preparation is not None else _scaled_value(program),
    }
    return EmbeddedModel(program, about, rows[:CHECK_ROWS], expected[:CHECK_ROWS])


def check_on_map(model: DRE, rows: Any, embedding: Array) -> None:
    """Raise an error if the model places rows of the page elsewhere than where the page shows them.

    Of a model with a preparation, ``rows`` may be what the preparation gives.
    """
    ids = evenly_spaced_ids(len(embedding), ON_MAP_ROWS)
    some, module = to_array(rows, ids), model.module().cpu()
    if some.shape[1:] == model.row_shape_:
        module.preparation = None
    with torch.no_grad():
        placed = module(torch.from_numpy(np.ascontiguousarray(some))).numpy()
    extent = float(np.ptp(embedding, axis=0).max()) or 1.0
    apart = float(np.abs(placed[:, : embedding.shape[1]] - embedding[ids]).max())
    if not apart <= TOLERANCE * max(1.0, extent):
        raise ValueError(
            f"the model places rows up to {apart:.2g} away from where the last map has them: pass the map of this model, "
            "model.transform(rows), as the last stage"
        )


def _module(model: DRE) -> tuple[MapModule, dict[str, Any] | None]:
    """The map as one module, and the JSON of a preparation that the page computes before it."""
    module, preparation = model.module().cpu(), model.preparation_
    if preparation is not None and preparation.kind in READ_BY_PAGE:
        return MapModule(module.scaling, module.encoder).eval(), preparation.state()[0]
    if preparation is not None and module.preparation is None:
        raise EmbeddedModelError(_refusal(preparation))
    return module, None


def _refusal(preparation: Preparation) -> str:
    return (
        f"the model reads its rows through a preparation of kind {preparation.kind!r}, with a step that depends on more than a "
        f"row: a page can't compute it. {LEAVE_OUT}"
    )


def _made_rows(module: MapModule, columns: int) -> Array:
    """Rows like those of the fit, float32; of a preparation counts, as genes have."""
    if module.preparation is None:
        return probe_rows(module.scaling).float().numpy()
    return np.random.default_rng(0).poisson(MEAN_COUNT, (PROBES, columns)).astype(np.float32)


def _compare(found: Array, expected: Array) -> None:
    apart = np.abs(found - expected) / np.maximum(1, np.abs(expected)) if found.shape == expected.shape else np.array([np.inf])
    worst = float(apart.max())
    if not worst <= LOWERED_TOLERANCE:
        raise EmbeddedModelError(
            f"the steps of the model deviate from it by {worst:.2g} of a coordinate: a module that draws at random, or mixes "
            f"rows, can't run in a page. {LEAVE_OUT}"
        )


def _scaled_value(program: RowProgram) -> str | None:
    """The value that holds the scaled row: what the first layer with weights reads, if it is as large as a row."""
    sizes = {"x": program.size, **{step.out: step.size for step in program.steps}}
    first: RowStep | None = next((step for step in program.steps if step.op in ("dense", "conv")), None)
    if first is None or first.inputs[0] == "x" or sizes[first.inputs[0]] != program.size:
        return None
    return first.inputs[0]


def _about_images(shape: tuple[int, ...], images: ImageView | None) -> dict[str, Any] | None:
    """How images of a browser become rows; None if the rows are not known as images, or have other channels."""
    if images is None:  # nobody knows what 0 and 255 are in the rows
        return None
    size = shape if len(shape) > 1 else images.shape
    if math.prod(size) != math.prod(shape):
        return None
    layout = image_layout(size)
    channels, height, width = (1, *size) if layout == "hw" else size if layout == "chw" else (size[2], *size[:2])
    if channels not in CHANNELS:
        return None
    return vars(ImageRows(height, width, channels, layout, *_pixel_range(images), _resizes_rows_first()))


def _resizes_rows_first() -> bool:
    """Whether the Pillow that reads images here does so; without one, as the newest does."""
    try:
        return int(version("pillow").partition(".")[0]) >= PILLOW_ROWS_FIRST
    except PackageNotFoundError:
        return True


def _pixel_range(images: ImageView) -> tuple[float, float]:
    """What 0 and 255 are in the rows: bytes as they are, and the ends of the usual ranges, or else of these rows.

    >>> _pixel_range(ImageView(np.full((2, 4, 4), 0.7), (4, 4)))
    (0.0, 1.0)
    """
    low, high = images.value_range()
    for ends in ((0.0, 1.0), (-1.0, 1.0), (0.0, 16.0), (0.0, 255.0)):
        if ends[0] <= low and high <= ends[1]:
            return ends
    return low, high
