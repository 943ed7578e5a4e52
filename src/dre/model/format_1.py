"""Model files of format 1, of versions before the first release, as files of the format that is written now."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

ARGUMENTS = {"front": "n_pcs", "pixels": "pixel_weight", "negatives": "negative_sample_rate"}  # renamed since
ARGUMENT = re.compile(rf"\b({'|'.join(ARGUMENTS)})=")
WEIGHTS = {"features.middle": "features.offset", "features.patches.share": "features.patches.pixel_scale"}  # renamed since


def upgrade(content: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return configuration and tensors as they would be saved today."""
    about = content["about"]
    parameters = _renamed(about["parameters"])
    for pair, names in (("umap", ("n_neighbors", "min_dist")), ("training", ("batch_size", "learning_rate"))):
        values = parameters.pop(pair, None)
        parameters |= {} if values is None else dict(zip(names, values["tuple"], strict=True))
    if isinstance(parameters.get("learning_rate"), dict):
        parameters["optimizer"] = parameters.pop("learning_rate")
    upgraded = content | {
        "about": about | {"parameters": parameters},
        "recipe": _renamed(content["recipe"]),
        "metric": "euclidean",
        "unchanged": [WEIGHTS.get(name, name) for name in content.get("unchanged", [])],
    }
    scale = torch.tensor(float(content["scale"]), dtype=torch.double)
    return upgraded, {_weight_name(name): value for name, value in tensors.items()} | {"scaling.scale": scale}


def _renamed(value: Any) -> Any:
    """Give the arguments in texts their names of today, and write optimizers as texts."""
    if isinstance(value, str):
        return ARGUMENT.sub(lambda match: f"{ARGUMENTS[match[1]]}=", value)
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"optimizer"} and isinstance(value["optimizer"], dict):
        arguments = {name: "none" if given is None else given for name, given in value["optimizer"].items()}
        return {"optimizer": f"adam({', '.join(f'{name}={given}' for name, given in arguments.items())})"}
    return {name: _renamed(item) for name, item in value.items()}


def _weight_name(name: str) -> str:
    for old, new in WEIGHTS.items():
        if name.endswith(f".{old}"):
            return name.removesuffix(old) + new
    return name
