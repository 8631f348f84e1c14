"""`apos`, `diac`, `vowl` and `long`: what they do to words, how often; both forms agree."""

import re
import unicodedata
from collections import Counter
from itertools import groupby, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, LIVELY_TEXT, both, compare, single
from test_transforms import noised, outcomes

import noisegen
from noisegen.errors import UsageError
from noisegen.noising.lexicon import Lexicon
from noisegen.noising.registry import examples_in, get
from noisegen.testing import check_rate, check_transform
from noisegen.text.resources import DICTIONARIES
from noisegen.transforms.letters import (
    at_line_end,
    lengthened,
    lengthening_of,
    misplaced,
    vowels_by_language,
)

SAMPLES = {
    "apos": "don't don’t I’m rock'n'roll l'été aujourd'hui м'яч Ankara'da 'quoted' dogs' DON'T",
    "diac": "Ångström Größe GRÖSSE straße déjà vu Œuvre ñandú İyi ığdır không a\u0301e\u0308 ё й",
    "vowl": "please text. Would from would Would WOULD problem people. MR. Idea they rhythm İyiyim",
    "hyph": "The recent election, modern churches; Dezember, été, x1 MODERN rhythm teacher",
    "long": "so no please really omg yesss SO Pleased cat Anna CEO NASA été über İyi qzx a1 x",
}
LANGS = {
    "apos": ["en", "fr", "it", "uk", "tr"],
    "diac": ["en", "de", "tr", "vi", "ar", "hi", "ko", "ja"],
    "hyph": ["en", "de", "fr", "tr"],
    "vowl": ["en", "fr", "tr", "id"],
    "long": ["en", "de", "hi", "ru", "vi", "ar", "ja"],
}
EVERY = [(name, lang) for name, langs in LANGS.items() for lang in langs]


@pytest.mark.parametrize(("name", "lang"), EVERY)
def test_they_keep_the_promises(name, lang):
    check_transform(name, lang, (SAMPLES[name], "plain text"))


@pytest.mark.parametrize(
    ("name", "lang", "rate", "changed"),
    [
        ("apos", "en", 0.5, 50),
        ("diac", "de", 0.5, 50),
        ("vowl", "en", 0.1, 100),
        ("hyph", "en", 0.5, 100),
        ("long", "ru", 1, 40),
        *(
            pytest.param(*name_and_lang.split(), rate, changed, marks=pytest.mark.nightly)
            for name_and_lang, rate, changed in (
                ("apos fr", 0.5, 50),
                ("diac en", 0.5, 50),
                ("diac da", 0.5, 50),
                ("vowl en", 1, 150),
                ("vowl tr", 0.5, 50),
                ("long en", 0.2, 50),
                ("long hi", 1, 40),
            )
        ),
    ],
)
def test_they_agree_with_the_oracle(name, lang, rate, changed, demo, odd_texts):
    rows = [row["text"] for row in demo if row["lang"] in (lang, "en")]
    rows += odd_texts + [SAMPLES[name]] * 50
    assert compare(single(name, rate=rate), rows, lang=lang) >= changed


@pytest.mark.parametrize(
    ("name", "lang"),
    [("apos", "en"), ("diac", "de"), ("vowl", "tr"), ("long", "en"), ("hyph", "de")],
)
@given(st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20), st.integers(0, 2**64 - 1))
@settings(max_examples=25)
def test_any_text_agrees_with_the_oracle(name, lang, rows, seed):
    ours, expected = both(single(name, rate=0.7), rows, seed, lang=lang)
    assert ours == expected


@pytest.mark.nightly
@pytest.mark.parametrize("name", SAMPLES)
def test_real_sentences_agree_with_the_oracle(name, real_sentences):
    assert compare(single(name, rate=0.7), real_sentences[:2_000]) > 20  # few letters have marks


@pytest.mark.parametrize(
    ("name", "lang", "stays", "changes"),
    [
        ("vowl", "en", "I saw Palin, so Mr. Palin saw it, in Boston", "He saw it. People did"),
        ("vowl", "en", "is NASA or UNESCO", "THESE PEOPLE"),
        ("vowl", "en", "so I met Conan", "Flood Damage"),
        ("vowl", "tr", "o İzmir ve İstanbul", "o merhaba"),
        ("vowl", "es", "es un Óscar", "es un amigo"),
        ("vowl", "de", "so ist es", "der Mann"),
        ("infl", "en", "the Red Cross of the United States", "She goes. Does he?"),
        ("infl", "en", "and Human Partners", "HE GOES"),
        ("infl", "en", "if I Cats", "if I've become so"),
        ("auto", "en", "so IN IS THERE", "so in is there"),
    ],
)
def test_names_stay(name, lang, stays, changes):
    assert outcomes(name, stays, lang=lang) == {stays}
    assert outcomes(name, changes, lang=lang) != {changes}


