import json
import re
import time
from unittest.mock import ANY

import numpy as np
import pytest
import torch
from models import bert_folder, character_bert, xlmr_folder
from tokenizers import normalizers

import noisegen
from noisegen.encoders.encoder import open_encoder
from noisegen.encoders.folders import open_folder, save_folder
from noisegen.encoders.tokens import with_preparation
from noisegen.errors import UsageError
from noisegen.training import distil
from noisegen.training.noisy_words import add_noisy_words, find_noisy_words
from noisegen.training.pairs import NoiseSource, Reading, prepare_data
from noisegen.training.settings import load_settings
from noisegen.training.students import make_student

WORDS = [
    "are",
    "back",
    "great",
    "like",
    "people",
    "peoples",
    "purple",
    "see",
    "than",
    "them",
    "then",
    "tomorrow",
    "will",
    "you",
]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return bert_folder(tmp_path_factory.mktemp("words"), WORDS)


@pytest.fixture
def student(bert):
    return make_student(load_settings("quickstart"), open_folder(bert))


# Kinds of an XLM-R's tokenizer: two of rules, and a class that sets its own.
KINDS = ("spaces", "split", "class")


def with_class(folder, name):
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_class": name}))
    return folder


def open_xlmr(folder, kind):
    xlmr_folder(folder, WORDS, is_split=kind == "split")
    return open_folder(with_class(folder, "XLMRobertaTokenizer") if kind == "class" else folder)


@pytest.fixture(params=KINDS)
def xlmr(request, tmp_path):
    return open_xlmr(tmp_path / "xlmr", request.param)


@pytest.fixture(params=["bert", "bert class", *KINDS])
def either(request, tmp_path):
    if request.param in KINDS:
        return open_xlmr(tmp_path / "xlmr", request.param)
    folder = bert_folder(tmp_path / "bert", [*WORDS, "[MASK]"])
    return open_folder(with_class(folder, "BertTokenizer") if "class" in request.param else folder)


def stored(folder, pairs):
    """Return DATA with these stored pairs; one more is held out."""
    lines = [*pairs, ("q", "quite another text")]
    folder.mkdir(exist_ok=True)
    path = folder / "pairs.tsv"
    path.write_text("noisy\tclean\n" + "".join(f"{a}\t{b}\n" for a, b in lines), "utf-8")
    data = prepare_data(folder / "data", [str(path)], Reading(held_out=1))
    rows = np.arange(len(lines))
    return type(data)(**{**vars(data), "training": rows[:-1], "validation": rows[-1:]})


def found(student, folder, pairs):
    return find_noisy_words(student, stored(folder, pairs), NoiseSource("stored"), 10_000)


def numbered(template, times):
    """Return the same pair several times, told apart by a last word, as distinct texts."""
    return [tuple(f"{side} {number} end" for side in template) for number in range(times)]


def test_a_form_is_found_with_the_words_it_stands_for(student, tmp_path):
    pairs = [
        *numbered(("hello Ppl", "Hello people"), 6),
        *numbered(("my ppl", "my peoples"), 2),
        *numbered(("a ppl", "a purple"), 1),
        *numbered(("bk", "back"), 2),
    ]

    # purple is 1 of 9, bk stands for a word twice only
    assert found(student, tmp_path, pairs) == {"ppl": {"people": 6, "peoples": 2, "purple": 1}}


@pytest.mark.parametrize(
    "template",
    [
        ("it ws gd", "it was fine and good"),  # the word of each form would be a guess
        ("tldr", "it is too long now"),  # a phrase has four words at most
        ("gr 8", "gr eat"),
        ("brb", "back , later"),
        ("hm !", "hm ?"),
        ("c it", "see it"),  # a piece of the tokenizer needs more occurrences
    ],
)
def test_other_differences_are_no_noisy_words(student, tmp_path, template):
    assert found(student, tmp_path, numbered(template, 9)) == {}


@pytest.mark.parametrize("words", ["don't", "be right back", "i don't know you"])
def test_a_form_may_stand_for_a_phrase(student, tmp_path, words):
    pairs = numbered(("now frms !", f"now {words} !"), 9)

    assert found(student, tmp_path, pairs) == {"frms": {words: 9}}


