"""Dense blocks in one piece: what they compute and learn is what the network computes and learns."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from dre.data.rows import ArrayRows
from dre.encoder.dense_pass import DensePass
from dre.encoder.forward import outputs
from dre.encoder.mlp import MLP
from dre.encoder.model_a import ModelA
from dre.encoder.network import LayerNorm, Network, dense_blocks
from dre.encoder.patch_mlp import PatchMLP
from dre.runtime import IsolatedRNG

CPU = torch.device("cpu")
D = 7


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(depth: int = 3, components: int = 2, shape: tuple[int, ...] = (D,)) -> Network:
    with IsolatedRNG(0, CPU)():
        made = MLP(13, depth=depth).build(shape, components)
        assert isinstance(made, Network)
        for parameter in made.parameters():
            nn.init.normal_(parameter, 0.1, 0.5)  # gains and shifts of the norms too
    made.scale.fill_(3.5)
    return made


def rows(b: int = 11, shape: tuple[int, ...] = (D,)) -> Tensor:
    return torch.randn(b, *shape, generator=seeded(1))


def loss(y: Tensor) -> Tensor:
    return (y * torch.randn(y.shape, generator=seeded(2))).sum() + y.square().sum() / 100


def gradients_of(net: Network, x: Tensor) -> dict[str, Tensor]:
    net.zero_grad()
    loss(net(x)).backward()
    return {name: p.grad.clone() for name, p in net.named_parameters() if p.grad is not None}


def gradients_in_one_piece(dense: DensePass, net: Network, x: Tensor) -> dict[str, Tensor]:
    dense.weights.grad = None
    loss(dense(x)).backward()
    assert dense.weights.grad is not None
    parts = dense.weights.grad.split([p.numel() for p in net.parameters()])
    return {name: part.view_as(p).clone() for (name, p), part in zip(net.named_parameters(), parts, strict=True)}


@pytest.mark.parametrize("b", [1, 2, 11, 250])
@pytest.mark.parametrize(("depth", "components"), [(1, 2), (3, 1), (6, 3)])
def test_output_and_gradients_are_those_of_autograd(b: int, depth: int, components: int) -> None:
    net, x = network(depth, components), rows(b)
    expected, wanted = net(x).detach(), gradients_of(net, x)
    dense = DensePass(net)
    torch.testing.assert_close(dense(x).detach(), expected, rtol=1e-4, atol=1e-4)
    found = gradients_in_one_piece(dense, net, x)
    assert found.keys() == wanted.keys() == dict(net.named_parameters()).keys()
    largest = max(float(each.abs().max()) for each in wanted.values())
    for name, gradient in wanted.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-3, atol=1e-5 * largest, msg=name)


def test_batches_of_many_sizes_do_not_disturb_each_other() -> None:
    net = network()
    wanted = {b: gradients_of(net, rows(b)) for b in (3, 5, 8, 13, 21, 34)}
    dense = DensePass(net)
    for b in (3, 5, 8, 13, 21, 34, 3, 8):
        for name, found in gradients_in_one_piece(dense, net, rows(b)).items():
            torch.testing.assert_close(found, wanted[b][name], rtol=1e-3, atol=1e-4)
    assert len(dense._blocks._buffers) <= 4  # type: ignore[attr-defined]  # memory does not pile up


def test_images_and_rows_that_do_not_lie_in_one_piece_are_read() -> None:
    net, x = network(shape=(1, 3, 4)), rows(shape=(1, 3, 4))
    wanted = net(x).detach()
    torch.testing.assert_close(DensePass(net)(x).detach(), wanted, rtol=1e-4, atol=1e-4)
    net, x = network(), rows(22)[::2]
    wanted = gradients_of(net, x)
    for name, found in gradients_in_one_piece(DensePass(net), net, x).items():
        torch.testing.assert_close(found, wanted[name], rtol=1e-3, atol=1e-4)


def test_steps_of_an_optimizer_move_the_network_and_what_it_computes() -> None:
    net, x = network(), rows()
    twin = deepcopy(net)
    dense = DensePass(net)
    ours, theirs = torch.optim.SGD([dense.weights], 1e-3), torch.optim.SGD(twin.parameters(), 1e-3)
    for _ in range(5):
        ours.zero_grad()
        loss(dense(x)).backward()
        ours.step()
        theirs.zero_grad()
        loss(twin(x)).backward()
        theirs.step()
    torch.testing.assert_close(net(x), twin(x), rtol=1e-3, atol=1e-3)  # the network itself, by its parameters
    torch.testing.assert_close(dense(x), net(x), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        outputs(net, ArrayRows(x, CPU), "h2"), outputs(twin, ArrayRows(x, CPU), "h2"), rtol=1e-3, atol=1e-3
    )


def test_the_scale_is_read_at_every_step() -> None:
    net, x = network(), rows()
    dense = DensePass(net)
    before = dense(x).detach()
    net.scale.fill_(7.0)
    torch.testing.assert_close(dense(x).detach(), 2 * before)
    wanted = gradients_of(net, x)
    for name, found in gradients_in_one_piece(dense, net, x).items():
        torch.testing.assert_close(found, wanted[name], rtol=1e-3, atol=1e-3)


def test_weights_that_are_loaded_are_used() -> None:
    net, other, x = network(), network(), rows()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0.5)
    dense = DensePass(net)
    net.load_state_dict(other.state_dict())
    torch.testing.assert_close(dense(x).detach(), other(x).detach(), rtol=1e-4, atol=1e-4)


def test_release_gives_the_network_parameters_of_its_own() -> None:
    net, x = network(), rows()
    parameters = list(net.parameters())
    before = {name: value.clone() for name, value in net.state_dict().items()}
    dense = DensePass(net)
    assert len({p.untyped_storage().data_ptr() for p in net.parameters()}) == 1
    dense.release()
    assert len({p.untyped_storage().data_ptr() for p in net.parameters()}) == len(parameters)
    assert all(p is was for p, was in zip(net.parameters(), parameters, strict=True))
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    with torch.no_grad():
        dense.weights.zero_()
    assert net(x).any()
    gradients_of(net, x)
    deepcopy(net)


@pytest.mark.parametrize("where", ["row", "weight", "norm"])
def test_nan_reaches_the_output(where: str) -> None:
    net, x = network(), rows()
    dense = DensePass(net)
    with torch.no_grad():
        if where == "row":
            x[4, 2] = torch.nan
        elif where == "weight":
            dense.weights[3] = torch.nan
        else:
            net.h2[1].bias[0] = torch.nan
    y = dense(x).detach()
    assert y.isnan().any()
    assert torch.equal(y.isnan(), net(x).isnan())


def test_the_layers_of_the_last_step_are_those_of_the_network() -> None:
    net, x = network(), rows()
    wanted = gradients_of(net, x)
    dense = DensePass(net)
    gradients_in_one_piece(dense, net, x)
    layers = dense.layers()
    names = ["h1.0.weight", "h2.0.weight", "h3.0.weight", "out.weight"]
    inputs = [x, *(outputs(net, ArrayRows(x, CPU), name) for name in ("h1", "h2", "h3"))]
    assert len(layers) == len(names)
    for layer, name, read in zip(layers, names, inputs, strict=True):
        torch.testing.assert_close(layer.gradient, wanted[name], rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(layer.inputs, read, rtol=1e-4, atol=1e-4)
    layers[0].gradient.zero_()  # whitening changes it in place, and the optimizer must see that
    assert not dense.weights.grad[: net.h1[0].weight.numel()].any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: MLP(8).build((D,), 2),
        lambda: MLP(8).build((1, 4, 4), 2),
        lambda: MLP(8, n_pcs=3).build((D,), 2).without_features(),
        lambda: PatchMLP(8).build((1, 8, 8), 2).without_features(),
    ],
    ids=["mlp", "images", "behind a front", "behind patches"],
)
def test_it_applies_to_dense_networks_with_layer_norm(make) -> None:
    net = make()
    assert DensePass.applies(net)
    DensePass(net)


class Doubled(Network):
    """A user's own forward pass."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


