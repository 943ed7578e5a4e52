"""Estimators in model files: what is written beside the map, and the estimator that a file is opened as."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from torch import nn

import dre
from dre.data.dataframes import check_columns
from dre.data.table_preparation import check_missing
from dre.encoder.backbone import Backbone
from dre.model.archive import load_map
from dre.model.encoding import decode, encode
from dre.model.file_error import ModelFileError, as_model_file_error
from dre.model.portable import place_on_device
from dre.runtime import Runtime

CLASSES = ("DRE", "DeepTSNE", "DeepUMAP")  # of dre, that a file may name


def describe(model: Any) -> dict[str, Any]:
    """Return what a file holds of an estimator beside its map: class, parameters, names of columns, fills of gaps."""
    names = getattr(model, "feature_names_in_", None)
    parameters = model.get_params(deep=False) | {"columns": check_columns(model.columns)}  # an Index as a list
    return {
        "class": type(model).__name__,
        "parameters": {name: encode(value) for name, value in parameters.items()},
        "feature_names_in": None if names is None else list(names),
        "fill_values": getattr(model, "fill_values_", {}),
    }


def open_model(kind: type, path: str | os.PathLike[str], encoder: nn.Module | Backbone | None, device: str | None) -> Any:
    """Return the fitted estimator of a file. It is of the class that the file names, which may also be ``kind``."""
    encoder = encoder.module if isinstance(encoder, Backbone) else encoder
    if encoder is not None and not isinstance(encoder, nn.Module):
        raise TypeError(f"encoder={encoder!r}: pass the module itself, such as MyModule()")
    fitted, about = load_map(path, encoder)
    kinds = {each.__name__: each for each in (kind, *(getattr(dre, name) for name in CLASSES))}
    with as_model_file_error(path):
        if about["class"] not in kinds:
            raise ModelFileError(f"was saved by a class {about['class']!r}: load it by that class")
        parameters = {name: decode(value, encoder) for name, value in about["parameters"].items()}
        model = kinds[about["class"]](**parameters)
        check_columns(model.columns)
        check_missing(model.missing)
        _check_device(model.device)
    if device is None:
        place_on_device(fitted, model.device, stacklevel=4)  # the line that called load
    else:
        fitted.encoder = Runtime.on(device).place(fitted.encoder)
        model.set_params(device=device)
    names, fill = about["feature_names_in"], {name: float(v) for name, v in about.get("fill_values", {}).items()}
    model._map = fitted
    model.interrupted_ = False
    model.n_features_in_ = fitted.shape[0] if fitted.preparation is None or names is None else len(names)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    if fill:
        model.fill_values_ = fill
    return model


def _check_device(device: object) -> None:
    """Raise an error if what a file has as the device is none, on any machine."""
    try:
        if isinstance(device, str) and (device == "auto" or torch.device(device).type != "meta"):  # which holds no values
            return
    except RuntimeError:
        pass
    raise ModelFileError(f"has the device {device!r}, which is none: pass device= to load it")
