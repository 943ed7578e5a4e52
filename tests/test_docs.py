"""The documentation is true: its programs run, its commands and links exist, and it names every part of the package."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib as mpl
import pytest
import typer
from matplotlib import pyplot
from sklearn.datasets import load_digits
from typer.core import TyperGroup

from dre import DRE, baselines, datasets, metrics, plot
from dre.affinity import AFFINITIES
from dre.augment import AUGMENTS
from dre.batches import BATCHES
from dre.cli import app
from dre.encoder import ENCODERS
from dre.loss import LOSSES
from dre.model import estimator
from dre.notation import Registry
from dre.plan.recipes import RECIPES
from dre.plan.schedule import Schedule
from test_layers import ROOMS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
ALL_PAGES = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
LONGEST_README = 200  # lines
ROWS, EPOCHS = 100, 2  # enough rows for the perplexity of the recipes; epochs of each stage, at most
REGISTRIES = (AFFINITIES, AUGMENTS, BATCHES, ENCODERS, LOSSES)

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LAUNCHERS = ("docker", "ray", "sbatch")  # which start what lies in examples/
INLINE_COMMAND = re.compile(r"`dre ([^`]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[tuple[str, int]]:
    """The code blocks of a page in one language, each with the number of lines above its first line."""
    text = page.read_text(encoding="utf-8")
    found = (match for match in BLOCK.finditer(text) if match[1] == language)
    return [(match[2], text.count("\n", 0, match.start(2))) for match in found]


def compiled(code: str, page: Path, above: int) -> Any:
    return compile("\n" * above + code, page, "exec")  # a traceback has the line of the page


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


@pytest.fixture
def cheap_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every fit of an estimator run a few epochs, whatever its recipe or schedule."""
    apply_overrides = estimator.apply_overrides

    def shortened(*arguments: Any) -> Any:
        recipe = apply_overrides(*arguments)
        stages = (replace(stage, epochs=min(stage.epochs, EPOCHS)) for stage in recipe.schedule)
        return replace(recipe, schedule=Schedule(*stages))

    monkeypatch.setattr(estimator, "apply_overrides", shortened)


@pytest.fixture
def own_registries() -> Iterator[None]:
    """Forget the names that programs register."""
    before = [registry.members() for registry in REGISTRIES]
    yield
    for registry, members in zip(REGISTRIES, before, strict=True):
        registry._members = members


def prepared() -> dict[str, Any]:
    """The names that programs use without defining them."""
    digits = load_digits()
    X, labels = digits.data, digits.target
    new = slice(ROWS, ROWS + 20)
    return {
        "X": X[:ROWS],
        "labels": labels[:ROWS],
        "images": digits.images[:ROWS],
        "X_new": X[new],
        "labels_new": labels[new],
    }


@pytest.mark.filterwarnings("ignore:perplexity")  # of the default, too large for parts of the few rows
@pytest.mark.usefixtures("cheap_fits", "own_registries")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_programs_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRE_OFFLINE", "1")
    mpl.use("Agg")
    program = ModuleType("program")  # dataclasses look up the module of their class
    monkeypatch.setitem(sys.modules, program.__name__, program)
    vars(program).update(prepared())
    for code, above in blocks(page, "python"):
        exec(compiled(code, page, above), vars(program))
    pyplot.close("all")


def with_output(page: Path) -> Iterator[tuple[str, int, str]]:
    """The programs of a page that a block with their output follows at once, with the lines above them and the output."""
    text = page.read_text(encoding="utf-8")
    for program, output in pairwise(BLOCK.finditer(text)):
        if program[1] == "python" and not output[1] and not text[program.end() : output.start()].strip():
            yield program[2], text.count("\n", 0, program.start(2)), output[2]


