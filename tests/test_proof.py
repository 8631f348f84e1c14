"""The benchmarks of docs/proof.md, on a few rows."""

import csv
import os
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import beside, which_noise, which_noise_languages
from benchmarks.arms_figure import arms_page
from benchmarks.development import SETS, files_digest, kept, markdown
from benchmarks.measure import ROOT
from benchmarks.rankings import tau
from benchmarks.systems import in_words
from noisegen.augmentation.catalog import example
from noisegen.noising.recipe import Recipe

needs_data = pytest.mark.skipif(not SETS, reason="development sets are not beside the clone")


def test_tau_is_one_minus_twice_the_share_of_swapped_pairs():
    order = np.array([0.1, 0.2, 0.3, 0.4])
    assert tau(order, 5 * order) == 1
    assert tau(order, -order) == -1
    assert tau(order, order[[1, 0, 2, 3]]) == pytest.approx(1 - 2 / 6)
    both = np.stack([order, -order], axis=1)
    assert tau(both, np.stack([order, order], axis=1)).tolist() == [1, -1]


def test_kept_values_are_read_and_not_made_again(tmp_path):
    path = tmp_path / "new" / "model.npz"
    made = kept(path, "9 rows", lambda: {"set/metric": np.arange(3.0)})
    assert made["set/metric"].tolist() == [0, 1, 2]
    assert kept(path, "9 rows", dict).keys() == {"set/metric"}
    assert kept(path, "8 rows", lambda: {"set/metric": np.zeros(1)})["set/metric"].tolist() == [0]
    assert kept(path, "8 rows", dict)["set/metric"].tolist() == [0]
    assert [file.name for file in path.parent.iterdir()] == ["model.npz"]


def test_a_digest_of_files_is_of_names_and_contents_alone(tmp_path):
    contents = {"same": "1", "again": "1", "other": "2", "renamed": "1"}
    for folder, content in contents.items():
        (tmp_path / folder / "deep").mkdir(parents=True)
        name = "head" if folder == "renamed" else "weights"
        (tmp_path / folder / "deep" / name).write_text(content)
        (tmp_path / folder / f"{folder}.pyc").write_text(folder)
    digests = {folder: files_digest(tmp_path / folder) for folder in contents}
    assert digests["same"] == digests["again"]
    assert len(set(digests.values())) == 3


@needs_data
def test_models_are_tested_against_those_that_minilm_anchors_as_well():
    values = {
        name: {
            "is_own": np.array([float(is_own)]),
            **{f"{dataset}/anchored_distance": np.full(50, 0.1) for dataset in SETS},
            **{f"{dataset}/xsim_error": np.zeros(50) for dataset in SETS},
        }
        for name, is_own in {"mine": False, "MiniLM": False, "static": True, "e5": True}.items()
    }
    assert {row[0] for row in beside.tests_of("mine", values)} == {"MiniLM"}
    assert not list(beside.tests_of("static", values))


def test_words_are_corrected_and_addresses_contractions_and_numbers_are_not():
    correct = in_words(lambda word: {"hose": "house", "tge": "the"}.get(word, word))
    assert correct("Tge hose, #hose @hose http://x.y/hose 2 hose's") == (
        "The house, #hose @hose http://x.y/hose 2 hose's"
    )
    assert correct("") == ""


def test_a_table_is_markdown():
    assert markdown(["a", "b"], [("x", 1)]) == "| a | b |\n| --- | ---: |\n| x | 1 |\n"


def anchored(distance, seed):
    """Values of a student: anchored distances about `distance` on each set."""
    rows = np.random.default_rng(seed).normal(distance, 0.01, 200)
    return {f"{name}/anchored_distance": rows for name in SETS}


@needs_data
def test_our_noise_is_tested_against_the_nearest_of_other_tools(monkeypatch):
    arms = [which_noise.Arm("theirs", list, "numpy"), which_noise.Arm("worse", list, "numpy")]
    monkeypatch.setattr(which_noise, "ARMS", arms)
    students = {"theirs": 0.05, "worse": 0.09, "ugc": 0.04, "ugc-heavy": 0.05, "fit": 0.06}
    values = {name: [anchored(at, n) for n in range(2)] for name, at in students.items()}
    lines = which_noise.tests_table(values).splitlines()[2:]
    assert [line.split("|")[3].strip() for line in lines] == ["theirs"] * len(lines)
    assert [line.split("|")[5].strip() for line in lines[:3]] == [
        "2, 0 of 2",
        "0, 0 of 2",
        "0, 2 of 2",
    ]
    assert "to test ours against" in which_noise.tests_table({"ugc": values["ugc"]})


