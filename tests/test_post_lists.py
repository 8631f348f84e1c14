"""The lists of posts' habits: as large as promised, sound, and no trap for the reader."""

import gzip
import re
from collections import Counter

import pytest
from conftest import SHARED

from noisegen import noise
from noisegen.noising.lexicon import Lexicon, head_of, matchable
from noisegen.text.case import fold
from noisegen.text.languages import MATCHED_BY
from noisegen.text.resources import DICTIONARIES
from noisegen.transforms.phonetic import respelled, rules_of

FIVE = ("init", "rebus", "clip", "join", "cens")
PATHS = sorted(path for name in FIVE for path in DICTIONARIES.glob(f"*/{name}.tsv"))
INSERTED = sorted(path for name in ("emot", "intj") for path in DICTIONARIES.glob(f"*/{name}.tsv"))
PLACES = {"start", "opening", "comma", "before", "end", "instead"}
LEAST = {  # phrases that may change
    "init": {"en": 400, "de": 100, "fr": 80, "es": 60, "nl": 80, "pt": 60, "vi": 100, "ru": 100},
    "rebus": {"en": 290, "fr": 80, "es": 80, "it": 50, "de": 40},
    "clip": {
        "en": 1_000,
        "de": 170,
        "es": 160,
        "pt": 140,
        "id": 200,
        "fr": 130,
        "tr": 110,
        "vi": 170,
        "nl": 180,
        "ko": 150,
        "hr": 120,
        "sl": 130,
        "sr": 40,
        "da": 50,
    },
    "join": {"en": 400, "de": 350, "ru": 350, "uk": 250, "sv": 150, "es": 130, "is": 110},
    "cens": {"en": 200, "ru": 100, "es": 50, "de": 45, "fr": 40},
}
LETTERS = {  # letters that stand for a word and do not begin it
    "u": {"you", "your"},
    "y": {"you", "why"},
    "r": {"are"},
    "2": {"to", "too"},
    "x": {"kiss"},
    "4": {"for"},
    "1": {"one"},
}
# Initialisms that are no initials of their phrase.
LISTED = (
    "as hell: af, best friend: bff, best friends: bffs, boyfriend: bf, bullshit: bs, "
    "explain like i'm five: eli5, fingers crossed: fx, for example: eg, girlfriend: gf, "
    "gotta go: gtg g2g, happy birthday: hbd, hugs and kisses: xoxo, just joking: jk, "
    "just my two cents: jm2c, never mind: nvm, of course: ofc, on god: ong, one on one: 1v1, "
    "see you: cya cu, see you around: cya, see you later: cul, throwback thursday: tbt, "
    "how about you: hbu, what about you: wbu, not applicable: n/a, oh i see: oic, "
    "are you ok: ruok, are you okay: ruok, what you doing: wayd, direct messages: dms, "
    "where are you: wya"
)
OTHER_LETTERS = dict(pair.split(": ") for pair in LISTED.split(", "))
RULES_WITH_CHANCES = [
    "da",
    "de",
    "es",
    "fr",
    "hr",
    "it",
    "nl",
    "pl",
    "pt",
    "ru",
    "sl",
    "sr",
    "tr",
    "uk",
    "vi",
]
FREQUENT = 20  # occurrences in the 0.95 million words of the English of tatoeba-opus
FREQUENT_ANYWAY = (  # short forms that have become words with the same meaning
    "plane alright app bike dr exam exams fig gas gym flu math photo photos fridge phone tv site "
    "gonna wanna ok paper install invite re till round cause eve"
)
MASKED = re.compile(r"[*@$!.#\d]|[^\W\d]+-\w")


def named(paths):
    return [pytest.param(path, id=f"{path.parent.name}/{path.stem}") for path in paths]


def entries(name, lang="en"):
    return Lexicon.load(DICTIONARIES / lang / f"{name}.tsv").entries


