"""Scale: the model of ranks, what a rank does without the others, and tables of results that may come later."""

from __future__ import annotations

import json

import pytest
import torch

import record
import result_text
import scale_plan
import scale_simulation
import scale_tables
from ring_model import Link, Traffic, affine_fit, slowest_of

LINK = Link("1 GB/s", 1e9, 1e-5)


def test_one_rank_exchanges_nothing():
    assert LINK.all_reduce(1e9, 1) == 0.0
    assert Traffic(10**6, (100,), 10**4, 20).seconds(LINK, 1) == 0.0


def test_a_ring_sends_less_than_twice_the_buffer_whatever_the_ranks():
    sent = [Traffic(10**6).sent(ranks) for ranks in (2, 4, 256)]
    assert sent[0] == 10**6
    assert sent == sorted(sent)
    assert sent[-1] < 2 * 10**6


def test_latency_grows_with_the_ranks():
    assert LINK.all_reduce(0, 256) == pytest.approx(255 * LINK.all_reduce(0, 2))


def test_the_slowest_of_many_is_the_longest_step():
    steps = [1.0, 2.0, 10.0]
    assert slowest_of(steps, 1) == pytest.approx(sum(steps) / 3)
    assert slowest_of(steps, 1000) == pytest.approx(10.0)


def test_latency_and_bandwidth_are_found_again():
    nbytes = [4.0**i for i in range(1, 13)]
    exchange = {"average": [(n, LINK.all_reduce(n, 2)) for n in nbytes]}
    found = scale_simulation.fitted_link(exchange)
    assert (found.latency, found.bandwidth) == pytest.approx((LINK.latency, LINK.bandwidth), rel=1e-3)
    assert affine_fit([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])[1] == 0.0  # an exchange of more bytes is not quicker


def test_a_dry_rank_has_the_shapes_of_real_ones():
    ranks = scale_simulation.DryRanks(0, 2, is_connected=True)
    x = torch.arange(6.0).view(3, 2)
    assert ranks.gather(x).shape == (6, 2)
    several = [torch.ones(3), torch.ones(2, 2)]
    ranks.average(several)
    assert [each.tolist() for each in several] == [[0.5] * 3, [[0.5] * 2] * 2]
    assert ranks.ending("fit") == "fit"