@needs_data
def test_the_figure_has_a_point_per_arm_and_a_small_one_per_seed():
    arms = {
        "none": (0.08, 0.04),
        "mix_all": (0.06, 0.01),
        "ugc": (0.04, 0.01),
        "pairs": (0.08,) * 2,
    }
    values = {
        name: [
            {f"{dataset}/anchored_distance": np.array([of_seed]) for dataset in SETS}
            | {f"{dataset}/drift": np.array([of_seed / 10]) for dataset in SETS}
            for of_seed in seeds
        ]
        for name, seeds in arms.items()
    }
    kinds = {name: which_noise.kind_of(name) for name in values}
    assert list(kinds.values()) == ["no noise", "others", "noisegen", "real pairs"]
    html = arms_page(values, kinds, "none")
    assert html.count("<title>ugc: 62 % nearer, drift 0.0025</title>") == len(SETS)  # 50 and 75 %
    assert html.count("<title>pairs: -50 % nearer, drift 0.0080</title>") == len(SETS)
    for style in range(len(kinds)):
        assert html.count(f"m{style} mark faint") == 2 * len(SETS)
        assert html.count(f"m{style} mark strong") == len(SETS)


def test_texts_get_the_recipes_of_a_mixed_arm_in_turn():
    texts = example("casual").splitlines()[:31]
    noisy = which_noise.in_turn("ugc-heavy+leet:rate=1")(texts)
    for first, name in enumerate(["ugc-heavy", "leet:rate=1"]):
        alone = which_noise.of_recipe(Recipe.named(name))(texts[first::2])
        assert noisy[first::2] == alone != texts[first::2]


def test_languages_are_counted_in_which_noise_is_nearer_and_drift_is_a_mean():
    langs = which_noise_languages.LANGS
    students = {"none": 0.08, "textnoisr": 0.06, "mix_all": 0.07, "ugc": 0.04, "ugc-heavy": 0.06}
    values = {}
    for name, at in students.items():
        rows = np.random.default_rng(len(name)).normal(at, 0.001, 100)
        of_langs = {f"{lang}/anchored_distance": rows for lang in langs}
        values[name] = [of_langs | {f"{lang}/drift": rows / 10 for lang in langs}]
    lines = which_noise_languages.main_table(values).splitlines()
    assert lines[2] == "| none | " + "1.00 | " * (len(langs) + 1) + "0.0080 |"
    assert lines[5] == "| ugc | " + "2.00 | " * (len(langs) + 1) + "0.0040 |"
    tests = which_noise_languages.tests_table(values).splitlines()[2:]
    assert tests[0] == f"| 0 | ugc | {len(langs)} | 0 |"


@needs_data
@pytest.mark.nightly
def test_systems_are_put_side_by_side_and_ranked(tmp_path):
    model = f"mine={tmp_path / 'model'}"
    save_minilm(tmp_path / "model")
    table = run("beside", model, "-o", tmp_path / "beside", "--rows", 30)
    tables = table[table.index("| system") :].rstrip().split("\n\n")
    first, second = map(str.splitlines, tables)
    rows = {line.split("|")[1].strip(): line for line in first}
    assert {"MiniLM", "multilingual e5", "mine", "normalize + mine"} <= rows.keys()
    assert rows["mine"].split("|")[2:-4] == rows["MiniLM"].split("|")[2:-4]
    tests = [line.split("|") for line in second if line.startswith("| MiniLM |")]
    assert [cells[-2].strip() for cells in tests] == ["same"] * 2 * len(SETS)  # it is MiniLM
    orders = run("rankings", model, "-o", tmp_path / "rankings", "--rows", 30)
    assert "| ugc | " in orders
    assert (tmp_path / "rankings" / "rankings.md").read_text("utf-8") in orders


@needs_data
@pytest.mark.nightly
def test_arms_differ_in_their_noise_alone(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(example("casual").splitlines()[:300]), "utf-8")
    given = [text, "-o", tmp_path / "out", "--arms", "ugc", "--seeds", 1, "--jobs", 1]
    table = run("which_noise", *given, "--minutes", 0.4, "--rows", 30)
    ugc = next(line.split("|") for line in table.splitlines() if line.startswith("| ugc |"))
    assert float(ugc[2]) > 0  # its character error rate
    assert float(ugc[3]) > 1  # nearer than the control arm
    pairs, settings = {}, {}
    for arm in ("none", "ugc"):
        with (tmp_path / "out" / "noise" / f"{arm}.csv").open(newline="") as file:
            pairs[arm] = [(row["noisy"], row["clean"]) for row in csv.DictReader(file)]
        written = (tmp_path / "out" / "students-0.4m" / f"{arm}-0" / "config.yaml").read_text()
        settings[arm] = written.replace(f"{arm}.csv", "PAIRS").replace(f"{arm}-0", "RUN")
    assert settings["none"] == settings["ugc"]
    assert [clean for _, clean in pairs["none"]] == [clean for _, clean in pairs["ugc"]]
    assert all(noisy == clean for noisy, clean in pairs["none"])
    assert any(noisy != clean for noisy, clean in pairs["ugc"])


def save_minilm(folder):
    from noisegen.encoders.encoder import open_encoder
    from noisegen.encoders.folders import save_folder

    save_folder(open_encoder("minilm"), folder)


def run(name, *arguments):
    """Return what a benchmark prints."""
    return subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
