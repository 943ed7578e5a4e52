"""Datasets in the manner of torchvision: images of Pillow, arrays and tensors, with labels; of one size or of many.

torchvision is not installed here. The classes below have the attributes of its own: ``samples``, ``loader``, ``classes``,
``targets`` and ``transform`` of ImageFolder; ``data``, ``targets`` and ``classes`` of CIFAR10 and MNIST.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from dre import DRE
from dre.data.image_items import ImageItems, dataset_labels, image_rows
from dre.data.rows import is_rows
from dre.loss import LOSSES, Loss

GENERATOR = np.random.default_rng(0)
COLOR = GENERATOR.integers(256, size=(60, 8, 8, 3), dtype=np.uint8)
DIGITS, KINDS = load_digits().images[:60].astype(np.uint8) * 15, load_digits().target[:60]
OPTIONS = {"schedule": "x: gaussian(5) -> kl * 2", "encoder": "mlp(8)", "random_state": 0, "device": "cpu"}


class ImageFolder(Dataset):
    """Images in files, by class."""

    def __init__(self, root, transform=None, target_transform=None) -> None:
        self.classes = sorted(each.name for each in root.iterdir())
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        self.samples = [(str(file), i) for name, i in self.class_to_idx.items() for file in sorted((root / name).iterdir())]
        self.imgs, self.targets = self.samples, [target for _, target in self.samples]
        self.transform, self.target_transform = transform, target_transform

    def loader(self, path: str) -> Image.Image:
        with open(path, "rb") as file:
            return Image.open(file).convert("RGB")

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int):
        path, target = self.samples[i]
        image = self.loader(path)
        return image if self.transform is None else self.transform(image), target


class CIFAR10(Dataset):
    """Color images in an array (n, h, w, 3)."""

    classes = ("plane", "car", "bird")

    def __init__(self, transform=None) -> None:
        self.data, self.targets = COLOR, [i % 3 for i in range(60)]
        self.transform = transform
        self.reads = 0

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int):
        self.reads += 1
        image = Image.fromarray(self.data[i])
        return image if self.transform is None else self.transform(image), self.targets[i]


class MNIST(CIFAR10):
    """Gray images in a tensor (n, h, w), and targets in one."""

    classes = tuple(f"{i} - digit" for i in range(10))

    def __init__(self, transform=None) -> None:
        super().__init__(transform)
        self.data, self.targets = torch.from_numpy(DIGITS), torch.from_numpy(KINDS)

    def __getitem__(self, i: int):
        self.reads += 1
        image = Image.fromarray(self.data[i].numpy())
        return image if self.transform is None else self.transform(image), int(self.targets[i])


def to_tensor(image: Image.Image) -> torch.Tensor:
    """What ``ToTensor`` of torchvision does."""
    x = torch.from_numpy(np.array(image, np.float32) / 255)
    return x[None] if x.ndim == 2 else x.movedim(-1, 0)


def folder(root, sizes=((8, 8),)) -> ImageFolder:
    for i in range(60):
        kind = root / ("cat", "dog")[i % 2]
        kind.mkdir(exist_ok=True)
        height, width = sizes[i % len(sizes)]
        Image.fromarray(np.full((height, width, 3), 4 * i, np.uint8)).save(kind / f"{i:02}.png")
    return ImageFolder(root)


@pytest.mark.parametrize(("dataset", "X"), [(CIFAR10(), COLOR), (MNIST(), DIGITS)], ids=["CIFAR10", "MNIST"])
def test_the_array_of_a_dataset_is_read_at_once_if_items_are_its_images(dataset, X) -> None:
    fitted = DRE(**OPTIONS).fit(dataset)
    assert dataset.reads < 10
    np.testing.assert_array_equal(fitted.embedding_, DRE(**OPTIONS).fit(X).embedding_)
    half = Subset(dataset, range(0, 60, 2))
    np.testing.assert_array_equal(np.asarray(fitted.transform(half)), fitted.transform(X[::2]))


@pytest.mark.parametrize("kind", [CIFAR10, MNIST])
def test_a_transform_is_followed(kind) -> None:
    X = np.stack([to_tensor(Image.fromarray(np.asarray(image))) for image in kind().data])
    rows = ImageItems(kind(to_tensor))
    assert rows.shape == X.shape
    np.testing.assert_array_equal(rows.read(0, 60).numpy(), X)
    np.testing.assert_array_equal(rows.take(torch.tensor([7, 3, 3])).numpy(), X[[7, 3, 3]])
    fitted = DRE(**OPTIONS).fit(DataLoader(kind(to_tensor), batch_size=7, shuffle=True))
    np.testing.assert_allclose(fitted.embedding_, DRE(**OPTIONS).fit(X).embedding_, atol=1e-4)


def test_images_in_files_are_read_as_they_are(tmp_path) -> None:
    dataset = folder(tmp_path)
    rows = ImageItems(dataset)
    assert rows.shape == (60, 8, 8, 3)
    assert rows.messages == []
    expected = np.stack([np.asarray(dataset[i][0]) for i in range(60)])
    np.testing.assert_array_equal(rows.read(0, 60).numpy(), expected)
    assert rows.labels.tolist() == ["cat"] * 30 + ["dog"] * 30


def test_images_of_many_sizes_are_resized_and_it_is_said(tmp_path, capsys) -> None:
    dataset = folder(tmp_path, sizes=((20, 30), (40, 31), (50, 21)))
    rows = ImageItems(dataset)
    assert rows.shape == (60, 64, 64, 3)
    assert rows.messages == ["60 images, of 3 sizes, are cropped in the middle and resized to 64 × 64 pixels"]
    assert ImageItems(dataset, size=(10, 12)).shape == (60, 10, 12, 3)
    np.testing.assert_array_equal(rows.read(5, 6)[0], np.full((64, 64, 3), np.asarray(dataset[5][0])[0, 0, 0]))
    fitted = DRE(**OPTIONS).fit(dataset)
    assert "60 images, of 3 sizes" in capsys.readouterr().err
    DRE(**OPTIONS, verbose=False).fit(dataset)
    assert not capsys.readouterr().err
    (tmp_path / "new" / "cat").mkdir(parents=True)
    Image.fromarray(np.full((8, 9, 3), 20, np.uint8)).save(tmp_path / "new" / "cat" / "a.png")
    new = fitted.transform(ImageFolder(tmp_path / "new"))  # as in the fit, though all of these have another size
    np.testing.assert_allclose(new, fitted.transform(np.full((1, 64, 64, 3), 20, np.uint8)), rtol=1e-5)


class Mixed(Dataset):
    """Items as they are given."""

    def __init__(self, *items) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int):
        return self.items[i]


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
@pytest.mark.parametrize(("shapes", "expected"), [
    (((3, 20, 30), (3, 10, 10), (3, 70, 80)), (3, 64, 64)),
    (((20, 30), (20, 30), (10, 10)), (20, 30)),
    (((20, 30, 3), (10, 11, 3), (90, 80, 3)), (64, 64, 3)),
])  # fmt: skip
def test_arrays_and_tensors_of_many_sizes_are_resized(shapes, expected, dtype) -> None:
    items = [torch.full(shape, 7, dtype=dtype) for shape in shapes]
    for dataset in (Mixed(*items), Mixed(*(x.numpy() for x in items))):
        rows = ImageItems(dataset)
        assert rows.shape == (len(items), *expected)
        found = rows.read(0, len(items))
        assert found.dtype == dtype
        assert (found == 7).all()
        assert "cropped in the middle and resized" in rows.messages[0]


def test_gray_and_color_transparency_and_16_bits_are_converted_and_said() -> None:
    gray, color = Image.new("L", (4, 4), 9), Image.new("RGB", (4, 4), (1, 2, 3))
    clear, deep = Image.new("RGBA", (4, 4), (0, 0, 0, 0)), Image.fromarray(np.full((4, 4), 5 * 256, np.uint16))
    rows = ImageItems(Mixed(gray, color, clear, deep))
    assert rows.read(0, 4)[:, 0, 0].tolist() == [[9, 9, 9], [1, 2, 3], [255, 255, 255], [5, 5, 5]]
    assert rows.messages == [
        "2 gray images are read as color, like the other 2",
        "1 of 4 images may be transparent, and are laid on white",
        "1 of 4 images have 16 bits, of which the upper 8 are read",
    ]


class Random(MNIST):
    def __getitem__(self, i: int):
        self.reads += 1
        return GENERATOR.normal(size=(8, 8)), 0


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Random(), "item 0 of Random is another one each time it is read: leave random changes out.*augment="),
        (Mixed(), "Mixed has no items"),
        (Mixed({"image": 1, "label": 2}), r"item 0 of Mixed is a dict of image, label: return the image, or \(image, label\)"),
        (Mixed(Image.new("L", (4, 4)), np.zeros((4, 4))), "items of Pillow and others"),
        (
            Mixed(np.zeros((4, 4)), np.zeros((4, 4, 3))),
            r"item 1 of Mixed has the shape \(4, 4, 3\).*all to gray or all to color",
        ),
        (Mixed(3, 4), "item 0 of Mixed is a single number"),
    ],
)
def test_what_no_row_can_be_made_of_is_named(dataset, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        DRE(**OPTIONS).fit(dataset)


def test_labels_are_found_by_name(tmp_path) -> None:
    names = np.array([f"{kind} - digit" for kind in KINDS])
    np.testing.assert_array_equal(dataset_labels(MNIST()), names)
    np.testing.assert_array_equal(dataset_labels(DataLoader(MNIST(), shuffle=True)), names)
    np.testing.assert_array_equal(dataset_labels(Subset(MNIST(), [5, 3])), names[[5, 3]])
    changed = folder(tmp_path)
    changed.target_transform = lambda target: -target
    changed.targets = None
    assert dataset_labels(changed).tolist() == ["cat"] * 30 + ["dog"] * 30
    assert dataset_labels(Mixed(np.zeros((2, 2)))) is None
    assert not is_rows(MNIST())


class RandomHorizontalFlip:
    """Has the attributes of torchvision's own, and never flips: nothing but its chance gives it away."""

    def __init__(self, p: float | None) -> None:
        if p is not None:
            self.p = p

    def __call__(self, image):
        return image


