"""Several ranks: what they exchange, that they train one network, and what happens if one of them fails."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from rank_processes import run_ranks
from rank_programs import blobs, gradient, seed
from sklearn.neighbors import KNeighborsClassifier

from dre import DRE, MLP, OwnRows
from dre.affinity.gaussian import Gaussian
from dre.affinity.target import Graph
from dre.data.moments import Moments, find_moments
from dre.data.random_sample import choose_rows
from dre.data.scaling import Scaling
from dre.loss import Step
from dre.loss.kl import KL
from dre.neighbors.search import nearest
from dre.runtime import RandomStreams
from dre.runtime.ranks import ALONE, RankError, Ranks, alone


@pytest.mark.parametrize(("n", "size"), [(10, 1), (10, 3), (1000, 4)])
def test_every_rank_has_as_many_rows_and_no_row_has_two(n, size):
    shares = [Ranks(rank, size).deal(n, seed=3) for rank in range(size)]
    assert {len(share) for share in shares} == {n // size}
    assert len(torch.cat(shares).unique()) == n // size * size
    assert torch.equal(Ranks(0, size).dealt(n, seed=3), torch.cat(shares))
    assert all(torch.equal(share, share.sort().values) for share in shares)


def test_rows_are_dealt_in_blocks_of_which_each_is_shared(monkeypatch):
    monkeypatch.setattr("dre.runtime.ranks.DEALT", 10)
    shares = [Ranks(rank, 3).deal(25, seed=0) for rank in range(3)]
    assert all((share < 9).sum() == 3 for share in shares)  # 9 rows in a block: as many as 3 ranks can share
    assert len(torch.cat(shares).unique()) == 24


def test_the_share_of_a_rank_holds_all_classes_of_sorted_or_interleaved_rows():
    share = Ranks(1, 2).deal(1000, seed=0)
    for labels in (torch.arange(1000) // 100, torch.arange(1000) % 2):
        counts = labels[share].bincount()
        assert counts.min() > 0.7 * counts.float().mean()


def test_one_process_alone_exchanges_nothing():
    x = torch.randn(3, 2)
    assert Ranks.current() == ALONE
    assert ALONE.gather(x) is x
    assert ALONE.to_first(x) is x
    assert ALONE.collect(5) == [5]
    assert ALONE.mean(2.5) == 2.5


def test_launched_processes_can_fit_alone(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    with alone():
        assert Ranks.current() == ALONE


def test_moments_of_parts_are_those_of_all_rows():
    x = torch.randn(90, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0)) * torch.tensor([1e-8, 1, 1e8, 0]) + 3
    parts = [find_moments(lambda part=part: iter([part]), len(part)) for part in x.split([20, 30, 40])]
    merged, whole = Moments.merged(parts), find_moments(lambda: iter([x]), 90)
    torch.testing.assert_close(merged.std, whole.std)
    torch.testing.assert_close(merged.mean, whole.mean)
    assert torch.equal(merged.is_constant, whole.is_constant)


def test_moments_of_equal_rows_have_no_rounding():
    parts = [find_moments(lambda: (torch.full((7, 1), 0.1, dtype=torch.double) for _ in range(1)), 7) for _ in range(3)]
    assert Moments.merged(parts).scale() == 1.0


def test_own_rows_can_not_be_sampled():
    with pytest.raises(ValueError, match="sample=50: rows that are a rank's own"):
        DRE(sample=50).fit(OwnRows(blobs(100)[0]))


def test_own_rows_of_one_process_are_all_rows():
    X = blobs(60)[0]
    parameters = {"recipe": "fast", "random_state": 0}
    np.testing.assert_array_equal(DRE(**parameters).fit(OwnRows(X)).embedding_, DRE(**parameters).fit(X).embedding_)


def test_two_ranks_exchange_what_they_should():
    first, second = (each.result for each in run_ranks("exchange"))
    assert (first["rank"], second["rank"]) == ((0, 2), (1, 2))
    for each in (first, second):
        assert each["average"] == [[0.5], [[0.5, 0.0], [0.0, 0.5]]]
        assert each["sum"] == [[1.0] * 3] * 2
        assert each["gather"] == [[0.0] * 3] * 2 + [[1.0] * 3] * 2
        assert each["from_first"] == [[0.0] * 3] * 2
        assert each["share"] == "of 0"
        assert each["collect"] == [0, 1]
        assert each["ending"] == [None, "stage", "fit"]
        assert each["copied"] == [7.0, 7.0]
        assert each["alone"] == (0, 1)
        assert each["problems"][0] == "ValueError: only the first rank knows"
        assert each["problems"][1].startswith("RankError: the ranks must fit the same data")
        assert "- rows: rank 0 has 0; rank 1 has 1" in each["problems"][1]
        assert "same" not in each["problems"][1].partition("versions:")[2].partition("To fit")[0]
    assert first["to_first"] == first["gather"]
    assert second["to_first"] is None
    assert (first["scatter"], second["scatter"]) == ([0], [0, 1])
    assert (first["gradient"], second["gradient"]) == ([[4.0]], [[8.0]])  # twice that of the sum of squares, then averaged


@pytest.mark.slow
def test_with_gathered_embeddings_the_gradient_is_that_of_one_process():
    results = [each.result for each in run_ranks("gradient", "x: gaussian(10) -> kl * 1 against ranks", "mlp(32)")]
    assert torch.equal(results[0]["gradient"], results[1]["gradient"])
    torch.testing.assert_close(results[0]["gradient"], single_gradient(results), rtol=1e-5, atol=1e-7)


def single_gradient(results):
    """The gradient of one process with a batch of all rows, in which rows of two ranks are no neighbors."""
    X, _ = blobs()
    x = Scaling.fit(X)(torch.from_numpy(X))
    parts = []
    for each in results:
        ids = torch.from_numpy(each["rows"])
        parts.append((ids, Graph.of(Gaussian(10), nearest(x[ids], Gaussian(10).count_neighbors(len(ids))))))
    graph = Graph.joined(parts, len(X))
    with RandomStreams(seed(), torch.device("cpu")).isolated("weights")():
        network = MLP(32).build((X.shape[1],), 2).train()
    KL()(Step.of(network(x), graph.block(torch.arange(len(X))))).backward()
    return torch.cat([weight.grad.ravel() for weight in network.parameters()])


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"schedule": "x: gaussian(30) -> kl * 40", "encoder": "model-a(norm=true)", "batch_size": 100},
        {"schedule": "x: gaussian(30) -> kl * 20 from pca free 50 follow 5", "batch_size": 100},
        {"schedule": "x: gaussian(10, scope=batch) -> kl * 20 against ranks", "batch_size": 100},
        {"sample": 300, "metric": "cosine"},
    ],
    ids=["default", "batch norm", "coordinates, then batches", "inside the batch", "sample"],
)
def test_ranks_train_one_network_on_all_rows(parameters):
    first, second = run_ranks("fit", parameters)
    assert first.code == second.code == 0, first.stderr + second.stderr
    for name, value in first.result["weights"].items():  # statistics of batch norm too: the means of both
        np.testing.assert_array_equal(value, second.result["weights"][name], err_msg=name)
    np.testing.assert_array_equal(first.result["embedding"], second.result["embedding"])
    np.testing.assert_allclose(first.result["embedding"], first.result["transform"], atol=1e-4)  # in the order of the rows
    assert first.result["loss"] == second.result["loss"]
    assert "2 ranks" in first.stderr
    assert second.stderr == ""
    scores = KNeighborsClassifier(5).fit(first.result["embedding"], first.result["labels"])
    assert scores.score(first.result["embedding"], first.result["labels"]) > 0.95


@pytest.mark.slow
def test_the_first_rank_alone_writes(tmp_path):
    path = tmp_path / "model.safetensors"
    outcomes = run_ranks("fit_and_save", str(path))
    assert [each.code for each in outcomes] == [0, 0]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert DRE.load(path).transform(blobs(5)[0]).shape == (5, 2)


@pytest.mark.slow
def test_ranks_can_bring_their_own_rows():
    first, second = (each.result for each in run_ranks("fit_own"))
    assert first["embedding"].shape == second["embedding"].shape == (150, 2)
    np.testing.assert_allclose(first["mean"], blobs(300)[0].mean(0))  # of the rows of both
    for each in (first, second):
        np.testing.assert_allclose(each["embedding"], each["transform"], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "named"),
    [("rows", "rows"), ("shape", "rows"), ("seed", "random_state"), ("parameters", "parameters"), ("versions", "versions")],
)
def test_ranks_that_differ_are_told_so_at_once(what, named):
    outcomes = run_ranks("differ", what, timeout=60)
    for each in outcomes:
        assert each.result.startswith("the ranks must fit the same data"), each.stderr
        assert f"- {named}: rank 0 has " in each.result


@pytest.mark.slow
def test_tables_of_ranks_need_one_preparation():
    first, second = (each.result for each in run_ranks("fit_own_tables"))
    assert first["problem"] == second["problem"]
    assert "- preparation: rank 0 has table" in first["problem"]
    assert "fit(OwnRows(dre.data.preparation.Prepared(rows, preparation)))" in first["problem"]
    assert np.array_equal(first["transform"], second["transform"])
    np.testing.assert_allclose(second["embedding"], first["transform"][50:], atol=1e-4)


@pytest.mark.slow
def test_the_error_of_a_rank_is_named_by_the_others():
    first, second = (each.result for each in run_ranks("fail", timeout=60))
    assert second.startswith("ValueError: Input X contains NaN")
    assert first == f"rank 1 of 2 has failed: {second}"


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_dies_ends_the_others_within_a_minute(rank):
    outcomes = run_ranks("die", rank, 20, timeout=60)
    assert outcomes[rank].code == -9
    assert outcomes[1 - rank].result.startswith(f"rank {1 - rank} of 2 can't reach the others")


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_fit_goes_on_with_any_number_of_ranks(tmp_path, size):
    folder = str(tmp_path / "run")
    run_ranks("die", 0, 30, folder)
    outcomes = run_ranks("resume", folder, size=size)
    assert [each.code for each in outcomes] == [0] * size, outcomes[0].stderr
    result = outcomes[0].result
    with alone():
        whole = DRE(random_state=0).fit(blobs()[0])
    assert result["epochs"] == len(whole.history_)
    scores = KNeighborsClassifier(5).fit(result["embedding"], result["labels"])
    assert scores.score(result["embedding"], result["labels"]) > 0.95


@pytest.mark.slow
def test_a_sample_of_one_process_goes_on_with_two_ranks(tmp_path):
    folder = str(tmp_path / "run")
    run_ranks("die", 0, 30, folder, 300, size=1)
    outcomes = run_ranks("resume", folder, 300)
    assert [each.code for each in outcomes] == [0, 0], outcomes[0].stderr
    assert outcomes[0].result["embedding"].shape == (400, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "steps"), [(None, 5), ("x: gaussian(10) -> kl * 3", 0)], ids=["in an epoch", "as a stage begins"]
)
def test_all_ranks_end_where_one_wants_to(schedule, steps):
    first, second = (each.result for each in run_ranks("stop_early", schedule, steps, timeout=100))
    assert first == second
    assert first < 64


@pytest.mark.slow
def test_torchrun_runs_the_command_line(tmp_path):
    X, labels = blobs(200)
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, labels]), delimiter=",", header="a,b,c,d,e,f,label", comments="")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "dre", "fit"]
    options = ["-o", str(tmp_path / "m.safetensors"), "--labels", "label", "--recipe", "fast", "--seed", "0"]
    done = subprocess.run([*torchrun, str(tmp_path / "rows.csv"), *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Saved the model") == 1
    assert done.stdout.count("trustworthiness") == 1
    assert DRE.load(tmp_path / "m.safetensors").row_shape_ == (6,)


def test_too_few_rows_for_the_ranks_are_named():
    with pytest.raises(RankError, match="5 rows are too few for 3 ranks"):
        choose_rows(np.zeros((5, 2)), None, 0, Ranks(0, 3, is_connected=True))


def test_the_program_of_the_gradient_runs_alone():
    assert torch.isfinite(gradient("x: gaussian(10) -> kl * 1 against ranks", "mlp(32)")["gradient"]).all()
