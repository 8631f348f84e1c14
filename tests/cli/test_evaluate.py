"""`noisegen evaluate`: writes a report, prints a table, and says in one line what is wrong."""

import json

import pytest
from runs import visible

from noisegen import cli

PAIRS = [
    ("see u tmrw", "See you tomorrow."),
    ("gr8 film lol", "Great film, I laughed."),
    ("its raining agian", "It's raining again."),
    ("Call me at 5.", "Call me at 5."),
    ("she dont like it", "She doesn't like it."),
    ("wher is anna", "Where is Anna?"),
]


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A BERT of one layer with random weights."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("model") / "tiny"
    folder.mkdir()
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,!?'"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{x}" for x in letters)]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=64)
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.BertModel(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "posts.tsv"
    rows = ["\t".join(pair) for pair in PAIRS]
    path.write_text("\n".join(["noisy\tclean", *rows]) + "\n", "utf-8")
    return str(path)


def test_a_report_is_written_and_a_table_printed(model, pairs, tmp_path, capsys):
    out = tmp_path / "report"
    assert cli.run(["evaluate", model, f"other={model}/.", "-o", str(out), "--pairs", pairs]) == 0
    said = capsys.readouterr()
    assert "natural pairs: tiny → other" in said.out
    assert "posts" in said.out
    assert f"wrote {out / 'report.html'}" in said.err
    names = {"means.csv", "metrics.json", "metrics.csv", "results.json", "report.html"}
    assert {*visible(out)} == names


def test_json_is_that_of_the_file(model, pairs, tmp_path, capsys):
    out = tmp_path / "report"
    assert cli.run(["evaluate", model, "-o", str(out), "--pairs", pairs, "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((out / "metrics.json").read_text())


def test_quiet_prints_nothing(model, pairs, tmp_path, capsys):
    assert cli.run(["evaluate", model, "-o", str(tmp_path / "r"), "--pairs", pairs, "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_noise_on_clean_text_has_a_line_for_each_transform(model, pairs, tmp_path, capsys):
    arguments = ["--source", pairs, "--text-column", "clean", "--transforms", "leet,fing"]
    arguments += ["--seeds", "2", "--strengths", "", "--no-hard"]
    assert cli.run(["evaluate", model, "-o", str(tmp_path / "r"), *arguments]) == 0
    out = capsys.readouterr().out
    assert "leet" in out
    assert "fing" in out
    assert "hard %" not in out


def test_damaged_rows_are_told_by_the_exit_code(model, pairs, tmp_path, capsys):
    with open(pairs, "ab") as file:  # noqa: PTH123
        file.write(b"\xff\xfe\tgone\n")
    assert cli.run(["evaluate", model, "-o", str(tmp_path / "r"), "--pairs", pairs, "-q"]) == 3
    assert "damaged: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "nothing to evaluate on: give --pairs"),
        (["--pairs", "none.tsv"], 1, "'none.tsv': no such file or folder"),
        (["--source", "PAIRS", "--transforms", "lete"], 2, "did you mean 'leet'?"),
        (["--sts", "PAIRS"], 1, "no column 'sentence1' among: noisy, clean"),
        (["--pairs", "PAIRS", "--strengths", "much"], 2, "'much' is not a list of numbers"),
        (["--pairs", "PAIRS", "--strengths", "-1"], 2, "--strengths are factors from 0 to 100"),
        (["--pairs", "PAIRS", "--recipe", "ucg"], 2, "did you mean 'ugc'?"),
        (["--pairs", "PAIRS", "--baseline", "minilmm"], 2, "no model 'minilmm'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(model, pairs, tmp_path, capsys, arguments, code, said):
    given = [pairs if one == "PAIRS" else one for one in arguments]
    assert cli.run(["evaluate", model, "-o", str(tmp_path / "r"), "-q", *given]) == code
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_a_full_folder_is_refused(model, pairs, tmp_path, capsys):
    assert cli.run(["evaluate", model, "-o", str(tmp_path), "--pairs", pairs, "-q"]) == 1
    assert "is not empty; add --force" in capsys.readouterr().err