def shared() -> nn.Module:
    (block,) = dense_blocks([D, D], norm=LayerNorm)
    return Network(nn.Flatten(), [block, block], nn.Linear(D, 2))


def no_bias() -> nn.Module:
    block = nn.Sequential(nn.Linear(D, 4, bias=False), LayerNorm(4), nn.ReLU())
    return Network(nn.Flatten(), [block], nn.Linear(4, 2))


def frozen() -> nn.Module:
    net = MLP(8).build((D,), 2)
    net.h1.requires_grad_(requires_grad=False)
    return net


OTHERS = {
    "own": lambda: nn.Sequential(nn.Linear(D, 2)),
    "front": lambda: MLP(8, n_pcs=3).build((D,), 2),  # its front is not trained with it
    "batch norm": lambda: ModelA(width=8, norm=True).build((D,), 2),
    "no norm": lambda: ModelA(width=8).build((D,), 2),
    "gelu": lambda: Network(nn.Flatten(), dense_blocks([D, 4], norm=LayerNorm, activation=nn.GELU), nn.Linear(4, 2)),
    "another norm": lambda: Network(nn.Flatten(), dense_blocks([D, 4], norm=nn.LayerNorm), nn.Linear(4, 2)),
    "features": lambda: Network(nn.Linear(D, 5), dense_blocks([5, 4], norm=LayerNorm), nn.Linear(4, 2)),
    "output": lambda: Network(nn.Flatten(), dense_blocks([D, 4], norm=LayerNorm), nn.Sequential(nn.Linear(4, 2), nn.Tanh())),
    "double": lambda: MLP(8).build((D,), 2).double(),
    "frozen": frozen,
    "shared blocks": shared,
    "no bias": no_bias,
    "no output bias": lambda: Network(nn.Flatten(), dense_blocks([D, 4], norm=LayerNorm), nn.Linear(4, 2, bias=False)),
    "no blocks": lambda: Network(nn.Flatten(), [], nn.Linear(D, 2)),
    "own forward": lambda: Doubled(nn.Flatten(), dense_blocks([D, 4], norm=LayerNorm), nn.Linear(4, 2)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_it_does_not_apply_to_others(name: str) -> None:
    assert not DensePass.applies(OTHERS[name]())


def test_it_does_not_apply_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    net = MLP(8).build((D,), 2)
    assert DensePass.applies(net)
    monkeypatch.setattr("dre.encoder.dense_pass.has_numba", lambda: False)
    assert not DensePass.applies(net)