@pytest.mark.parametrize(
    ("lang", "word", "forms"),
    [
        ("en", "don't", {"dont", "don t", "don;t", "don,t", "don`t", "don´t", "do'nt", "dont'"}),
        ("en", "It’s", {"Its", "It s", "It;s", "It,s", "It`s", "It´s", "I’ts", "Its’"}),
        (
            "en",
            "rock'n'roll",
            {
                "rocknroll",
                "rock n'roll",
                "rock;n'roll",
                "rock,n'roll",
                "rock`n'roll",
                "rock´n'roll",
            },
        ),
        ("fr", "j'ai", {"jai", "j ai", "j`ai", "j´ai"}),
        ("it", "c'è", {"cè", "c è", "c`è", "c´è"}),
        ("uk", "м’яч", {"мяч", "м яч", "м`яч", "м´яч"}),
        ("tr", "Van'da", {"Vanda", "Van da", "Van`da", "Van´da"}),  # not Va'nda, as do'nt
        ("en", "I'm", {"Im", "I m", "I;m", "I,m", "I`m", "I´m", "Im'"}),
        ("en", "90's", {"90s", "90 s", "90;s", "90,s", "90`s", "90´s", "9'0s", "90s'"}),
    ],
)
def test_where_an_apostrophe_may_go(lang, word, forms):
    assert {form for form, _ in misplaced(word, lang)} == forms


@pytest.mark.parametrize(
    ("name", "lang", "text", "all_of"),
    [
        ("apos", "en", "5'11", {"5'11"}),
        ("apos", "en", "dogs'", {"dogs'"}),
        # Few write mañana without its ñ, which has a key of its own; años is no anos.
        ("diac", "es", "está allí, mañana", {"esta alli, mañana", "esta alli, manana"}),
        ("diac", "pt", "está ali, amanhã", {"esta ali, amanha"}),
        ("diac", "vi", "Không được đâu", {"Khong duoc dau"}),
        ("diac", "fr", "Œuvre déjà où ça", {"Oeuvre deja ou ca"}),
        ("diac", "tr", "ışık Şöför İyi AĞ", {"isik Sofor Iyi AG"}),
        ("diac", "cs", "žluťoučký kůň", {"zlutoucky kun"}),
        ("diac", "pl", "ŁÓDŹ łódź", {"LODZ lodz"}),
        ("diac", "de", "Größe", {"Groesse", "Grosse"}),
        ("diac", "de", "ÜBER", {"UEBER", "UBER"}),
        # A word is spelled in one way throughout: no ö as o beside another as oe.
        ("diac", "de", "übermäßigöä", {"uebermaessigoeae", "ubermassigoa"}),
        ("diac", "nb", "blåbærsyltetøy", {"blaabaersyltetoey", "blabaersyltetoy"}),
        ("diac", "da", "Æble ærø", {"Aeble aeroe", "Aeble aero"}),
        ("diac", "is", "þú ert góður Það", {"thu ert godur Thad"}),
        ("diac", "yo", "Ọjọ́ ẹ̀kọ́", {"Ojo eko"}),
        ("diac", "el", "Καλημέρα σας", {"Καλημερα σας"}),
        ("diac", "ru", "ёлка йога Ёж", {"елка йога Еж"}),
        ("diac", "uk", "їжак йде ґанок", {"їжак йде ґанок"}),
        ("diac", "ar", "مُحَمَّد أنا إلى سؤال", {"محمد انا الى سؤال"}),
        ("diac", "he", "שָׁלוֹם", {"שלום"}),
        ("diac", "hi", "हिन्दी ज़रा", {"हिन्दी ज़रा"}),
        ("diac", "th", "น้ำใส", {"น้ำใส"}),
        ("diac", "ja", "がんばって", {"がんばって"}),
        ("diac", "en", "de\u0301ja\u0300", {"deja"}),
        ("vowl", "en", "please", {"plse", "pls"}),
        ("vowl", "en", "text from would could", {"txt frm wld cld"}),
        ("vowl", "en", "Would WOULD", {"Wld WLD"}),
        ("vowl", "en", "problem", {"prblm", "prblem", "problm"}),
        ("vowl", "tr", "merhaba", {"mrhba", "mrhb", "mrhaba", "merhba"}),
        ("vowl", "tr", "İyiyim", {"İyym", "İyiym", "İyyim"}),
        ("vowl", "de", "schön", {"schn"}),
        ("vowl", "es", "también", {"tmbn", "tmbién", "tambn"}),
        ("vowl", "id", "banget", {"bngt", "bnget", "bangt"}),
        ("vowl", "en", "you are idea they need", {"you are idea they need"}),
        ("vowl", "en", "true blue three tree", {"true blue three tree"}),
        ("vowl", "en", "information technology", {"information technology"}),
        ("vowl", "en", "don't rhythm 4ever x_y_z дома", {"don't rhythm 4ever x_y_z дома"}),
    ],
)
def test_what_a_text_becomes(name, lang, text, all_of):
    words = [outcomes(name, word, 1_500, lang=lang) for word in text.split(" ")]
    assert {" ".join(words) for words in product(*words)} == all_of