class Compose:
    def __init__(self, *transforms) -> None:
        self.transforms = list(transforms)

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


@pytest.mark.parametrize("make", [MNIST, CIFAR10], ids=["gray", "color"])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: Subset(x, range(30)), lambda x: ConcatDataset([x, x])])
def test_a_transform_that_seldom_changes_an_image_is_found_by_what_it_declares(make, wrap) -> None:
    def read(p: float | None) -> None:
        image_rows(wrap(make(Compose(Compose(RandomHorizontalFlip(p))))))

    for p in (0.02, None):
        with pytest.raises(ValueError, match="has RandomHorizontalFlip, which changes images at random: leave it out"):
            read(p)
    read(0.0)
    read(1.0)


def test_items_are_read_several_times_to_see_that_they_stay() -> None:
    class Flickers(MNIST):
        def __getitem__(self, i: int):
            self.reads += 1
            return DIGITS[i] + (self.reads % 3 == 0), 0  # the same twice, and then not

    with pytest.raises(ValueError, match="is another one each time it is read"):
        ImageItems(Flickers())


@pytest.mark.parametrize("kind", ["pictures", "tensors", "labelled arrays"])
def test_a_list_of_images_of_several_sizes_is_read_as_a_dataset(kind) -> None:
    images = [digit[: 6 + i % 2] for i, digit in enumerate(DIGITS)]
    make = {"pictures": Image.fromarray, "tensors": torch.from_numpy, "labelled arrays": lambda x: (x, 3)}[kind]
    given = [make(image) for image in images]
    model = DRE(**OPTIONS).fit(given)
    assert model.embedding_.shape == (60, 2)
    np.testing.assert_array_equal(model.transform(given), model.embedding_)


@pytest.mark.parametrize(
    "sampler", [SubsetRandomSampler(range(9)), WeightedRandomSampler([1.0] * 60, 60), RandomSampler(range(60), True)]
)
def test_a_loader_that_chooses_items_is_refused(sampler) -> None:
    with pytest.raises(ValueError, match=rf"sampler of the DataLoader, a {type(sampler).__name__}, .*Subset"):
        DRE(**OPTIONS).fit(DataLoader(MNIST(), sampler=sampler))


def test_a_loss_that_reads_labels_gets_those_of_the_dataset(monkeypatch) -> None:
    monkeypatch.setattr(LOSSES, "_members", LOSSES.members())  # other tests must not find this class
    seen = set()

    @dataclass(frozen=True)
    class Spy(Loss, name="spy-on-labels"):
        reads_labels = True

        def __call__(self, step):
            seen.update(step.labels.tolist())
            return step.y.square().mean()

    schedule = "x: gaussian(5) -> spy-on-labels * 1"
    DRE(**{**OPTIONS, "schedule": schedule}).fit(CIFAR10())
    assert seen == {0, 1, 2}
    with pytest.raises(ValueError, match="reads labels: pass them"):
        DRE(**{**OPTIONS, "schedule": schedule}).fit(COLOR)
