"""On a GPU the same laws hold; these run where there is one."""

import warnings
from copy import deepcopy

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import dre.coordinates.free
import dre.neighbors.distances
import dre.training.cuda_graphs
from dre import DRE, KL, Gaussian
from dre.affinity.bank import Bank, BankPairs
from dre.affinity.landmarks import Landmarks
from dre.affinity.target import Graph, Pairs
from dre.augment import CallableAugment
from dre.coordinates.free import START_STD, optimize
from dre.coordinates.start import principal_components
from dre.data.rows import ArrayRows
from dre.data.scaling import Scaling
from dre.encoder.dense_pass import DensePass
from dre.encoder.mlp import MLP
from dre.encoder.model_a import ModelA
from dre.encoder.model_b import ConvBlock
from dre.loss import Step
from dre.loss.bank_sums import sum_over_bank, sum_over_neighbors
from dre.loss.curves import Attraction, LogOdds, NegLogStudent, Repulsion, Student
from dre.loss.grid_sums import sum_on_grid
from dre.loss.pair_sums import sum_over_pairs, sum_over_target
from dre.loss.shepard import Shepard
from dre.metrics import evaluate, shepard_goodness
from dre.metrics.inputs import as_points
from dre.model.fitted import to_model_rows
from dre.neighbors.search import nearest
from dre.runtime.gpu_memory import GPUMemoryError

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device here")
IMAGES = load_digits().images[:400]
ODDS = LogOdds(1.5, 0.9)
CURVES = [Student(1.0), Student(0.75), NegLogStudent(0.75), ODDS, Attraction(ODDS), Repulsion(ODDS)]
SCHEDULE = "x: gaussian(10) -> kl * 3; h1: gaussian(10) -> kl(alpha=0.5) * 2; h3: fuzzy(8) -> ce * 2"
PHASES = (
    "x: gaussian(10) -> kl * 4 from pca free 40 follow 4 against bank; "
    "x+h1: gaussian(10) -> kl(alpha=0.5) * 2 free 10 follow 2 against bank"
)


def test_neighbours_and_targets_equal_those_of_the_cpu():
    features = (
        torch.from_numpy(IMAGES.reshape(400, -1)).float()
        + torch.rand(400, 64, generator=torch.Generator().manual_seed(0)) * 1e-3
    )  # no ties
    here, there = nearest(features, 30), nearest(features.cuda(), 30)
    assert torch.equal(here.indices, there.indices.cpu())
    ids = torch.randperm(400)[:100]
    ours = Graph.of(Gaussian(10), there).block(ids.cuda()).dense(100).cpu()
    torch.testing.assert_close(ours, Graph.of(Gaussian(10), here).block(ids).dense(100))


@pytest.mark.parametrize("rows", ["normal", "duplicates", "sorted", "far"])
@pytest.mark.parametrize("k", [1, 30, 90])
def test_neighbours_of_many_blocks_equal_those_of_the_cpu(monkeypatch, rows, k):
    generator = torch.Generator().manual_seed(0)
    made = {
        "normal": torch.randn(3000, 40, generator=generator),
        "duplicates": torch.randn(300, 40, generator=generator).repeat(10, 1),
        "sorted": torch.randn(3000, 1, generator=generator).sort(0).values + torch.randn(3000, 40, generator=generator) / 9,
        "far": torch.randn(3000, 40, generator=generator) + 1e3,
    }[rows]
    monkeypatch.setitem(dre.neighbors.distances.BLOCK, "cuda", 256)
    here, there = nearest(made, k, method="exact"), nearest(made.cuda(), k)
    assert torch.equal(here.indices, there.indices.cpu())
    torch.testing.assert_close(here.distances, there.distances.cpu())


@pytest.mark.parametrize("batches", ["fixed(150)", "shuffled(150)", "edges(64)", "neighborhoods(20, 5)"])
@pytest.mark.parametrize("encoder", ["mlp(32)", "model-a(width=50)", "model-b(norm=true)"])
def test_every_way_of_drawing_trains_every_encoder(batches, encoder):
    model = DRE(schedule=SCHEDULE, encoder=encoder, batch_size=batches, learning_rate=1e-3, device="cuda", random_state=0).fit(
        IMAGES
    )
    assert next(model.encoder_.parameters()).is_cuda
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize("recipe", ["auto", "fast", "paper", "deep-umap"])
def test_a_model_of_the_gpu_embeds_alike_on_the_cpu(tmp_path, recipe):
    model = DRE(recipe, device="cuda", random_state=0, recursions=1).fit(IMAGES)
    model.save(tmp_path / "model.safetensors")
    loaded = DRE.load(tmp_path / "model.safetensors", device="cpu")
    there, here = model.transform(IMAGES), loaded.transform(IMAGES)
    # A GPU may multiply in tf32 inside convolutions, which keeps ten bits; measured against the extent of the map.
    assert np.abs(here - there).max() < 2e-3 * np.ptp(there, axis=0).max()


