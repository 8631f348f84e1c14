"""RCP's rule of injection: both forms of the kernel, its chances, labels, dictionaries."""

import csv
import gzip
import json
import math
import re
import unicodedata
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import SHARED

import noisegen
from noisegen.errors import LexiconError, UsageError
from noisegen.noising.engine import Engine
from noisegen.noising.mix import Step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings
from noisegen.noising.rng import CERTAIN
from noisegen.testing import ODD_TEXTS, check_transform
from noisegen.transforms.learned import SIGNS_MAX, is_sign, least_tokens, limits

# A word, its wrong forms with counts; the first are frequent enough to occur in any English text.
LISTED = (
    "the teh 5, the hte 2, the th 1, The Teh 3, of fo 1, and adn 7, and nad 1, in ni 1, is si 2, "
    "is iz 1, was wsa 1, with whit 3, its it's 9, it's its 9, U.S. US 1, been ben 1, été ete 4, "
    "वर्तनी वर्तनि 2, well-known wellknown 1"
)
ENTRIES = [(c, n, int(count)) for c, n, count in map(str.split, LISTED.split(", "))]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A dictionary file."""
    path = tmp_path_factory.mktemp("dictionary") / "dictionary.tsv"
    rows = ["clean\tnoisy\tcount", *("\t".join(map(str, entry)) for entry in ENTRIES)]
    path.write_text("\n".join(rows) + "\n", "utf-8")
    return path


def noised(path, texts, rate, ids=None, seed=0, lang="en"):
    step = Step("wiki", {"dictionary": str(path), "rate": rate})
    numbers = np.array(range(len(texts)) if ids is None else ids, np.uint64)
    engine = Engine(Recipe.of([step]), Settings(lang))
    return engine.noise(pa.array(texts, pa.string()), Streams(numbers, seed)).noisy.to_pylist()


def fits(observed, expected=None):
    """Tell whether chi-square is below what chance exceeds once in 10,000 (Wilson-Hilferty)."""
    expected = expected or [sum(observed) / len(observed)] * len(observed)
    found = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    freedom = len(observed) - 1
    spread = 2 / (9 * freedom)
    return found < freedom * (1 - spread + 3.719 * math.sqrt(spread)) ** 3


def test_the_measure_of_chance_can_fail():
    assert fits([1_000, 1_050, 980])
    assert not fits([1_000, 1_200, 1_000])


def noised_twice(path, texts, rate, seed=0):
    """The noise of a batch, which is that of its rows alone."""
    step = Step("wiki", {"dictionary": str(path), "rate": rate})
    engine = Engine(Recipe.of([step]))
    streams = Streams(np.arange(len(texts), dtype=np.uint64), seed)
    noisy = engine.noise(pa.array(texts, pa.string()), streams).noisy.to_pylist()
    assert engine.noise_few(texts, streams) == noisy
    return noisy


@pytest.mark.parametrize("rate", ["0.05", "0.1", "0.2", "1"])
def test_both_forms_agree(path, real_sentences, rate):
    texts = real_sentences[:3_000]
    assert noised_twice(path, texts, float(rate)) != texts


ODD_TOKENS = (
    "the|(the)|“the,”|the\u00a0:|\u200bthe|été,|ÉTÉ|is\nis\tis\r\nis|वर्तनी।|«वर्तनी»|well-known."
    "|well-|U.S.|(U.S.)|U.S|THE|the-the|it's its'|\x0bthe\x0cthe|the\x1cthe|😀the😀"
    "| the  of \t and |_the_|#the @is"
)
SIGNS_AROUND = [sign * count for sign in "!…" for count in (SIGNS_MAX, SIGNS_MAX + 1)]
ODD = [
    *ODD_TEXTS,
    *ODD_TOKENS.split("|"),
    *(f"{signs}the" for signs in SIGNS_AROUND),
    *(f"the{signs}" for signs in SIGNS_AROUND),
    "…" * 40,
    "the" * 30,
]


@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_both_forms_agree_on_odd_text(path, seed):
    assert noised_twice(path, ODD, 1, seed) != ODD


def test_both_forms_agree_on_long_rows_and_random_bytes(path):
    dice = np.random.default_rng(5)
    signs = list("the of is and été ...,;\"' \t\n\u00a0\u0301।漢")
    texts = ["".join(dice.choice(signs, dice.integers(0, 80))) for _ in range(2_000)]
    texts.append("the cat, and the dog. " * 4_000)
    assert noised_twice(path, texts, 0.3) != texts


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("word, the, end", "teh,"),
        ("He said “the”", "“hte”"),
        ("the U.S. wins", "US"),
        ("वर्तनी। है", "वर्तनि।"),
        ("a well-known one", "wellknown"),
    ],
)
def test_signs_around_a_word_stay(path, text, becomes):
    found = noised(path, [text] * 50, 1)
    assert any(becomes in noisy.split() for noisy in found)


def test_case_counts(path):
    assert noised(path, ["THE OF And"] * 20, 1) == ["THE OF And"] * 20
    assert {"Teh end"} == set(noised(path, ["The end"] * 20, 1))


def test_a_row_without_a_match_stays(path):
    assert noised(path, ["Nothing here matches", ""], 1) == ["Nothing here matches", ""]


def test_the_number_of_tokens_never_changes(path, real_sentences):
    texts = real_sentences[:2_000]
    noisy = noised(path, texts, 0.2)

    assert [len(text.split()) for text in noisy] == [len(text.split()) for text in texts]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        ("0.1", [1, 11, 21, 31]),
        ("0.05", [1, 21, 41, 61]),
        ("0.2", [1, 6, 11, 16]),
        ("1", [1, 2, 3, 4]),
        ("0.3", [1, 4, 7, 11]),
        ("0.123456789012345678", [1, 9, 17, 25]),
    ],
)
def test_the_ceiling_is_exact(rate, expected):
    assert least_tokens(Fraction(rate)) == expected
    for length in range(200):
        ceiling = math.ceil(min(Fraction(4), Fraction(rate) * length))
        assert sum(length >= least for least in expected) == ceiling


def changed(text, noisy):
    return sum(a != b for a, b in zip(text.split(), noisy.split(), strict=True))


@pytest.mark.parametrize(
    ("rate", "length", "highest"),
    [
        (0.1, 10, 1),
        (0.1, 12, 2),
        (0.1, 21, 3),
        (0.1, 31, 4),
        (0.1, 90, 4),
        (0.05, 22, 2),
        (0.2, 9, 2),
    ],
)
def test_n_is_uniform_up_to_its_ceiling(path, rate, length, highest):
    """Every token matches, so n tokens change."""
    text = " ".join(["of"] * length)
    counts = Counter(changed(text, noisy) for noisy in noised(path, [text] * 6_000, rate))

    assert sorted(counts) == list(range(1, highest + 1))
    assert highest == 1 or fits(list(counts.values()))


def test_every_token_is_drawn_as_often(path):
    """Of five places that match among nine, each is replaced as often, and so is each pair."""
    text = "of x of x of x of x of"
    places, pairs = Counter(), Counter()
    for noisy in noised(path, [text] * 8_000, 0.2):
        hit = tuple(i for i, token in enumerate(noisy.split()) if token == "fo")
        places.update(hit)
        pairs[hit] += len(hit) == 2

    assert fits(list(places.values()))
    pairs = [count for hit, count in pairs.items() if len(hit) == 2]
    assert len(pairs) == 10
    assert fits(pairs)


def test_alternatives_come_by_their_probabilities(path):
    found = Counter(noised(path, ["the"] * 20_000, 0.1))

    shares = {"teh": 5, "hte": 2, "th": 1}
    assert set(found) == set(shares)
    expected = [20_000 * share / 8 for share in shares.values()]
    assert fits([found[noisy] for noisy in shares], expected)


FREQUENCIES = {"the": 90_000, "The": 10, "of": 300, "and": 50, "in": 2, "is": 7, "was": 1_000}


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """The same dictionary, which says how often its words were right."""
    path = tmp_path_factory.mktemp("dictionary") / "dictionary.tsv"
    rows = [(*entry, FREQUENCIES.get(entry[0], 0)) for entry in ENTRIES]
    lines = ["clean\tnoisy\tcount\tfrequency", *("\t".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_what_is_seldom_wrong_seldom_takes_part(counted, real_sentences):
    wrong = Counter[str]()
    for word, _, count in ENTRIES:
        wrong[word] += count
    seen = {word: wrong[word] + FREQUENCIES.get(word, 0) for word in wrong}
    mean = Fraction(sum(wrong.values()), sum(seen.values()))
    shares = {word: (wrong[word] + 10 * mean) / (seen[word] + 10) for word in wrong}
    usual = sorted(share for word, share in shares.items() for _ in range(wrong[word]))
    usual = usual[(len(usual) - 1) // 2]
    expected = {word: min(1, share / usual) * CERTAIN for word, share in shares.items()}
    found = limits([(wrong[word], FREQUENCIES.get(word, 0)) for word in wrong])

    assert found.tolist() == pytest.approx(list(map(float, expected.values())), rel=1e-9)
    assert expected["the"] < CERTAIN / 1_000 < expected["of"] < expected["is"]
    assert noised_twice(counted, real_sentences[:2_000], 0.3) != real_sentences[:2_000]


def test_one_error_among_many_does_not_hit_every_time(tmp_path):
    """German 'und', once written 'unde', was changed in every third sentence."""
    (tmp_path / "d.tsv").write_text(
        "clean\tnoisy\tcount\tfrequency\nund\tunde\t1\t900\ndass\tdas\t9\t30\n", "utf-8"
    )
    rows = noised(tmp_path / "d.tsv", ["er und sie"] * 5_000 + ["so dass er"] * 100, 1)
    assert 0 < sum("unde" in row for row in rows) < 5_000 / 25
    assert set(rows[5_000:]) == {"so das er"}


def test_limits_of_odd_counts():
    assert limits([]).tolist() == []
    assert limits([(3, 0), (1, 0)]).tolist() == [CERTAIN] * 2
    assert limits([(1, 1 << 48), (1, 1 << 48)]).tolist() == [CERTAIN] * 2
    rare, usual = limits([(1, 1 << 48), (5, 5)]).tolist()
    assert rare == 0 or rare < usual == CERTAIN


def test_without_frequencies_it_is_the_paper_s_rule(path, counted, real_sentences):
    """A dictionary of the profile rcp, or the paper's JSON, has none."""
    texts = real_sentences[:200]
    assert noised(path, texts, 0.5) != noised(counted, texts, 0.5)
    assert sum("teh" in text for text in noised(path, ["the"] * 100, 1)) > 40
    assert not sum("teh" in text for text in noised(counted, ["the"] * 100, 1))


