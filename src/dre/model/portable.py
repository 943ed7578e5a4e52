"""A fitted model that travels between processes and machines: its weights on the CPU, and its device chosen where it arrives.

``pickle``, ``joblib`` and ``copy.deepcopy`` ask a model for its state and give the copy that state. A tensor of a GPU in it
could be read on a machine with a GPU alone. The device of a model file is chosen in the same way.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from itertools import chain
from typing import Any

import torch
from torch import nn

from dre.encoder.backbone import Backbone
from dre.model.fitted import FittedMap
from dre.runtime import Runtime


def portable_state(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an estimator with all its modules and weights on the CPU; those that are there are not copied."""
    moved = {name: _portable(value) for name, value in state.items()}
    if isinstance(fitted := state.get("_map"), FittedMap):
        moved["_map"] = _portable_map(fitted)
    return moved


def _portable_map(fitted: FittedMap) -> FittedMap:
    own = fitted.recipe.encoder  # a user's module may be anywhere
    return replace(
        fitted,
        encoder=on_cpu(fitted.encoder),
        scaling=on_cpu(fitted.scaling),
        recipe=fitted.recipe if (moved := _portable(own)) is own else replace(fitted.recipe, encoder=moved),
        stages=[None if weights is None else {name: w.cpu() for name, w in weights.items()} for weights in fitted.stages],
    )


def _portable(value: Any) -> Any:
    """Return a module, or a backbone that holds one, on the CPU; anything else unchanged."""
    if isinstance(value, Backbone) and not _is_on_cpu(value.module):
        return replace(value, module=on_cpu(value.module))
    return on_cpu(value) if isinstance(value, nn.Module) else value


def on_cpu(module: Any) -> Any:
    """Return a module on the CPU: itself, or a copy."""
    return module if _is_on_cpu(module) else copy.deepcopy(module).cpu()


def _is_on_cpu(module: nn.Module) -> bool:
    return all(tensor.is_cpu for tensor in chain(module.parameters(), module.buffers()))


def place_on_device(fitted: FittedMap, device: Any, *, stacklevel: int = 3) -> None:
    """Move the encoder of a map that has travelled to the device of its estimator, or warn that it stays on the CPU."""
    try:
        runtime = Runtime.on(device if isinstance(device, str | torch.device) else "auto")
    except ValueError as problem:
        warnings.warn(f"the model stays on the CPU: {problem}", stacklevel=stacklevel)
        return
    fitted.encoder = runtime.place(fitted.encoder)
