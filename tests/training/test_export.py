"""`noisegen export`: one folder for the Hub, which opens with and without torch."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from training_runs import SHORT, trained

import noisegen
from noisegen.encoders.encoder import open_encoder
from noisegen.errors import OutputError, UsageError
from noisegen.evaluation.similarity import cosine_distances
from noisegen.training.export import FLOATS, INT8, onnx_vectors

TEXTS = ["see you tomorrow", "i dont c u 2moro", "x", "the 7 old ones!", "you " * 200]


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("student"))


@pytest.fixture(scope="module")
def exported(student):
    out = student.parent / "exported"
    return out, noisegen.export(str(student), str(out))


def test_graphs_give_the_vectors_of_the_student(student, exported):
    out, figures = exported
    assert "don't" in (student / "tokenizer.json").read_text("utf-8")
    ours = open_encoder(str(student)).encode(TEXTS)
    for name, most in ((FLOATS, 1e-6), (INT8, 1e-3)):
        assert cosine_distances(ours, onnx_vectors(out, name, TEXTS)).max() < most
        assert figures[name]["bytes"] == (out / name).stat().st_size
        assert 0 <= figures[name]["mean"] <= figures[name]["max"] < most


def test_graphs_have_no_path_of_this_machine(exported):
    for name in (FLOATS, INT8):
        assert b".py" not in (exported[0] / name).read_bytes()


def test_int8_stores_a_number_in_a_byte(exported):
    _, figures = exported
    saved = figures[FLOATS]["bytes"] - figures[INT8]["bytes"]
    weights = 2 * (4 * 32 * 32 + 2 * 32 * 64)  # in two layers: attention, feed-forward
    assert saved > 2 * weights  # at least two of four bytes


def test_sentence_transformers_opens_the_folder(student, exported):
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(exported[0]), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, open_encoder(str(student)).encode(TEXTS), atol=1e-5)


def test_the_lines_of_the_model_card_run_without_torch(student, exported):
    out, _ = exported
    card = (out / "README.md").read_text("utf-8")
    lines = re.findall(r"```python\n(.*?)```", card, re.S)[-1].replace(
        "PATH/TO/THIS/FOLDER", str(out)
    )
    lines += "import sys\nassert 'torch' not in sys.modules\nprint(vectors.tolist())"
    made = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    ours = open_encoder(str(student)).encode(["see you tomorrow", "c u 2moro"])
    assert cosine_distances(ours, np.array(json.loads(made.stdout), np.float32)).max() < 1e-3
    assert card.startswith("---\nlicense:")
    assert "## What it reached" in card


def test_a_static_student_is_exported(tmp_path):
    student = trained(tmp_path, student="static")
    figures = noisegen.export(str(student), str(tmp_path / "exported"))
    assert figures[FLOATS]["max"] < 1e-6
    assert figures[INT8]["max"] < 1e-3


def test_a_static_student_of_a_robust_student_has_its_noisy_words(student, tmp_path):
    pairs = student.parent.parent / "pairs.tsv"
    values = {**SHORT, "noisy_words": 0}
    given = {"teacher": str(student), "student": "static", "recipe": "stored", "values": values}
    noisegen.train(str(pairs), str(tmp_path / "run"), steps=2, **given)
    static = open_encoder(str(tmp_path / "run" / "student"))
    noisy, clean = static.encode(["dont see", "don't see"])
    np.testing.assert_array_equal(noisy, clean)


def test_a_full_folder_is_refused_unless_forced(student, exported):
    out, _ = exported
    with pytest.raises(OutputError, match="--force"):
        noisegen.export(str(student), str(out))
    before = (out / INT8).read_bytes()
    noisegen.export(str(student), str(out), force=True)
    assert (out / INT8).read_bytes() == before
    with pytest.raises(UsageError, match="is the student itself"):
        noisegen.export(str(out), str(out), force=True)


def test_files_of_others_are_kept(student, tmp_path):
    (tmp_path / "README.md").write_text("mine", "utf-8")
    with pytest.raises(OutputError, match="noisegen did not export"):
        noisegen.export(str(student), str(tmp_path), force=True)


def test_models_without_pieces_are_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be exported"):
        noisegen.export("use", str(tmp_path / "out"))


@pytest.mark.nightly
def test_minilm_is_exported_within_a_thousandth(tmp_path):
    figures = noisegen.export("minilm", str(tmp_path))
    assert figures[FLOATS]["max"] < 1e-6
    assert figures[INT8]["max"] < 1e-3
    assert figures[INT8]["bytes"] < 0.28 * figures[FLOATS]["bytes"]
