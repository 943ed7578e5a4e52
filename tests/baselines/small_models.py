"""Small rows, and networks that learn little of them but quickly."""

from __future__ import annotations

import numpy as np
import torch

from dre.baselines.autoencoder import AutoEncoder
from dre.baselines.parametric_tsne import ParametricTSNE


def some(shape: tuple[int, ...] = (60, 6)) -> np.ndarray:
    return np.random.default_rng(0).normal(3, 2, size=shape)


class Stream:
    """Rows that are read piece by piece."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = torch.from_numpy(data).float()
        self.shape = tuple(self.data.shape)

    def read(self, start: int, stop: int) -> torch.Tensor:
        return self.data[start:stop]

    def take(self, ids: torch.Tensor) -> torch.Tensor:
        return self.data[ids]


def autoencoder(**others: object) -> AutoEncoder:
    return AutoEncoder(**({"encoder": "mlp(16)", "epochs": 2, "batch_size": 20, "random_state": 0, "device": "cpu"} | others))


def parametric_tsne(**others: object) -> ParametricTSNE:
    options = {"pretraining_epochs": 1, "epochs": 2, "perplexity": 5, "random_state": 0, "device": "cpu"}
    return ParametricTSNE(**({"layers": (8, 6)} | options | others))