def test_spanish_keeps_its_n_with_tilde():
    """One in thirty who drop accents write ano for año."""
    noisy = noised("diac", ["año"] * 3_000, "es", rate=1)
    assert noisy.count("ano") / 3_000 == pytest.approx(1 / 30, abs=0.01)
    assert noised("diac", ["está"] * 10, "es", rate=1) == ["esta"] * 10


@pytest.mark.parametrize(
    ("lang", "text", "one_of"),
    [
        ("en", "so good", {"sooo goood", "soooo goood", "sooo gooood"}),
        ("en", "please", {"pleaseee", "pleaaase"}),
        ("en", "No", {"Nooo", "Noooo"}),
        ("en", "NO", {"NOOO"}),
        ("en", "Oh", {"Ooooh", "Ohhh"}),
        ("de", "schön", {"schööön"}),
        ("ru", "очень", {"оччччень", "очееень"}),
        ("tr", "çok", {"çoook"}),
        ("vi", "quá", {"quááá"}),
        ("hi", "यार", {"याआआआर"}),
        ("th", "ดีมาก", {"ดีมากกก", "ดีมากกกก"}),
    ],
)
def test_letters_that_are_held(lang, text, one_of):
    assert outcomes("long", text, 500, lang=lang) & one_of


@pytest.mark.parametrize("word", ["Marlow", "Newark", "as", "its", "to"])
def test_names_and_function_words_on_no_list_are_not_held(word):
    assert lengthened(word, "en") == []
    assert lengthened("served", "en")
    assert lengthened("So", "en")
    assert not any(lengthened(word, "nl") for word in ("de", "van", "Een"))  # in the list, to stay


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "CEO USA",
        "a1b2 x_y",
        "zzz brrrr",
        "qzx",
        "incomprehensible",
        "東京 ไทย 한국",
        "e\u0301te\u0301",
    ],
)
def test_acronyms_numbers_and_what_is_held_already_stay(text):
    assert outcomes("long", text) == {text}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_example_is_reachable(name):
    for clean, noisy in examples_in(get(name).summary):
        assert noisy in outcomes(name, clean, 5_000)


@pytest.mark.parametrize(
    ("name", "text", "noisy", "rate"),
    [
        ("apos", "don't you", "don't", 0.3),
        ("diac", "déjà vu", "déjà", 0.7),
        ("vowl", "text you", "text", 0.1),
        ("long", "please see", "please", 0.2),
    ],
)
def test_words_are_hit_at_the_rate(name, text, noisy, rate):
    check_rate(name, text, lambda _, row: (row.split(" ")[0] != noisy, 1), rate)


def test_nearly_all_apostrophes_are_left_out():
    noisy = noised("apos", ["don't"] * 5_000)
    assert 0.97 < noisy.count("dont") / 5_000 < 0.99


def test_decomposed_and_composed_words_lose_the_same(demo_texts):
    latin = [text for text in demo_texts if text != unicodedata.normalize("NFD", text)]
    latin = [text for text in latin if max(text) < "\u0370"]
    decomposed = [unicodedata.normalize("NFD", text) for text in latin]
    assert len(latin) > 30
    assert noised("diac", latin) == noised("diac", decomposed)


def test_the_first_letter_stays_and_consonants_too(demo_texts):
    texts = [text for text in demo_texts if text.isascii()]
    for clean, noisy in zip(texts, noised("vowl", texts), strict=True):
        for before, after in zip(clean.split(), noisy.split(), strict=True):
            assert before[0] == after[0]
            assert re.sub("[aeiou]", "", before.lower()) == re.sub("[aeiou]", "", after.lower())


def test_every_language_has_its_plain_vowels():
    assert all({"a", "e", "i", "o", "u"} <= vowels for vowels in vowels_by_language().values())
    assert set(vowels_by_language()["tr"]) == set("aeıioöuüâîû")
    with pytest.raises(UsageError, match="vowl has no data for language 'zh'"):
        noised("vowl", "x", lang="zh")


