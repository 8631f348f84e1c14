"""A static student: one vector per token, which opens in three libraries alike."""

import json

import numpy as np
import pytest
from models import bert_folder
from training_runs import SHORT

import noisegen
from noisegen.encoders.encoder import open_encoder
from noisegen.encoders.static import static_form
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.similarity import cosine_distance

CLEAN = [f"see you at the {a} {b} tomorrow" for a in ("old", "new", "big") for b in range(40)]
WORDS = ("see", "you", "at", "the", "old", "new", "big", "tomorrow")


def write_lines(folder, lines):
    """Write a text file of lines; return its path."""
    path = folder / "clean.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


TEXTS = ["see you tomorrow", "c u 2moro", "☃", "the 7 old ones!", "you " * 200]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    return bert_folder(tmp_path_factory.mktemp("teacher"), WORDS)


@pytest.fixture(scope="module")
def run(tmp_path_factory, teacher):
    folder = tmp_path_factory.mktemp("run")
    source = write_lines(folder, CLEAN)
    values = {**SHORT, "noisy_words": 2000, "interpolate": 0.9}
    metrics = noisegen.train(
        source,
        str(folder / "run"),
        teacher=str(teacher),
        student="static",
        recipe="ugc-heavy",
        objective="mse_sum",
        steps=40,
        values=values,
    )
    return folder / "run", metrics


def test_training_brings_noisy_text_nearer_to_the_clean_vectors(run):
    folder, metrics = run
    assert metrics["validation"]["anchored"] < 0.9 * metrics["before"]["anchored"]
    assert "mean" not in json.loads((folder / "student" / "config.json").read_text("utf-8"))


def test_the_student_opens_in_sentence_transformers_with_the_same_vectors(run):
    from sentence_transformers import SentenceTransformer

    student = str(run[0] / "student")
    ours = open_encoder(student).encode(TEXTS)
    theirs = SentenceTransformer(student, device="cpu").float().encode([*TEXTS, ""])
    np.testing.assert_allclose(theirs[:-1], ours, atol=1e-5)
    assert not theirs[-1].any()


def test_the_student_opens_in_model2vec_with_the_same_vectors(run):
    model2vec = pytest.importorskip("model2vec")
    student = str(run[0] / "student")
    theirs = model2vec.StaticModel.from_pretrained(student).encode(TEXTS)
    np.testing.assert_allclose(theirs, open_encoder(student).encode(TEXTS), atol=2e-3)


def test_an_empty_text_has_a_vector_of_zeros(run):
    vectors = open_encoder(str(run[0] / "student")).encode(["", "see you"])
    assert not vectors[0].any()
    assert np.linalg.norm(vectors[1]) == pytest.approx(1, abs=1e-5)


def test_the_targets_keep_the_cosines_of_the_teacher(teacher):
    whole = open_encoder(str(teacher))
    form = static_form(whole, width=32)
    before, after = whole.encode(CLEAN), form.teacher.encode(CLEAN)
    before /= np.linalg.norm(before, axis=1, keepdims=True)
    np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-5)
    assert static_form(whole, width=8).teacher.width == form.student.width - 24 == 8


def test_a_static_student_trains_on_as_the_copy_of_a_teacher(run, tmp_path):
    source = write_lines(tmp_path, CLEAN)
    student = str(run[0] / "student")
    out = tmp_path / "run"
    values = {**SHORT, "select_by": "last"}
    noisegen.train(source, str(out), teacher=student, recipe="ugc", steps=2, values=values)
    vectors = [open_encoder(str(folder)).encode(TEXTS[:2]) for folder in (student, out / "student")]
    assert 0 < cosine_distance(*vectors) < 0.1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"values": {"pooling": "max"}}, "has no setting pooling"),
        ({"values": {"normalize": False}}, "vectors of length 1"),
        ({"teacher": "use"}, "has no vectors of tokens"),
    ],
)
def test_what_a_static_student_cannot_be_is_refused(tmp_path, teacher, given, message):
    source = write_lines(tmp_path, CLEAN)
    given = {"teacher": str(teacher), "recipe": "ugc", **given}
    with pytest.raises(UsageError, match=message):
        noisegen.train(source, str(tmp_path / "run"), student="static", steps=2, **given)


def test_a_static_teacher_of_a_static_student_is_refused(run):
    with pytest.raises(UsageError, match="is static already: give --student copy"):
        static_form(open_encoder(str(run[0] / "student")))


def test_a_folder_with_other_matrices_is_refused(run, tmp_path):
    from safetensors.numpy import save_file

    student = run[0] / "student"
    for path in student.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    few = {"embeddings": np.ones((3, 8), np.float16)}
    for weights, message in (
        (few, "do not fit"),
        ({**few, "mapping": np.zeros(3, np.int32)}, "supported is one matrix"),
        ({"other": few["embeddings"]}, "supported is one matrix"),
    ):
        save_file(weights, tmp_path / "model.safetensors")
        with pytest.raises(SourceError, match=message):
            open_encoder(str(tmp_path))