@pytest.mark.parametrize("lang", ["en", "de"])
def test_it_keeps_the_promises_of_every_transform(lang):
    check_transform("wiki", lang)


def test_rate_zero_is_the_identity(path, real_sentences):
    assert noised(path, real_sentences[:500], 0) == real_sentences[:500]


def test_a_row_is_the_same_alone_in_any_batch_and_order(path, real_sentences):
    texts = real_sentences[:300]
    whole = noised(path, texts, 0.2)
    order = np.random.default_rng(0).permutation(len(texts)).tolist()

    assert noised(path, [texts[i] for i in order], 0.2, order) == [whole[i] for i in order]
    assert [noised(path, [texts[i]], 0.2, [i])[0] for i in order[:20]] == [
        whole[i] for i in order[:20]
    ]


def test_protected_spans_stay(path):
    text = "the www.the.com #the is"
    for number in range(50):
        noisy = noisegen.noise(text, f"wiki:dictionary={path},rate=1", id=number)
        assert noisy.split()[1:3] == ["www.the.com", "#the"]


# Where the dictionary comes from.


def test_a_mining_folder_or_any_file_will_do(tmp_path, path):
    table = pa.table({"clean": ["the"], "noisy": ["teh"], "count": [1], "lang": ["en"]})
    pq.write_table(table, tmp_path / "dictionary.parquet")
    (tmp_path / "rcp.json").write_text(json.dumps({"the": [["teh", 1.0]]}))

    for where in (tmp_path, tmp_path / "dictionary.parquet", tmp_path / "rcp.json"):
        assert noised(where, ["the"], 1) == ["teh"]