@pytest.mark.parametrize("path", named(PATHS))
def test_entries_are_single_matchable_and_weighted(path):
    lexicon = Lexicon.load(path)
    listed, most = lexicon.entries, int(lexicon.head.get("of", 25))
    assert len({(fold(entry.clean), entry.noisy) for entry in listed}) == len(listed)
    for entry in listed:
        assert matchable(entry.clean)
        unspaced = path.parent.name in MATCHED_BY
        may_stay = unspaced or "of" in lexicon.head
        assert fold(entry.clean) != fold(entry.noisy) or (may_stay and entry.clean == entry.noisy)
        assert 1 <= entry.weight <= (1_000 if unspaced else most)
        assert entry.noisy == " ".join(entry.noisy.split())
        assert not entry.noisy.startswith(("http", "#", "@")) or entry.noisy[1:2] in " +"


@pytest.mark.parametrize("path", named(PATHS + INSERTED))
def test_lists_name_their_source_licence_and_content(path):
    head = Lexicon.load(path).head
    assert head["license"] == "Apache-2.0"
    assert head["source"] == "written for noisegen from common usage"
    assert head["lang"].replace("*", "any") == path.parent.name
    assert head["note"]


@pytest.mark.parametrize(
    ("name", "lang", "least"),
    [(n, lang, k) for n, sizes in LEAST.items() for lang, k in sizes.items()],
)
def test_the_lists_are_as_large_as_promised(name, lang, least):
    assert len({fold(entry.clean) for entry in entries(name, lang)}) >= least


@pytest.mark.parametrize("path", named(PATHS))
def test_words_whose_capital_is_not_folded_are_listed_with_it(path):
    """Case is folded for ASCII and Latin-1 only: 'спасибо' alone would miss 'Спасибо'."""
    cleans = {entry.clean for entry in Lexicon.load(path).entries}
    for clean in cleans:
        capital = clean[0].upper()
        if len(capital) == 1 and fold(capital) != fold(clean[0]):
            assert capital + clean[1:] in cleans


def is_initials(clean, noisy):
    """Tell whether each letter stands for a word of the phrase, in their order."""
    words = iter(re.findall(r"[a-z0-9']+", clean))
    return all(
        any(word[0] == letter or word in LETTERS.get(letter, ()) for word in words)
        for letter in noisy
    )


def test_english_initials_are_the_first_letters_of_their_phrase():
    shortened = [entry for entry in entries("init") if entry.noisy != entry.clean]
    listed = {
        (clean, fold(noisy))
        for clean, noisy, *_ in shortened
        if " u" not in clean  # "u" for "you"
    }
    told = {(clean, noisy) for clean, all_ in OTHER_LETTERS.items() for noisy in all_.split()}
    assert {pair for pair in listed if not is_initials(*pair)} == told


def test_initials_do_not_contradict_abr1():
    """A phrase that both shorten has an initialism in common."""
    known = {}
    for entry in entries("abr1"):
        known.setdefault(fold(entry.clean), set()).add(fold(entry.noisy))
    shared = {}
    for entry in entries("init"):
        shared.setdefault(entry.clean, set()).add(entry.noisy)
    both = [clean for clean in shared if clean in known]
    against = [
        clean
        for clean in both
        if not shared[clean] & known[clean] and any(" " not in noisy for noisy in known[clean])
    ]
    assert len(both) >= 300
    assert set(against) <= {"see you later"}  # there "cul8r", a rebus


@pytest.fixture(scope="module")
def counts():
    folder = SHARED / "tatoeba-opus"
    if not folder.exists():
        pytest.skip("no development data")
    found = Counter()
    for path in sorted(folder.glob("*.tsv.gz")):
        column = 0 if path.name.startswith("eng") else 1
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                found.update(re.findall(r"[a-z']+", line.split("\t")[column].lower()))
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["init", "rebus", "clip", "cens"])
def test_no_short_form_is_a_frequent_word_of_another_meaning(name, counts):
    short = {e.noisy.lower() for e in entries(name) if len(e.noisy) > 1 and e.noisy.isalpha()}
    assert {word for word in short if counts[word] >= FREQUENT} <= set(FREQUENT_ANYWAY.split())