def test_the_random_state_of_the_gpu_is_left_alone():
    torch.cuda.manual_seed(3)
    before = torch.cuda.get_rng_state()
    DRE(schedule=SCHEDULE, encoder="mlp(32)", device="cuda").fit(IMAGES)
    assert torch.equal(before, torch.cuda.get_rng_state())


def test_a_function_draws_from_the_generator_and_the_global_states_are_left_alone():
    def noise(x):
        drawn.append(torch.rand(3))
        return x + torch.randn_like(x)

    x, drawn, found = torch.zeros(20, 5, device="cuda"), [], []
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = torch.get_rng_state(), torch.cuda.get_rng_state()
        generator = torch.Generator("cuda").manual_seed(0)
        found.append(torch.stack([CallableAugment(noise)(x, generator) for _ in range(2)]))
        assert all(map(torch.equal, before, (torch.get_rng_state(), torch.cuda.get_rng_state())))
    assert torch.equal(*found)
    assert torch.equal(torch.stack(drawn[:2]), torch.stack(drawn[2:]))
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(*found[0])


@pytest.mark.parametrize("encoder", ["mlp(32)", "scripted", "dropout"])
def test_fits_with_draws_leave_the_global_states_alone(encoder):
    layers = [torch.nn.Flatten(), torch.nn.Linear(64, 16), torch.nn.Dropout(), torch.nn.Linear(16, 2)]
    if encoder == "scripted":
        layers[2] = torch.jit.script(layers[2])
    torch.manual_seed(3)
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    settings = {"schedule": "x: gaussian(10) -> kl * 3", "device": "cuda", "random_state": 0}
    network = "mlp(32)" if encoder == "mlp(32)" else torch.nn.Sequential(*layers)
    first = DRE(encoder=network, augment=lambda x: x + 0.01 * torch.randn_like(x) * torch.rand(1).item(), **settings)
    assert np.isfinite(first.fit_transform(IMAGES)).all()
    assert all(map(torch.equal, before, (torch.get_rng_state(), torch.cuda.get_rng_state())))


@pytest.mark.parametrize(
    "rows", [IMAGES.reshape(400, -1), IMAGES.reshape(400, -1).astype(np.float32) / 7], ids=["ties", "float32"]
)
def test_the_scores_of_a_map_equal_those_of_the_cpu(rows):
    labels = load_digits().target[:400]
    Y = np.round(rows @ np.random.default_rng(0).normal(size=(64, 2)))  # with ties
    here, there = (evaluate(rows, Y, labels, device=device) for device in ("cpu", "cuda"))
    for name, value in here.items():
        assert there[name] == pytest.approx(value, abs=1e-9), name
    for name in ("trustworthiness", "continuity"):
        assert np.allclose(here.per_point[name], there.per_point[name], rtol=0, atol=1e-12)


def test_the_histogram_of_the_gpu_holds_its_bound():
    rows = np.random.default_rng(0).normal(size=(400, 8))
    exact = shepard_goodness(rows, rows[:, :2], method="exact", device="cuda")
    value, error = shepard_goodness(rows, rows[:, :2], method="histogram", return_error=True, device="cuda")
    assert abs(value - exact) <= error < 1e-3


def test_rows_that_are_on_the_gpu_stay_there():
    rows = torch.from_numpy(IMAGES.reshape(400, -1)).cuda()
    assert as_points(rows, "X").data_ptr() == rows.data_ptr()