def test_only_entries_of_the_language_are_used(tmp_path):
    table = {"lang": ["de", "fr", "*"], "clean": ["die"] * 3, "noisy": ["dei", "d", "diee"]}
    pq.write_table(pa.table({**table, "count": [3, 5, 1]}), tmp_path / "d.parquet")

    found = Counter(noised(tmp_path / "d.parquet", ["die"] * 4_000, 1, lang="de"))
    assert set(found) == {"dei", "diee"}
    assert fits([found["dei"], found["diee"]], [3_000, 1_000])


def test_a_language_without_entries_is_an_error(tmp_path):
    table = pa.table({"lang": ["de"], "clean": ["die"], "noisy": ["dei"], "count": [1]})
    pq.write_table(table, tmp_path / "d.parquet")

    with pytest.raises(UsageError, match=r"d.parquet has no entries for language 'en'; it has de"):
        noised(tmp_path / "d.parquet", ["die"], 1)


def test_a_language_without_packaged_dictionary_is_an_error():
    with pytest.raises(UsageError, match=r"no packaged dictionary for language 'sw' \(it has: "):
        noisegen.noise("the", "wiki", lang="sw")


def test_a_missing_dictionary_is_an_error(tmp_path):
    with pytest.raises(LexiconError, match=r"cannot read dictionary .*No such file"):
        noised(tmp_path / "gone.tsv", ["the"], 1)


