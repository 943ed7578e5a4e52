"""Folders of images: sorted, of one size, gray or color, and decoded when they are asked for."""

import numpy as np
import pytest
from PIL import Image
from row_checks import same_rows

from dre.io.readers import ReadOptions, SourceError, open_source

GRAY = np.random.default_rng(0).integers(256, size=(12, 6, 5), dtype=np.uint8)
COLOR = np.random.default_rng(0).integers(256, size=(12, 6, 5, 3), dtype=np.uint8)


def write(folder, images, suffix=".png"):
    folder.mkdir(exist_ok=True, parents=True)
    for i, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{i:02}{suffix}")
    return folder


@pytest.mark.parametrize("suffix", [".png", ".PNG", ".bmp", ".tif"])
@pytest.mark.parametrize("images", [GRAY, COLOR], ids=["gray", "color"])
def test_images_are_those_that_were_written(tmp_path, images, suffix):
    found = open_source(write(tmp_path / "x", images, suffix))
    same_rows(found.rows, images)
    assert found.names.tolist() == [f"{i:02}{suffix}" for i in range(12)]
    assert found.metadata == {}


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg", ".webp", ".gif"])
def test_all_suffixes_are_read(tmp_path, suffix):
    assert open_source(write(tmp_path / "x", COLOR, suffix)).rows.shape == (12, 6, 5, 3)


def test_a_gif_of_grays_is_gray(tmp_path):
    same_rows(open_source(write(tmp_path / "x", GRAY, ".gif")).rows, GRAY)


def test_palettes_and_transparency_are_converted(tmp_path):
    folder = write(tmp_path / "x", COLOR)
    Image.fromarray(COLOR[3]).convert("RGBA").save(folder / "03.png")
    flat = np.zeros((6, 5, 3), np.uint8) + np.array([200, 10, 30], np.uint8)
    Image.fromarray(flat).convert("P", palette=Image.Palette.ADAPTIVE).save(folder / "04.png")
    same_rows(open_source(folder).rows, np.concatenate([COLOR[:4], flat[None], COLOR[5:]]))


def test_folders_inside_are_what_is_known_of_images(tmp_path):
    write(tmp_path / "x" / "cats", GRAY[:5])
    write(tmp_path / "x" / "<b>$(dogs)<", GRAY[5:])
    write(tmp_path / "x" / ".hidden", GRAY)
    (tmp_path / "x" / "notes.txt").write_text("no image")
    (tmp_path / "x" / "._00.png").write_text("no image")
    found = open_source(tmp_path / "x")
    same_rows(found.rows, np.concatenate([GRAY[5:], GRAY[:5]]))
    assert found.metadata["folder"].tolist() == ["<b>$(dogs)<"] * 7 + ["cats"] * 5
    assert found.names[-1] == "cats/04.png"


def test_sizes_that_differ_are_resized_and_it_is_said(tmp_path):
    folder = write(tmp_path / "x", GRAY)
    Image.fromarray(np.full((12, 10), 77, np.uint8)).save(folder / "07.png")
    found = open_source(folder)
    assert found.rows.shape == (12, 6, 5)
    assert found.messages == [
        "1 of 12 images, of 2 sizes, are cropped in the middle and resized to 6 × 5 pixels, height × width"
    ]
    rows = found.rows.read(0, 12).numpy()
    assert (rows[7] == 77).all()
    np.testing.assert_array_equal(np.delete(rows, 7, 0), np.delete(GRAY, 7, 0))
    assert Image.open(folder / "07.png").size == (10, 12)  # what is on the disk stays as it was


def test_photos_of_all_sizes_become_small_squares_or_what_is_said(tmp_path):
    (tmp_path / "x").mkdir()
    for i in range(6):
        Image.fromarray(np.full((20 + i, 30 + 2 * i, 3), 40 * i, np.uint8)).save(tmp_path / "x" / f"{i}.png")
    found = open_source(tmp_path / "x")
    assert found.rows.shape == (6, 64, 64, 3)
    assert (found.rows.read(0, 6).numpy() == 40 * np.arange(6)[:, None, None, None]).all()
    assert open_source(f"{tmp_path}/x:16").rows.shape == (6, 16, 16, 3)
    assert open_source(f"{tmp_path}/x:16x8").rows.shape == (6, 16, 8, 3)
    assert open_source(tmp_path / "x", options=ReadOptions(size=(16, 8))).rows.shape == (6, 16, 8, 3)
    for shape in ((12, 10, 3), (12, 10)):  # as a model was fitted: in gray, too
        assert open_source(tmp_path / "x", options=ReadOptions(row_shape=shape)).rows.shape == (6, *shape)
    for part in ("large", "16x", "1x2x5", "0"):
        with pytest.raises(SourceError, match="expected a number of pixels, as in x:64"):
            open_source(f"{tmp_path}/x:{part}")


def test_gray_beside_color_is_color(tmp_path):
    folder = write(tmp_path / "x", COLOR)
    Image.fromarray(GRAY[0]).save(folder / "07.png")
    found = open_source(folder)
    assert found.messages == ["1 gray images are read as color, like the other 11"]
    np.testing.assert_array_equal(found.rows.read(7, 8)[0], np.repeat(GRAY[0][:, :, None], 3, 2))