@pytest.mark.parametrize("batches", ["fixed(150)", "shuffled(130)", "edges(64)"])
@pytest.mark.parametrize("augment", ["none", "noise(0.3)", "affine + flip"])
@pytest.mark.parametrize("loss", ["kl", "kl(alpha=0.5)", "ce"])
def test_steps_that_are_replayed_learn_what_steps_that_are_made_learn(batches, augment, loss, monkeypatch):
    if (batches, loss) == ("shuffled(130)", "ce"):
        pytest.skip("sums over neighbours come in any order on a GPU, and this loss then never learns the same twice")
    over = ", scope=batch" if batches.startswith("fixed") else ""
    schedule = f"x: gaussian(10{over}) -> {loss} * 6; h1: gaussian(10{over}) -> {loss} * 4"
    settings = {
        "encoder": "strided(filters=8/16)",
        "batch_size": batches,
        "learning_rate": 1e-3,
        "augment": augment,
        "random_state": 0,
    }
    replayed = DRE(schedule=schedule, device="cuda", **settings).fit(IMAGES)
    monkeypatch.setattr("dre.training.run.Run.is_captured", False)
    made = DRE(schedule=schedule, device="cuda", **settings).fit(IMAGES)
    assert np.abs(replayed.embedding_ - made.embedding_).max() < 0.05 * made.embedding_.std()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.float16, np.float32, np.float64, bool])
def test_rows_are_scaled_on_the_gpu_as_on_the_cpu(dtype):
    X = (IMAGES * 3).astype(dtype)
    here = Scaling.fit(X)
    there = Scaling.fit(X, torch.device("cuda"))
    np.testing.assert_allclose(there.mean, here.mean, rtol=1e-12, atol=1e-12)
    assert there.scale == pytest.approx(here.scale, rel=1e-12)
    ours = to_model_rows(X, here, torch.device("cuda")).read(0, 400)
    assert torch.equal(ours.cpu(), to_model_rows(X, here, torch.device("cpu")).read(0, 400))


@pytest.mark.parametrize("curve", CURVES, ids=str)
@pytest.mark.parametrize("shape", [(1, 2), (100, 2), (777, 3), (2500, 2)], ids=str)
def test_kernels_of_the_loss_give_the_sums_and_gradients_of_the_cpu(curve, shape):
    b = shape[0]
    torch.manual_seed(b)
    near, weight = torch.randint(b, (b, 37)), torch.rand(b, 37) * (torch.rand(b, 37) < 0.2)
    for pairs in (None, Pairs(None, torch.rand(b, b).triu(1)), Pairs(near.where(weight > 0, torch.arange(b)[:, None]), weight)):
        results = []
        y = torch.randn(shape)
        for device, dtype in (("cpu", torch.double), ("cuda", torch.float32)):
            embedding = y.to(device, dtype).detach().requires_grad_()
            moved = None if pairs is None else Pairs(*(None if part is None else part.to(device) for part in pairs))
            total = sum_over_pairs(embedding, curve) if moved is None else sum_over_target(embedding, moved, curve)
            (gradient,) = torch.autograd.grad(total, embedding)
            results.append((total.double().cpu(), gradient.double().cpu()))
        for here, there in zip(*results, strict=True):
            assert (here - there).norm() <= 1e-5 * here.norm() + 1e-9


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize(
    ("before", "after", "size"), [(1, 16, (28, 28)), (3, 16, (9, 7)), (16, 32, (14, 14)), (32, 64, (5, 6))]
)
def test_kernels_of_convolutions_learn_what_torch_learns(before, after, size, pool, norm, monkeypatch):
    torch.manual_seed(0)
    block = ConvBlock(before, after, norm=norm, pool=pool).cuda()
    x = torch.randn(37, before, *size, device="cuda").to(memory_format=torch.channels_last)

    def learned(*, short: bool) -> list[torch.Tensor]:
        copied, rows = deepcopy(block), x.clone().requires_grad_()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=short):
            y = copied(rows)
        y.float().square().sum().backward()
        gradients = [p.grad for name, p in copied.named_parameters() if not (norm and name == "convolution.bias")]
        return [y.float(), rows.grad, *gradients, *([copied.norm.running_mean, copied.norm.running_var] if norm else [])]

    ours = learned(short=True)
    monkeypatch.setattr("dre.encoder.model_b.triton_applies", lambda x: False)
    theirs, exact = learned(short=True), learned(short=False)
    for our, their, true in zip(ours, theirs, exact, strict=True):  # no further off than torch's own short products
        assert (our - true).norm() <= 1.5 * (their - true).norm() + 2e-3 * true.norm()


STREAMED = [
    {
        "schedule": "x: gaussian(10) -> kl * 4; h1: gaussian(10) -> kl(alpha=0.5) * 3",
        "batch_size": "shuffled(150)",
        "learning_rate": 1e-3,
    },
    {
        "schedule": "x: gaussian(10) -> kl * 4; h1: gaussian(10) -> kl(alpha=0.5) * 3",
        "batch_size": "edges(60)",
        "learning_rate": 1e-3,
    },
    {"schedule": "x: gaussian(10, scope=batch) -> kl * 4", "batch_size": "shuffled(150)", "learning_rate": 1e-3},
    {"schedule": "x: fuzzy(8) -> ce * 6 refresh 2", "batch_size": "neighborhoods(20, 5)", "learning_rate": 1e-3},
]