def test_a_changed_dictionary_is_read_again(tmp_path):
    path = tmp_path / "d.tsv"
    for noisy in ("teh", "hte"):
        path.write_text(f"clean\tnoisy\tcount\nthe\t{noisy}\t1\n")
        assert noised(path, ["the"], 1) == [noisy]


def test_an_empty_dictionary_changes_nothing(tmp_path):
    (tmp_path / "d.json").write_text("{}")
    assert noised(tmp_path / "d.json", ["the end"], 1) == ["the end"]


def test_is_sign_is_the_category():
    points = [ord(sign) for sign in "aZ9é漢\u0301्।,_ \u00a0\u200d\u3000😀$\x00"]
    expected = [unicodedata.category(chr(point))[0] in "PSZC" for point in points]
    assert is_sign(np.array(points)).tolist() == expected


# Labels.


def snips(intent):
    """Requests in tokens with BIO labels, from lists of pieces with or without a slot."""
    path = SHARED / "snips" / f"train_{intent}_full.json.gz"
    if not path.exists():
        pytest.skip("no development data")
    with gzip.open(path) as file:
        requests = json.loads(file.read())[intent]
    for request in requests:
        tokens, labels = [], []
        for piece in request["data"]:
            words, slot = piece["text"].split(), piece.get("entity")
            tokens += words
            labels += [f"{'I' if i else 'B'}-{slot}" if slot else "O" for i in range(len(words))]
        yield tokens, labels


def injected(rows, out, path, rate, lang):
    source = out.with_suffix(".parquet")
    tokens, labels = zip(*rows, strict=True)
    pq.write_table(pa.table({"tokens": tokens, "labels": labels}), source)
    noisegen.augment(
        source,
        out,
        transforms=[f"wiki:dictionary={path},rate={rate}"],
        tokens="tokens",
        labels="labels",
        lang=lang,
    )
    return pq.read_table(out / "data/part-00000.parquet").to_pylist()


def check_labels(rows):
    for row in rows:
        assert row["noisy_labels"] == row["labels"]
        assert len(row["noisy_tokens"]) == len(row["tokens"])
        assert row["noisy"].split(" ") == row["noisy_tokens"]
    return sum(row["noisy"] != row["clean"] for row in rows) / len(rows)


@pytest.mark.nightly
@pytest.mark.parametrize("intent", ["GetWeather", "BookRestaurant"])
def test_labels_of_snips_requests_stay(intent, path, tmp_path):
    rows = [row for row in snips(intent) if row[0]]
    assert check_labels(injected(rows, tmp_path / "out", path, 0.1, "en")) > 0.5


def multilingual(lang):
    path = SHARED / "snips-multilingual" / f"{lang}.tsv"
    if not path.exists():
        pytest.skip("no development data")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