@pytest.mark.parametrize(
    ("lang", "word", "form"),
    [
        ("da", "irriterende", "irriterene"),
        ("hr", "spavati", "spavat"),
        ("id", "mencoba", "nyoba"),
        ("ko", "않았는데", "않앗는데"),
        ("nl", "kijken", "kijke"),
        ("sl", "dobil", "dobu"),
        ("sr", "pisao", "piso"),
        ("vi", "chuyện", "chiện"),
        ("id", "mention", None),
        ("it", "della", None),
        ("nl", "vandaag", None),
        ("nl", "zijde", None),
        ("tr", "versiyon", None),
        ("hr", "rezultati", None),
        ("hr", "predmeti", None),
        ("sl", "kandidati", None),
        ("da", "godkende", None),
        ("da", "indsigt", None),
        ("da", "chauffører", None),
        ("da", "levende", "levene"),
        ("da", "kører", "køre"),
        ("sr", "kakao", None),
        ("hr", "nijedan", None),
        ("hr", "odbijen", None),
        ("hr", "premijer", None),
        ("hr", "prijeti", None),
        ("hr", "shvati", None),
        ("hr", "bankomati", None),
        ("hr", "promijenio", "promjenio"),
        ("hr", "svijet", "svjet"),
        ("sl", "april", None),
        ("sl", "model", None),
        ("sl", "strel", None),
        ("sl", "začela", None),
        ("sl", "deseti", None),
        ("sl", "tečaj", None),
        ("sl", "mobil", None),
        ("sl", "dosegel", "dosegu"),
        ("sl", "dobila", "dobla"),
        ("sl", "nazaj", "nazej"),
        ("pt", "quatro", None),
        ("pt", "segundo", None),
        ("fr", "cours", None),
        ("es", "sábado", None),
        ("ru", "клетки", None),
        ("uk", "результати", None),
        ("uk", "кредити", None),
        ("uk", "щока", None),
        ("uk", "шукати", "шукать"),
        ("ko", "동네", None),
    ],
)
def test_rules_write_words_as_people_do_or_leave_them(lang, word, form):
    rules = rules_of(DICTIONARIES / lang / "phon_rules.tsv")
    assert form in dict(respelled(word, rules)) if form else not respelled(word, rules)


@pytest.mark.parametrize(
    ("lang", "text", "some", "others"),
    [
        ("hr", "uvijek je bio tako lijepo", {"uvik", "bija", "lipo"}, {"tak", "bil", "ljepo"}),
        ("da", "jeg vil også sige meget til dig", {"jeq", "meqet", "diq"}, {"osse", "dæ"}),
    ],
)
def test_one_writer_writes_one_dialect(lang, text, some, others):
    noisy = noise([text] * 4_000, "ugc", lang=lang, id=list(range(4_000)))
    rows = [set(row.lower().split()) for row in noisy]
    assert sum(bool(row & some) for row in rows) > 60
    assert sum(bool(row & others) for row in rows) > 60
    assert sum(len(row & some) > 0 < len(row & others) for row in rows) < 40


@pytest.mark.parametrize("lang", RULES_WITH_CHANCES)
def test_rules_are_chances_not_proportions(lang):
    """Of 696 German words in -en, posts have 9 in -n: not each that a rule fits is respelled."""
    assert head_of(DICTIONARIES / lang / "phon_rules.tsv", "of") == {"of": "100"}


def test_french_nouns_in_ier_are_no_verbs():
    rules = rules_of(DICTIONARIES / "fr" / "phon_rules.tsv")
    assert dict(respelled("dernier", rules)).keys() == {"dernié"}
    assert "parlez" in dict(respelled("parler", rules))