@pytest.mark.parametrize("options", STREAMED, ids=lambda options: f"{options['schedule']} {options['batch_size']}")
def test_rows_that_do_not_fit_are_streamed_and_train_as_well(monkeypatch, options):
    options = {**options, "encoder": "mlp(32)", "device": "cuda", "random_state": 0}
    held = DRE(**options).fit(IMAGES)
    monkeypatch.setattr("dre.model.fitted.fits", lambda nbytes, device: False)
    streamed, again = DRE(**options).fit(IMAGES), DRE(**options).fit(IMAGES)
    # Sums come in any order, and steep losses make more of it with each epoch, whether rows are streamed or not; with sums in
    # a fixed order all three fits have the same bits. A row in the wrong place would change the losses by far more.
    losses = [[epoch["loss"] for epoch in model.history_] for model in (streamed, again)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)
    here, there = held.history_[-1]["loss"], streamed.history_[-1]["loss"]
    assert there == pytest.approx(here, rel=0.1)


def test_a_stream_that_fails_in_its_thread_says_so(monkeypatch):
    monkeypatch.setattr("dre.model.fitted.fits", lambda nbytes, device: False)

    def broken(self, ids):
        raise OSError("the disk is gone")

    monkeypatch.setattr("dre.data.rows.HostRows.take", broken)
    with pytest.raises(OSError, match="the disk is gone"):
        DRE(schedule=SCHEDULE, encoder="mlp(32)", device="cuda").fit(IMAGES)


def test_batches_of_ever_other_shapes_do_not_pile_up(monkeypatch):
    monkeypatch.setattr("dre.training.cuda_graphs.MAX_GRAPHS", 2)
    made = []
    monkeypatch.setattr(
        "dre.training.cuda_graphs._CapturedGraph.__init__", count(made, dre.training.cuda_graphs._CapturedGraph.__init__)
    )
    DRE(
        schedule="x: gaussian(10) -> kl * 40",
        encoder="mlp(32)",
        batch_size="neighborhoods(5, 2)",
        learning_rate=1e-3,
        device="cuda",
    ).fit(IMAGES)
    assert 0 < len(made) <= 2


def count(calls, function):
    def counted(*args):
        calls.append(1)
        return function(*args)

    return counted


def test_rates_and_clipped_gradients_are_replayed_as_they_would_be_made():
    schedule = "x: gaussian(10) -> kl * 3; h1: gaussian(10) -> kl(alpha=0.5) * 3"
    options = {"schedule": schedule, "encoder": "mlp(32)", "device": "cuda", "random_state": 0, "augment": "noise(0.1)"}
    options |= {"batch_size": "shuffled(150)", "optimizer": dre.Optimizer(1e-3, clip=0.01)}
    replayed = DRE(**options).fit(IMAGES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dre.training.cuda_graphs.WARM_UP", 10**9)
        made = DRE(**options).fit(IMAGES)
    assert np.allclose(replayed.embedding_, made.embedding_, atol=2e-2 * np.ptp(made.embedding_))


def test_the_selected_values_are_those_below_the_thresholds():
    from dre.neighbors.triton.select_below import SelectionBuffer, ThresholdSelection, select_below

    generator = torch.Generator("cuda").manual_seed(0)
    block = torch.rand(300, 500, generator=generator, device="cuda")
    thresholds = [torch.rand(count, generator=generator, device="cuda") / 5 for count in block.shape]
    buffers = [SelectionBuffer.empty(len(threshold), 60, block.device) for threshold in thresholds]
    select_below(
        block, ThresholdSelection(thresholds[0], buffers[0], 1000), ThresholdSelection(thresholds[1], buffers[1], 2000)
    )
    for side, threshold, buffer, first_id in zip((block, block.T), thresholds, buffers, (1000, 2000), strict=True):
        below = side < threshold[:, None]
        assert torch.equal(buffer.counts.long(), below.sum(1))
        for row in range(0, len(threshold), 37):
            kept = min(60, int(buffer.counts[row]))
            ids = (buffer.ids[row, :kept] - first_id).long()
            assert below[row, ids].all()
            assert len(ids.unique()) == kept
            assert torch.equal(side[row, ids], buffer.values[row, :kept])


def test_a_stream_that_is_ended_early_leaves_a_model_that_can_be_used(monkeypatch):
    monkeypatch.setattr("dre.model.fitted.fits", lambda nbytes, device: False)

    def end_soon(event):
        if event.run.steps == 3:
            event.run.end_fit()

    model = DRE(schedule=SCHEDULE, encoder="mlp(32)", batch_size="shuffled(50)", learning_rate=1e-3, device="cuda").fit(
        IMAGES, observers=[end_soon]
    )
    assert np.isfinite(model.transform(IMAGES)).all()


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="torch sees one CUDA device here")
@pytest.mark.parametrize("schedule", [SCHEDULE, PHASES], ids=["batches", "phases"])
def test_a_second_device_learns_after_the_first(schedule):
    losses = []
    for device in ("cuda:0", "cuda:1"):
        model = DRE(
            schedule=schedule, encoder="mlp(32)", batch_size="shuffled(50)", learning_rate=1e-3, device=device, random_state=0
        )
        losses.append([epoch["loss"] for epoch in model.fit(IMAGES).history_])
    assert np.allclose(*losses, rtol=0.05)


