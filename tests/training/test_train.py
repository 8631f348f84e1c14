"""Training end to end on a tiny teacher: it learns, it resumes bit by bit, it refuses."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
import torch
import yaml
from models import character_bert
from runs import PROGRAM, forget, log_rows, same_weights, trained_weights
from safetensors.torch import load_file
from training_runs import SHORT

import noisegen
from noisegen.cli import run as command
from noisegen.encoders.encoder import open_encoder
from noisegen.errors import NoisegenError, OutputError, SourceError, UsageError
from noisegen.training import cost
from noisegen.training.objectives import WeightedSum
from noisegen.training.summary import reached


@pytest.fixture(scope="module")
def train(tiny_bert, pairs_file):
    def run(out, data=pairs_file, resume=False, force=False, dry_run=False, **values):
        said = {"teacher": str(tiny_bert), "steps": 12, **SHORT, **values}
        return noisegen.train([data], out, values=said, resume=resume, force=force, dry_run=dry_run)

    return run


@pytest.fixture(scope="module")
def ended(train, tmp_path_factory):
    """A run that ended, which tests only copy."""
    out = tmp_path_factory.mktemp("ended") / "run"
    train(out)
    return out


def validations(run):
    return [row["validation_loss"] for row in log_rows(run) if "validation_loss" in row]


def test_a_student_learns_and_its_folder_opens(train, tmp_path, tiny_bert, pairs_file):
    found = train(
        tmp_path / "run", steps=60, validate_every=20, student="layers:0", objective="two_term"
    )
    losses = validations(tmp_path / "run")

    assert min(losses[1:]) < 0.6 * losses[0]
    assert found["validation"]["loss"] == pytest.approx(min(losses), rel=1e-5)
    assert json.loads((tmp_path / "run" / "metrics.json").read_text()) == found
    said = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (said["steps"], said["preset"]) == (60, "quickstart")
    card = (tmp_path / "run" / "student" / "README.md").read_text()
    _, head, body = card.split("---\n", 2)
    assert yaml.safe_load(head) == {
        "license": "other",
        "language": ["en"],
        "base_model": tiny_bert.name,
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "noisegen", "robustness"],
    }
    assert f"Training data: `{pairs_file}` (" in body
    [before, after] = re.findall(r"fell from\s(\S+) to (\S+)\.\n", body)[0]
    assert float(after) < float(before)
    [shown] = re.findall(r"\| noisy \| clean \|\n\| --- \| --- \|\n\| (.*) \|\n", body)
    noisy, clean = shown.split(" | ")
    assert clean != noisy
    assert f"{clean}\t" in pairs_file.read_text()
    assert "ugc" in card
    assert f"{found['validation']['drift']:.4f}" in card


def test_sentence_transformers_opens_the_student(train, tmp_path, sentences):
    from sentence_transformers import SentenceTransformer

    train(tmp_path / "run", project="before", pooling="max")
    ours = open_encoder(str(tmp_path / "run" / "student")).encode(sentences[:20])
    theirs = SentenceTransformer(str(tmp_path / "run" / "student"), device="cpu")

    assert abs(theirs.encode(sentences[:20]) - ours).max() < 1e-5
    assert not list((tmp_path / "run" / "student").rglob("*.bin"))


def test_training_stops_without_a_new_best_and_a_resumed_run_knows(train, tmp_path):
    values = {"steps": 200, "lr": 5.0, "warmup": 0, "patience": 2}
    found = train(tmp_path / "run", **values)
    losses = validations(tmp_path / "run")
    shown = reached(found)

    assert found["updates"] == 4 * (len(losses) - 1) < 200
    assert min(losses[-2:]) >= min(losses[:-2]) > 0
    assert shown.startswith(f"{found['updates']} updates in ")
    assert shown.endswith("; it ended early, without a new best in its last validations")
    assert train(tmp_path / "run", resume=True, **values)["updates"] == found["updates"]
    assert not train(tmp_path / "long", steps=4, patience=1)["stopped_early"]


def test_the_learning_rate_falls_with_the_root_of_the_updates(train, tmp_path):
    train(tmp_path / "run", schedule="inverse_sqrt", warmup=4, steps=30, lr=1e-4, validate_every=30)
    rates = {row["step"]: row["lr"] for row in log_rows(tmp_path / "run") if "lr" in row}

    assert rates[1] == pytest.approx(1e-4 / 4)
    for step in (10, 20, 30):
        assert rates[step] == pytest.approx(1e-4 * (4 / step) ** 0.5, rel=1e-5)


@pytest.mark.parametrize("recipe", ["stored", "ugc"])
def test_a_resumed_run_ends_with_the_same_bits(train, tmp_path, recipe):
    values = {"recipe": recipe, "dropout": 0.1}
    train(tmp_path / "whole", **values)
    half = shutil.copytree(tmp_path / "whole", tmp_path / "half")
    forget(half, 12, 8)

    train(half, resume=True, **values)

    assert same_weights(trained_weights(tmp_path / "whole", 12), trained_weights(half, 12))
    assert validations(tmp_path / "whole") == validations(half)


def test_an_interpolated_student_lies_between_the_best_weights_and_the_start(
    train, tmp_path, tiny_bert
):
    found = train(
        tmp_path / "run", steps=40, validate_every=20, student="layers:0", interpolate=0.5
    )
    start = open_encoder(str(tiny_bert)).state_dict()
    best = load_file(tmp_path / "run" / "checkpoints" / "best.safetensors")
    student = open_encoder(str(tmp_path / "run" / "student")).state_dict()

    assert any((best[name] != start[name]).any() for name in best)
    for name in best:
        assert torch.allclose(student[name], (best[name] + start[name]) / 2, atol=1e-6)
    assert found["validation"]["loss"] > min(validations(tmp_path / "run"))


@pytest.mark.nightly
def test_a_killed_run_is_taken_up_and_ends_as_if_it_had_not_been(
    train, tmp_path, tiny_bert, pairs_file
):
    train(tmp_path / "whole", steps=60)
    given = [f"--set={key}={value}" for key, value in SHORT.items()]
    out = tmp_path / "killed"
    words = f"train {pairs_file} -o {out} --teacher {tiny_bert} --steps 60".split()
    command = [*PROGRAM, *words, *given]
    threads = str(torch.get_num_threads())  # sums of another number of threads round otherwise
    environment = {**os.environ, "OMP_NUM_THREADS": threads}
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
    while child.poll() is None and not (out / "checkpoints" / "step-0000008").exists():
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    child.wait()

    train(out, steps=60, resume=True)

    assert same_weights(trained_weights(tmp_path / "whole", 60), trained_weights(out, 60))


def test_accumulated_batches_give_the_gradient_of_one_large_batch(tiny_bert):
    """The weight of a batch is its number of sentences."""
    student = open_encoder(str(tiny_bert))
    from noisegen.encoders.tokens import Padded
    from noisegen.training.losses import Batch, Output

    objective = WeightedSum.parse("mse_sum")
    texts = [f"sentence number {i} is here" for i in range(10)]
    teacher = torch.randn(10, 32)

    def gradient(parts):
        student.zero_grad()
        for rows in parts:
            ids = student.tokenizer.tokenize([texts[row] for row in rows])
            vectors = student(Padded.of(ids, 0))
            loss, _ = objective(Batch(teacher[rows]), Output(vectors))
            (loss * len(rows) / 10).backward()
        return torch.cat([w.grad.flatten() for w in student.parameters() if w.grad is not None])

    whole, parted = gradient([list(range(10))]), gradient([[0, 1, 2], [3], [4, 5, 6, 7, 8, 9]])
    assert torch.allclose(whole, parted, atol=1e-5)


def test_batches_of_a_student_that_reads_characters_are_counted_in_them(tmp_path, tiny_bert):
    """As in c-RoLASER's code: the characters of a text, and an end sign per word."""
    character_bert(tmp_path / "characters", pickled=True)
    words = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(120)]
    rows = [f"{word}{word} {word}xyz {word}\t{word} clean" for word in words]
    data = tmp_path / "pairs.tsv"
    data.write_text("\n".join(["noisy\tclean", *rows]) + "\n")
    values = {"student": f"char:{tmp_path / 'characters'}", "teacher": str(tiny_bert)}
    values |= {"recipe": "stored", "max_length": 16, "objective": "mse_sum", "lower": True}
    characters = 5 + 6 + 3 + 2 * 2  # three words and two special ones, each with its end sign

    def updates(**more):
        found = noisegen.train(
            [str(data)], tmp_path / "run", dry_run=True, values={**values, "steps": 1, **more}
        )
        return found["pairs"], found["updates_per_epoch"]

    pairs, count = updates(batch_unit="characters", batch_tokens=10 * characters)
    assert count == math.ceil(pairs / 10)
    assert updates(batch_tokens=10 * 5)[1] == count  # of five words each
    with pytest.raises(UsageError, match="batch_unit characters is for students that read char"):
        updates(batch_unit="characters", student="copy", lower=False)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"accumulate": 999}, "are fewer than the 999 batches of an update: give more data, or"),
        ({"recipe": ""}, "recipe is empty: give a value, or leave it out"),
        ({"recipe": "stored+"}, "no recipe or transform named ''"),
    ],
)
def test_settings_that_no_run_can_have_are_refused(train, tmp_path, values, said, dry_run):
    with pytest.raises(UsageError, match=said):
        train(tmp_path / "run", dry_run=dry_run, **values)
    assert not (tmp_path / "run").exists()


