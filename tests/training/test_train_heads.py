"""From bitext to RUN/heads: the files that are written and opened, and refused settings."""

import json
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from models import head_of
from runs import log_rows
from safetensors.torch import load_file

import noisegen
from noisegen.encoders.encoder import open_encoder
from noisegen.errors import SourceError, UsageError
from noisegen.training.computation import Workers
from noisegen.training.disentangle import Disentangling, prepare_labelled
from noisegen.training.heads import Heads, load_heads
from noisegen.training.log import line_of
from noisegen.training.settings import load_settings

train = partial(noisegen.train, preset="oracle-small")
SHORT = {"steps": 6, "batch_pairs": 16, "warmup": 1}


@pytest.fixture(scope="session")
def bitext(tmp_path_factory, sentences):
    """A table whose target language is the source in capitals, its letters moved by one."""
    folder = tmp_path_factory.mktemp("bitext")
    moved = str.maketrans("abcdefghijklmnopqrstuvwxyz", "bcdefghijklmnopqrstuvwxyza")
    rows = [f"{text}\t{text.lower().translate(moved)}" for text in sentences[:120]]
    path = folder / "eng-xyz.tsv"
    path.write_text("\n".join(["source\ttarget", *rows]) + "\n")
    return path


@pytest.fixture(scope="session")
def teacher(tiny_models):
    return str(tiny_models(32))


@pytest.fixture(scope="session")
def run(tmp_path_factory, bitext, teacher):
    out = tmp_path_factory.mktemp("runs") / "run"
    rows = []
    found = train([str(bitext)], out, values={**SHORT, "teacher": teacher}, sinks=[rows.append])
    return out, found, rows


def trained(out, data, teacher, **values):
    values = {**SHORT, "teacher": teacher, **values}
    return train([str(one) for one in data], out, values=values, force_small=True)


def table(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_run_says_what_it_did(run, teacher):
    out, found, rows = run
    said = yaml.safe_load((out / "config.yaml").read_text())

    assert said["teacher"] == teacher
    assert said["method"] == "heads"
    assert json.loads((out / "metrics.json").read_text()) == found
    assert found["updates"] == 6
    assert found["labels"] == ["en", "xyz"]
    logged = log_rows(out)
    assert len(logged) == len(rows)
    steps = [row for row in rows if "loss" in row]
    assert {"loss_cross_reconstruction", "loss_intra_class", "loss_discriminator"} <= {*steps[-1]}
    assert all(np.isfinite(row["loss"]) for row in steps)
    assert f"loss {steps[-1]['smoothed_loss']:.4f}" in line_of(steps[-1])


def test_a_run_says_what_its_vectors_find_and_draws_them(run):
    out, found, _ = run
    ways = (
        "retrieval.forward",
        "retrieval.backward",
        "retrieval.forward." + "-".join(found["labels"]),
    )
    assert {*found["retrieval"]} == {"encoder", "meaning", "language"}
    assert all(0 <= side[way] <= 100 for side in found["retrieval"].values() for way in ways)
    picture = (out / "vectors.html").read_text("utf-8")
    assert "Meaning and language vectors of 6 pairs" in picture  # the test part
    assert all(picture.count(f"<title>en-xyz by {way}</title>") == 1 for way in ("PCA", "t-SNE"))


def test_both_heads_open_as_encoders_over_the_frozen_one(run, teacher, sentences):
    out, *_ = run
    frozen = open_encoder(teacher).encode(sentences[:20])
    heads, config = load_heads(out / "heads")
    for mark, side in (("", "meaning"), ("#meaning", "meaning"), ("#language", "language")):
        encoder = open_encoder(f"heads:{out / 'heads'}{mark}")
        layer = getattr(heads, side)
        wanted = frozen @ layer.weight.numpy().T + layer.bias.numpy()
        assert encoder.width == config.width == 32
        assert np.allclose(encoder.encode(sentences[:20]), wanted, atol=1e-5)
    meaning, language = (open_encoder(f"heads:{out / 'heads'}{m}") for m in ("", "#language"))
    assert meaning.digest != language.digest


def test_students_open_with_sentence_transformers_and_with_ours(run, sentences):
    out, *_ = run
    from sentence_transformers import SentenceTransformer

    for folder, mark in (("student", ""), ("language", "#language")):
        wanted = open_encoder(f"heads:{out / 'heads'}{mark}").encode(sentences[:9])
        theirs = SentenceTransformer(str(out / folder), device="cpu").encode(sentences[:9])
        ours = open_encoder(str(out / folder)).encode(sentences[:9])
        assert np.allclose(theirs, wanted, atol=1e-4)
        assert np.allclose(ours, wanted, atol=1e-4)


@pytest.mark.parametrize("projection", [None, 20])
def test_an_encoder_keeps_its_steps_before_the_head(
    tmp_path, bitext, tiny_models, sentences, projection
):
    from noisegen.encoders.folders import open_folder, save_folder

    normal = open_folder(tiny_models(32), head=head_of("mean", projection, "after", normalize=True))
    save_folder(normal, tmp_path / "normal")
    trained(tmp_path / "run", [bitext], str(tmp_path / "normal"))

    wanted = open_encoder(f"heads:{tmp_path / 'run' / 'heads'}").encode(sentences[:9])
    student = open_encoder(str(tmp_path / "run" / "student"))
    kinds = ["Pooling", *(["Dense"] if projection else []), "Normalize", "Dense"]
    assert [one["path"] for one in json.loads((tmp_path / "run/student/modules.json").read_text())][
        1:
    ] == [f"{number}_{kind}" for number, kind in enumerate(kinds, 1)]
    assert np.allclose(student.encode(sentences[:9]), wanted, atol=1e-4)
    save_folder(student, tmp_path / "again")
    assert np.allclose(
        open_encoder(str(tmp_path / "again")).encode(sentences[:9]), wanted, atol=1e-4
    )


def test_the_same_seed_gives_the_same_heads_and_another_one_others(tmp_path, bitext, teacher, run):
    trained(tmp_path / "same", [bitext], teacher)
    trained(tmp_path / "other", [bitext], teacher, seed=1)
    one, same, other = (
        load_file(folder / "heads" / "model.safetensors")
        for folder in (run[0], tmp_path / "same", tmp_path / "other")
    )

    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["meaning.weight"], other["meaning.weight"])


