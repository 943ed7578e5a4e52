"""The pinned packages: nothing is missing, every pin has hashes, and the lowest versions are those of pyproject.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from audit import findings
from lock import configured_index, hashes, locked
from pins import LISTS, Pin, lock_of, normalized, parse

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGE = PROJECT["project"]["name"]
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
BUILD = [*PROJECT["build-system"]["requires"], "editables"]  # hatchling asks for editables when it installs a checkout
PINS, MINIMAL, _ = ({pin.name: pin for pin in parse(path.read_text())} for path in LISTS)
MACHINES = [
    {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": name, "platform_system": system}
    for python in ("3.11", "3.12", "3.13")
    for name, system in (("linux", "Linux"), ("darwin", "Darwin"))
]


def bounds() -> Iterator[Requirement]:
    """Requirements in pyproject.toml, but for linters: these are only used in the pinned version."""
    named = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]
    for text in [*named, *(text for name, texts in EXTRAS.items() if name != "lint" for text in texts)]:
        if normalized(Requirement(text).name) != PACKAGE:
            yield Requirement(text)


def entries(lock: Path) -> dict[str, tuple[str, list[str]]]:
    """Version and hashes of every package in a lock file."""
    found: dict[str, tuple[str, list[str]]] = {}
    for line in lock.read_text().splitlines():
        if "==" in line:
            name, _, version = line.removesuffix(" \\").partition("==")
            found[name] = (version, [])
        elif not line.startswith("#"):
            found[name][1].append(line.strip().removesuffix(" \\"))
    return found


def needed(name: str, extras: frozenset[str]) -> set[tuple[str, frozenset[str]]]:
    """What a package with extras needs on some machine, by the metadata that is installed here."""
    try:
        texts = requires(name) or []
    except PackageNotFoundError:  # needed on other machines alone
        return set()
    found = set()
    for each in map(Requirement, texts):
        choices = [{**machine, "extra": extra} for machine in MACHINES for extra in ("", *extras)]
        if each.marker is None or any(each.marker.evaluate(choice) for choice in choices):
            found.add((normalized(each.name), frozenset(each.extras)))
    return found


def closure() -> set[str]:
    """Every package that `make` needs."""
    pending = [(PACKAGE, frozenset({"test", "lint"})), *((Requirement(text).name, frozenset()) for text in BUILD)]
    seen = set(pending)
    while pending:
        new = needed(*pending.pop()) - seen
        seen |= new
        pending += new
    return {name for name, _ in seen} - {PACKAGE}


def test_all_packages_that_make_installs_are_pinned_and_no_others() -> None:
    assert closure() == set(PINS)


@pytest.mark.parametrize("pins", LISTS, ids=lambda path: path.name)
def test_every_pin_has_hashes_for_the_same_version(pins: Path) -> None:
    expected = {pin.name: pin.version for pin in parse(pins.read_text()) if pin.hashed}
    found = entries(lock_of(pins))
    assert {name: version for name, (version, _) in found.items()} == expected
    for name, (_, digests) in found.items():
        assert digests, name
        assert all(digest.startswith("--hash=sha256:") and len(digest) == 78 for digest in digests), name


def test_only_torch_has_no_hash() -> None:
    assert {pin.name for path in LISTS for pin in parse(path.read_text()) if not pin.hashed} == {"torch"}


def test_the_lists_agree_on_the_packages_of_the_audit() -> None:
    tools = {pin.name: pin.version for pin in parse(LISTS[2].read_text())}
    assert {name: version for name, version in tools.items() if name in PINS and PINS[name].version != version} == {}


@pytest.mark.parametrize("bound", list(bounds()), ids=lambda bound: bound.name)
def test_the_minimal_version_is_the_bound_of_pyproject(bound: Requirement) -> None:
    (limit,) = bound.specifier
    assert limit.operator == ">="
    pin = MINIMAL[normalized(bound.name)]
    assert Version(pin.version) == Version(limit.version) or f"not {limit.version}, the bound: " in pin.note


@pytest.mark.parametrize("bound", list(bounds()), ids=lambda bound: bound.name)
def test_the_pinned_version_is_in_the_range_of_pyproject(bound: Requirement) -> None:
    assert bound.specifier.contains(PINS[normalized(bound.name)].version)


PAGE = """<html><body>
<a href="../six-1.0.tar.gz#sha256=aa">six-1.0.tar.gz</a>
<a href="../six-1.0-py3-none-any.whl#sha256=bb">six-1.0-py3-none-any.whl</a>
<a href="../six-1.0.1.tar.gz#sha256=cc">six-1.0.1.tar.gz</a>
<a href="../six-1.1.tar.gz#sha256=dd" data-yanked="broken">six-1.1.tar.gz</a>
<a href="../six-1.2.tar.gz">six-1.2.tar.gz</a>
</body></html>"""


def test_hashes_are_those_of_all_files_of_the_version() -> None:
    assert hashes(PAGE, Pin("six", "1.0")) == ["sha256:aa", "sha256:bb"]


@pytest.mark.parametrize(("version", "reason"), [("1.1", "withdrawn"), ("1.2", "no sha256"), ("2", "no such version")])
def test_a_version_that_cannot_be_trusted_is_an_error(version: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        hashes(PAGE, Pin("six", version))


def test_a_lock_file_is_written_from_the_index_that_pip_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "six").mkdir()
    (tmp_path / "six" / "index.html").write_text(PAGE)
    (tmp_path / "pins.txt").write_text("six==1.0\ntorch==2.13.0  # no hash: builds differ\n")
    monkeypatch.setenv("PIP_INDEX_URL", tmp_path.as_uri())
    index, certificates = configured_index()
    assert index == tmp_path.as_uri()
    text = locked(tmp_path / "pins.txt", index, certificates)
    assert text.splitlines()[1:] == ["six==1.0 \\", "    --hash=sha256:aa \\", "    --hash=sha256:bb"]


def test_a_line_that_pins_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"numpy>=2"):
        parse("numpy>=2")


def test_a_package_that_was_not_audited_is_told() -> None:
    assert findings({"dependencies": [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "gone"}]}) == (
        [],
        ["gone"],
    )
