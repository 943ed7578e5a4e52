"""The registry: names to estimators, imported when they are asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dre import DRE
from dre.baselines import BASELINES, NAMES, make
from dre.baselines.distillation import DLProjection


def test_the_names_are_those_of_the_tables():
    others = "pca autoencoder eigenmaps bh-tsne fit-sne open-tsne umap parametric-tsne dl-tsne dl-umap"
    presets = "paper-deep-tsne paper-deep-umap paper-tsne paper dre"
    assert list(NAMES) == [*others.split(), *presets.split()]


@pytest.mark.parametrize("name", NAMES)
def test_each_is_made_with_the_seed_and_the_device_it_was_given(name):
    model = make(name, random_state=7, device="cpu")
    assert type(model).__name__ == BASELINES[name].estimator
    assert model.get_params()["random_state"] == 7
    assert model.get_params().get("device", "cpu") == "cpu"


def test_those_that_compute_on_the_cpu_take_a_device_and_leave_it():
    assert "device" not in make("pca", device="cuda").get_params()


def test_an_unknown_name_is_met_with_the_nearest():
    with pytest.raises(ValueError, match=r"unknown baseline 'tsne'; known: pca, .*Did you mean"):
        make("tsne")


def test_an_unknown_option_is_met_with_those_that_there_are():
    with pytest.raises(TypeError, match=r"unknown option of umap 'n_neighbours'; known: n_neighbors, .*'n_neighbors'\?"):
        make("umap", n_neighbours=5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("paper-deep-tsne", DRE("paper-tsne", recursions=0)),
        ("paper-deep-umap", DRE("paper-umap", recursions=0)),
        ("paper-tsne", DRE("paper-tsne")),
        ("paper", DRE("paper")),
        ("dre", DRE()),
        ("dl-tsne", DLProjection("tsne")),
        ("dl-umap", DLProjection("umap")),
    ],
)
def test_a_name_stands_for_its_options(name, expected):
    model = make(name)
    assert type(model) is type(expected)
    assert model.get_params() == expected.get_params()


def test_what_is_passed_takes_the_place_of_what_the_name_stands_for():
    model = make("paper-deep-tsne", recursions=2, encoder="mlp(8)")
    assert (model.recipe, model.recursions, model.encoder) == ("paper-tsne", 2, "mlp(8)")


def test_neither_the_registry_nor_a_model_imports_a_library_before_it_is_used():
    program = (
        "import sys, dre.baselines\n"
        "assert not {'torch', 'sklearn', 'numpy'} & set(sys.modules)\n"
        "for name in dre.baselines.NAMES: dre.baselines.make(name)\n"
        "print(sorted({'umap', 'openTSNE', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
