"""The packaged profiles: licensed, small, made by their tool, used without options."""

import json
import re

import pytest
from click.testing import CliRunner
from conftest import SHARED
from rapidfuzz.distance import Levenshtein

import noisegen
from noisegen.cli import noisegen as program
from noisegen.errors import UsageError
from noisegen.noising.profile import load
from noisegen.testing import check_transform
from noisegen.text.resources import DEMO, DICTIONARIES

LANGS = ("de", "en", "es", "ga", "is", "pt", "ru", "uk", "zh")
SCANNED = ("cs", "de", "en", "es", "fr")
PROFILES = [*(("channel", lang) for lang in LANGS), *(("ocr", lang) for lang in SCANNED)]
LICENCES = {"Apache-2.0", "CC-BY-4.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0", "MIT"}
TEXTS = {
    "cs": "Dnes ráno jsme šli do města, ale obchody byly ještě zavřené a nikdo tam nebyl.",
    "ga": "Tá sé ag dul abhaile anois agus níl a fhios agam cén fáth a bhfuil sé anseo.",
    "is": "Það er gott að vera hérna en ég veit ekki hvað ég á að gera á morgun.",
    "nl": "De kinderen zijn vanmorgen met hun vader naar het oude huis bij de rivier gegaan.",
    "uk": "Я не знаю, що мені робити завтра, але сьогодні ми поїдемо до міста.",
}


def folder_of(lang, name="channel"):
    return DICTIONARIES / lang / name


def texts_of(lang):
    rows = (line.split("\t") for line in DEMO.read_text("utf-8").splitlines())
    return [row[0] for row in rows if row[2] == lang] or [TEXTS[lang]]


@pytest.mark.parametrize(("name", "langs"), [("channel", LANGS), ("ocr", SCANNED)])
def test_these_languages_have_a_profile(name, langs):
    assert tuple(sorted(path.parent.name for path in DICTIONARIES.glob(f"*/{name}"))) == langs


@pytest.mark.parametrize(("name", "lang"), PROFILES)
def test_a_profile_is_licensed_supported_and_small(name, lang):
    profile = load(folder_of(lang, name))
    assert profile.lang == lang
    assert profile.license in LICENCES
    assert re.search(r"\([\w-]+/[\w-]+\)$", profile.source)
    assert sum(path.stat().st_size for path in folder_of(lang, name).iterdir()) < 400_000
    forms = [(key, count) for key, count in profile.words.items() if key.noisy]
    assert min(count for key, count in forms if key.noisy != key.clean) >= 3
    texts = {part for key, _ in forms for part in (key.clean, key.noisy)}
    texts |= {gap for key in profile.gaps for gap in (key.gap, key.noisy) if gap}
    assert [text for text in texts if re.search(r"@\w|https?:|www\.|\d{5}", text)] == []


@pytest.mark.parametrize("lang", LANGS)
def test_channel_alone_takes_the_profile_of_the_language(lang):
    texts = [f"{text} {n}." for text in texts_of(lang) for n in range(40)]
    made = noisegen.noise(texts, "channel", lang=lang, seed=1)
    assert made == noisegen.noise(texts, f"channel:profile={folder_of(lang)}", lang=lang, seed=1)
    assert made != texts


def test_another_language_is_told_what_to_do():
    wanted = "no packaged profile for language 'ko' .*learn one with noisegen learn PAIRS"
    with pytest.raises(UsageError, match=wanted):
        noisegen.noise("친구", "channel", lang="ko")
    with pytest.raises(
        UsageError, match="ocr has no data for language 'ko'; it has cs, de, en, es, fr"
    ):
        noisegen.noise("친구", "ocr", lang="ko")


def cer(rate, texts, lang):
    noisy = noisegen.noise(texts, f"ocr:rate={rate}", lang=lang, seed=1)
    wrong = sum(map(Levenshtein.distance, texts, noisy))
    return wrong / sum(map(len, texts))


@pytest.mark.parametrize(
    ("lang", "scanned"), [("cs", 0.059), ("de", 0.088), ("en", 0.024), ("es", 0.034), ("fr", 0.083)]
)
def test_ocr_misreads_as_much_as_in_its_scans(lang, scanned):
    """The texts are modern and have other words than old prints."""
    check_transform("ocr", lang)
    texts = [f"{text} {n}." for text in texts_of(lang) for n in range(40)]
    assert 0.5 * scanned < cer(1, texts, lang) < 1.6 * scanned
    assert 0.35 < cer(0.5, texts, lang) / cer(1, texts, lang) < 0.65


def test_ocr_leaves_links_and_numbers_where_asked():
    text = "{} Häuser wurden 1887 verkauft, siehe https://example.org/haus und alle anderen."
    texts = [text.format(n) for n in range(300)]
    made = noisegen.noise(texts, "ocr:rate=4", protect="url,number", lang="de")
    assert all("1887" in row and "https://example.org/haus" in row for row in made)
    assert all(re.search(rf"\b{n}\b", row) for n, row in enumerate(made))
    assert sum(map(str.__ne__, texts, made)) > 200


@pytest.mark.parametrize(("name", "langs"), [("channel", LANGS), ("ocr", SCANNED)])
def test_the_catalog_lists_them_with_their_licences(name, langs):
    shown = CliRunner().invoke(program, ["transforms", name, "--json"])
    data = {row["file"]: row for row in json.loads(shown.output)["data"]}
    assert [*data] == [f"dictionaries/{lang}/{name}/profile.json" for lang in langs]
    assert all(row["source"] and row["license"] for row in data.values())


def test_a_run_names_the_source_of_its_profile(tmp_path):
    (tmp_path / "text.txt").write_text("So it is.\n")
    ran = noisegen.augment(str(tmp_path / "text.txt"), tmp_path / "out", transforms=["channel"])
    assert ran
    assert "UD English EWT" in (tmp_path / "out" / "README.md").read_text("utf-8")


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")
@pytest.mark.parametrize(
    "lang",
    ["ru", *(pytest.param(lang, marks=pytest.mark.nightly) for lang in ("de", "en", "ga", "pt"))],
)
def test_the_tool_makes_a_profile_again(lang, tmp_path):
    from tools import profiles

    profiles.main([lang], tmp_path)
    assert load(tmp_path / lang / "channel") == load(folder_of(lang))