def test_a_dry_run_says_what_it_costs_and_writes_nothing(train, tmp_path):
    found = train(tmp_path / "run", dry_run=True)

    assert found["pairs"] > 300
    assert found["parameters"] == found["trained"] > 10_000
    assert found["updates"] == 12
    # The times are rounded to tenths of a second.
    assert found["seconds"] + 0.1 > found["prepared"] + 12 * found["update_seconds"]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("limit", ["time", "cpu"])
@pytest.mark.parametrize("objective", ["two_term", "mlm+nt_xent", "oracle"])
def test_a_dry_run_says_how_much_a_limit_allows(
    tiny_models, pairs_file, tmp_path, capsys, objective, limit, monkeypatch
):
    monkeypatch.setattr(cost, "SAMPLE_SECONDS", 0.05)
    more = ["--set=labels=side"] if objective == "oracle" else []
    model = "--student" if "mlm" in objective else "--teacher"
    words = [
        "train",
        str(pairs_file),
        "--objective",
        objective,
        model,
        str(tiny_models()),
        f"--{limit}-limit=1h",
        "--dry-run",
        *more,
    ]
    if limit == "cpu":  # four threads that compute all the time
        monkeypatch.setattr(cost.time, "process_time", lambda: 4 * cost.time.monotonic())
    assert command(words) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    whole = "1 h" if limit == "time" else "15 min"
    assert re.fullmatch(
        rf"about {whole}: \d+ s of preparation, then [\d,]+ updates "
        r"\([\d,.]+ epochs\) and validation",
        last,
    )