@pytest.mark.parametrize(
    ("lang", "name", "clean", "noisy"),
    [
        ("de", "clip", "morgen", "moin"),  # the greeting, not tomorrow
        ("de", "clip", "eher", "eh"),
        ("de", "clip", "alter", "alda"),
        ("fr", "phon", "toi", "toa"),
        ("fr", "phon", "être", "et"),
        ("it", "phon", "anno", "hanno"),
        ("it", "clip", "meno", "-"),
        ("es", "clip", "menos", "-"),
        ("pt", "phon", "qualidade", "kualidade"),
        ("ru", "phon", "есть", "исть"),
        ("uk", "join", "необхідно", "не обхідно"),
        ("da", "clip", "biograf", "biffen"),
        ("ko", "clip", "것이", "거가"),
        ("zh", "clip", "大学生", "大学"),
        ("zh", "init", "随便", "sb"),
        ("vi", "clip", "cố gắng", "cố lên"),
        ("nl", "phon", "dag", "dahag"),
        ("nl", "phon", "daar", "door"),
        ("nl", "phon", "mijn", "mij"),
        ("nl", "phon", "zijn", "z'n"),
        ("nl", "clip", "niet", "ni"),  # the verb; of Flanders
        ("de", "clip", "nicht", "net"),
        ("tr", "phon", "çok", "cok"),  # of the south; in `clip`
        ("it", "phon", "sono", "so"),
        ("pt", "clip", "estar", "tá"),
        ("vi", "phon", "mẹ", "mịa"),
        ("vi", "init", "việc làm", "vl"),
        ("en", "clip", "old", "ol"),
        ("de", "clip", "tut mir leid", "sry"),  # 'es sry', 'how ol'
        ("de", "phon", "frage", "frag"),
        ("sv", "clip", "att", "å"),  # the noun; the conjunction
        ("ko", "clip", "네", "넹"),
        ("ru", "clip", "фотография", "фото"),  # four; 'моя старая фото'
        ("nl", "phon", "voor", "veur"),
        ("pl", "clip", "ponieważ", "pon"),
        ("pt", "init", "eu te amo", "amo vc"),
        ("fr", "join", "tout à fait", "toutàfait"),
        ("fr", "init", "en privé", "en mp"),
        ("ja", "phon", "らない", "らんない"),
        ("id", "phon", "foto", "pp"),
        ("th", "clip", "บริษัท", "บริสัท"),
        ("th", "phon", "หรือ", "หรอ"),
    ],
)
def test_what_read_as_wrong_in_real_text_is_absent(lang, name, clean, noisy):
    assert noisy not in [entry.noisy for entry in entries(name, lang) if entry.clean == clean]


@pytest.mark.parametrize(
    ("lang", "transform", "text"),
    [
        ("vi", "clip", "đàn ông, tây ban nha, bóng đá Anh"),
        ("vi", "phon", "tây ban nha, yêu cầu, sự thật"),
        ("id", "phon", "menara memori menu sungkan sedangkan menggali menteri"),
        ("th", "clip", "ดวงอาทิตย์ บิชอป อัปลักษณ์"),
        ("th", "long", "อิรัก โหยหา บังคับ แล้วก็"),
        ("th", "phon", "ฤดู ตระกูล ภาวะ เดอะ ฟิสิกส์ ปีที่แล้ว อะแลสกา"),
        ("ja", "phon", "割に合うとは限りません"),
        ("sv", "clip", "man märker att man tar fel"),
        ("de", "clip", "das tut mir leid"),
        ("de", "clip", "einer von uns, eine der drei, ein oder mehr"),
        ("de", "phon", "einer von uns, eine der drei, ein oder mehr"),
    ],
)
def test_words_that_share_letters_with_a_short_form_stay(lang, transform, text):
    recipe = f"{transform}:rate=1"
    assert {noise(text, recipe, lang=lang, seed=seed) for seed in range(99)} == {text}


@pytest.mark.parametrize(
    ("lang", "text", "sign"),
    [("vi", "người này, người kia, hai người", "người"), ("th", "ดีครับ นะครับ ใช่ครับ", "ครับ")],
)
def test_a_writer_treats_a_word_the_same_wherever_it_stands(lang, text, sign):
    """As one word: not "ng này, người kia", nor นะคับ beside ดีครับ."""
    rows = [noise(text, "ugc", lang=lang, seed=seed) for seed in range(99)]
    assert {row.count(sign) for row in rows} == {0, 3}