def test_new_heads_leave_global_random_numbers_alone():
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    Heads(8, torch.Generator().manual_seed(0))
    assert torch.equal(torch.rand(3), wanted)


@pytest.mark.parametrize(
    "objective", ["dream", "0.5*dream:third-term+oracle", "meat", "oracle:old"]
)
def test_every_objective_lowers_its_loss(tmp_path, bitext, teacher, objective):
    out = tmp_path / "run"
    trained(out, [bitext], teacher, objective=objective, steps=60, lr=3e-3)
    rows = log_rows(out)
    losses = [row["validation_loss"] for row in rows if "validation_loss" in row]

    assert min(losses) < losses[0]


def test_training_stops_when_validation_stands_still(tmp_path, bitext, teacher):
    found = trained(tmp_path / "run", [bitext], teacher, steps=5_000, lr=0.5, patience=2)

    assert found["updates"] < 5_000
    assert found["validation"]["step"] <= found["updates"] - 2


def test_a_tenth_of_the_pairs_is_held_out(tmp_path, bitext, teacher):
    """As in the paper: of all pairs together, not of each language."""
    values = {"teacher": teacher, "batch_pairs": 2}
    found = train([str(bitext)], tmp_path / "run", preset="oracle", dry_run=True, values=values)
    assert (found["pairs"], found["updates_per_epoch"]) == (120, 108 // 2)


def test_the_pairs_that_are_tested_are_not_those_that_stop_the_run(tmp_path, bitext, teacher):
    settings = load_settings("oracle-small", None, {**SHORT, "teacher": teacher})
    method = Disentangling(settings, Workers(), print)
    said = method.read([str(bitext)], tmp_path)

    assert said.startswith("108 pairs to train on, 6 held out, 6 to test")
    parts = np.concatenate([method.training, method.held_out, method.test])
    assert sorted(parts.tolist()) == list(range(120))


def test_random_pairs_of_each_two_languages_are_kept(tmp_path, bitext, teacher):
    other = table(tmp_path / "en-de.tsv", *bitext.read_text().splitlines()[:41])
    kept = {}
    for seed in (0, 0, 1):
        values = {"teacher": teacher, "bitext_rows": 50, "seed": seed}
        settings = load_settings("oracle", None, values)
        pairs = prepare_labelled(tmp_path / str(seed), [str(bitext), str(other)], settings)
        named = [pairs.names[label] for label in pairs.labels[:, 1]]
        texts = pairs.texts.take(pairs.sides[:, 0]).to_pylist()
        assert Counter(named) == {"xyz": 50, "de": 40}
        assert kept.setdefault(seed, texts) == texts
    first = [line.split("\t")[0] for line in bitext.read_text().splitlines()[1:51]]
    assert len({str(kept[0]), str(kept[1]), str(first)}) == 3
    assert load_settings("oracle").bitext_rows == 500_000


def test_time_ends_a_run(tmp_path, bitext, teacher):
    values = {"teacher": teacher, "time_limit": 2.5, "batch_pairs": 16, "patience": 10**6}
    found = train([str(bitext)], tmp_path / "run", values=values)
    assert 2 <= found["seconds"] < 3.5


def test_more_pairs_in_a_batch_than_there_are_is_one_batch(tmp_path, bitext, teacher):
    found = trained(tmp_path / "run", [bitext], teacher, batch_pairs=100_000)
    assert found["pairs"] == 6 * 108  # 120, a tenth of them held out


def test_standard_vectors_are_what_heads_learn_from(tmp_path, bitext, teacher):
    plain, standard = (
        trained(tmp_path / str(flag), [bitext], teacher, standardize=flag)["validation"]
        for flag in (False, True)
    )
    assert plain["loss"] != standard["loss"]
    heads = [load_heads(tmp_path / str(flag) / "heads")[0] for flag in (False, True)]
    assert heads[1].meaning.weight.std() > 2 * heads[0].meaning.weight.std()  # unfolded


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"objective": "orcale"}, "did you mean 'oracle'"),
        ({"labels": "lang"}, "labels 'lang'"),
        ({"languages": ["en"]}, "two different"),
        ({"languages": ["en", "en"]}, "two different"),
        ({"teacher": "heads:somewhere"}, "name the encoder under them"),
        ({"batch_pairs": 1}, "batch_pairs 1 is not a whole number, at least 2"),
        ({"keep": 5}, "keep 5 is not 3"),
        ({"student": "copy"}, "no setting 'student'"),
    ],
)
def test_a_wrong_setting_is_met_before_an_old_run_is_removed(
    tmp_path, bitext, teacher, values, said
):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("teacher: minilm\n")
    with pytest.raises(UsageError, match=said):
        train(
            [str(bitext)],
            tmp_path / "run",
            force=True,
            values={**SHORT, "teacher": teacher, **values},
        )
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["config.yaml"]


