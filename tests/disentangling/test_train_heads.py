"""From bitext to RUN/heads and back: what is written, what opens, what is refused."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

import noisegen
from noisegen.disentangling.heads import Heads, load_heads
from noisegen.disentangling.labelled_pairs import prepare_pairs
from noisegen.disentangling.pair_vectors import Standard
from noisegen.disentangling.run import train
from noisegen.disentangling.settings import HeadTraining
from noisegen.encoders.specs import open_encoder
from noisegen.errors import NoisegenError, OutputError, SourceError, UsageError
from noisegen.training.log import line_of
from noisegen.training.setting_values import load_settings

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
    return train([str(one) for one in data], out, values={**SHORT, "teacher": teacher, **values})


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
    assert found["labels"] == ["eng", "xyz"]
    logged = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert len(logged) == len(rows)
    steps = [row for row in rows if "loss" in row]
    assert {"loss_cross_reconstruction", "loss_intra_class", "loss_discriminator"} <= {*steps[-1]}
    assert all(np.isfinite(row["loss"]) for row in steps)
    assert "pairs/s" in line_of(steps[-1])


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


def test_an_encoder_that_normalises_keeps_its_step_before_the_head(
    tmp_path, bitext, tiny_models, sentences
):
    from dataclasses import replace

    from noisegen.encoders.folders import open_folder, save_folder
    from noisegen.encoders.head import HeadSettings

    normal = open_folder(tiny_models(32), head=replace(HeadSettings(), normalize=True))
    save_folder(normal, tmp_path / "normal")
    trained(tmp_path / "run", [bitext], str(tmp_path / "normal"))

    wanted = open_encoder(f"heads:{tmp_path / 'run' / 'heads'}").encode(sentences[:9])
    student = open_encoder(str(tmp_path / "run" / "student"))
    assert [one["path"] for one in json.loads((tmp_path / "run/student/modules.json").read_text())][
        1:
    ] == ["1_Pooling", "2_Normalize", "3_Dense"]
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
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    losses = [row["validation_loss"] for row in rows if "validation_loss" in row]

    assert min(losses) < losses[0]


def test_training_stops_when_validation_stands_still(tmp_path, bitext, teacher):
    found = trained(tmp_path / "run", [bitext], teacher, steps=5_000, lr=0.5, patience=2)

    assert found["updates"] < 5_000
    assert found["validation"]["step"] <= found["updates"] - 2


def test_time_ends_a_run(tmp_path, bitext, teacher):
    values = {"teacher": teacher, "time_limit": 0.5, "batch_pairs": 16, "patience": 10**6}
    found = train([str(bitext)], tmp_path / "run", values=values)
    assert 0.5 <= found["seconds"] < 30


def test_more_pairs_in_a_batch_than_there_are_is_one_batch(tmp_path, bitext, teacher):
    found = trained(tmp_path / "run", [bitext], teacher, batch_pairs=100_000)
    assert found["pairs"] == 6 * 108  # 120, a tenth of them held out


class Rows:
    """Vectors as the cache gives them."""

    def __init__(self, array):
        self.array, self.width = array, array.shape[1]

    def __len__(self):
        return len(self.array)

    def take(self, rows):
        return self.array[rows].astype(np.float32)


def test_standard_vectors_have_mean_0_and_mean_square_1_and_heads_take_them_raw():
    random = np.random.Generator(np.random.PCG64(0))
    raw = random.normal(2, 0.1, (9_000, 5)).astype(np.float16)
    standard = Standard.of(Rows(raw))
    made = (raw.astype(np.float64) - standard.centre) * standard.scale
    heads = Heads(5, torch.Generator().manual_seed(0))
    wanted = [one.detach() for one in heads(torch.from_numpy(made).float())]
    heads.unfold(torch.from_numpy(standard.centre), standard.scale)

    assert np.allclose(made.mean(0), 0, atol=1e-5)
    assert np.square(made).mean() == pytest.approx(1, rel=1e-4)
    for one, other in zip(heads(torch.from_numpy(raw).float()), wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-3)
    assert Standard.of(Rows(np.ones((3, 5)))).scale == 1  # all vectors are the same


def test_standard_vectors_are_what_heads_learn_from(tmp_path, bitext, teacher):
    plain, standard = (
        trained(tmp_path / str(flag), [bitext], teacher, standardize=flag)["validation"]
        for flag in (False, True)
    )
    assert plain["loss"] != standard["loss"]
    heads = [load_heads(tmp_path / str(flag) / "heads")[0] for flag in (False, True)]
    assert heads[1].meaning.weight.std() > 2 * heads[0].meaning.weight.std()  # unfolded


# Data


def read(folder, *data, **values):
    said = load_settings(HeadTraining, "oracle-small", None, values)
    return prepare_pairs(folder, [str(one) for one in data], said)


def test_languages_come_from_columns_settings_or_the_name(tmp_path):
    columns = table(
        tmp_path / "a.tsv", "source\ttarget\tsource_lang\ttarget_lang", "a b\tc d\ten\tde",
        "e\tf\ten\tfr",
    )  # fmt: skip
    named = table(tmp_path / "eng-cmn_Hans.tsv", "source\ttarget", "g\th", "i\tj")
    packed = tmp_path / "deu-eng.tsv.gz"
    packed.write_bytes(gzip.compress(named.read_bytes()))
    plain = table(tmp_path / "pairs.tsv", "source\ttarget", "g\th", "i\tj")

    assert read(tmp_path / "1", columns).names == ("en", "de", "fr")
    assert read(tmp_path / "2", named).names == ("eng", "cmn_Hans")
    assert read(tmp_path / "3", packed).names == ("deu", "eng")
    assert read(tmp_path / "4", plain, languages=["en", "it"]).names == ("en", "it")
    with pytest.raises(SourceError, match="does not say its languages"):
        read(tmp_path / "5", plain)


def test_every_text_is_kept_once_and_every_pair_finds_its_own(tmp_path):
    one = table(tmp_path / "en-de.tsv", "source\ttarget", "yes\tja", "no\tnein", "yes\tdoch")
    two = table(tmp_path / "en-fr.tsv", "source\ttarget", "no\tnon", "yes\toui", "\tvide", "a\t ")
    pairs = read(tmp_path / "data", one, two)
    texts = pairs.texts.take(np.arange(len(pairs.texts))).to_pylist()

    assert len(set(texts)) == len(texts) == 7
    found = [
        (texts[a], texts[b], pairs.names[x], pairs.names[y])
        for a, b, x, y in zip(
            pairs.source, pairs.target, pairs.source_label, pairs.target_label, strict=True
        )
    ]
    assert found == [
        ("yes", "ja", "en", "de"), ("no", "nein", "en", "de"), ("yes", "doch", "en", "de"),
        ("no", "non", "en", "fr"), ("yes", "oui", "en", "fr"),
    ]  # fmt: skip
    assert pairs.dropped == {"empty_cell": 2}


def test_noise_is_a_language_too(tmp_path, sentences):
    (tmp_path / "clean.txt").write_text("\n".join(sentences[:200]) + "\n")
    noisegen.augment(
        tmp_path / "clean.txt", tmp_path / "out", transforms=["fing:p=0.5", "leet:p=0.3"], seed=1
    )
    rows = pq.read_table(tmp_path / "out" / "part-00000.parquet").to_pylist()
    changed = [row for row in rows if row["noisy"] != row["clean"]]

    sides = read(tmp_path / "1", tmp_path / "out", labels="side")
    assert sides.names == ("noisy", "clean")
    assert len(sides) == len(changed)
    assert sides.dropped == {"same_sides": len(rows) - len(changed)}
    kinds = read(tmp_path / "2", tmp_path / "out", labels="transform")
    wanted = [one[0] if len(one) == 1 else "several" for one in (r["transforms"] for r in changed)]
    assert [kinds.names[label] for label in kinds.source_label] == wanted
    assert {kinds.names[label] for label in kinds.target_label} == {"clean"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [(["a\tb", "c\td"], None), (["a\tb"], "every source is the same"),
     (["a\tb", "c\tb"], "every target is the same"), (["\tb"], "no rows")],
)  # fmt: skip
def test_pairs_that_cannot_be_told_apart_are_refused(tmp_path, rows, said):
    data = table(tmp_path / "en-de.tsv", "source\ttarget", *rows)
    if said is None:
        read(tmp_path / "data", data)
        return
    with pytest.raises(SourceError, match=said):
        read(tmp_path / "data", data)


def test_one_language_alone_is_refused(tmp_path):
    data = table(
        tmp_path / "a.tsv", "source\ttarget\tsource_lang\ttarget_lang", "a\tb\ten\ten",
        "c\td\ten\ten",
    )  # fmt: skip
    with pytest.raises(SourceError, match="all texts are en: nothing to tell it from"):
        read(tmp_path / "data", data)


def test_names_of_transforms_need_output_of_augment(tmp_path):
    tsv = table(tmp_path / "a.tsv", "noisy\tclean\ttransforms", "a\tb\tfing")
    pq.write_table(pa.table({"noisy": ["a"], "clean": ["b"], "transforms": ["c"]}),
                   tmp_path / "a.parquet")  # fmt: skip
    for path in (tsv, tmp_path / "a.parquet"):
        with pytest.raises(SourceError, match="output of augment"):
            read(tmp_path / "data", path, labels="transform")


# Refusals


@pytest.mark.parametrize(
    ("values", "said"),
    [({"objective": "orcale"}, "did you mean 'oracle'"), ({"labels": "lang"}, "labels 'lang'"),
     ({"languages": ["en"]}, "two names"), ({"languages": ["en", "en"]}, "two names"),
     ({"teacher": "heads:somewhere"}, "name the encoder under them"),
     ({"batch_pairs": 0}, "batch_pairs 0"), ({"student": "copy"}, "no setting 'student'")],
)  # fmt: skip
def test_a_wrong_setting_is_met_before_an_old_run_is_removed(
    tmp_path, bitext, teacher, values, said
):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("teacher: minilm\n")
    with pytest.raises(UsageError, match=said):
        train([str(bitext)], tmp_path / "run", force=True,
              values={**SHORT, "teacher": teacher, **values})  # fmt: skip
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["config.yaml"]


def test_heads_are_not_resumed(tmp_path, bitext):
    with pytest.raises(UsageError, match="begin anew with --force"):
        train([str(bitext)], tmp_path / "run", resume=True)


def test_a_run_is_replaced_by_force_alone_with_all_that_is_in_it(tmp_path, bitext, teacher):
    trained(tmp_path / "run", [bitext], teacher)
    with pytest.raises(OutputError):
        trained(tmp_path / "run", [bitext], teacher)
    (tmp_path / "run" / "heads" / "left").write_text("")
    train([str(bitext)], tmp_path / "run", force=True, values={**SHORT, "teacher": teacher})
    assert not (tmp_path / "run" / "heads" / "left").exists()


def test_data_that_cannot_be_used_leave_nothing(tmp_path, teacher):
    few = table(tmp_path / "en-de.tsv", "source\ttarget", "a\tb", "c\td")
    with pytest.raises(SourceError, match="give more data"):
        trained(tmp_path / "run", [few], teacher)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_dry_run_writes_nothing(tmp_path, bitext, teacher):
    found = train([str(bitext)], tmp_path / "run", dry_run=True,
                  values={**SHORT, "teacher": teacher})  # fmt: skip
    assert found == {"weights": 2 * 33 * 32}
    assert not (tmp_path / "run").exists()


@pytest.fixture
def copied(run, tmp_path):
    shutil.copytree(run[0] / "heads", tmp_path / "heads")
    return tmp_path / "heads"


def changed(folder, **values):
    said = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(said | values))


def test_heads_of_another_encoder_are_refused(copied, tiny_models):
    changed(copied, encoder=str(tiny_models(32, 1)))
    with pytest.raises(SourceError, match="train heads anew"):
        open_encoder(f"heads:{copied}")


@pytest.mark.parametrize(
    ("values", "said"),
    [({"width": 31}, "does not hold two heads of width 31"), ({"kind": "bert"}, "is not the"),
     ({"width": "32"}, "is not the"), ({"width": 10**9}, "is not the"),
     ({"encoder": "heads:x"}, "heads on heads"), ({"encoder": "nothing"}, "no model 'nothing'")],
)  # fmt: skip
def test_a_config_that_does_not_fit_is_refused(copied, values, said):
    changed(copied, **values)
    with pytest.raises(NoisegenError, match=said):
        open_encoder(f"heads:{copied}")


def test_foreign_folders_and_damaged_weights_are_refused(copied, tmp_path, teacher):
    for folder in (tmp_path / "none", teacher):
        with pytest.raises(SourceError):
            open_encoder(f"heads:{folder}")
    weights = load_file(copied / "model.safetensors")
    save_file({**weights, "meaning.bias": weights["meaning.bias"] * float("nan")},
              copied / "model.safetensors")  # fmt: skip
    with pytest.raises(SourceError, match="does not hold two heads"):
        open_encoder(f"heads:{copied}")
    (copied / "model.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(SourceError, match="cannot read"):
        open_encoder(f"heads:{copied}")
    (copied / "model.safetensors").unlink()
    (copied / "model.bin").write_bytes(b"")
    with pytest.raises(SourceError, match="pickled"):
        open_encoder(f"heads:{copied}")


@pytest.mark.parametrize("preset", ["oracle", "oracle-small"])
def test_presets_are_read_and_the_papers_figures_stand_in_its_own(preset):
    said = load_settings(HeadTraining, preset)

    assert said.method == "heads"
    assert said.batch_pairs == 512
    if preset == "oracle":
        assert (said.lr, said.patience, said.schedule, said.betas, said.standardize) == (
            1e-5, 10, "constant", (0.9, 0.999), False,
        )  # fmt: skip