# Against the bank of all rows.


def digits_graph(n=400):
    rows = torch.from_numpy(IMAGES[:n].reshape(n, -1)).float()
    return rows + torch.rand(n, 64, generator=torch.Generator().manual_seed(0)) * 1e-3  # no ties


def graph_on(device, n=400):
    return Graph.of(Gaussian(10), nearest(digits_graph(n).to(device), 30))


def test_the_links_of_every_row_equal_those_of_the_cpu():
    here, there = graph_on("cpu").links, graph_on("cuda").links
    for name, ours, theirs in zip(here._fields, here, there, strict=True):
        torch.testing.assert_close(ours, theirs.cpu(), msg=name)


def bank_of(n, components, device, dtype):
    """Coordinates and links of n rows, some of which have no link and some more than fit into a tile of a kernel."""
    generator = torch.Generator().manual_seed(n)
    count = torch.randint(0, 5, (n,), generator=generator)
    count[0], count[-1] = 0, 200
    start = torch.cat([torch.zeros(1, dtype=torch.long), count.cumsum(0)])
    others = torch.randint(n, (int(count.sum()),), generator=generator).int()
    weight = torch.rand(len(others), generator=generator)
    coordinates = 3 * torch.randn(components, n, generator=generator)
    ids = torch.randperm(n, generator=generator)[: max(1, 2 * n // 3)]
    y = coordinates.T[ids] + 0.1 * torch.randn(len(ids), components, generator=generator)
    parts = (ids, coordinates.to(dtype), start, others, weight.to(dtype), weight.sum(), weight.sum())
    return BankPairs(*(part.to(device) for part in parts)), y.to(device, dtype).requires_grad_()


@pytest.mark.parametrize("curve", CURVES, ids=str)
@pytest.mark.parametrize("components", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [2, 100, 5000])
def test_kernels_of_the_bank_give_the_sums_and_gradients_of_the_cpu(curve, components, n):
    for total in (sum_over_bank, sum_over_neighbors):
        results = []
        for device, dtype in (("cpu", torch.double), ("cuda", torch.float32)):
            pairs, y = bank_of(n, components, device, dtype)
            value = total(y, pairs, curve)
            (gradient,) = torch.autograd.grad(value, y)
            results.append((value.detach().double().cpu(), gradient.double().cpu()))
        for here, there in zip(*results, strict=True):
            assert (here - there).norm() <= 2e-5 * here.norm() + 1e-6


@pytest.mark.parametrize("components", [1, 2, 3])
@pytest.mark.parametrize("every", [2, 7])
def test_parts_of_the_rows_repel_as_on_the_cpu(components, every):
    for offset in (0, every - 1, None):
        results = []
        for device, dtype in (("cpu", torch.double), ("cuda", torch.float32)):
            pairs, y = bank_of(1000, components, device, dtype)
            part = pairs._replace(every=every, offset=None if offset is None else torch.tensor(offset, device=device))
            value = sum_over_bank(y, part, Student(1.0))
            results.append((value.detach().double().cpu(), torch.autograd.grad(value, y)[0].double().cpu()))
        for here, there in zip(*results, strict=True):
            assert (here - there).norm() <= 2e-5 * here.norm() + 1e-6


@pytest.mark.parametrize("components", [2, 3])
def test_a_row_does_not_meet_itself_on_the_gpu(components):
    pairs, y = bank_of(300, components, "cuda", torch.float32)
    elsewhere = pairs.coordinates.clone()
    elsewhere[:, pairs.ids[0]] += 100.0
    alone = pairs._replace(ids=pairs.ids[:1])
    for total in (sum_over_bank(y[:1], pairs, Student(1.0)) for pairs in (alone, alone._replace(coordinates=elsewhere))):
        torch.testing.assert_close(total, sum_over_bank(y[:1], alone, Student(1.0)))


def test_sums_against_the_bank_come_out_the_same_every_time():
    pairs, y = bank_of(3000, 2, "cuda", torch.float32)
    results = []
    for _ in range(5):
        totals = sum_over_bank(y, pairs, Student(1.0)), sum_over_neighbors(y, pairs, NegLogStudent(1.0))
        results.append([*totals, *(torch.autograd.grad(each, y)[0] for each in totals)])
    assert all(torch.equal(one, other) for again in results[1:] for one, other in zip(results[0], again, strict=True))


@pytest.mark.parametrize("count", [1, 64, 100])
@pytest.mark.parametrize("components", [1, 2, 3])
def test_distances_to_landmarks_correlate_as_on_the_cpu(components, count):
    x = torch.randn(3000, 8, generator=torch.Generator().manual_seed(1))
    results = []
    for device in (torch.device("cpu"), torch.device("cuda")):
        pairs, y = bank_of(3000, components, device, torch.float32)
        landmarks = Landmarks.of(ArrayRows(x, device), device, count)
        loss = Shepard()(Step.of(y, pairs._replace(landmarks=landmarks)))
        results.append((loss.detach().cpu(), torch.autograd.grad(loss, y)[0].cpu()))
    for here, there in zip(*results, strict=True):
        assert (here - there).norm() <= 1e-3 * here.norm()


def test_distances_within_a_batch_correlate_as_on_the_cpu_and_the_same_every_time():
    x, y = (torch.randn(301, c, generator=torch.Generator().manual_seed(c)) for c in (8, 2))
    results = []
    for device in ("cpu", "cuda", "cuda"):
        here = y.to(device).requires_grad_()
        loss = Shepard()(Step(here, None, torch.arange(len(x), device=device), x.to(device)))
        results.append((loss.detach().cpu(), torch.autograd.grad(loss, here)[0].cpu()))
    for on_cpu, on_gpu, again in zip(*results, strict=True):
        assert (on_cpu - on_gpu).norm() <= 1e-3 * on_cpu.norm()
        assert torch.equal(on_gpu, again)


def test_free_coordinates_with_landmarks_keep_more_of_the_global_structure_when_captured():
    features = digits_graph().cuda()
    landmarks, scores = Landmarks.of(ArrayRows(features, features.device), features.device), []
    for loss in (KL(), KL() + 0.5 * Shepard()):
        bank = Bank(graph_on("cuda"), principal_components(features, 2, START_STD), landmarks)
        assert loss.capturable
        assert list(optimize(bank, loss, 150, exaggerate=True))[-1] == 150
        scores.append(shepard_goodness(features.cpu().numpy(), bank.columns.T.cpu().numpy()))
    assert scores[1] > scores[0] + 0.02


def test_sums_on_a_grid_equal_those_of_the_cpu():
    y = 10 * torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
    for here, there in zip(sum_on_grid(y, Student(1.0)), sum_on_grid(y.cuda(), Student(1.0)), strict=True):
        assert (here - there.cpu()).norm() <= 1e-3 * here.norm()


def free_coordinates(components=2, steps=40):
    features = digits_graph().cuda()
    bank = Bank(graph_on("cuda"), principal_components(features, components, START_STD))
    assert list(optimize(bank, KL(), steps, exaggerate=True)) == list(range(1, steps + 1))
    return bank


def loss_of(bank):
    n = bank.columns.shape[1]
    return float(KL()(Step.of(bank.columns.T.contiguous(), bank.block(torch.arange(n, device="cuda")))))


@pytest.mark.parametrize("components", [1, 2, 3])
def test_coordinates_whose_steps_are_replayed_go_where_steps_that_are_made_go(components, monkeypatch):
    replayed = free_coordinates(components)
    monkeypatch.setattr("dre.coordinates.free.WARM_UP", 10**9)
    made = free_coordinates(components)
    assert (replayed.columns - made.columns).norm() < 1e-3 * made.columns.norm()


def test_replayed_coordinates_lower_the_loss_and_stay_centered():
    few, many = free_coordinates(steps=8), free_coordinates(steps=200)
    assert loss_of(many) < 0.8 * loss_of(few)
    assert many.columns.mean(1).abs().max() < 1e-3 * many.columns.std()


def test_coordinates_on_a_grid_come_close_to_the_exact_ones(monkeypatch):
    exact = free_coordinates(steps=60)
    monkeypatch.setitem(dre.coordinates.free.EXACT_ROWS, "cuda", 100)
    on_grid = free_coordinates(steps=60)
    assert loss_of(on_grid) == pytest.approx(loss_of(exact), rel=0.03)


@pytest.mark.parametrize("batches", ["shuffled(130)", "fixed(150)"])
@pytest.mark.parametrize("augment", ["local-noise(0.5)", "flip + local-noise(0.5)"])
@pytest.mark.parametrize("encoder", ["mlp(32)", "strided(filters=8/16)"])
def test_phases_that_are_replayed_learn_what_phases_that_are_made_learn(batches, augment, encoder, monkeypatch):
    settings = {"encoder": encoder, "batch_size": batches, "augment": augment, "random_state": 0, "device": "cuda"}
    settings |= {"schedule": PHASES, "learning_rate": 1e-3}
    replayed = DRE(**settings).fit(IMAGES)
    monkeypatch.setattr("dre.training.run.Run.is_captured", False)
    monkeypatch.setattr("dre.coordinates.free.WARM_UP", 10**9)
    made = DRE(**settings).fit(IMAGES)
    assert [record["against"] for record in replayed.history_] == [record["against"] for record in made.history_]
    assert np.abs(replayed.embedding_ - made.embedding_).max() < 0.05 * made.embedding_.std()


def test_whitened_steps_learn_on_the_gpu():
    model = DRE(
        schedule=PHASES,
        encoder="mlp(32)",
        batch_size="shuffled(150)",
        optimizer=dre.Optimizer(1e-2, whiten=True),
        device="cuda",
        random_state=0,
    ).fit(IMAGES)
    losses = [record["loss"] for record in model.history_ if record["stage"] == 0 and record["against"] == "coordinates"]
    assert losses[-1] < losses[0]
    assert np.isfinite(model.embedding_).all()


def test_the_map_of_the_gpu_is_nearly_that_of_the_cpu():
    """Both start at the same principal components; the networks that follow differ."""
    maps = [DRE(device=device, random_state=0).fit(IMAGES).embedding_ for device in ("cpu", "cuda")]
    centered = [torch.from_numpy(each - each.mean(0)) for each in maps]
    similarity = torch.linalg.svdvals(centered[0].T @ centered[1]).sum() / (centered[0].norm() * centered[1].norm())
    assert similarity > 0.9


# Dense blocks in one piece.


def dense_network(width, depth, columns, components):
    torch.manual_seed(0)
    network = MLP(width, depth=depth).build((columns,), components).cuda()
    for parameter in network.parameters():
        parameter.data.add_(0.05 * torch.randn_like(parameter))  # gains and shifts of the norms too
    network.scale.fill_(3.5)
    return network


def output_and_gradient(network, x, precision="float32"):
    network.zero_grad()
    with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16"):
        y = network(x)
    (y * torch.linspace(-1, 1, y.numel(), device="cuda").view_as(y)).sum().backward()
    return y.detach(), torch.cat([parameter.grad.ravel() for parameter in network.parameters()])


def of_dense_pass(network, x, precision):
    dense = DensePass(network, precision)
    y = dense(x)
    (y * torch.linspace(-1, 1, y.numel(), device="cuda").view_as(y)).sum().backward()
    return y.detach(), dense.weights.grad


@pytest.mark.parametrize(
    ("width", "depth", "columns", "components", "rows"),
    [(512, 4, 16, 2, 1000), (100, 1, 13, 3, 77), (64, 3, 5, 12, 50), (1024, 4, 300, 2, 1001), (33, 2, 1, 1, 1)],
)
def test_dense_blocks_in_one_piece_give_the_output_and_gradients_of_autograd(width, depth, columns, components, rows):
    network = dense_network(width, depth, columns, components)
    x = torch.randn(rows, columns, device="cuda")
    exact = output_and_gradient(network, x)
    assert DensePass.applies(network, "float32")
    for found, wanted in zip(of_dense_pass(network, x, "float32"), exact, strict=True):
        assert (found - wanted).norm() <= 1e-5 * wanted.norm()
    rounded = output_and_gradient(dense_network(width, depth, columns, components), x, "bfloat16")
    for found, wanted, other in zip(of_dense_pass(network, x, "bfloat16"), exact, rounded, strict=True):
        # No worse than autocast, but for one rounding: of a single row, luck decides.
        assert (found - wanted).norm() <= 1.2 * (other - wanted).norm() + 2**-8 * wanted.norm()


def test_dense_blocks_in_one_piece_come_out_the_same_every_time():
    x = torch.randn(1000, 16, device="cuda")
    results = [of_dense_pass(dense_network(512, 4, 16, 2), x, "bfloat16") for _ in range(3)]
    assert all(torch.equal(a, b) for again in results[1:] for a, b in zip(results[0], again, strict=True))


def test_values_that_are_not_finite_pass_through_dense_blocks():
    x = torch.randn(50, 16, device="cuda")
    x[7, 3] = torch.nan
    y, _ = of_dense_pass(dense_network(64, 3, 16, 2), x, "bfloat16")
    assert y[7].isnan().all()
    assert y[:7].isfinite().all()


def test_wide_blocks_and_other_norms_are_left_to_autograd():
    assert not DensePass.applies(dense_network(8193, 1, 4, 2), "bfloat16")
    assert not DensePass.applies(ModelA(norm=True).build((16,), 2).cuda(), "bfloat16")


# Checkpoints, and memory.


class Crash(Exception):
    """What ends a fit in the middle."""


@pytest.mark.parametrize("step", [3, 20, 45])
@pytest.mark.parametrize("schedule", [PHASES, SCHEDULE], ids=["phases", "batches"])
def test_a_fit_that_is_resumed_comes_as_near_as_one_that_is_repeated(schedule, step, tmp_path):
    def model():
        options = {"schedule": schedule, "encoder": "mlp(64, depth=3)", "batch_size": 64, "augment": "noise(0.1)"}
        return DRE(**options, learning_rate=1e-3, device="cuda", random_state=0)

    def crash(event):
        if event.run.steps == step and event.run.progress is not None:
            raise Crash

    first, second = (model().fit(IMAGES) for _ in range(2))
    with pytest.raises(Crash):
        model().fit(IMAGES, checkpoint=tmp_path, checkpoint_minutes=0, observers=[crash])
    third = model().fit(IMAGES, checkpoint=tmp_path, resume=True)
    spread = first.embedding_.std()
    noise = np.abs(first.embedding_ - second.embedding_).mean() / spread
    assert np.abs(third.embedding_ - first.embedding_).mean() / spread <= 5 * noise + 0.02
    losses = [np.array([record["loss"] for record in each.history_]) for each in (first, second, third)]
    repeated, resumed = (np.abs(each / losses[0] - 1).max() for each in losses[1:])
    assert resumed <= 5 * repeated + 0.02


@pytest.fixture
def little_memory():
    """Leave less memory than whole pieces need."""
    total = torch.cuda.mem_get_info()[1]

    def leave(nbytes):
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + nbytes) / total)

    yield leave
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()


