"""The scanner: what ElementTree finds where there is no damage, and what is left where there is."""

import json
import random
import re
import xml.etree.ElementTree as ElementTree
from html import unescape

import pytest
from conftest import SHARED
from exports import END, HEAD, export, page

from noisegen.data.decoders import salvage
from noisegen.mining.exports import as_exported
from noisegen.mining.revisions import Page, Scanner, read_revisions, read_site

DUMPS = SHARED / "wiki-dumps"
GOOD = "The quikc brown fox jumps over the lazy dog."


def everything(page):
    return True


def scanned(parts, wanted=everything, **limits):
    """Return the revisions of bytes, or of several parts of them, and the notes."""
    notes = []
    parts = [parts] if isinstance(parts, bytes) else parts
    exported = as_exported(parts, notes.append)
    return list(read_revisions(exported, notes.append, wanted, **limits)), notes


def plain(found):
    return [
        (
            one.page.number,
            one.page.namespace,
            one.page.title,
            one.number,
            one.timestamp,
            one.comment,
            one.is_minor,
            None if one.raw is None else unescape(one.raw.decode()),
        )
        for one in found
    ]


def by_tree(data):
    """Return what an XML parser that builds the whole tree finds."""
    root = ElementTree.fromstring(data)
    name = root.tag.partition("}")[0] + "}"
    return [
        (
            int(page.findtext(f"{name}id")),
            int(page.findtext(f"{name}ns")),
            page.findtext(f"{name}title"),
            int(one.findtext(f"{name}id")),
            one.findtext(f"{name}timestamp"),
            one.findtext(f"{name}comment") or "",
            one.find(f"{name}minor") is not None,
            _text(one.find(f"{name}text")),
        )
        for page in root.iter(f"{name}page")
        for one in page.iter(f"{name}revision")
    ]


def _text(element):
    if element is None:
        return ""
    withheld = "deleted" in element.attrib or int(element.get("bytes") or 0)
    return None if not element.text and withheld else element.text or ""


@pytest.fixture(scope="module")
def dumps():
    if not DUMPS.exists():
        pytest.skip("no development data")
    return DUMPS


@pytest.mark.nightly
def test_real_and_made_dumps_have_the_counted_pages_revisions_and_characters(dumps):
    for name, expected in json.loads((dumps / "expected-counts.json").read_text()).items():
        found, notes = scanned(list(salvage(dumps / name, pytest.fail)))
        texts = [one.raw.decode() for one in found if one.raw is not None]
        assert notes == [], name
        assert len({one.page.number for one in found}) == expected["pages"], name
        assert len(found) == expected["revisions"], name
        assert len(texts) == expected["with_text"], name
        assert sum(len(unescape(text)) for text in texts) == expected["text_chars"], name
        assert sum(one.is_minor for one in found) == expected["minor"], name


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    [
        "real/simplewiki-content-history-sample.xml",
        "synth/arwiki-synthhist.xml.bz2",
        "malformed/deleted-revisions.xml",
        "malformed/namespaces-redirects.xml",
        "malformed/crlf-bom.xml",
        "malformed/attribute-variants.xml",
    ],
)
def test_the_scanner_finds_what_a_tree_has(dumps, name):
    data = b"".join(salvage(dumps / name, pytest.fail))

    assert plain(scanned(data)[0]) == by_tree(data)


def test_the_revisions_do_not_depend_on_how_the_bytes_come():
    texts = ["a", "", None, "b &amp; <b>", GOOD * 30, "<revision> </text> </page>"]
    data = export(page(1, texts), page(2, ["x"], namespace=1), page(3, ["y", "z"], first=9))
    whole = scanned(data)
    assert plain(whole[0]) == by_tree(data)
    dice = random.Random(1)
    for size in (1, 2, 7, 64, 1000):
        cuts = range(0, len(data), size)
        assert plain(scanned([data[at : at + size] for at in cuts])[0]) == plain(whole[0])
    for _ in range(100):
        cuts = sorted(dice.randrange(1, len(data)) for _ in range(3))
        parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        parts = [part for part in parts if part]
        assert (plain(scanned(parts)[0]), scanned(parts)[1]) == (plain(whole[0]), [])