def test_nothing_but_letters_already_there_is_added(demo_texts):
    def collapsed(text):
        return [letter for letter, _ in groupby(map(lengthening_of, text.lower()))]

    for clean, noisy in zip(demo_texts, noised("long", demo_texts), strict=True):
        assert collapsed(noisy) == collapsed(clean)


def test_words_have_their_share_of_the_rate():
    """'so' weighs 8 of 8 in the list, 'there' 2; 'banter' is on no list."""
    noisy = [row.split(" ") for row in noised("long", ["so there banter"] * 40_000, rate=0.8)]
    for number, (word, share) in enumerate((("so", 1), ("there", 1 / 4), ("banter", 1 / 40))):
        hit, rate = sum(row[number] != word for row in noisy), 0.8 * share
        assert abs(hit - 40_000 * rate) < 4 * (40_000 * rate * (1 - rate)) ** 0.5


def test_one_to_eight_letters_are_added_and_many_seldom():
    lengths = Counter(len(noisy) - 2 for noisy in noised("long", ["so"] * 20_000, rate=1))
    assert set(lengths) == set(range(1, 9))
    assert lengths[2] == max(lengths.values())
    assert 0.05 < sum(lengths[n] for n in (6, 7, 8)) / 20_000 < 0.09


@pytest.mark.parametrize("name", SAMPLES)
def test_spans_and_line_breaks_stay(name):
    spans = "https://people.org/don't/so @o'neil #please so@no.com"
    text = f"don't\r\ndéjà please\nso {spans}"
    rows = [noisegen.noise(text, f"{name}:rate=1", id=number) for number in range(20)]
    assert text not in rows
    for noisy in rows:
        assert (noisy.count("\n"), noisy.count("\r\n")) == (2, 1)
        assert noisy.endswith(f" {spans}")


@pytest.mark.parametrize("path", sorted(DICTIONARIES.glob("*/diac.tsv")), ids=str)
def test_the_lists_of_letters_hold_single_small_ones(path):
    for clean, noisy, _, _ in Lexicon.load(path).entries:
        assert len(clean) == 1
        assert clean == clean.lower() != noisy
        assert not any(unicodedata.decomposition(letter) for letter in noisy)


@pytest.mark.parametrize("path", sorted(DICTIONARIES.glob("??/long.tsv")), ids=str)
def test_the_lists_double_one_letter_of_words_as_they_are_read(path):
    for clean, noisy, _, _ in Lexicon.load(path).entries:
        assert noisy == clean or noisy in {clean[: at + 1] + clean[at:] for at in range(len(clean))}
        assert clean == clean.lower()
        assert re.fullmatch(r"\S+", clean)


def test_the_arabic_article_is_not_held():
    forms = {form for form, _ in lengthened("القانون", "ar")}
    assert "القانووون" in forms
    assert all(form.startswith("الق") for form in forms)


@pytest.mark.parametrize(
    ("lang", "text", "ways"),
    [
        ("da", "på gør nær så få", {"paa goer naer saa faa", "pa gor naer sa fa"}),
        ("sr", "što čovek kaže đaci", {"sto covek kaze djaci", "shto chovek kazhe djaci"}),
        ("hr", "još među nama leđa", {"jos medju nama ledja", "jos medu nama leda"}),
        ("es", "mañana habrá piña", {"mañana habra piña", "manana habra pina"}),
    ],
)
def test_a_row_is_written_in_one_way(lang, text, ways):
    assert set(noised("diac", [text] * 2_000, lang, rate=1)) == ways


def test_a_way_is_as_frequent_as_the_letters_that_tell_it_say():
    """Danish å is aa once in four; ø of other languages has no say."""
    assert noised("diac", ["på"] * 4_000, "da", rate=1).count("paa") / 4_000 == pytest.approx(
        1 / 4, abs=0.03
    )


@pytest.mark.parametrize(
    ("lang", "words"), [("da", "og af til"), ("hr", "su kroz"), ("sl", "je so"), ("sr", "iz mu")]
)
def test_function_words_of_other_languages_are_not_held(lang, words):
    assert [lengthened(word, lang) for word in words.split()] == [[]] * len(words.split())


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("election", {"elec- tion"}),
        ("recent", {"re- cent"}),
        ("modern", {"mo- dern"}),
        ("teacher", set()),
        ("rhythm", set()),
        ("MODERN", {"MO- DERN"}),
        ("Dezember", {"De- zember", "Dezem- ber"}),
        ("x1recent", set()),
        ("lines", set()),
    ],
)
def test_where_a_line_may_end(word, forms):
    assert {form for form, _ in at_line_end(word, vowels_by_language()["en"])} == forms


def test_long_words_break_at_the_rate():
    def hits(clean, noisy):
        return noisy.count("- "), 2

    check_rate("hyph", "a recent and modern day", hits, 0.2)
