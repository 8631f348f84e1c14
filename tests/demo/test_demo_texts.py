"""The text of the quickstart: real, whole sentences, none of them on both sides."""

import pytest

from noisegen.demo.texts import compared_documents, demo_texts

pytest.importorskip("gensim")


def test_there_is_enough_real_text_and_no_document_is_on_both_sides():
    split = demo_texts()

    assert len(split.training) > 15_000
    assert 500 < len(split.held_out) < len(split.training) / 5
    assert not {*split.training} & {*split.held_out}
    assert len({*split.training}) == len(split.training)
    assert split == demo_texts()


def test_sentences_are_whole_and_without_markup():
    for text in demo_texts().training:
        assert 5 <= len(text.split()) <= 40
        assert text[-1] in '.!?"'
        assert not {"[[", "]]", "{{", "}}", "''"} & {text[at : at + 2] for at in range(len(text))}


def test_documents_come_with_what_people_said():
    rows = list(compared_documents())

    assert len(rows) == 50 * 49 / 2
    assert {0 <= score <= 1 for *_, score in rows} == {True}
    assert len({score for *_, score in rows}) > 50
