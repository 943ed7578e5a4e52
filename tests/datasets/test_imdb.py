"""IMDB: the three forms that the reviews come in, what is checked, and the vectors."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from stand_ins import Network, held

from dre.datasets import CorruptFileError, DatasetNotFoundError, imdb, load

EACH = 30  # reviews of each sentiment in each part
FORMS = ("lines", "archive", "folder")


def reviews() -> dict[tuple[str, str, int, int], str]:
    """Texts by part, kind, id and stars."""
    random, made = np.random.default_rng(0), {}
    for part in ("train", "test"):
        for kind, low, words in (("pos", 7, ["good", "fine", "great"]), ("neg", 1, ["bad", "poor", "dull"])):
            for number in range(EACH):
                said = " ".join(random.choice([*words, "film", "plot", "actor", "é"], 12))
                made[part, kind, number, low + number % 4] = f"{said}<br /><br />Number {number} of {part} {kind}"
    return made


@pytest.fixture(autouse=True)
def small(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imdb, "REVIEWS", EACH)


def write(
    form: str, folder: Path, monkeypatch: pytest.MonkeyPatch, made: dict[tuple[str, str, int, int], str] | None = None
) -> None:
    made = reviews() if made is None else made
    folder.mkdir(parents=True, exist_ok=True)
    if form == "lines":
        for part in ("train", "test"):
            lines = [
                json.dumps({"id": number, "label": int(kind == "pos"), "rating": stars, "text": text})
                for (where, kind, number, stars), text in made.items()
                if where == part
            ]
            (folder / f"aclImdb_{part}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    elif form == "archive":
        content = archive(made)
        (folder / "aclImdb_v1.tar.gz").write_bytes(content)
        expect(content, monkeypatch)
    else:
        for (part, kind, number, stars), text in made.items():
            path = folder / "aclImdb" / part / kind / f"{number}_{stars}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())


def archive(made: dict[tuple[str, str, int, int], str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        others = {"aclImdb/README": "Large Movie Review Dataset", "aclImdb/train/unsup/0_0.txt": "no label"}
        named = {f"aclImdb/{part}/{kind}/{n}_{stars}.txt": text for (part, kind, n, stars), text in reversed(made.items())}
        for name, text in (others | named).items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def expect(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    checksum = f"md5:{hashlib.md5(content).hexdigest()}"
    monkeypatch.setattr(imdb, "ARCHIVE", dataclasses.replace(imdb.ARCHIVE, checksum=checksum))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("below", ["imdb", "."])
def test_every_form_gives_the_same_reviews_in_the_same_order(
    form: str, below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(form, tmp_path / "data" / below, monkeypatch)
    before = held(tmp_path / "data")
    for part, found in zip(("train", "test"), imdb.load_reviews(tmp_path / "data"), strict=True):
        wanted = [(text, kind == "pos", stars) for (where, kind, _, stars), text in reviews().items() if where == part]
        assert list(zip(found.texts, found.sentiment, found.stars, strict=True)) == wanted
        assert found.sentiment.dtype == found.stars.dtype == np.int64
    assert held(tmp_path / "data") == before


def test_what_is_nowhere_is_downloaded_as_the_archive(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"aclImdb_v1\.tar\.gz"):
        imdb.load_reviews()
    content = archive(reviews())
    expect(content, monkeypatch)
    network.pages[imdb.ARCHIVE.url] = content
    assert len(imdb.load_reviews()[0].texts) == 2 * EACH
    assert (tmp_path / "cache" / "imdb" / "aclImdb_v1.tar.gz").read_bytes() == content


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fault", ["missing", "stars"])
def test_reviews_that_are_missing_or_wrong_are_found_out(
    form: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = reviews()
    text = made.pop(("test", "pos", 5, 8))
    if fault == "stars":
        made["test", "pos", 5, 4] = text
    write(form, tmp_path / "data", monkeypatch, made)
    with pytest.raises(CorruptFileError, match="test reviews with 7 to 10 stars"):
        imdb.load_reviews(tmp_path / "data")


def test_a_corrupt_archive_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("archive", tmp_path, monkeypatch)
    path = tmp_path / "aclImdb_v1.tar.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptFileError, match="md5"):
        imdb.load_reviews(tmp_path)


def test_corrupt_lines_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("lines", tmp_path, monkeypatch)
    path = tmp_path / "aclImdb_train.jsonl.gz"
    whole = path.read_bytes()
    for damaged in (whole[:-20], b"text", gzip.compress(b"{}"), gzip.compress(b"[1]"), gzip.compress(b"no json")):
        path.write_bytes(damaged)
        with pytest.raises(CorruptFileError, match=r"aclImdb_train\.jsonl\.gz"):
            imdb.load_reviews(tmp_path)
    path.write_bytes(whole)
    (tmp_path / "aclImdb_test.jsonl.gz").unlink()
    with pytest.raises(CorruptFileError, match=r"aclImdb_test\.jsonl\.gz is missing"):
        imdb.load_reviews(tmp_path)


def test_a_review_that_is_no_text_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("folder", tmp_path, monkeypatch)
    next(tmp_path.rglob("5_8.txt")).write_bytes(b"caf\xe9")
    with pytest.raises(CorruptFileError, match=r"5_8\.txt .*UTF-8"):
        imdb.load_reviews(tmp_path)


def test_the_vectors_know_praise_from_the_rest_and_carry_both_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("lines", tmp_path, monkeypatch)
    dataset = load("imdb", folder=tmp_path, n_components=5)
    for part in (dataset.train, dataset.test):
        assert part.rows.shape == (2 * EACH, 5)
        assert part.rows.dtype == np.float32
        assert list(part.levels) == ["sentiment", "stars"]
        assert part.labels is part.levels["sentiment"]
        np.testing.assert_array_equal(part.labels == 1, part.levels["stars"] > 5)
    nearest = ((dataset.test.rows[:, None] - dataset.train.rows[None]) ** 2).sum(2).argmin(1)
    assert (dataset.train.labels[nearest] == dataset.test.labels).mean() > 0.9
    assert "5 components" in dataset.description


def test_the_test_reviews_do_not_change_the_training_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("lines", tmp_path / "one", monkeypatch)
    changed = {key: text if key[0] == "train" else "dull dull dull film" for key, text in reviews().items()}
    write("lines", tmp_path / "two", monkeypatch, changed)
    one, two = (load("imdb", folder=tmp_path / name, n_components=5) for name in ("one", "two"))
    np.testing.assert_array_equal(one.train.rows, two.train.rows)
    assert not np.allclose(one.test.rows, two.test.rows)


def test_the_vectors_are_computed_once_for_the_same_reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("lines", tmp_path / "one", monkeypatch)
    first = load("imdb", folder=tmp_path / "one", n_components=5)
    monkeypatch.setattr(imdb, "_vectorize", lambda *_: pytest.fail("computed again"))
    write("folder", tmp_path / "two", monkeypatch)  # the same reviews in another form
    again = load("imdb", folder=tmp_path / "two", n_components=5)
    np.testing.assert_array_equal(first.test.rows, again.test.rows)
    with pytest.raises(pytest.fail.Exception, match="computed again"):
        load("imdb", folder=tmp_path / "one", n_components=6)


def test_rows_can_be_scaled_to_length_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("lines", tmp_path, monkeypatch)
    plain, scaled = (load("imdb", folder=tmp_path, n_components=5, unit_length=unit) for unit in (False, True))
    lengths = np.linalg.norm(plain.test.rows, axis=1, keepdims=True)
    np.testing.assert_allclose(scaled.test.rows, plain.test.rows / lengths, rtol=1e-5)
    assert lengths.min() < 0.99
    assert "length 1" in scaled.description.split("fitted on")[1]


def test_more_components_than_words_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("lines", tmp_path, monkeypatch)
    with pytest.raises(ValueError, match=r"n_components=500.*choose fewer"):
        load("imdb", folder=tmp_path)
