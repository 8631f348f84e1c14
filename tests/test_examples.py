"""The examples do what they say, on small text."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.nightly


def run(name: str, *arguments: object, code: int = 0) -> str:
    command = [sys.executable, ROOT / "examples" / f"{name}.py", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def test_errors_are_mined_and_injected(tmp_path):
    page = (ROOT / "docs/guides/mining.md").read_text()
    dump = re.search(r'```xml title="town.xml"\n(.*?)```', page, re.S)[1]
    (tmp_path / "town.xml").write_text(dump)
    (tmp_path / "news.txt").write_text("The government closed the library.\n" * 20)
    shown = run("mine_and_inject", tmp_path / "town.xml", tmp_path / "news.txt", tmp_path / "out")
    assert "mined 4 pairs" in shown
    assert "'government' -> 'goverment'" in shown


def test_fresh_noise_is_worth_something():
    pytest.importorskip("gensim")
    same, fresh = map(float, re.findall(r"([\d.]+)% told apart", run("noise_in_training")))
    assert 65 < same < fresh


def test_a_robust_encoder_and_its_report(tmp_path, real_sentences):
    (tmp_path / "news.txt").write_text("\n".join(real_sentences[:300]) + "\n")
    shown = run("robust_encoder", tmp_path / "news.txt", tmp_path / "out", "30s")
    assert len(re.findall(r"^student .* distance", shown, re.M)) == 3
    assert (tmp_path / "out" / "report" / "report.html").is_file()


def test_a_student_in_eight_bits_gives_its_vectors_in_a_quarter_of_the_size(tmp_path, sentences):
    from noisegen.encoders.encoder import open_encoder
    from noisegen.encoders.folders import minilm_folder

    folder, packed, unpacked = minilm_folder(), tmp_path / "student.tar.xz", tmp_path / "student"
    run("small_student", "pack", folder, packed)
    run("small_student", "unpack", packed, unpacked)

    assert packed.stat().st_size < 25e6 < (folder / "model.safetensors").stat().st_size / 3
    before, after = (open_encoder(str(one)).encode(sentences) for one in (folder, unpacked))
    assert 0.998 < (before * after).sum(1).min() < 1


def test_a_packed_student_is_unpacked_into_a_new_folder_alone(tmp_path):
    folder, packed, text = tmp_path / "run", tmp_path / "packed", tmp_path / "text"
    folder.mkdir()
    save_file({"x": np.ones((2, 2), np.float32)}, folder / "model.safetensors")
    run("small_student", "pack", folder, packed)
    text.write_text("no archive")
    (tmp_path / "short").write_bytes(packed.read_bytes()[:-80])
    for name, member in (
        ("outside", "../evil"),
        ("other", "notes.txt"),
        ("damaged", "model.safetensors"),
    ):
        with tarfile.open(tmp_path / name, "w:xz") as tar:
            tar.addfile(tarfile.TarInfo(member))

    for source, target, reason in (
        (packed, folder, "exists: give the name of a new folder"),
        (packed, text, "exists: give the name of a new folder"),
        *(
            (tmp_path / name, tmp_path / "new", "; give a file that `pack` wrote")
            for name in ("text", "missing")
        ),
        *(
            (tmp_path / name, tmp_path / "cut", "; give a file that `pack` wrote")
            for name in ("short", "outside", "other", "damaged")
        ),
    ):
        said = run("small_student", "unpack", source, target, code=1)
        assert said.endswith(f"{reason}\n")
        assert said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "damaged",
        "other",
        "outside",
        "packed",
        "run",
        "short",
        "text",
    ]


def test_a_student_that_cannot_be_packed_is_one_line(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "model.safetensors").write_text("no weights")
    for file in (tmp_path / "packed", tmp_path / "missing" / "packed"):
        said = run("small_student", "pack", folder, file, code=1)
        assert said.startswith(f"cannot pack {folder} into {file}: ")
        assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