def test_pages_that_are_not_wanted_are_left_out():
    data = export(page(1, ["a"]), page(2, ["b"], namespace=1), page(3, ["c"]))

    found, notes = scanned(data, lambda page: page.namespace == 0)

    assert [one.page for one in found] == [Page(1, 0, "Page 1"), Page(3, 0, "Page 3")]
    assert notes == []


def test_old_formats_tell_the_namespace_in_the_title():
    text = export(page(1, ["a"], title="Talk:Fox"), page(2, ["b"], title="A: colon")).decode()
    data = re.sub(r"    <ns>0</ns>\n", "", text).encode()

    assert [one.page.namespace for one in scanned(data)[0]] == [1, 0]


def test_what_a_revision_says_of_itself():
    one = scanned(export(page(1, ["a"])))[0][0]

    assert (one.number, one.timestamp) == (1, "2001-01-01T00:00:00Z")
    assert (one.comment, one.is_minor, one.model) == (
        "",
        False,
        "wikitext",
    )


@pytest.mark.nightly
def test_the_hash_of_a_multi_slot_revision_is_that_of_its_text(dumps):
    path = dumps / "real/commonswiki-content-history-multislot.xml.bz2"
    found, _ = scanned(list(salvage(path, pytest.fail)))

    assert {one.digest[0] for one in found} == {"text"}
    assert len({one.raw for one in found}) == len({one.digest for one in found})


@pytest.mark.nightly
def test_digests_are_equal_for_equal_texts_only(dumps):
    path = dumps / "real/enwiki-20140102-tiny.xml.gz"
    found, _ = scanned(list(salvage(path, pytest.fail)))

    assert {one.digest[0] for one in found} == {"revision", "raw"}  # some have no hash
    assert len(dict({(one.digest, one.raw) for one in found})) == len({o.digest for o in found})


@pytest.mark.nightly
def test_a_blank_page_is_a_text_whatever_its_hash_says(dumps):
    data = (dumps / "malformed/deleted-revisions.xml").read_bytes()
    found = {one.number: one for one in scanned(data)[0]}

    assert [found[number].raw for number in (10, 11, 12)] == [None] * 3
    assert [found[number].raw for number in (15, 16, 17)] == [b""] * 3
    assert found[15].digest == found[16].digest != found[14].digest


