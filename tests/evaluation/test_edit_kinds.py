"""Edits of pairs by kind."""

import pytest

import noisegen
from noisegen.evaluation.edit_kinds import by_kind, kind_of, with_edits_of


@pytest.mark.parametrize(
    ("clean", "noisy", "kind"),
    [
        ("people", "ppl", "word"),
        ("going to", "gonna", "words"),
        ("alot", "a lot", "words"),
        ("The", "the", "case"),
        (",", "", "signs"),
        ("don't", "dont", "word"),
        ("the ", "", "missing"),
        ("end.", "end", "signs"),
    ],
)
def test_kinds_of_edits(clean, noisy, kind):
    assert kind_of(clean, noisy) == kind


def test_edits_of_a_kind_alone():
    clean, noisy = "I am going to see you, Ann.", "i am gonna see u ann"
    assert with_edits_of("word", clean, noisy) == "I am going to see u, Ann."
    assert with_edits_of("words", clean, noisy) == "I am gonna see you, Ann."
    assert with_edits_of("case", clean, noisy) == "i am going to see you, ann."
    rows, texts = by_kind(["Same.", clean], ["Same.", noisy])["signs"]
    assert (rows, texts) == ([1], ["I am going to see you Ann"])


@pytest.mark.parametrize(
    ("clean", "noisy", "kind", "text"),
    [
        ("Good luck", "good luck mate", "missing", "Good luck mate"),
        ("See you tomorrow at the park.", "c u tmrw park.", "missing", "See you tomorrow park."),
        ("I do not know it.", "idk it.", "words", "idk it."),
    ],
)
def test_added_and_removed_words_leave_whole_text(clean, noisy, kind, text):
    assert with_edits_of(kind, clean, noisy) == text


def test_an_evaluation_reports_the_distance_by_kind(tmp_path, tiny_bert):
    pairs = tmp_path / "posts.tsv"
    pairs.write_text("noisy\tclean\nc u\tsee you\nim gonna go\tim going to go\nok\tok\n")
    found = noisegen.evaluate(
        (str(tiny_bert),), str(tmp_path / "out"), pairs=(str(pairs),), hard=False
    )
    [(_, by_set)] = found.scores.items()
    [scores] = by_set.values()
    names = {
        name for name in scores if name.startswith("anchored_") and name != "anchored_distance"
    }
    assert names == {"anchored_word", "anchored_words"}
    alone = sum(scores[name].value for name in names)
    assert alone == pytest.approx(
        scores["anchored_distance"].value, rel=1e-4
    )  # each pair has edits of one kind


def test_an_encoder_behind_normalize(tiny_bert):
    from noisegen.encoders.encoder import open_encoder

    plain, behind = open_encoder(str(tiny_bert)), open_encoder(f"normalized:en:{tiny_bert}")
    assert behind.width == plain.width
    assert behind.digest != plain.digest
    assert (behind.encode(["c u"]) == plain.encode(["see you"])).all()
    with pytest.raises(noisegen.NoisegenError, match="write a language and a model"):
        open_encoder("normalized:minilm")
    with pytest.raises(noisegen.NoisegenError, match="no counts of words for language 'zh'"):
        open_encoder("normalized:zh:no-such-model")