def test_other_settings_are_no_continuation(train, ended, tmp_path):
    shutil.copytree(ended, tmp_path / "run")
    with pytest.raises(OutputError, match=r"trained with lr 0\.001, not 0\.01"):
        train(tmp_path / "run", resume=True, lr=1e-2)
    with pytest.raises(OutputError, match="not empty"):
        train(tmp_path / "run")
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("noisy_words: 0\n", ""))
    with pytest.raises(OutputError, match="trained with noisy_words None, not 0"):
        train(tmp_path / "run", resume=True)
    with pytest.raises(OutputError, match="no run to resume"):
        train(tmp_path / "other", resume=True)
    train(tmp_path / "run", force=True, steps=4)


def test_a_corrupt_checkpoint_is_one_line(train, ended, tmp_path):
    shutil.copytree(ended, tmp_path / "run")
    path = tmp_path / "run" / "checkpoints" / "step-0000012" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])

    with pytest.raises(OutputError, match=r"cannot read checkpoint .*step-0000012"):
        train(tmp_path / "run", resume=True)


def test_a_loss_that_is_no_number_stops_and_the_last_good_weights_stay(train, tmp_path):
    with pytest.raises(NoisegenError, match="last good"):
        train(tmp_path / "run", lr=1e30, warmup=0, clip=1e30, normalize=False)

    good = load_file(tmp_path / "run" / "checkpoints" / "best.safetensors")
    assert all(torch.isfinite(value).all() for value in good.values())