@pytest.mark.parametrize("page", [page for page in PAGES if [*with_output(page)]], ids=name_of)
def test_programs_print_what_the_page_shows(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for code, above, output in with_output(page):
        exec(compiled(code, page, above), {})
        assert capsys.readouterr().out == output


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_programs_that_need_more_than_the_package_compile(page: Path) -> None:
    for code, above in blocks(page, "py"):
        compiled(code, page, above)


@cache
def commands() -> TyperGroup:
    group = typer.main.get_command(app())
    assert isinstance(group, TyperGroup)
    return group


@cache
def bench() -> Any:
    module = __import__("bench")
    application = typer.Typer(add_completion=False)
    application.command()(module.bench)
    return typer.main.get_command(application)


def lines_of_shell(page: Path) -> Iterator[list[str]]:
    """The words of every command line in the bash blocks of a page."""
    for code, _ in blocks(page, "bash"):
        for line in code.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_commands_in_blocks_exist_with_their_arguments(page: Path) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for program, *rest in lines_of_shell(page):
        if program == "dre":
            assert rest[0] in commands().commands, rest
            commands().commands[rest[0]].make_context(rest[0], rest[1:])  # parses, and runs nothing
        elif program == "python":
            assert (ROOT / rest[0]).is_file(), rest
            if rest[0] == "benchmarks/bench.py":
                bench().make_context("bench", rest[1:])
        elif program == "make":
            assert rest[0] in targets, rest
        elif program == "torchrun":
            name, *words = rest[rest.index("dre") + 1 :]
            commands().commands[name].make_context(name, words)
        elif program in LAUNCHERS:
            files = [ROOT / word for word in rest if word.startswith("examples")]
            assert all(file.exists() for file in files), rest
        else:
            assert [program, rest[0]] == ["pip", "install"], rest


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_commands_in_sentences_exist_with_their_options(page: Path) -> None:
    for text in INLINE_COMMAND.findall(prose(page)):
        before, name, options = _split_command(text.split())
        assert set(before) <= _options(commands()), text
        if name is not None:
            assert name in commands().commands, text
            assert set(options) <= _options(commands().commands[name]), text


def _split_command(words: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Options before the command, the command, and the options after it."""
    position = next((i for i, word in enumerate(words) if not word.startswith("-")), len(words))
    after = [word.partition("=")[0] for word in words[position + 1 :] if word.startswith("-")]
    return words[:position], words[position] if position < len(words) else None, after


def _options(command: Any) -> set[str]:
    return {"-h", "--help"} | {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= LONGEST_README


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    titles = (heading.replace("`", "").lower() for heading in HEADING.findall(prose(page)))
    return {NOT_IN_ANCHORS.sub("", title).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_links_and_pictures_exist(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if link.startswith(("https://", "http://")):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_the_source_tree_lists_all_rooms_in_their_order() -> None:
    tree = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("src/dre/\n")[2].partition("```")[0]
    rooms = [line.split()[0].removesuffix("/").removesuffix(".py") for line in tree.splitlines() if line.startswith("  ")]
    assert rooms == ROOMS


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if page.name != "README.md" and f"({page.name})" not in index] == []


def own(registry: Registry) -> list[str]:
    """Names that the package defines itself; other tests may have added theirs."""
    return [name for name, member in registry.members().items() if member.__module__.startswith("dre.")]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        pytest.param(page, names, id=f"{page}: {what}")
        for page, what, names in (
            ("README.md", "parameters", [*inspect.signature(DRE).parameters]),
            ("docs/python.md", "parameters", [*inspect.signature(DRE).parameters]),
            ("README.md", "recipes", [*RECIPES]),
            ("docs/python.md", "recipes", [*RECIPES]),
            ("docs/python.md", "encoders", own(ENCODERS)),
            ("docs/python.md", "augmentations", own(AUGMENTS)),
            ("docs/schedules.md", "affinities", own(AFFINITIES)),
            ("docs/schedules.md", "losses", own(LOSSES)),
            ("docs/schedules.md", "batches", own(BATCHES)),
            ("docs/metrics.md", "metrics", [name for name in metrics.__all__ if name.islower()]),
            ("docs/plots.md", "plots", plot.__all__),
            ("docs/compare.md", "baselines", [*baselines.NAMES]),
            ("docs/datasets.md", "datasets", [*datasets.NAMES]),
            ("docs/commands.md", "commands", [*commands().commands]),
        )
    ],
)
def test_pages_name_everything(page: str, names: list[str]) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)] == []