def test_england_and_children_keep_their_words_in_vietnamese():
    """'anh' becomes 'a' and 'em' becomes 'e', but not in 'người Anh' and 'trẻ em'."""
    cleans = {entry.clean for entry in entries("clip", "vi")}
    assert {"người anh", "trẻ em"} <= cleans


def test_alternatives_of_a_chinese_word_are_some_of_it():
    """A rare word, too, is mostly typed as it is: 薪 was 新 or 心 in six of seven."""
    groups = Lexicon.load(DICTIONARIES / "zh" / "homo.tsv").groups()
    for (clean, _), group in groups.items():
        weights = {entry.noisy: entry.weight for entry in group}
        assert weights[clean] >= 0.59 * sum(weights.values()), clean


@pytest.mark.parametrize(
    ("lang", "clean", "most"),
    [
        ("da", "bliver", "blir"),
        ("de", "habe", "hab"),
        ("id", "yang", "yg"),
        ("nl", "misschien", "mss"),
        ("sl", "sem", "sm"),
        ("tr", "bir", "bi"),
        ("vi", "được", "đc"),
        ("vi", "người ta", "ngta"),
    ],
)
def test_the_form_that_people_write_most_has_the_most_weight(lang, clean, most):
    weights = {e.noisy: e.weight for e in entries("clip", lang) if e.clean == clean}
    assert max(weights, key=weights.__getitem__) == most


def test_russians_leave_out_hyphens_and_seldom_break_words():
    """Of 45 'что-то' and the like people write 27 apart, of 57 'ничего' and the like none."""
    total = Counter[str]()
    for entry in entries("join", "ru"):
        total[entry.clean] += entry.weight
    broken = max(total[word] for word in ("ничего", "никогда", "почему", "потому", "сразу"))
    assert 10 * broken <= min(total[word] for word in ("что-то", "кто-то", "как-то", "не было"))


@pytest.mark.parametrize("path", named([p for p in PATHS if p.stem == "join"]))
def test_joints_change_blanks_hyphens_and_little_else(path):
    """A few are heard, not seen: es 'a ver' / 'haber', fr 'quand même' / 'comme même'."""
    listed = Lexicon.load(path).entries
    letters = [
        [re.sub(r"[\W_]", "", text.casefold()) for text in (entry.clean, entry.noisy)]
        for entry in listed
    ]
    same = sum(clean == noisy for clean, noisy in letters)
    assert same >= 0.6 * len(listed)


@pytest.mark.parametrize("path", named([p for p in PATHS if p.stem == "cens"]))
def test_most_masks_hide_a_letter(path):
    listed = Lexicon.load(path).entries
    if path.parent.name in MATCHED_BY:  # words stay now and then; a mask is another character
        listed = [entry for entry in listed if entry.noisy != entry.clean]
        hidden = [entry for entry in listed if set(entry.clean) - set(entry.noisy)]
    else:
        hidden = [entry for entry in listed if MASKED.search(entry.noisy)]
    assert len(hidden) >= 0.75 * len(listed)
    for entry in listed:
        assert entry.noisy.casefold() != entry.clean.casefold()


@pytest.mark.parametrize("path", named(INSERTED))
def test_insertions_name_known_places(path):
    listed = Lexicon.load(path).entries
    found = {entry.clean for entry in listed}
    assert found == ({"end", "instead"} if path.stem == "emot" else PLACES)
    assert len({entry[:2] for entry in listed}) == len(listed) >= 50
    for entry in listed:
        assert not re.search(r"[\r\n\t@#]|\w\.\w", entry.noisy)
        if entry.clean == "opening" and entry.noisy[0] not in "¡":
            assert entry.noisy[0].isupper()
            assert entry.noisy[-1] in ".!"
        if entry.clean == "comma":
            assert entry.noisy.endswith(",")