@pytest.mark.parametrize("case", scale_simulation.CASES["cpu"][:3], ids=lambda case: case.name)
def test_a_dry_rank_trains(case, monkeypatch):
    for name, value in {"ROWS": 2_000, "WARMUP": 1}.items():
        monkeypatch.setattr(scale_simulation, name, value)
    ranks = scale_simulation.DryRanks(0, 2, is_connected=True)
    found = scale_simulation.steps_of(case, ranks, 4, torch.device("cpu"))
    assert found["seconds"]
    assert min(found["seconds"]) > 0
    traffic = scale_simulation.traffic_of(case, found, case.batch // 2)
    assert traffic.summed == 4 * found["weights"]
    assert bool(traffic.covariances) == ("whiten" in case.optimizer)
    assert bool(traffic.gathered) == ("bank" in case.name)


def test_more_ranks_are_never_more_efficient():
    compute = dict.fromkeys(scale_simulation.RANKS, 1e-3)
    rows = dict.fromkeys(scale_simulation.RANKS, 100)
    found = scale_simulation.simulate("a network", compute, Traffic(10**6), rows)
    for network in {each["network"] for each in found}:
        efficiency = [each["efficiency"] for each in found if each["network"] == network]
        assert efficiency[0] == 1.0
        assert efficiency == sorted(efficiency, reverse=True)


def test_enough_ranks_hold_rows_and_graph():
    for n in scale_plan.SIZES:
        ranks, limit = scale_plan.ranks_for(n), scale_plan.GPU_SHARE * scale_plan.GPU_BYTES
        assert scale_plan.on_gpu(n, ranks) <= limit
        assert ranks == 1 or scale_plan.on_gpu(n, ranks // 2) > limit


def fit_of_a_file(nearest_neighbor):
    peak = {"reading": 500.0, "training": 900.0}
    return {"rows": 1000, "rows_per_second": 5e4, "steps_per_second": 200.0, "peak_anonymous_mb": peak, "graph_mb": 0.0,
            "nearest_neighbor": nearest_neighbor}  # fmt: skip


def fit_of_many(way):
    scores = dict.fromkeys(scale_tables.SCORES, 0.9)
    return {"rows": 10**7, "columns": 50, "fitted": 10**6, "fit_minutes": 12.5, "phase_seconds": {"graph": 60.0},
            "graph": {"gib": 1.5, "method": way}, "peak_gib": {"anonymous": 3.0}, **scores}  # fmt: skip


def made_up_runs():
    parts = {"step of the slower rank": 2.0, "average": 0.5}
    run = {"name": "inside", "encoder": "mlp(256)", "batch": 1000, "weights": 10, "sent_bytes": 40, "alone_ms": 1.9}
    missed = {**run, "parts_ms": parts, "predicted_ms": 2.5, "measured_ms": 5.0, "error": -0.5}
    good = {**missed, "measured_ms": 2.4, "error": 0.04}
    rows = {"steps_per_second": 1.0, "rows_per_second": 1000.0, "efficiency": 0.5}
    simulation = [{"what": "inside", "network": "slow", "ranks": ranks, **rows} for ranks in (1, 2)]
    links = [{"name": "slow", "bandwidth": 1e9, "latency": 1e-5, "source": "assumption"}]
    exchange = {"latency": 1e-4, "bandwidth": 1e9}
    return {"runs": [missed, good], "simulation": simulation, "links": links, "exchange": exchange, "tolerance": 0.2}


@pytest.mark.parametrize(
    ("table", "file", "results", "expected"),
    [
        ("scale-out-of-core", "out-of-core",
         {"whole": {"rows": 10, "file_bytes": 2 * 10**10, "batch": fit_of_a_file(0.8), "fast": {"failed": "no memory"}},
          "subset": {"rows": 5, "file_bytes": 10**9, "batch": {"file": fit_of_a_file(0.91), "memory": fit_of_a_file(0.92),
                     "file_to_memory": {"steps_per_second": 0.85, "nearest_neighbor": 0.99}}}},
         ["20.0 GB, `batch`, from the file", "| 900 |", "failed: no memory", ".910", ".920", "85%"]),
        ("scale-ten-million", "ten-million", {"sample": fit_of_many("sample"), "parts": fit_of_many("parts")},
         ["10,000,000 × 50, sample", "12.5", "graph 60", "anonymous 3.0", ".900"]),
        ("scale-transform", "transform-memory", [{"rows": 600_000, "anonymous_mb": 500, "seconds": 9.0}], ["600,000", "500"]),
        ("scale-predicted", "scale-simulation", made_up_runs(), ["-50%", "+4%", "1 of 2 predictions are within 20%"]),
        ("scale-simulated", "scale-simulation", made_up_runs(), ["1,000, 50%", "slow: 1.0 GB/s, 10 µs (assumption)", "–"]),
    ],
)  # fmt: skip
def test_a_table_says_that_results_are_missing_and_fills_when_they_come(tmp_path, monkeypatch, table, file, results, expected):
    for module in (record, result_text, scale_tables):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    make = scale_tables.TABLES[table]
    assert make().startswith(f"Not measured yet: `results/{file}.json`, by `python benchmarks/")
    about = {"command": "python a.py", "machine": {"gpu": None, "cpus": 2}}
    (tmp_path / f"{file}.json").write_text(json.dumps({**about, "results": results}))
    text = make()
    assert [each for each in expected if each not in text] == []
    assert "`python a.py`, 2 CPU cores" in text
