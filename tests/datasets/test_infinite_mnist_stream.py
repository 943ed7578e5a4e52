"""The stream of digits: every index gives one image, by the stated formula, whichever way it is asked for."""

from __future__ import annotations

import hashlib
from itertools import islice

import numpy as np
import pytest
import torch
from scipy.ndimage import binary_dilation
from sklearn.datasets import load_digits

from dre.datasets.infinite_mnist import FIELDS, LARGEST, BaseDigits, InfiMNIST, displacement_fields

TESTS, TRAINS = 40, 100
N = TESTS + TRAINS
STREAM = range(0, 10**10)
INDICES = np.array([0, 39, 40, 139, 140, 141, 239, 240, 70_000, 1_234_567, 10_000_000, 2**32 + 5, 2**40 + 1])


def small_digits() -> BaseDigits:
    """Scikit-learn's digits, three times as large, with a margin: 28 × 28."""
    images, labels = load_digits(return_X_y=True)
    large = images[:N].reshape(N, 8, 8).repeat(3, 1).repeat(3, 2) * 255 / 16
    return BaseDigits(np.pad(large.astype(np.uint8), ((0, 0), (2, 2), (2, 2))), labels[:N], tests=TESTS)


@pytest.fixture(scope="module")
def digits() -> BaseDigits:
    return small_digits()


@pytest.fixture(scope="module")
def stream(digits) -> InfiMNIST:
    return InfiMNIST(digits, STREAM, device="cpu")


@pytest.fixture(scope="module")
def moved() -> np.ndarray:
    return displacement_fields() / 256


def by_the_formula(digits: BaseDigits, moved: np.ndarray, i: int) -> np.ndarray:
    """One image, as the definition reads, in Python's numbers."""
    if i < N:
        return digits.images[i]
    x = np.pad(digits.images[TESTS + (i - TESTS) % TRAINS], 1).astype(float)
    k1 = (i * 131071 % 2**32) % 1521
    k2 = (k1 + 1 + 2 * i) % 1522
    sign = -1 if (k1 + k2) % 2 else 1
    down, right = (slope[1:-1, 1:-1] for slope in np.gradient(x))
    v = x[1:-1, 1:-1] + sign * (moved[k1] * right - moved[k2] * down)
    v = np.pad(np.floor(np.clip(v, 0, 255)), 1)
    moves = [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0)]
    return np.roll(v, moves[k1 % 9], (0, 1))[1:-1, 1:-1]


def test_every_image_is_that_of_the_formula(digits, stream, moved):
    indices = np.concatenate([INDICES, np.random.default_rng(0).integers(0, LARGEST, 60)])
    for i, image in zip(indices, stream.at(indices).read(0, len(indices)), strict=True):
        np.testing.assert_array_equal(image.numpy(), by_the_formula(digits, moved, int(i)), err_msg=str(i))


def test_the_stream_begins_with_the_digits_themselves(digits, stream):
    assert np.array_equal(stream.images(0, N).numpy(), digits.images)
    assert not np.array_equal(stream.images(N, N + TRAINS).numpy(), digits.images[TESTS:])


def test_the_label_is_that_of_the_digit_that_is_deformed(digits, stream):
    expected = [digits.labels[i if i < N else TESTS + (i - TESTS) % TRAINS] for i in INDICES]
    assert stream.at(INDICES).labels.tolist() == expected
    assert np.array_equal(stream[: N + TRAINS].labels, np.concatenate([digits.labels, digits.labels[TESTS:]]))


