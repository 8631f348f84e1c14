"""`nums`, `mute`, `fill`, `near` and the recipe `asr`: what they write, how often."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import both, single
from test_transforms import noised, outcomes

import noisegen
from noisegen.errors import UsageError
from noisegen.noising.lexicon import Lexicon
from noisegen.noising.recipe import Recipe
from noisegen.testing import check_rate, check_transform
from noisegen.text.resources import DICTIONARIES
from noisegen.transforms.speech import hesitant

NAMES = ("nums", "mute", "fill", "near")
TEXT = "In 1887, the “well-known” house cost $1,250; on the 22nd (they said) 3.5% of it was “lost”."
SPEAKING = sorted(path.parent.name for path in DICTIONARIES.glob("*/fill.tsv"))
COUNTING = sorted(path.parent.name for path in DICTIONARIES.glob("*/nums.tsv"))


@pytest.mark.parametrize("name", NAMES)
def test_they_keep_the_promises(name):
    check_transform(name, "en", (TEXT, "attend the class"))


@pytest.mark.parametrize("lang", ["fr", "ar", "hi", "ja", "ko", "th"])
def test_mute_keeps_them_in_other_languages(lang):
    check_transform("mute", lang)


@pytest.mark.parametrize("lang", SPEAKING)
def test_fill_keeps_them_in_other_languages(lang):
    check_transform("fill", lang)


@pytest.mark.parametrize("lang", COUNTING)
def test_nums_keeps_them_in_other_languages(lang):
    check_transform("nums", lang, ("5 %, 1 887, 2.000, 3,05", "€ 20 1.250 £ 99 1999"))


NUMBER = st.from_regex(
    r"[$€£]?[0-9]{1,13}(,[0-9]{3})?(\.[0-9]{1,3})?(st|nd|rd|th|%)?", fullmatch=True
)


@given(st.lists(NUMBER, max_size=12))
@settings(max_examples=50)
def test_any_numbers_agree_with_the_oracle(numbers):
    ours, expected = both(single("nums", rate=0.7), [" ".join(numbers), *numbers])
    assert ours == expected


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("0", "zero"),
        ("35", "thirty five"),
        ("100", "one hundred"),
        ("1,205", "one thousand two hundred five"),
        ("1887", "eighteen eighty seven"),
        ("1900", "nineteen hundred"),
        ("1906", "nineteen oh six"),
        ("2000", "two thousand"),
        ("2005", "two thousand five"),
        ("2019", "twenty nineteen"),
        ("20,190", "twenty thousand one hundred ninety"),
        ("1,000,000", "one million"),
        (
            "999999999999",
            "nine hundred ninety nine billion nine hundred ninety nine million nine "
            "hundred ninety nine thousand nine hundred ninety nine",
        ),
        ("1000000000000", "one" + " zero" * 12),
        ("007", "zero zero seven"),
        ("3.05", "three point zero five"),
        ("1st", "first"),
        ("22nd", "twenty second"),
        ("30th", "thirtieth"),
        ("112th", "one hundred twelfth"),
        ("5%", "five percent"),
        ("$20", "twenty dollars"),
        ("£1.50", "one point five zero pounds"),
        ("12/5/1999", "12/5/1999"),
        ("10:30", "10:30"),
        ("3.1.4", "3.1.4"),
        ("x7", "x7"),
        ("7x", "7x"),
        ("5 %", "five percent"),
        ("€1", "one euro"),
    ],
)
def test_numbers_in_words(number, words):
    assert noised("nums", f"so {number}. (and {number})", rate=1) == [f"so {words}. (and {words})"]


@pytest.mark.parametrize(
    ("lang", "text", "words"),
    [
        ("cs", "3 Kč a 2,5 Kč", "tři koruny a dva čárka pět koruny"),
        ("da", "1887, 21 kr", "attenhundrede og syvogfirs, enogtyve kroner"),
        ("de", "1887 waren es 1.250 €", "achtzehnhundertsiebenundachtzig waren es {} Euro"),
        ("de", "3,5 % und 007", "drei Komma fünf Prozent und null null sieben"),
        ("el", "21 €, 21 £", "είκοσι ένα ευρώ, είκοσι μία λίρες"),
        ("es", "21 €, el 3º", "veintiún euros, el tercero"),
        ("fi", "1 €, 5 €", "yksi euro, viisi euroa"),
        ("fr", "le 1er, 10 000 €, 91", "le premier, dix mille euros, quatre-vingt-onze"),
        ("hu", "5 Ft", "öt forint"),
        ("id", "Rp 5.000", "lima ribu rupiah"),
        ("it", "il 2º, 31%", "il secondo, trentun per cento"),
        ("nb", "21 kr", "tjueén kroner"),
        ("nl", "de 2e, 1985", "de tweede, negentienvijfentachtig"),
        ("pl", "1 zł, 22 zł, 25 zł", "jeden złoty, dwadzieścia dwa złote, {} złotych"),
        ("pt", "R$ 21, 0,5 %", "vinte e um reais, zero vírgula cinco por cento"),
        ("ro", "3 $, 20 $", "trei dolari, douăzeci de dolari"),
        ("ru", "21 $, 2 $, 5-й", "двадцать один доллар, два доллара, пятый"),
        ("sk", "5 €, 3 €", "päť eur, tri eurá"),
        ("sv", "den 2:a, 1 kr", "den andra, en krona"),
        ("tr", "%5, 1.250 ₺", "yüzde beş, bin iki yüz elli lira"),
        ("uk", "21 ₴, 5 ₴", "двадцять одна гривня, п'ять гривень"),
        ("vi", "1.250 ₫", "một nghìn hai trăm năm mươi đồng"),
    ],
)
def test_numbers_in_words_of_other_languages(lang, text, words):
    middle = {"de": "eintausendzweihundertfünfzig", "pl": "dwadzieścia pięć"}.get(lang, "")
    assert noised("nums", text, lang=lang, rate=1) == [words.format(middle)]


def test_an_ordinal_without_words_stays_in_digits():
    [noisy] = noised("nums", "21001-й и 21001", lang="ru", rate=1)
    assert noisy == "21001-й и двадцать одна тысяча один"


@pytest.mark.parametrize(
    ("text", "silent"),
    [
        ("“Well-known,” he said.", "Well known he said"),
        ("Yes?! No... (I don't know), dogs’ own!", "Yes No I don't know dogs’ own"),
        ("It cost 3.5 at 10:30 — or 1,887.", "It cost 3.5 at 10:30 or 1,887"),
        ("¿Qué? ¡No!", "Qué No"),
        ("真的吗？是的。", "真的吗是的"),
        ("حقا؟ نعم، هذا", "حقا نعم هذا"),
    ],
)
def test_text_without_punctuation(text, silent):
    assert noised("mute", text, rate=1) == [silent]


def test_fillers_and_repeated_words():
    forms = dict(hesitant("The", "en"))
    assert forms["The the"] > forms["The um"] > 0
    assert ("I I", 60) in hesitant("I", "en")
    assert hesitant("x7", "en") == []
    assert outcomes("fill", "so", rate=1, rows=2_000) == {form for form, _ in hesitant("so", "en")}


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [("nums", "7 of 35", 2), ("mute", "so, he; did", 2), ("fill", "a b", 2)],
)
def test_the_rate_is_the_chance(name, text, count):
    def hits(clean, noisy):
        if name == "mute":
            return count - noisy.count(",") - noisy.count(";"), count
        if name == "nums":
            return 2 - noisy.count("7") - noisy.count("35"), count
        return (noisy != "a b") + (noisy[:3] != "a b" != noisy[-3:]), count

    if name == "fill":
        rows = noised("fill", ["word"] * 20_000, rate=0.3)
        assert abs(sum(row != "word" for row in rows) / 20_000 - 0.3) < 0.013
    else:
        check_rate(name, text, hits, 0.3)


def test_near_words_are_licensed_and_sound_otherwise():
    near = Lexicon.load(DICTIONARIES / "en" / "near.tsv")
    same = Lexicon.load(DICTIONARIES / "en" / "homo.tsv")
    pairs = {(entry.clean, entry.noisy) for entry in near.entries}
    assert ("attend", "a tend") in pairs
    assert ("bed", "bet") in pairs
    assert len(pairs & {(entry.clean, entry.noisy) for entry in same.entries}) < 0.01 * len(pairs)
    assert "# license: BSD-2-Clause" in (DICTIONARIES / "en" / "near.tsv").read_text("utf-8")


def test_asr_has_no_capitals_no_punctuation_no_numbers():
    rows = noisegen.noise([f"{TEXT} {n}" for n in range(50)], "asr", seed=1)
    for row in rows:
        assert row == row.lower()
        assert not set(".,;:!?()“”-%$0123456789") & set(row)
    assert len({row.rpartition(" ")[0] for row in rows}) > 25


def test_asr_leaves_links_and_numbers_where_asked():
    texts = [f"In 1887, see https://Example.org/House, {n}." for n in range(50)]
    for row in noisegen.noise(texts, "asr", protect="url,number"):
        assert "1887" in row
        assert "https://Example.org/House" in row


def test_asr_in_another_language_has_the_steps_that_it_has():
    steps = {step.transform for step in Recipe.named("asr").mix_of("de").steps()}
    assert {"mute", "caps"} <= steps
    with pytest.warns(UserWarning, match="leaves out 2 of its 7 .*: homo, near"):
        noisy = noisegen.noise("Das Haus, „klein“, ist von 1887.", "asr", lang="de", seed=1)
    assert noisy == noisy.lower()
    assert "," not in noisy
    assert "achtzehnhundertsiebenundachtzig" in noisy
    with pytest.raises(UsageError, match="nums has no data for language 'th'; it has cs, da, de"):
        noisegen.noise("1887", "nums", lang="th")
