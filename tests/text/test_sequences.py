"""What scripts forbid: told from what people write, and written by no transform."""

import pytest
from test_transforms import noised, outcomes

from noisegen.noising import registry
from noisegen.noising.rng import Draws
from noisegen.testing import check_sequences, check_transform
from noisegen.text import sequences
from noisegen.text.sequences import forbidden_sequences, may_replace, places_of
from noisegen.transforms.keyboard import all_keyboards

ALLOWED = [
    "",
    "naïve café",
    "cafe\u0301",
    "हिन्दी में लिखो, क़लम और ज़्यादा।",
    "আমার সোনার বাংলা, উৎসব",
    "இது தமிழ். ஃபேஸ்புக்",
    "ഇത് മലയാളമാണ്",
    "น้ำ เกาะ เสียง สิทธิ์ แพะ ค่าาา",
    "ສະບາຍດີ",
    "안녕 ㅋㅋ ㅠㅠ",
    "\u1112\u1161\u11ab",
    "がぎ ゴ",
    "かﾞ",
    "וְהָיָה",
    "مُحَمَّد",
    "👨‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️ 1️⃣ 🏳️‍🌈 🤷🏽‍♀️",
    "क्‍ष",
    "می‌خواهم",
]
FORBIDDEN = [
    "\u0301a",
    "a \u0301",
    "ि",
    "िलए",
    "मुुझे",
    "स्टेिशन",
    "क््",
    "आी",
    "कं्",
    "aि",
    "२ा",
    "क़़",
    "ะ",
    "น ำ",
    "เ ดิน",
    "่า",
    "กิี",
    "ก่้",
    "ແ ລະ",
    "ㅎ\u11ab",
    "\u1112 \u1161",
    "\u1112",
    "👨‍",
    "\u200d👩",
    "👩‍ 👧",
    "a🏽",
    "🇩",
    "🇩🇪🇫",
    "क\u200d\u200dष",
    "a\ufffd",
    " ◌ ُ",
]
TEXTS = {
    "hi": ("मुझे लिए स्टेशन नहीं पता, क्या आप मेरी मदद कर सकते हैं?", "हाँ, अच्छा तो चलिए ज़रूर।"),
    "mr": ("मला माहीत नाही, तुम्ही कुठे आहात?",),
    "th": ("ฉันไม่รู้ว่าเขาจะมาเมื่อไหร่ แต่น้ำเยอะมากและเกาะสวย",),
    "ko": ("내일 학교에 같이 가자. 정말 고마워!",),
    "ja": ("明日、学校に行きますか？がんばって！",),
    "zh": ("你明天去学校吗？谢谢你。",),
    "ru": ("Ёлка ещё стоит, а мой чай остыл.",),
    "vi": ("Tôi không biết ngày mai có mưa không.",),
    "fr": ("C'est l'été, j’ai où aller là-bas.",),
    "de": ("Müssen wir größere Äpfel kaufen?",),
    "tr": ("Ilık çay içtim, şöyle güzel.",),
    "ar": ("لا أعرف متى سيأتي، شُكرًا جزيلًا",),
}
DATA_OF = {"channel": (), "codeswitch": ("ar", "de", "fr"), "wiki": ("de", "fr", "hi", "ru")}
PAIRS = [
    (name, lang)
    for name in registry.names()
    for lang in DATA_OF.get(name, TEXTS)
    if registry.get(name).has_language(lang)
]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_people_write_is_allowed(text):
    assert not forbidden_sequences(text)


@pytest.mark.parametrize("text", FORBIDDEN)
def test_what_no_script_has_is_found(text):
    assert forbidden_sequences(text)


def test_a_letter_is_replaced_by_what_may_stand_there():
    assert may_replace("क", "ख")
    assert may_replace("ि", "ी")
    assert may_replace("अ", "क")
    assert not may_replace("क", "अ")  # a vowel sign may follow
    assert not may_replace("क", "ि")
    assert not may_replace("ि", "्")
    assert not may_replace("a", "\u0301")


@pytest.mark.parametrize(("name", "lang"), PAIRS)
def test_no_transform_writes_what_the_script_forbids(name, lang):
    check_sequences(name, TEXTS[lang] * 8, lang)


@pytest.mark.parametrize("name", ["fing", "leet", "mash", "spac", "long"])
def test_it_does_write_in_devanagari(name):
    assert noised(name, TEXTS["hi"], lang="hi") != list(TEXTS["hi"])


def test_a_vowel_sign_is_held_as_the_vowel():
    assert {"क्याआ", "क्याआआ"} < outcomes("long", "क्या", lang="hi", rate=1)


def test_thai_is_not_split_between_a_vowel_and_its_consonant():
    assert "เ กาะ" not in outcomes("spac", "เกาะ", lang="th")
    assert outcomes("spac", "เกาะมา", lang="th", add_rate=0.5, drop_rate=0) > {"เกาะ มา"}


def test_a_plug_in_that_writes_them_is_refused():
    """A transform that swaps the first two characters parts vowel signs from their consonants."""

    def fronted(text: str, draws: Draws, *, rate: float = 0.5) -> str:
        """Swap the first characters: 'ab' -> 'ba'."""
        return text[1:2] + text[:1] + text[2:] if draws.hit(rate) else text

    registry.transform("fronted")(fronted)
    with pytest.raises(AssertionError, match=r"fronted: it made .* which the script forbids"):
        check_transform("fronted", "hi", TEXTS["hi"])


def test_text_of_scripts_without_signs_is_not_searched(monkeypatch):
    monkeypatch.setattr(sequences, "_FORBIDDEN", None)

    assert not forbidden_sequences("naïve café, plain text")
    assert may_replace("ж", "э")
    assert may_replace("ü", "ö")


def test_letters_replace_each_other_as_the_search_says():
    pairs = {
        (entry.clean, entry.noisy)
        for keyboard in all_keyboards()
        for entry in keyboard.neighbours()
    }
    for clean, noisy in pairs:
        searched = places_of(clean) <= places_of(noisy)
        assert may_replace(clean, noisy) == searched or (clean + noisy).isascii()