def test_an_image_has_the_same_bits_however_it_is_asked_for(digits, stream, monkeypatch):
    whole = stream.read(100, 400)
    assert torch.equal(stream.images(100, 400).float(), whole)
    assert torch.equal(torch.cat([stream.read(100, 101), stream.read(101, 333), stream.read(333, 400)]), whole)
    order = torch.from_numpy(np.random.default_rng(0).permutation(300))
    assert torch.equal(stream.take(100 + order), whole[order])
    assert torch.equal(stream.take((100 + order).int()), whole[order])
    assert torch.equal(stream[100:400].take(order), whole[order])
    assert torch.equal(stream[50:][50:350].read(0, 300), whole)
    assert torch.equal(stream[100:400:7].read(0, 43), whole[::7])
    assert torch.equal(stream[(100 + order).numpy()].read(5, 250), whole[order][5:250])
    assert torch.equal(InfiMNIST(digits, np.arange(100, 400), device="cpu").read(0, 300), whole)
    monkeypatch.setattr("dre.datasets.infinite_mnist.CHUNK", {"cpu": 7})
    assert torch.equal(stream.read(100, 400), whole)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads % 2 + 1)
        assert torch.equal(stream.read(100, 400), whole)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("rows", [slice(100, 400), slice(400, 100, -3), np.array([7, 10**9, 7])], ids=str)
def test_a_whole_number_gives_the_image_that_stands_there(stream, rows):
    held = stream[rows]
    whole = held.read(0, len(held))
    for i in (0, 2, len(held) - 1, -1, -len(held), np.int64(1), np.uint8(2)):
        assert torch.equal(held[i], whole[int(i)])


def test_images_are_gone_through_a_chunk_at_a_time(stream, monkeypatch):
    monkeypatch.setattr("dre.datasets.infinite_mnist.CHUNK", {"cpu": 7})
    whole = torch.stack(list(stream[100:130]))
    assert torch.equal(whole, stream.read(100, 130))
    asked = []
    made = InfiMNIST._compute
    monkeypatch.setattr(InfiMNIST, "_compute", lambda self, ids, dtype: asked.append(len(ids)) or made(self, ids, dtype))
    assert torch.equal(torch.stack(list(islice(stream, 10))), stream[:10].read(0, 10))  # of 10**10
    assert asked[:2] == [7, 7]
    assert list(stream[5:5]) == []


def test_an_array_of_the_stream_has_all_its_images_in_the_type_that_is_asked_for(stream, monkeypatch):
    rows = stream[100:400]
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 28 * 28 * 70)
    whole = rows.images(0, 300).numpy()
    for dtype in (None, np.uint8, np.float64):
        made = np.asarray(rows, dtype=dtype)
        np.testing.assert_array_equal(made, whole)
        assert made.dtype == (dtype or np.float32)
    np.testing.assert_array_equal(np.array(rows, copy=True), whole)
    assert np.asarray(rows[:0]).shape == (0, 28, 28)
    with pytest.raises(ValueError, match="leave out copy=False"):
        rows.__array__(copy=False)


def test_an_array_that_memory_would_not_hold_is_refused_before_an_image_is_made(stream, monkeypatch):
    monkeypatch.setattr("dre.data.rows.available_bytes", lambda: 2 * 28 * 28 * 50)
    assert np.asarray(stream[:50], dtype=np.uint8).shape == (50, 28, 28)
    monkeypatch.setattr(InfiMNIST, "_compute", lambda *given: pytest.fail("an image was made"))
    with pytest.raises(ValueError, match=r"51 rows need 0\.0 GiB as an array of uint8.*take fewer"):
        np.asarray(stream[:51], dtype=np.uint8)


def test_an_image_may_be_asked_for_twice_and_nothing_is_changed_by_it(digits, stream):
    before = digits.images.tobytes()
    first = stream.take(torch.tensor([500, 500, 10, 500]))
    assert torch.equal(first[0], first[1])
    first.zero_()
    assert stream.take(torch.tensor([500])).any()
    assert digits.images.tobytes() == before


def test_the_stream_is_the_same_everywhere_and_for_ever():
    """Digests of what was first published: results on these images are comparable only as long as they stay the same."""
    assert hashlib.sha256(displacement_fields().astype("<i2").tobytes()).hexdigest()[:16] == "672091847bf6fece"
    pattern = BaseDigits((np.indices((N, 28, 28)).sum(0) * 7 % 256).astype(np.uint8), np.zeros(N, int), tests=TESTS)
    made = InfiMNIST(pattern, range(N, N + 500), device="cpu").images(0, 500)
    assert hashlib.sha256(made.numpy().tobytes()).hexdigest()[:16] == "784aa45e5378f99b"


