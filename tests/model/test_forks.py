"""Fits and transforms in worker processes, also in forked ones after a fit in many threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from dre.runtime import resolve_device

SECONDS = 60
PROGRAM = """
import multiprocessing, os, sys
import numpy as np
import torch
from torch import nn
from dre import DRE

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.h1, self.out = nn.Linear(20, 512), nn.Linear(512, 2)
    def forward(self, x):
        return self.out(torch.relu(self.h1(x)))

torch.set_num_threads(2)
kind, encoder = sys.argv[1], {"own": Own(), "mlp": "mlp(16)", "large": "model-a"}[sys.argv[2]]
X = np.random.default_rng(0).normal(size=(2500, 20))
model = DRE(schedule="x: gaussian(5) -> kl * 1", encoder=encoder, batch_size=2500, random_state=0, device="cpu").fit(X)
torch.ones(2000, 1000) @ torch.ones(1000, 1000)  # torch's own threads exist now
tensor = torch.from_numpy(X).repeat(20, 1).bfloat16()

def work(_=None):
    Y = model.fit(X).embedding_
    model.transform(tensor)
    return Y

def check(Y):
    if sys.argv[2] == "large":  # computed by another number of threads: equal up to rounding alone
        np.testing.assert_allclose(Y, before, atol=1e-2)
    else:
        np.testing.assert_array_equal(Y, before)

before = model.embedding_
if kind == "fork":
    child = os.fork()
    if child == 0:
        check(work())
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
elif kind == "multiprocessing":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for Y in pool.map(work, range(2)):
            check(Y)
else:
    from joblib import Parallel, delayed
    for Y in Parallel(n_jobs=2, backend=kind.removeprefix("joblib-"))(delayed(work)() for _ in range(2)):
        check(Y)
"""


def run(program: str, *words: str) -> None:
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
@pytest.mark.parametrize(
    ("kind", "encoder"),
    [
        ("fork", "mlp"),
        ("fork", "own"),
        pytest.param("fork", "large", marks=pytest.mark.slow),
        pytest.param("multiprocessing", "own", marks=pytest.mark.slow),
        pytest.param("joblib-multiprocessing", "mlp", marks=pytest.mark.slow),
    ],
)
def test_a_forked_process_can_fit_and_embed_after_a_fit_in_its_parent(kind, encoder):
    run(PROGRAM, kind, encoder)


@pytest.mark.slow
def test_workers_of_joblib_and_of_a_grid_search_can_fit():
    run(
        """
import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from dre import DRE

X, y = np.random.default_rng(0).normal(size=(80, 5)), np.arange(80) % 2
model = DRE(schedule="x: gaussian(5) -> kl * 1", encoder="mlp(4, depth=1)", random_state=0, device="cpu").fit(X)
for other in Parallel(n_jobs=2, backend="loky")(delayed(model.fit)(X) for _ in range(2)):
    np.testing.assert_array_equal(other.embedding_, model.embedding_)
pipeline = make_pipeline(model, KNeighborsClassifier())
search = GridSearchCV(pipeline, {"dre__standardize": [False, True]}, n_jobs=2, cv=2, error_score="raise").fit(X, y)
assert np.isfinite(search.cv_results_["mean_test_score"]).all()
"""
    )


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_a_gpu_in_a_forked_process_is_refused_with_the_remedy(device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    with pytest.raises(ValueError, match=r"forked.*'spawn'.*device='cpu'"):
        resolve_device(device)
    assert resolve_device("cpu").type == "cpu"