def test_heads_are_not_resumed(tmp_path, bitext):
    with pytest.raises(UsageError, match="cannot be resumed: start over"):
        train([str(bitext)], tmp_path / "run", resume=True)


def test_a_dry_run_writes_nothing(tmp_path, bitext, teacher):
    found = train(
        [str(bitext)], tmp_path / "run", dry_run=True, values={**SHORT, "teacher": teacher}
    )
    assert {"weights": 2 * 33 * 32, "pairs": 120, "texts": 240}.items() <= found.items()
    assert not (tmp_path / "run").exists()
    with pytest.raises(SourceError, match="no such file"):
        train(
            [str(tmp_path / "none.tsv")],
            tmp_path / "run",
            dry_run=True,
            values={**SHORT, "teacher": teacher},
        )


@pytest.mark.parametrize("objective", ["dream", "oracle", "meat+dream:third-term"])
@pytest.mark.parametrize(("rows", "values"), [(29, {}), (60, {"validation_rows": 1})])
def test_one_pair_held_out_is_too_few_where_pairs_are_compared(
    tmp_path, bitext, teacher, objective, rows, values
):
    """Its loss would be 0 whatever the heads do, and the untrained start stay the best."""
    few = table(tmp_path / "en-xyz.tsv", *bitext.read_text().splitlines()[: rows + 1])
    with pytest.raises(SourceError, match=r"one is held out, but .* compares two: .* at least 30"):
        trained(tmp_path / "run", [few], teacher, objective=objective, **values)
    assert not (tmp_path / "run").exists()
    assert trained(tmp_path / "run", [few], teacher, objective="meat")["validation"]["loss"] > 0


def test_two_pairs_held_out_are_enough(tmp_path, bitext, teacher):
    few = table(tmp_path / "en-xyz.tsv", *bitext.read_text().splitlines()[:31])
    found = trained(tmp_path / "run", [few], teacher, objective="dream", batch_pairs=2)
    assert found["validation"]["loss"] > 0.1


def test_the_preset_has_the_figures_of_the_paper():
    oracle = load_settings("oracle")
    figures = oracle.lr, oracle.patience, oracle.schedule, oracle.betas, oracle.standardize
    assert figures == (1e-5, 10, "constant", (0.9, 0.999), False)
    assert (oracle.epochs, oracle.seed, oracle.objective) == (10_000, 42, "meat+oracle")
    assert oracle.batch_pairs == load_settings("oracle-small").batch_pairs == 512