@pytest.mark.parametrize("form", ["idk", "like"])  # idk has three letters, like is a piece
@pytest.mark.parametrize(("times", "clean"), [(100, 2), (100, 3), (99, 0)])
def test_short_forms_and_words_are_replaced_if_they_are_sure(student, tmp_path, form, times, clean):
    pairs = numbered((f"now {form} !", "now i don't !"), times)

    known = found(student, tmp_path, pairs + numbered((f"my {form}",) * 2, clean))

    assert (form in known) == ((times, clean) == (100, 2))


@pytest.mark.parametrize(
    ("form", "word", "times"),
    [("wil", "will", 10), ("c", "see", 20)],  # c is a piece of the tokenizer
)
def test_a_form_that_clean_text_has_is_a_word(student, tmp_path, form, word, times):
    noisy, fifth = numbered((f"it {form} go", f"it {word} go"), times), times // 5

    for folder, clean in (("few", fifth), ("many", fifth + 1)):
        known = found(student, tmp_path / folder, noisy + numbered((f"my {form}",) * 2, clean))
        assert (form in known) == (clean == fifth)


def test_forms_are_those_of_the_text_that_the_student_reads(student, tmp_path):
    pytest.importorskip("sacremoses")
    backend = student.tokenizer.tokenizer.backend_tokenizer
    backend.normalizer = normalizers.NFC()  # cased, as roberta-base
    student.tokenizer = with_preparation(student.tokenizer, "laser")
    pairs = [*numbered(("hello PPL", "Hello People"), 2), *numbered(("a ppl", "a people"), 2)]

    assert found(student, tmp_path, pairs) == {"ppl": {"people": 4}}


def test_a_student_of_characters_is_refused_before_any_work(tiny_bert, tmp_path):
    texts, out = tmp_path / "texts.txt", tmp_path / "run"
    texts.write_text("see you tomorrow\nit is too late\n" * 9)
    character_bert(tmp_path / "characters")
    said = {"student": f"char:{tmp_path / 'characters'}", "noisy_words": 9}

    for dry_run in (True, False):
        with pytest.raises(
            UsageError,
            match="the student reads words or characters, not pieces of words: set noisy_words=0",
        ):
            noisegen.train([texts], out, teacher=str(tiny_bert), values=said, dry_run=dry_run)
    assert not out.exists()


@pytest.mark.parametrize(("recipe", "rows"), [("ugc", 400), ("stored", 90)])
def test_a_dry_run_counts_the_time_of_reading_noise(tiny_bert, tmp_path, monkeypatch, recipe, rows):
    """Some rows are read and timed; stored noise is read once, however many rows are asked for."""
    path, read, find = tmp_path / "pairs.tsv", [], distil.find_noisy_words
    lines = [f"u {row}\tyou {row}\n" for row in range(100)]
    path.write_text("noisy\tclean\n" + "".join(lines))

    def slow(*given):
        read.append(given[-1])
        time.sleep(given[-1] / 100)
        return find(*given)

    monkeypatch.setattr(distil, "find_noisy_words", slow)
    said = {"teacher": str(tiny_bert), "recipe": recipe, "noisy_words": 400, "steps": 1}
    clean = tmp_path / "clean.txt"
    clean.write_text("".join(f"you {row}\n" for row in range(100)))
    found = noisegen.train([path if recipe == "stored" else clean], values=said, dry_run=True)

    assert read[:2] == [16, 16]
    assert max(read) <= 90
    assert found["prepared"] >= rows / 100  # rounded to .1
    assert (
        noisegen.train([path], values=said | {"recipe": "stored", "noisy_words": 0}, dry_run=True)[
            "prepared"
        ]
        < found["prepared"]
    )


def test_the_search_ends_at_its_share_of_a_limit_and_shows_how_far_it_is(tiny_bert, tmp_path):
    texts, told, shown = tmp_path / "clean.txt", [], []
    texts.write_text("".join(f"see you {row} people tomorrow\n" for row in range(200)))
    said = {"teacher": str(tiny_bert), "recipe": "ugc-heavy", "noisy_words": 10**12}

    found = noisegen.train(
        [texts],
        tmp_path / "run",
        values=said | {"cpu_limit": 5},
        tell=told.append,
        progress=shown.append,
    )

    [line] = [line for line in told if "limit leaves" in line]
    assert re.fullmatch(
        r"the CPU limit leaves time for noisy words in [\d,]+ of 1,000,000,000,000 rows", line
    )
    rows = [event.done for event in shown if event.doing == "noisy words"]
    assert rows[0] == 0
    assert rows == sorted({*rows})
    assert f"{rows[-1]:,} of" in line
    assert found["updates"] > 1


