"""Named recipes: the paper's is the published one, ours fit the data and the device, and what the user says comes first."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from torch import nn

from dre import CE, DRE, KL, MLP, DeepTSNE, DeepUMAP, Fuzzy, Gaussian, ModelA, ModelB, Optimizer, Recipe, Schedule, Stage
from dre.augment import Noise
from dre.batches import Auto, Edges, Fixed, Neighborhoods, Shuffled
from dre.encoder import Encoder
from dre.encoder.patch_mlp import PatchMLP
from dre.loss import Sum
from dre.plan.overrides import Overrides, apply_overrides, default_sample, describe_sample, explain
from dre.plan.recipe import DataSpec
from dre.plan.recipes import RECIPES

VECTORS, IMAGES = DataSpec(60_000, (50,), "cpu"), DataSpec(60_000, (1, 28, 28), "cpu")
IN_BATCHES = replace(VECTORS, n=2_000_000)  # the loss of so many rows is taken inside batches
FACTS = [
    DataSpec(n, shape, device)
    for n, shape, device in itertools.product((2, 1797, 60_000, 10_000_000), ((50,), (1, 28, 28), (3, 32, 32)), ("cpu", "cuda"))
]
NOTHING = Overrides()
SCHEDULE = Schedule(Stage("x", Gaussian(5), KL(), 2), Stage("h1", Fuzzy(7), CE(min_dist=0.2) + 0.5 * KL(), 3))


def sources(recipe: Recipe) -> list[str]:
    return [stage.source for stage in recipe.schedule]


def parts(recipe: Recipe) -> set[str]:
    """The names in all sources."""
    return {name for stage in recipe.schedule for name in stage.sources}


# Every name.


def test_the_names_are_those_of_the_documentation():
    assert set(RECIPES) == {"auto", "fast", "paper", "paper-tsne", "paper-umap", "deep-tsne", "deep-umap"}


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("facts", FACTS, ids=str)
def test_every_recipe_can_be_made_for_any_data_and_device(name, facts):
    recipe = apply_overrides(name, facts, NOTHING)
    assert isinstance(recipe.encoder, Encoder)
    assert recipe.schedule[0].source == ("x" if "-" in name or name == "paper" else recipe.encoder.first_source)
    assert Schedule.parse(str(recipe.schedule)) == recipe.schedule
    network = recipe.encoder.build(facts.shape, 2)
    known = {"x", *dict(network.named_modules())}
    assert parts(recipe) <= known  # the sources are there


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("recursions", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("facts", [VECTORS, IMAGES, DataSpec(500, (9,), "cuda")], ids=str)
def test_any_number_of_recursions_can_be_asked_of_any_recipe(name, recursions, facts):
    recipe = apply_overrides(name, facts, Overrides(recursions=recursions))
    known = {"x", *dict(recipe.encoder.build(facts.shape, 2).named_modules())}
    first = recipe.schedule[0]
    recursive = [s for s in recipe.schedule.stages[1:] if s.affinity == first.affinity]  # not the paper's UMAP stage
    assert len(recursive) == recursions
    assert parts(recipe) <= known


# The paper.


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("n", [100, 60_000, 10_000_000])
def test_the_paper_is_as_published_on_every_device_and_at_every_size(n, device):
    assert apply_overrides("paper", DataSpec(n, (1, 28, 28), device), NOTHING) == Recipe(
        Schedule.parse(
            """
            x:  gaussian(30, scope=batch) -> kl * 100
            h1: gaussian(30, scope=batch) -> kl * 50
            h2: gaussian(30, scope=batch) -> kl * 50
            h3: gaussian(30, scope=batch) -> kl * 50
            h3: fuzzy(15, scope=batch) -> ce(min_dist=0.001) * 100 @ 1e-4
            """
        ),
        ModelB(filters=(16, 32), norm=False),
        Fixed(2500),
        Optimizer(1e-3, eps=1e-7, policy="constant", clip=None),
        augment=None,
        precision="auto",  # the only thing that may differ from what was published
    )


def test_the_paper_uses_the_exact_losses_and_the_degree_of_freedom_of_t_sne():
    losses = [stage.loss for stage in apply_overrides("paper", IMAGES, NOTHING).schedule]
    assert losses == [KL(alpha=1.0)] * 4 + [CE(min_dist=0.001, spread=1.0, negative_sample_rate=None)]


def test_the_paper_reads_vectors_with_model_a():
    vectors, images = (apply_overrides("paper", facts, NOTHING) for facts in (VECTORS, IMAGES))
    assert vectors.encoder == ModelA(width=500, depth=5, norm=False)
    assert vectors.schedule == images.schedule
    assert (vectors.batches, vectors.optimizer) == (images.batches, images.optimizer)


@pytest.mark.parametrize("facts", [VECTORS, IMAGES], ids=str)
def test_paper_tsne_is_the_paper_without_its_umap_stage(facts):
    whole, tsne = apply_overrides("paper", facts, NOTHING), apply_overrides("paper-tsne", facts, NOTHING)
    assert tsne.schedule.stages == whole.schedule.stages[:-1]
    assert not any(isinstance(stage.affinity, Fuzzy) or isinstance(stage.loss, CE) for stage in tsne.schedule)
    assert (tsne.encoder, tsne.batches, tsne.optimizer) == (whole.encoder, whole.batches, whole.optimizer)


def test_paper_umap_is_the_recursive_umap_loss_alone():
    recipe = apply_overrides("paper-umap", IMAGES, NOTHING)
    assert sources(recipe) == ["x", "h1", "h2", "h3"]
    assert all(stage.affinity == Fuzzy(15, scope="batch") and stage.loss == CE(min_dist=0.001) for stage in recipe.schedule)
    assert [stage.epochs for stage in recipe.schedule] == [100, 50, 50, 50]


def test_the_umap_stage_of_the_paper_reads_the_last_source_of_the_recursions():
    assert sources(apply_overrides("paper", IMAGES, Overrides(recursions=1))) == ["x", "h1", "h1"]
    assert sources(apply_overrides("paper", IMAGES, Overrides(recursions=0))) == ["x", "x"]


# Ours.


@pytest.mark.parametrize("name", ["auto", "fast"])
@pytest.mark.parametrize(
    "facts",
    [DataSpec(n, (50,), device) for n in (500, 19_999) for device in ("cpu", "cuda")] + [DataSpec(60_000, (50,), "cuda")],
    ids=str,
)
def test_ours_recurses_over_the_graph_of_all_rows(name, facts):
    recipe = apply_overrides(name, facts, NOTHING)
    assert len(recipe.schedule) > 1
    assert all(stage.affinity.scope == "graph" for stage in recipe.schedule)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("n", [1_000, 15_000, 60_000, 1_000_000])
def test_more_dimensions_have_free_coordinates_too_and_no_recursion_unless_asked(n, device):
    for components in (3, 5, 16, 50) if device == "cpu" else (3, 5, 16):
        data = DataSpec(n, (384,), device, components)
        recipe = apply_overrides("auto", data, NOTHING)
        assert [stage.against for stage in recipe.schedule] == ["bank"]
        assert recipe.schedule[0].free
        assert recipe.schedule[0].follow
        assert explain("auto", data, NOTHING) is None
        assert len(apply_overrides("auto", data, Overrides(recursions=2)).schedule) == 3


def test_a_gpu_trains_many_dimensions_inside_batches_and_says_so():
    data = DataSpec(15_000, (384,), "cuda", 50)
    assert [stage.against for stage in apply_overrides("auto", data, NOTHING).schedule] == ["batch"] * 2
    assert "up to 16 dimensions, not in 50" in str(explain("auto", data, NOTHING))


@pytest.mark.parametrize("name", ["auto", "fast"])
@pytest.mark.parametrize("shape", [(50,), (1, 28, 28)])
@pytest.mark.parametrize(("n", "device"), [(2, "cpu"), (499, "cpu"), (499, "cuda"), (20_000, "cpu"), (1_000_000, "cpu")])
def test_few_rows_and_on_a_cpu_many_get_no_recursion_unless_asked(name, shape, n, device):
    facts = DataSpec(n, shape, device)
    assert len(apply_overrides(name, facts, NOTHING).schedule) == 1
    assert len(apply_overrides(name, facts, Overrides(recursions=2)).schedule) == 3


def solution(facts: DataSpec) -> Stage:
    """How the default solves its first stage."""
    return apply_overrides("auto", facts, NOTHING).schedule[0]


@pytest.mark.parametrize("shape", [(50,), (1, 28, 28)])
@pytest.mark.parametrize(("device", "most", "exact"), [("cpu", 1_000_000, 20_000), ("cuda", 4_000_000, 150_000)])
def test_coordinates_come_first_for_all_rows_that_fit(shape, device, most, exact):
    for n in (2, 499, 500, 19_999, 20_000, exact, exact + 1, most):
        stage = solution(DataSpec(n, shape, device))
        assert (stage.start, stage.against) == ("pca", "bank")
        assert bool(stage.free) == (n >= 500)  # few rows start at their principal components, and stay there
        assert stage.follow > 0
    stage = solution(DataSpec(most + 1, shape, device))
    assert (stage.free, stage.follow, stage.against) == (0, 0, "batch")


@pytest.mark.parametrize("name", ["auto", "fast"])
@pytest.mark.parametrize("facts", [*FACTS, DataSpec(15_000, (50,), "cpu")], ids=str)
def test_recursions_after_coordinates_are_optional_unless_asked_for(name, facts):
    first, *recursions = apply_overrides(name, facts, NOTHING).schedule
    assert not first.optional
    assert all(stage.optional == (stage.against == "bank") for stage in recursions)
    assert not any(stage.optional for stage in apply_overrides(name, facts, Overrides(recursions=2)).schedule)


def test_an_estimator_with_recursions_has_no_optional_stage():
    assert [stage.optional for stage in DRE(device="cpu").plan((15_000, 50)).schedule] == [False, True, True, True]
    assert [stage.optional for stage in DRE(recursions=2, device="cpu").plan((15_000, 50)).schedule] == [False] * 3


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_smaller_data_get_more_epochs_and_more_noise(device):
    recipes = [apply_overrides("auto", DataSpec(n, (64,), device), NOTHING) for n in (500, 5_000, 15_000)]
    epochs = [recipe.schedule[0].epochs for recipe in recipes]
    noise = [recipe.augment.size for recipe in recipes]
    for numbers in (epochs, noise):
        assert numbers == sorted(numbers, reverse=True)
        assert numbers[0] > numbers[-1]


@pytest.mark.parametrize("facts", FACTS, ids=str)
def test_fast_takes_fewer_epochs_than_auto_and_no_more_graphs(facts):
    def work(name: str) -> int:
        return sum(stage.epochs for stage in apply_overrides(name, facts, NOTHING).schedule)

    assert work("fast") < work("auto") or work("auto") == 1
    assert len(apply_overrides("fast", facts, NOTHING).schedule) <= len(apply_overrides("auto", facts, NOTHING).schedule)


@pytest.mark.parametrize("facts", FACTS, ids=str)
def test_a_schedule_inside_the_batch_goes_with_the_batches_of_every_recipe(facts):
    schedule = Schedule.parse("x: gaussian(30, scope=batch) -> kl * 2")
    assert not apply_overrides("auto", facts, Overrides(schedule=schedule)).batches.follows_graph
    assert apply_overrides("auto", facts, Overrides(schedule=schedule, batches=300)).batches.resized(300) == Auto(300)


@pytest.mark.parametrize(("name", "affinity", "loss"), [("deep-tsne", Gaussian, KL), ("deep-umap", Fuzzy, CE)])
def test_the_deep_recipes_have_no_recursion(name, affinity, loss):
    (stage,) = apply_overrides(name, VECTORS, NOTHING).schedule
    assert stage.source == "x"
    assert isinstance(stage.affinity, affinity)
    assert isinstance(stage.loss, loss)


def test_the_classes_without_recursion_run_the_deep_recipes_with_their_own_parameters():
    recipe, said = DeepTSNE(perplexity=12)._overrides()
    (stage,) = apply_overrides(recipe, VECTORS, said).schedule
    assert stage.affinity == Gaussian(12)
    recipe, said = DeepUMAP(n_neighbors=9, min_dist=0.3)._overrides()
    (stage,) = apply_overrides(recipe, VECTORS, said).schedule
    assert stage.affinity == Fuzzy(9)
    assert stage.loss.min_dist == 0.3


# What the user says.


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_not_said_is_left(name):
    assert apply_overrides(name, VECTORS, NOTHING) == RECIPES[name](VECTORS, None)
    own = Recipe(SCHEDULE, MLP(8), Fixed(20), Optimizer())
    assert apply_overrides(own, VECTORS, NOTHING) == own


@pytest.mark.parametrize("name", ["paper", "auto"])
def test_a_perplexity_is_that_of_every_gaussian_affinity_and_of_no_other(name):
    before, after = apply_overrides(name, VECTORS, NOTHING), apply_overrides(name, VECTORS, Overrides(perplexity=7))
    for old, new in zip(before.schedule, after.schedule, strict=True):
        if isinstance(old.affinity, Gaussian):
            assert new.affinity == Gaussian(7, scope=old.affinity.scope)
        else:
            assert new == old


def test_neighbours_and_min_dist_are_those_of_every_fuzzy_affinity_and_cross_entropy():
    recipe = apply_overrides("paper", VECTORS, Overrides(n_neighbors=20, min_dist=0.5))
    assert recipe.schedule[-1] == Stage("h3", Fuzzy(20, scope="batch"), CE(min_dist=0.5), 100, lr=1e-4)
    assert recipe.schedule.stages[:-1] == apply_overrides("paper", VECTORS, NOTHING).schedule.stages[:-1]


def test_min_dist_reaches_into_a_sum_of_losses():
    loss = apply_overrides("auto", VECTORS, Overrides(schedule=SCHEDULE, min_dist=0.4)).schedule[1].loss
    assert loss == Sum(((1.0, CE(min_dist=0.4)), (0.5, KL())))


def test_a_schedule_takes_the_place_of_the_recipes_and_the_rest_stays():
    before, after = apply_overrides("paper", VECTORS, NOTHING), apply_overrides("paper", VECTORS, Overrides(schedule=SCHEDULE))
    assert after.schedule == SCHEDULE
    assert (after.encoder, after.batches, after.optimizer) == (before.encoder, before.batches, before.optimizer)


def test_a_schedule_is_adjusted_by_the_perplexity_that_stands_beside_it():
    after = apply_overrides("auto", VECTORS, Overrides(schedule=SCHEDULE, perplexity=9, n_neighbors=4))
    assert [stage.affinity for stage in after.schedule] == [Gaussian(9), Fuzzy(4)]


def test_a_batch_size_keeps_the_recipes_way_of_drawing():
    assert apply_overrides("paper", VECTORS, Overrides(batches=100)).batches == Fixed(100)
    assert apply_overrides("auto", VECTORS, Overrides(batches=100)).batches == Shuffled(100)
    auto = apply_overrides("auto", IN_BATCHES, Overrides(batches=100)).batches
    assert type(auto) is type(apply_overrides("auto", IN_BATCHES, NOTHING).batches)
    assert auto == Edges(50)  # each edge brings two rows


def test_batches_a_rate_an_encoder_and_an_augmentation_take_the_place_of_the_recipes():
    module = nn.Linear(50, 3)
    said = Overrides(batches=Fixed(64), learning_rate=5e-4, encoder=module, augment=Noise(0.9))
    before, after = apply_overrides("auto", IN_BATCHES, NOTHING), apply_overrides("auto", IN_BATCHES, said)
    assert after.batches == Fixed(64)
    assert after.optimizer.lr == 5e-4
    assert after.optimizer.policy == before.optimizer.policy
    assert after.encoder is module
    assert after.augment == Noise(0.9)
    assert after.schedule.stages[1:] == before.schedule.stages[1:]  # the first reads what the encoder has


@pytest.mark.parametrize(
    ("encoder", "source"), [(ModelB(), "x"), (PatchMLP(64), "features"), (MLP(64, n_pcs=8), "features"), (nn.Flatten(), "x")]
)
def test_the_first_stage_reads_what_the_encoder_of_the_user_has(encoder, source):
    facts = DataSpec(60_000, (1, 28, 28), "cuda")
    assert sources(apply_overrides("auto", facts, NOTHING)) == ["features", "h1", "h1"]
    assert sources(apply_overrides("auto", facts, Overrides(encoder=encoder))) == [source, "h1", "h1"]
    assert sources(apply_overrides("auto", facts, Overrides(encoder=encoder, schedule=SCHEDULE))) == ["x", "h1"]


def test_a_stage_of_a_recipe_keeps_its_proportion_to_the_rate():
    recipe = apply_overrides("paper", VECTORS, Overrides(learning_rate=5e-3))
    assert recipe.optimizer.lr == 5e-3
    assert [stage.lr for stage in recipe.schedule] == [None, None, None, None, pytest.approx(5e-4)]


def test_the_rates_of_a_schedule_that_the_user_wrote_are_left_alone():
    schedule = Schedule.parse("x: gaussian(30) -> kl * 3 @ 0.01")
    assert apply_overrides("paper", VECTORS, Overrides(schedule=schedule, learning_rate=5e-3)).schedule == schedule


def test_a_whole_optimiser_takes_the_place_of_the_recipes():
    optimizer = Optimizer(1e-3, policy="constant", clip=1.0)
    assert apply_overrides("auto", VECTORS, Overrides(optimizer=optimizer)).optimizer == optimizer
    both = apply_overrides("auto", VECTORS, Overrides(optimizer=optimizer, learning_rate=0.5)).optimizer
    assert both == Optimizer(0.5, policy="constant", clip=1.0)


def test_n_neighbors_sets_the_perplexity_where_no_affinity_is_fuzzy():
    by_neighbors = apply_overrides("auto", VECTORS, Overrides(n_neighbors=12))
    by_perplexity = apply_overrides("auto", VECTORS, Overrides(perplexity=12))
    assert by_neighbors == by_perplexity
    with pytest.raises(ValueError, match=r"perplexity=9.*n_neighbors=12.*one of them"):
        apply_overrides("auto", VECTORS, Overrides(n_neighbors=12, perplexity=9))


@pytest.mark.parametrize(("recipe", "said"), [("auto", {"min_dist": 0.3}), ("deep-umap", {"perplexity": 9})])
def test_what_no_stage_could_use_is_refused(recipe, said):
    with pytest.raises(ValueError, match=f"no stage has a {next(iter(said))}"):
        apply_overrides(recipe, VECTORS, Overrides(**said))


@pytest.mark.parametrize("batches", [Fixed(100), Shuffled(100), Edges(100), Auto(100)])
def test_a_batch_size_keeps_the_way_of_drawing(batches):
    recipe = replace(apply_overrides("auto", VECTORS, NOTHING), batches=batches)
    assert apply_overrides(recipe, VECTORS, Overrides(batches=64)).batches == type(batches)(
        32 if type(batches) is Edges else 64
    )
    seeds = replace(recipe, batches=Neighborhoods(10, 9))
    assert apply_overrides(seeds, VECTORS, Overrides(batches=500)).batches == Neighborhoods(50, 9)


def test_recursions_beyond_the_last_source_stay_on_it():
    assert sources(apply_overrides("paper-tsne", VECTORS, Overrides(recursions=5))) == ["x", "h1", "h2", "h3", "h3", "h3"]


@pytest.mark.parametrize("recipe", ["auto", Recipe(SCHEDULE, MLP(8), Fixed(20), Optimizer())], ids=["name", "object"])
def test_recursions_contradict_a_schedule(recipe):
    with pytest.raises(ValueError, match="recursions"):
        apply_overrides(recipe, VECTORS, Overrides(schedule=SCHEDULE, recursions=2))


def test_an_unknown_name_is_refused_with_those_that_are_known():
    with pytest.raises(ValueError, match=r"unknown recipe 'fats'.*auto.*paper-umap.*Did you mean 'fast'"):
        apply_overrides("fats", VECTORS, NOTHING)


def test_the_text_of_a_recipe_shows_all_that_it_is():
    recipe = Recipe(SCHEDULE, ModelB(norm=True), Fixed(77), Optimizer(0.003), Noise(0.25))
    text = str(recipe)
    for part in (*map(str, SCHEDULE), "model-b(norm=true)", "fixed(77)", "0.003", "noise(0.25)"):
        assert part in text


def test_a_recipe_reads_texts():
    recipe = apply_overrides("auto", VECTORS, NOTHING)
    changed = replace(recipe, batches="edges(32)", encoder="mlp(64)", schedule=str(SCHEDULE), augment="noise(0.1)")
    assert changed == replace(recipe, batches=Edges(32), encoder=MLP(64), schedule=SCHEDULE, augment=Noise(0.1))


def test_a_recipe_says_what_few_rows_made_of_its_affinities():
    recipe = apply_overrides("paper", DataSpec(50, (9,), "cpu"), NOTHING)
    with pytest.warns(UserWarning, match="perplexity 30 is too large for 50 rows") as said:
        fitted = recipe.clamp_to(50)
    assert len(said) == 1  # once, not once a stage
    assert [stage.affinity for stage in fitted.schedule][:4] == [Gaussian(49 / 3, scope="batch")] * 4


def test_a_graph_that_ranks_share_has_the_rows_of_all_of_them():
    schedule = "x: gaussian(30) -> kl * 1 against bank; x: gaussian(30) -> kl * 1; x: gaussian(30, scope=batch) -> kl * 1"
    recipe = Recipe(schedule, "mlp(8)", "shuffled(60)", "adam(0.001)")
    with pytest.warns(UserWarning, match="too large"):
        shared, own, batch = (stage.affinity.perplexity for stage in recipe.clamp_to(75, ranks=2).schedule)
    assert shared == 30
    assert own == pytest.approx(74 / 3)  # a rank has 75 rows of its own
    assert batch < 30 / 3  # and 30 of them in a batch


def test_a_rate_of_nothing_is_refused():
    with pytest.raises(ValueError, match="must be a positive number"):
        apply_overrides("auto", VECTORS, Overrides(learning_rate=0.0))


@pytest.mark.parametrize("shape", [(1, 28, 28), (50,)])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_in_batches_beyond_a_million_rows_each_is_seen_less_often(shape, device):
    recipes = [apply_overrides("deep-tsne", DataSpec(n, shape, device), NOTHING) for n in (1_000_000, 8_000_000)]
    epochs = [[stage.epochs for stage in recipe.schedule] for recipe in recipes]
    assert epochs[1] == [max(1, math.ceil(epochs[0][0] / 8))]


@pytest.mark.parametrize("shape", [(1, 28, 28), (50,)])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_with_coordinates_more_rows_need_no_more_steps_but_each_row_is_seen(shape, device):
    stages = [solution(DataSpec(n, shape, device)) for n in (20_000, 60_000, 200_000, 1_000_000)]
    for numbers in ([stage.epochs for stage in stages], [stage.follow for stage in stages]):
        with_recursions = numbers[: 3 if device == "cuda" else 4]  # without them, a GPU has time for more epochs of a million
        assert with_recursions == sorted(with_recursions, reverse=True)
        assert 1 <= numbers[-1] <= (2 if device == "cpu" else 5)


# Why the loss goes through the network from the start.


@pytest.mark.parametrize("name", ["auto", "fast"])
@pytest.mark.parametrize(
    ("facts", "said", "reason"),
    [
        (
            VECTORS,
            Overrides(encoder=nn.Linear(50, 2)),
            "only mlp, patch-mlp and a frozen backbone follow coordinates quickly, not Linear",
        ),
        (VECTORS, Overrides(encoder=ModelA(norm=True)), "not model-a(norm=true)"),
        (VECTORS, Overrides(schedule=Schedule(Stage("x", Gaussian(5), KL(), 2))), "so says the schedule"),
        (DataSpec(1_000_001, (50,), "cpu"), NOTHING, "1,000,001 rows are more than the 1,000,000"),
        (DataSpec(4_000_001, (50,), "cuda"), NOTHING, "4,000,001 rows are more than the 4,000,000"),
    ],
    ids=["module", "encoder", "schedule", "rows on a CPU", "rows on a GPU"],
)
def test_a_recipe_without_coordinates_has_a_reason(name, facts, said, reason):
    text = explain(name, facts, said)
    assert text is not None
    assert text.startswith("The loss goes through the network from the start, inside each batch: ")
    assert reason in text
    assert all(stage.against == "batch" and not stage.follow for stage in apply_overrides(name, facts, said).schedule)


@pytest.mark.parametrize(
    ("name", "facts", "said"),
    [
        ("auto", VECTORS, NOTHING),
        ("fast", DataSpec(100, (1, 8, 8), "cuda"), NOTHING),
        ("auto", VECTORS, Overrides(encoder=MLP(64), recursions=1)),
        ("paper", VECTORS, NOTHING),
        ("deep-umap", IN_BATCHES, NOTHING),
        (Recipe(SCHEDULE, MLP(8), Fixed(20), Optimizer()), IN_BATCHES, NOTHING),
        ("auto", IN_BATCHES, Overrides(schedule=Schedule.parse("x: gaussian(5) -> kl * 2 against bank"))),
        ("auto", VECTORS, Overrides(schedule=Schedule.parse("x: gaussian(5) -> kl * 2 from pca follow 3"))),
    ],
    ids=["default", "few", "mlp", "paper", "deep", "object", "bank", "follow"],
)
def test_other_recipes_need_no_reason(name, facts, said):
    assert explain(name, facts, said) is None


# How many rows are fitted.

GIB = 2**30


@pytest.mark.parametrize(
    ("n", "device", "free", "sample"),
    [
        (1_000_000, "cpu", None, None),
        (1_000_000, "cpu", 20 * GIB, None),
        (10_000_000, "cpu", 20 * GIB, 1_000_000),
        (10_000_000, "cpu", 5 * GIB, 500_000),  # a million rows of 50 columns need 6.2 GB
        (1_000_000, "cpu", 5 * GIB, 500_000),
        (400_000, "cpu", 5 * GIB, None),
        (400_000, "cpu", GIB, 125_000),
        (60_000, "cpu", 0, 31_250),
        (4_000_000, "cuda", 139 * GIB, None),
        (30_000_000, "cuda", 139 * GIB, 4_000_000),
        (30_000_000, "cuda", 20 * GIB, 2_000_000),
    ],
)
@pytest.mark.parametrize("name", ["auto", "fast"])
def test_the_default_fits_as_many_rows_as_time_and_memory_allow(name, n, device, free, sample):
    facts = DataSpec(n, (50,), device, free=free)
    assert default_sample(name, facts, NOTHING) == sample
    if sample is not None:
        said = describe_sample(sample, facts)
        assert f"{sample:,} of {n:,} rows" in said
        assert f"sample={n}" in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("paper", NOTHING),
        ("deep-umap", NOTHING),
        ("auto", Overrides(encoder=nn.Linear(50, 2))),
        ("auto", Overrides(schedule=Schedule.parse("x: gaussian(5) -> kl * 2 against bank"))),
        (Recipe(SCHEDULE, MLP(8), Fixed(20), Optimizer()), NOTHING),
    ],
    ids=["paper", "deep", "module", "schedule", "object"],
)
def test_other_recipes_fit_all_rows(name, said):
    assert default_sample(name, DataSpec(10_000_000, (50,), "cpu", free=GIB), said) is None


@pytest.mark.parametrize("n", [5_000, 50_000, 1_000_000])
def test_a_network_that_has_others_to_embed_learns_longer_from_a_large_sample(n):
    whole, sample = (solution(DataSpec(n, (50,), "cpu", sampled=sampled)) for sampled in (False, True))
    for mine, theirs in ((whole.follow, sample.follow), (whole.epochs, sample.epochs)):
        assert theirs == max(mine, round(1_500_000 / n)) if n >= 20_000 else theirs == mine
    assert replace(sample, follow=whole.follow, epochs=whole.epochs) == whole