def test_sixteen_bits_keep_the_upper_eight(tmp_path):
    same_rows(open_source(write(tmp_path / "x", GRAY.astype(np.uint16) * 257)).rows, GRAY)


def test_a_folder_without_images_and_one_image_are_named(tmp_path):
    with pytest.raises(SourceError, match="is a folder without images"):
        open_source(tmp_path)
    with pytest.raises(SourceError, match="is a single image: pass the folder"):
        open_source(write(tmp_path, GRAY) / "00.png")


def test_damaged_images_are_an_error_of_two_lines(tmp_path):
    folder = write(tmp_path / "x", GRAY)
    whole = (folder / "03.png").read_bytes()
    (folder / "03.png").write_bytes(whole[:60])
    rows = open_source(folder).rows
    with pytest.raises(SourceError, match=r"03\.png cannot be read") as caught:
        rows.read(0, 12)
    assert len(str(caught.value).splitlines()) == 2
    (folder / "03.png").write_bytes(b"no image")
    with pytest.raises(SourceError, match=r"03\.png cannot be read"):
        open_source(folder)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif", ".gif"])
def test_a_palette_is_color_unless_all_of_it_is_gray(tmp_path, suffix):
    flat = np.zeros((6, 5, 3), np.uint8) + np.array([200, 10, 30], np.uint8)
    (tmp_path / "x").mkdir()
    Image.fromarray(flat).convert("P", palette=Image.Palette.ADAPTIVE).save(tmp_path / "x" / f"a{suffix}")
    np.testing.assert_array_equal(open_source(tmp_path / "x").rows.read(0, 1)[0], flat)


def test_small_images_are_read_without_asking_for_the_free_memory(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("dre.io.readers.memory.available_bytes", lambda: asked.append(1) or 2**40)
    for i in range(20):
        Image.new("L", (28, 28), i).save(tmp_path / f"{i}.png")
    opened = open_source(tmp_path).rows
    rows = len(asked)
    assert opened.read(0, 20).shape == (20, 28, 28)
    assert rows < 10
    assert len(asked) == rows


def test_nested_folders_have_an_outermost_one(tmp_path):
    write(tmp_path / "x" / "cats", GRAY[:2])
    write(tmp_path / "x" / "cats" / "indoor", GRAY[2:5])
    write(tmp_path / "x" / "dogs", GRAY[5:])
    write(tmp_path / "x", GRAY[:1])
    found = open_source(tmp_path / "x")
    assert found.names[0] == "00.png"
    assert found.metadata["folder"].tolist() == [""] + ["cats"] * 2 + ["cats/indoor"] * 3 + ["dogs"] * 7
    assert found.metadata["top_folder"].tolist() == [""] + ["cats"] * 5 + ["dogs"] * 7
    same_rows(found.rows, np.concatenate([GRAY[:1], GRAY]))


def test_what_is_no_image_is_left_out_and_said(tmp_path):
    folder = write(tmp_path / "x", GRAY)
    (folder / "notes.txt").write_text("no image")
    assert open_source(folder).messages == [
        "notes.txt is no image (.png, .jpg, .jpeg, .bmp, .gif, .tif, .tiff, .webp) and left out"
    ]
    (folder / "b.heic").write_text("no image")
    assert "2 files are no images, such as b.heic" in open_source(folder).messages[0]


def test_images_that_can_not_be_read_are_left_out_where_that_is_asked_for(tmp_path):
    folder = write(tmp_path / "x" / "cats", GRAY).parent
    whole = (folder / "cats" / "03.png").read_bytes()
    (folder / "cats" / "03.png").write_bytes(whole[:60])  # its header can be read
    (folder / "cats" / "05.png").write_bytes(b"no image")
    with pytest.raises(SourceError, match=r"05\.png cannot be read(.|\n)*pass missing='drop' to leave out images"):
        open_source(folder)
    found = open_source(folder, options=ReadOptions(missing="drop"))
    np.testing.assert_array_equal(found.rows.read(0, 10).numpy(), np.delete(GRAY, [3, 5], 0))
    assert found.messages == ["2 of 12 images cannot be read and are left out: cats/03.png, cats/05.png"]
    assert np.flatnonzero(~found.dropped.kept).tolist() == [3, 5]
    assert found.dropped.names.tolist() == [f"cats/{i:02}.png" for i in range(12)]
    assert found.metadata["folder"].tolist() == ["cats"] * 10
    for file in (folder / "cats").iterdir():
        file.write_bytes(b"no image")
    with pytest.raises(SourceError, match="none of its 12 images can be read"):
        open_source(folder, options=ReadOptions(missing="drop"))


def test_transparent_images_are_laid_on_white_and_turned_photos_are_upright(tmp_path):
    clear = np.zeros((6, 5, 4), np.uint8)
    (tmp_path / "x").mkdir()
    Image.fromarray(clear).save(tmp_path / "x" / "a.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.rot90(COLOR[0])).save(tmp_path / "x" / "b.png", exif=exif)
    found = open_source(tmp_path / "x")
    assert found.rows.shape == (2, 6, 5, 3)
    assert (found.rows.read(0, 1) == 255).all()
    np.testing.assert_array_equal(found.rows.read(1, 2)[0], COLOR[0])
    assert found.messages == [
        "1 of 2 images may be transparent, and are laid on white",
        "1 of 2 images are turned upright, as their EXIF data say",
    ]