def test_the_fields_are_smooth_bounded_and_all_different(moved):
    assert moved.shape == (FIELDS + 1, 28, 28)
    assert not moved[-1].any()
    assert np.abs(moved).max() == 2.5
    assert np.sqrt((moved[:-1] ** 2).mean()) == pytest.approx(1.0, abs=0.1)
    assert abs(moved.mean()) < 0.05
    assert max(np.abs(np.diff(moved, axis=axis)).max() for axis in (1, 2)) < 1.5  # strokes do not tear
    assert len(np.unique(moved.reshape(FIELDS + 1, -1), axis=0)) == FIELDS + 1


def test_the_global_random_states_are_left_alone():
    before = np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes()
    InfiMNIST(small_digits(), range(1000), device="cpu").read(0, 1000)
    assert (np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes()) == before


def test_no_ink_appears_away_from_the_strokes(digits, stream):
    made = stream.images(10**6, 10**6 + TRAINS).numpy()
    source = digits.images[TESTS + np.arange(10**6 - TESTS, 10**6 - TESTS + TRAINS) % TRAINS]
    for image, original in zip(made, source, strict=True):  # a pixel by the deformation, and one by the move
        assert not image[~binary_dilation(original > 0, np.ones((3, 3)), iterations=2)].any()


@pytest.mark.parametrize(
    ("indices", "error", "match"),
    [
        (range(-1, 5), ValueError, "indices -1 to 4.*from 0"),
        (range(5, -3, -1), ValueError, "indices -2"),
        (range(LARGEST, LARGEST + 1), ValueError, "from 0 to 70368744177663"),
        (np.array([3, -7, 5]), ValueError, "indices -7 to 5"),
        (np.array([0.5]), TypeError, "pass a range or slice, or integers"),
        (np.zeros((2, 2), int), TypeError, "integers"),
        (5, TypeError, "indices=5"),
    ],
)
def test_indices_that_are_not_in_the_stream_are_refused(digits, indices, error, match):
    with pytest.raises(error, match=match):
        InfiMNIST(digits, indices, device="cpu")


def test_rows_that_are_not_there_are_refused(stream):
    rows = stream[100:200]
    for ids in ([0, 100], [-1]):
        with pytest.raises(IndexError, match="there are 100 rows"):
            rows.take(torch.tensor(ids))
        with pytest.raises(IndexError, match="there are 100 rows"):
            rows[np.array(ids)]
    for start, stop in ((-1, 5), (5, 4), (0, 101)):
        with pytest.raises(IndexError, match="there are 100"):
            rows.read(start, stop)
    for wrong in (3.0, True, "3"):
        with pytest.raises(TypeError, match=r"pass a range or slice"):
            rows[wrong]
    for i in (100, -101):
        with pytest.raises(IndexError, match=f"row {i} is out of range: there are 100"):
            rows[i]
    assert rows.read(7, 7).shape == rows[7:7].images(0, 0).shape == (0, 28, 28)
    assert rows.take(torch.tensor([], dtype=torch.long)).shape == (0, 28, 28)


def test_digits_that_can_not_be_deformed_are_refused():
    images = np.zeros((5, 28, 28), np.uint8)
    for bad in (images[:, :8], images.astype(float)):
        with pytest.raises(ValueError, match="pass \\(n, 28, 28\\) of uint8"):
            BaseDigits(bad, np.zeros(5), tests=2)
    for labels, tests in ((4, 2), (5, 5), (5, -1)):
        with pytest.raises(ValueError, match="one label per image"):
            BaseDigits(images, np.zeros(labels), tests=tests)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device here")
def test_a_gpu_gives_the_bits_of_the_cpu(digits, stream):
    there = InfiMNIST(digits, STREAM, device="cuda")
    assert there.read(0, 5).is_cuda
    for start in (0, 10**6, 2**33):
        assert torch.equal(there.images(start, start + 40_000).cpu(), stream.images(start, start + 40_000))
    ids = torch.randint(len(stream), (5000,), generator=torch.Generator().manual_seed(0))
    assert torch.equal(there.take(ids.cuda()).cpu(), stream.take(ids))
    assert torch.equal(there[ids.numpy()].read(0, 5000).cpu(), stream.take(ids))