def test_with_little_memory_neighbors_metrics_and_transform_take_smaller_pieces(little_memory):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(20_000, 50, generator=generator)
    encoder = "mlp(2048, depth=3)"
    model = DRE(schedule="x: gaussian(10) -> kl * 1", encoder=encoder, device="cuda", random_state=0).fit(rows[:2000])
    on_gpu = rows.cuda()
    wanted, map_ = nearest(on_gpu, 15), model.transform(rows)
    scores = evaluate(on_gpu, map_, device="cuda").scores
    little_memory(100 * 2**20)
    with pytest.warns(UserWarning, match="search for neighbors: trying smaller pieces"):
        found = nearest(on_gpu, 15)
    assert torch.equal(found.indices, wanted.indices)
    del found
    with pytest.warns(UserWarning, match="embedding rows: trying smaller pieces"):
        again = model.transform(rows)
    np.testing.assert_allclose(again, map_, rtol=1e-3, atol=1e-3)
    with pytest.warns(UserWarning, match="metrics: trying smaller pieces"):
        assert evaluate(on_gpu, map_, device="cuda").scores == pytest.approx(scores, rel=1e-4)


def test_without_any_memory_there_is_advice(little_memory):
    rows = torch.randn(20_000, 50).cuda()
    little_memory(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(GPUMemoryError, match=r"GiB are free.*device='cpu'"):
            nearest(rows, 15)