def test_a_form_of_many_words_is_none_of_them(student, tmp_path):
    pairs = [pair for word in ("then", "than", "them") for pair in numbered(("thn", word), 5)]

    assert found(student, tmp_path, pairs) == {}


def test_recipes_are_drawn_until_there_are_as_many_rows(student, tmp_path):
    texts = ("you are great", "see you tomorrow", "people like you")
    pairs = [(text, text) for text in texts * 60]
    data, noise = stored(tmp_path, pairs), NoiseSource("ugc-heavy")

    few, words, again = (find_noisy_words(student, data, noise, n) for n in (9, 900, 900))

    assert few == {}
    assert words == again
    assert words["tmrw"].keys() == {"tomorrow"}
    meant = " ".join(word for counts in words.values() for word in counts)
    assert {*meant.split()} <= {*" ".join(texts).split()}


def test_a_stored_pair_counts_once_beside_noise_that_is_drawn_again_and_again(student, tmp_path):
    pairs = [("hello Ppl", "Hello people"), *numbered(("you are", "you are"), 9)]
    data, noise = stored(tmp_path, pairs), NoiseSource("stored+caps")

    assert find_noisy_words(student, data, noise, 2_000) == {}


def test_words_are_found_in_other_noise_too(tiny_bert, tmp_path):
    """Misspellings are rare in noise of posts, so there are too few of each."""
    texts, pairs = tmp_path / "clean.txt", tmp_path / "pairs.tsv"
    clean = [f"the people of {row} went tomorrow" for row in range(100)]
    texts.write_text("".join(f"{text}\n" for text in clean))
    rows = (f"{text.replace('tomorrow', 'tmoz')}\t{text}\n" for text in clean)
    pairs.write_text("noisy\tclean\n" + "".join(rows))

    def words(data, recipe, also):
        values = {
            "teacher": str(tiny_bert),
            "noisy_words": 2_000,
            "steps": 1,
            "recipe": recipe,
            "noisy_words_also": also,
        }
        noisegen.train([data], tmp_path / "run", values=values, force=True)
        return json.loads((tmp_path / "run" / "data" / "words.json").read_text())

    assert words(texts, "caps", None) == {}
    assert words(texts, "caps", "spel")["peopel"] == {"people": ANY}
    both = words(pairs, "stored", "spel")
    assert both["peopel"] == {"people": ANY}
    assert 40 < both["tmoz"]["tomorrow"] <= 100  # pairs, each once