MARK = re.compile(r"<([^|<> ]*)\|\d+>")


def replaced(row):
    """The words that RCP replaced in a request, by place."""
    pairs = zip(row["old_utterance"].split(), row["new_utterance"].split(), strict=True)
    found = ((clean, MARK.fullmatch(noisy)) for clean, noisy in pairs)
    return [(clean, match[1]) for clean, match in found if match]


@pytest.mark.nightly
@pytest.mark.parametrize(("lang", "rate"), [("fr", 0.1), ("es", 0.1), ("hi", 0.05)])
def test_requests_of_the_paper_get_its_errors(lang, rate, tmp_path):
    """The dictionary is that of the replacements in the release: as many of ours per request."""
    rows = [row for row in multilingual(lang) if MARK.search(row["new_utterance"])]
    counts = Counter(pair for row in rows for pair in replaced(row) if pair[0] != pair[1])
    entries = [f"{c}\t{n}\t{k}\n" for (c, n), k in counts.items() if c and n]
    (tmp_path / "d.tsv").write_text("clean\tnoisy\tcount\n" + "".join(entries), "utf-8")
    given = [(row["old_utterance"].split(), row["slot_labels"].split()) for row in rows]
    given = [(tokens, labels) for tokens, labels in given if len(tokens) == len(labels)]

    made = injected(given, tmp_path / "out", tmp_path / "d.tsv", rate, lang)
    assert check_labels(made) == 1
    ours = sum(changed(row["clean"], row["noisy"]) for row in made) / len(made)
    theirs = sum(len(replaced(row)) for row in rows) / len(rows)
    assert ours == pytest.approx(theirs, rel=0.1)


CHINESE = [
    "我们在北京工作。",
    "他的书在桌子上",
    "在 iPhone 上看书",
    "他 的 书 在 桌子 上",
    "abc 在",
    "",
]
JAPANESE = [
    "彼は会議に参加した。",
    "以外と簡単です",
    "彼 は 会議 に 参加 し た 。",
    "東京で会議 OK",
]


@pytest.mark.parametrize(
    ("lang", "texts", "entry"),
    [("zh", CHINESE, "在\t再"), ("ja", JAPANESE, "会議\t懐疑")],
)
def test_words_of_running_text_are_found_by_jieba_and_mecab(tmp_path, lang, texts, entry):
    """Words of plain Chinese and Japanese are replaced, as are words that spaces separate."""
    (tmp_path / "d.tsv").write_text(f"clean\tnoisy\tcount\n{entry}\t3\n", "utf-8")
    clean, noisy = entry.split("\t")
    found = noised(tmp_path / "d.tsv", texts, 1, lang=lang)
    assert found == [text.replace(clean, noisy) for text in texts]
    step = Step("wiki", {"dictionary": str(tmp_path / "d.tsv"), "rate": 0.3})
    engine = Engine(Recipe.of([step]), Settings(lang))
    many = [a + b for a in texts for b in texts] * 20
    streams = Streams(np.arange(len(many), dtype=np.uint64), 3)
    made = engine.noise(pa.array(many, pa.string()), streams).noisy.to_pylist()
    assert engine.noise_few(many, streams) == made != many


def test_the_words_of_chinese_count_towards_n(tmp_path):
    """Of 12 words without a space, one or two are replaced at a rate of 0.1, as RCP has it."""
    (tmp_path / "d.tsv").write_text("clean\tnoisy\tcount\n的\t地\t1\n", "utf-8")
    found = noised(tmp_path / "d.tsv", ["我的你的他的她的它的谁的"] * 2_000, 0.1, lang="zh")
    counts = Counter(text.count("地") for text in found)
    assert sorted(counts) == [1, 2]
    assert fits(list(counts.values()))


def test_a_word_inside_another_stays(tmp_path):
    """The character 在 of 现在 is no word."""
    (tmp_path / "d.tsv").write_text("clean\tnoisy\tcount\n在\t再\t1\n", "utf-8")
    assert set(noised(tmp_path / "d.tsv", ["现在很好"] * 20, 1, lang="zh")) == {"现在很好"}