KEPT = {  # of the revisions of a damaged file, those that are whole
    "control-chars.xml": [1, 2, 9001, 9002],
    "entity-bomb.xml": [1, 9001, 9002],
    "external-entity.xml": [1, 9001, 9002],
    "invalid-utf8.xml": [1, 2, 9001, 9002],
    "missing-close-revision.xml": [2, 9001, 9002],
    "no-siteinfo.xml": [9001, 9002],
    "quadratic-bomb.xml": [1, 9001, 9002],
    "truncated-mid-text.xml": [9001, 9002, 3],
    "unescaped-lt.xml": [1, 2, 9001, 9002],
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", KEPT)
def test_whole_revisions_of_damaged_files_are_kept(dumps, name):
    found, notes = scanned((dumps / "malformed" / name).read_bytes())

    assert [one.number for one in found] == KEPT[name]
    assert bool(notes) == ("entity" in name or "bomb" in name or name[:4] in ("miss", "trun"))


@pytest.mark.nightly
def test_entities_stay_as_they_are(dumps):
    for name, text in (("entity-bomb", b"&lol9;"), ("external-entity", b"&x; The")):
        found, notes = scanned((dumps / "malformed" / f"{name}.xml").read_bytes())
        assert found[0].raw.startswith(text)
        assert notes == ["declares a document type: its entities were not expanded"]


def test_after_a_gap_revisions_have_lost_their_page():
    data = export(page(7, ["a", "b", "c", "d"]), page(8, ["e"], first=20))
    cut = data.index(b"<id>2</id>") + 20
    after = data.index(b"<id>3</id>") - 30

    found, notes = scanned([data[:cut], b"", data[after:]])

    assert [(one.page.number, one.number) for one in found] == [(7, 1), (-3, 3), (-3, 4), (8, 20)]
    assert notes == ["a revision without an end was skipped", "revisions without a page"]


def test_a_revision_beyond_all_measure_comes_without_its_text():
    data = export(page(1, ["a", "x" * 200_000, "b"]))

    parts = [data[at : at + 700] for at in range(0, len(data), 700)]
    found, notes = scanned(parts, revision_max=5_000)

    assert [(one.number, one.raw) for one in found] == [(1, b"a"), (2, None), (3, b"b")]
    assert notes == []


def test_what_is_no_revision_is_not_held():
    reader = Scanner(pytest.fail, everything, header_max=10_000)
    for _ in range(100):
        assert list(reader.feed(b"x" * 1_000)) == []

    assert len(reader.held) + sum(map(len, reader.parts)) < 16_000


def test_the_end_must_be_there():
    data = export(page(1, ["a"]))

    assert scanned(data.removesuffix(END.encode()))[1] == ["the end of the file is missing"]
    assert scanned(data[: data.index(b"</text>")])[1] == [
        "ends inside a revision, which was skipped"
    ]


def test_site():
    site = read_site(HEAD.format(lang="de").encode())

    assert site.lang == "de"
    assert site.namespaces == {"Talk": 1}


# --- what no MediaWiki wrote


def foreign(text):
    """Rewrite an export as another XML writer may do."""
    text = text.replace("<mediawiki xmlns=", "<w:mediawiki xmlns:w=")
    text = re.sub(r"<(/?)(?!\w+:)(\w+)", r"<\1w:\2", text)
    return "<?xml version='1.0'?>\n" + text


def test_prefixes_and_other_encodings_are_read_too():
    text = export(page(1, ["a &amp; b", None, 'ü "<ref>"', ""]), page(2, ["x"])).decode()
    expected = plain(scanned(text.encode())[0])

    assert plain(scanned(foreign(text).encode())[0]) == expected
    assert plain(scanned(text.encode("utf-16"))[0]) == expected


def test_cdata_may_hold_tags():
    text = export(page(1, ["X", "b"])).decode()
    data = text.replace(">X<", "><![CDATA[a </text></revision> & b]]><").encode()

    assert [one.raw for one in scanned(data)[0]] == [
        b"a &lt;/text&gt;&lt;/revision&gt; &amp; b",
        b"b",
    ]


@pytest.mark.parametrize(
    "declaration",
    ['<!DOCTYPE x [<!ENTITY l "lol">]>', '<!DOCTYPE x SYSTEM "file:///etc/hostname">'],
)
def test_expat_refuses_document_types_and_the_rest_is_scanned(declaration):
    text = export(page(1, ["a"]), page(2, ["<![CDATA[b]]>"])).decode().replace("&lt;!", "<!")
    data = text.replace("<mediawiki", f"{declaration}<mediawiki").replace("]&gt;", "]>").encode()

    found, notes = scanned(data)

    assert [one.page.number for one in found] == [1, 2]
    assert notes == ["a document type declaration was refused; read on without parsing XML"]


def test_behind_an_error_the_bytes_are_scanned_as_they_are():
    bad = page(2, ["b"]).replace(">b<", "> a < b & <br> <")
    text = export(page(1, ["a"]), bad, page(3, ["c"], first=5)).decode()
    data = text.replace(">a<", "><![CDATA[a]]><").encode()

    found, notes = scanned(data)

    assert [one.page.number for one in found if one.raw == b"c"] == [3]
    assert found[0].raw == b"a"
    assert notes[0].startswith("not well-formed")


def test_a_gap_within_foreign_xml_is_a_gap():
    text = foreign(export(page(1, ["a" * 90_000, "b"])).decode()).encode()
    cut = text.index(b"<w:id>2<")

    found, notes = scanned([text[:cut], b"", export(page(2, ["c"], first=5))])

    assert [(one.page.number, one.number) for one in found] == [(1, 1), (2, 5)]
    assert notes == ["a revision without an end was skipped"]


def test_a_tag_without_an_end_is_given_up(monkeypatch):
    parts = [b"<w:mediawiki xmlns:w='x'><w:page a='"] + [b"x" * 10_000] * 200

    found, notes = scanned(parts)

    assert found == []
    assert notes[0] == "a tag without an end; the rest was skipped"