@pytest.mark.parametrize(
    ("data", "also", "reason"),
    [
        ("clean.txt", "stored", "'stored': give recipes; stored noise is read if --recipe has it"),
        ("clean.txt", "stored:caps+spel", "'stored:caps+spel': give recipes"),
        ("clean.txt", "spl", "no recipe or transform named 'spl'; did you mean 'spel'"),
        ("de=clean.txt", "spel", "spel has no data for language 'de'; it has en"),
    ],
)
def test_other_noise_that_cannot_be_drawn_is_named_before_long_work(
    tiny_bert, tmp_path, monkeypatch, data, also, reason
):
    monkeypatch.setenv("NOISEGEN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "clean.txt").write_text("".join(f"row {row} of these\n" for row in range(40)))
    values = {"teacher": str(tiny_bert), "recipe": "caps", "noisy_words": 9, "steps": 1}
    name, _, path = data.rpartition("=")
    source = f"{name}{'=' if name else ''}{tmp_path / path}"

    with pytest.raises(UsageError, match=f"setting noisy_words_also:? {re.escape(reason)}"):
        noisegen.train([source], tmp_path / "run", values=values | {"noisy_words_also": also})
    assert not (tmp_path / "cache").exists()  # no vector of the teacher


def test_a_noisy_word_starts_as_its_word_and_nothing_else_changes(student, bert):
    teacher = open_folder(bert)
    texts = ["see ppl, ok", "supplies and applied pplx", "see people, ok", "Ppl!"]
    before = student.tokenizer.tokenize(texts)
    rows = student.network.get_input_embeddings().weight.detach().clone()
    people, purple = student.tokenizer.tokenize(["people purple"])[0][1:-1]

    words = {"ppl": {"people": 3, "purple": 1, "apples": 2}, "c": {"see": 1}}
    assert add_noisy_words(student, words) == (2, 0)  # apples has several pieces, so it is left out

    tokens = student.tokenizer.tokenize(texts)
    new = student.network.get_input_embeddings().weight
    number = student.tokenizer.tokenizer.convert_tokens_to_ids("ppl")
    assert torch.allclose(new[number], 0.75 * rows[people] + 0.25 * rows[purple])
    assert torch.equal(new[: len(rows)], rows)
    assert list(tokens[0]).count(number) == list(tokens[3]).count(number) == 1
    assert [list(tokens[i]) for i in (1, 2)] == [list(before[i]) for i in (1, 2)]
    single = student.tokenizer.tokenize(["c", "cat"])  # a piece, and a token of its own
    assert single[0][1] >= len(rows) > single[1][1]
    assert (student.encode(["see people, ok"]) == teacher.encode(["see people, ok"])).all()
    assert list(teacher.tokenizer.tokenize(["ppl"])[0]) == [*list(before[3])[:-2], 3]


PHRASES = {"dont": {"don't": 9}, "idk": {"i don't know": 8, "you": 1}, "ppl": {"people": 2}}


@pytest.mark.parametrize(
    ("noisy", "clean"),
    [
        ("i dont, you dont!", "i don't, you don't!"),
        ("idk", "i don't know"),
        ("dont? (dont), well...dont.", "don't? (don't), well...don't."),
        ("donts dontç xdont idk2 _dont dont's 'dont", "donts dontç xdont idk2 _dont dont's 'dont"),
        ("@dont #idk http://x/dont dont@x dont/do", "@dont #idk http://x/dont dont@x dont/do"),
        ("www.dont.com x=dont a-dont-b", "www.dont.com x=dont a-dont-b"),
    ],
)
def test_forms_of_several_pieces_are_read_as_their_words(either, tmp_path, noisy, clean):
    before = list(either.tokenizer.tokenize([clean])[0])

    assert add_noisy_words(either, PHRASES) == (1, 2)

    assert list(either.tokenizer.tokenize([noisy])[0]) == before
    save_folder(either, tmp_path / "saved")
    assert list(open_folder(tmp_path / "saved").tokenizer.tokenize([noisy])[0]) == before
    config = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"  # in all versions


def test_case_is_that_of_the_text_that_the_student_reads(student, xlmr):
    for encoder, is_read in ((student, True), (xlmr, False)):
        clean = list(encoder.tokenizer.tokenize(["I don't"])[0])
        add_noisy_words(encoder, PHRASES)
        assert (list(encoder.tokenizer.tokenize(["I DONT"])[0]) == clean) == is_read


def test_the_most_frequent_phrases_are_replaced(student, bert):
    words = {f"f{n}": {f"you're {n}th": n} for n in range(1, 101)}  # 5,050 in all

    assert add_noisy_words(student, words) == (0, 79)  # 1 to 21 are the last twentieth
    other = open_folder(bert)
    assert add_noisy_words(other, words, max_rules=10) == (0, 10)
    frequent, rarer = other.tokenizer.tokenize(["f91", "f90"])
    assert list(frequent) == list(open_folder(bert).tokenizer.tokenize(["you're 91th"])[0])
    assert list(rarer) == list(open_folder(bert).tokenizer.tokenize(["f90"])[0])


def test_a_form_that_is_not_replaced_is_no_token_of_a_rarer_word(student):
    words = {"dont": {"don't": 99}, "ur": {"you're": 5, "people": 4}, "ppl": {"people": 1}}

    assert add_noisy_words(student, words, max_rules=1) == (1, 1)
    assert "ur" not in student.tokenizer.tokenizer.get_vocab()


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("peoplez", "peoplesque"),  # it has several pieces, but is no phrase
        ("cafes", "café's"),  # the tokenizer strips the accent, which would come back
        ("dónt", "don't"),
        ("sawa", "สวัส ดี"),  # no piece has its letters
    ],
)
def test_what_the_tokenizer_would_not_read_is_not_replaced(student, form, word):
    before = list(student.tokenizer.tokenize([form])[0])

    assert add_noisy_words(student, {form: {word: 9}}) == (0, 0)
    assert list(student.tokenizer.tokenize([form])[0]) == before