def test_drift_above_the_limit_stops(train, tmp_path):
    with pytest.raises(NoisegenError, match=r"clean drift .* above max_drift 1e-06 at step 4"):
        train(tmp_path / "run", max_drift=1e-6)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("clean\tnoisy\n", "no "),
        ("clean\tnoisy\n\tx\ny\t\n", "no pairs to train on"),
        ("clean\tnoisy\na\tb\n", "give more data"),
    ],
)
def test_data_without_pairs_is_refused(train, tmp_path, content, said):
    path = tmp_path / "data.tsv"
    path.write_text(content)
    with pytest.raises(SourceError, match=said):
        train(tmp_path / "run", data=path, recipe="stored")


def test_few_pairs_need_an_option_that_the_error_names(pairs_file, tiny_bert, tmp_path, capsys):
    few = tmp_path / "few.tsv"
    few.write_text("\n".join(pairs_file.read_text().splitlines()[:41]) + "\n")
    settings = [f"{name}={value}" for name, value in {**SHORT, "validation_rows": 5}.items()]
    words = ["train", str(few), "-o", str(tmp_path / "run"), "--teacher", str(tiny_bert)]
    words += ["--steps", "2", *(word for value in settings for word in ("--set", value))]
    assert command(words) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: 36 pairs to train on: a student needs at least 50, ")
    assert error.endswith("; give more DATA, or add --force-small")
    assert not (tmp_path / "run").exists()
    assert command([*words, "--force-small"]) == 0
    assert "warning: 36 pairs to train on" in capsys.readouterr().err
    assert command([*words, "--resume"]) == 0  # the run is allowed already


def test_one_long_text_does_no_harm(train, tmp_path, sentences):
    path = tmp_path / "data.tsv"
    rows = [f"{text}\t{text}" for text in [*sentences[:80], "word " * 20_000]]
    path.write_text("\n".join(["clean\tnoisy", *rows]) + "\n")

    train(tmp_path / "run", data=path, steps=4)

    losses = [row["loss"] for row in log_rows(tmp_path / "run") if "loss" in row]
    assert losses
    assert all(map(math.isfinite, losses))


def test_no_clean_text_is_on_both_sides(train, tmp_path, pairs_file, sentences):
    from noisegen.training.pairs import Reading, prepare_data

    path = tmp_path / "twice.tsv"
    lines = pairs_file.read_text().splitlines()
    path.write_text("\n".join([*lines, *lines[1:]]) + "\n")
    data = prepare_data(tmp_path / "data", [str(path)], Reading(held_out=60))

    assert len(data.clean) == len(set(sentences))
    assert not {*data.owner[data.training]} & {*data.owner[data.validation]}
    assert len(data.training) + len(data.validation) == 2 * len(sentences)
    assert 20 < len(data.validation) < 120
    clean = data.clean.take(data.owner).to_pylist()
    assert clean == [line.split("\t")[0] for line in [*lines[1:], *lines[1:]]]


def test_teachers_vectors_are_computed_once(tiny_bert, tmp_path, sentences):
    from text_stores import write_texts

    from noisegen.training.stores import teacher_vectors

    teacher, asked = open_encoder(str(tiny_bert)), []
    encode = teacher.encode
    teacher.encode = lambda texts: (asked.append(len(texts)), encode(texts))[1]
    texts = write_texts(tmp_path, "clean", sentences)
    for _ in range(2):
        vectors = teacher_vectors(teacher, texts, tmp_path / "cache")

    assert asked == [len(sentences)]
    import numpy as np

    rows = np.array([5, 0, 5, 399])
    wanted = encode([sentences[row] for row in rows])
    assert abs(vectors.take(rows) - wanted).max() < 2e-3


def test_the_wrong_teacher_is_named(train, tmp_path):
    with pytest.raises(UsageError, match="no model 'minilmm'"):
        train(tmp_path / "run", teacher="minilmm")