def test_a_student_can_learn_more_words(either, tmp_path):
    texts = ["u dont", "ur", "see you're", "idk"]
    add_noisy_words(either, {"ur": {"people": 5}, "dont": {"don't": 3}})
    once = [list(row) for row in either.tokenizer.tokenize(texts)]
    save_folder(either, tmp_path / "saved")
    again = open_folder(tmp_path / "saved")

    more = {"ur": {"you're": 9}, "dont": {"don't": 3}, "idk": {"i don't know": 3}}
    assert add_noisy_words(again, more) == (0, 1)

    twice = [list(row) for row in again.tokenizer.tokenize(texts)]
    assert twice[:3] == once[:3]
    assert twice[3] == list(either.tokenizer.tokenize(["i don't know"])[0])


def test_its_folder_opens_here_and_in_sentence_transformers(student, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    add_noisy_words(student, PHRASES | {"c": {"see": 1}})
    texts = ["C u ppl", "see you people", "pplc", "idk, i dont"]
    vectors = student.encode(texts)
    save_folder(student, tmp_path)

    assert np.allclose(open_encoder(str(tmp_path)).encode(texts), vectors, atol=1e-6)
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path), device="cpu")
    assert np.allclose(theirs.encode(texts), vectors, atol=1e-5)


def test_what_follows_a_noisy_word_begins_no_word(xlmr, tmp_path):
    text = "{0}, ({0}) {0}'s {0}"
    clean = list(xlmr.tokenizer.tokenize([text.format("people")])[0])
    numbers = xlmr.tokenizer.tokenizer.convert_tokens_to_ids(["▁people", *"people"])
    assert add_noisy_words(xlmr, {"ppl": {"people": 1}}) == (1, 0)

    new = xlmr.tokenizer.tokenizer.convert_tokens_to_ids("ppl")
    bracket = next(i for i in range(len(clean)) if clean[i : i + 6] == numbers[1:])
    clean[bracket : bracket + 6] = [new]  # no space before it
    read = list(xlmr.tokenizer.tokenize([text.format("ppl")])[0])
    assert read == [new if number == numbers[0] else number for number in clean]
    save_folder(xlmr, tmp_path / "saved")
    assert list(open_folder(tmp_path / "saved").tokenizer.tokenize([text.format("ppl")])[0]) == read


def test_text_without_noisy_words_is_read_as_before(xlmr, demo_texts, odd_texts):
    blank = ["  a\u00a0b \u3000", "\x85a\u2028b\t\n", "▁ ▁a▁", "a ▁ b", "\ufeffx \u200b"]
    texts = [*demo_texts, *odd_texts, *blank, "quite quiet", "quite quietly", " quite quiet"]
    before = xlmr.tokenizer.tokenize(texts)
    add_noisy_words(xlmr, {"q-q": {"people": 1}, "qq": {"quite quiet": 1}})

    assert [list(row) for row in xlmr.tokenizer.tokenize(texts)] == [list(row) for row in before]


def test_minilm_understands_words_that_it_has_never_met():
    minilm = pytest.importorskip("noisegen.encoders.encoder").open_encoder("minilm")
    noisy, clean = ["thx 4 coming ppl"], ["thanks 4 coming people"]
    far = float((minilm.encode(noisy) * minilm.encode(clean)).sum())

    add_noisy_words(minilm, {"thx": {"thanks": 1}, "ppl": {"people": 1}})

    assert float((minilm.encode(noisy) * minilm.encode(clean)).sum()) > max(0.999, far)


def test_minilm_reads_n_as_and_but_not_in_the_not_of_treebanks():
    minilm = pytest.importorskip("noisegen.encoders.encoder").open_encoder("minilm")
    texts = ["rock and roll", "I did n't go", "I don’t , do n’t"]
    before = [list(row) for row in minilm.tokenizer.tokenize(texts)]

    assert add_noisy_words(minilm, {"n": {"and": 100}}) == (0, 1)

    noisy = ["rock n roll", *texts[1:]]
    assert [list(row) for row in minilm.tokenizer.tokenize(noisy)] == before


def test_students_of_words_or_characters_are_refused(student, tmp_path):
    student.tokenizer = object()

    with pytest.raises(UsageError, match="the student reads words or characters"):
        add_noisy_words(student, {})
