"""Derive noisegen/dictionaries/LANG/wiki.tsv, real misspellings, from corpora of corrections.

Usage, in a virtual environment of its own, with the corpora as folders below DATA:

    pip install . wordfreq==3.1.1
    python tools/mined_dictionaries.py DATA [OUT]

Every corpus is read with the miners of noisegen and the rules of its profile `strict`; of those
whose annotators say what kind an error is, misspellings are read. What is left is counted, and of
the counted pairs those stay that a reader takes for a misspelling (see `is_misspelling`). The
frequencies of wordfreq are read for that and not written.
"""

import csv
import gzip
import io
import re
import sys
import tarfile
import unicodedata
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rapidfuzz.distance import OSA, Levenshtein, Prefix
from wordfreq import zipf_frequency  # type: ignore[import-not-found]  # not a dependency

from noisegen.data.dictionaries import Alternative
from noisegen.mining.counts import WordCounter
from noisegen.mining.dictionary import apply_thresholds, save_dictionary
from noisegen.mining.dumps import tasks_of
from noisegen.mining.filters import PROFILES
from noisegen.mining.miner import Miner, SentencePair, Tally, Task, Thresholds, WordPair
from noisegen.mining.parallel import PairsMiner, table_tasks
from noisegen.mining.wiki import WikiMiner
from noisegen.text.segmentation import language
from noisegen.text.sequences import forbidden_sequences
from tools.paths import paths

OUT = Path(__file__).parents[1] / "noisegen/dictionaries"
STRICT = PROFILES["strict"]
NOTE = "word counts, without the text, by tools/mined_dictionaries.py; wordfreq 3.1.1 told words"
KNOWN_MIN = 2.0  # Zipf frequency of a word that a reader knows
NAME_MIN = 3.0  # least pairs of a capitalised word: only usual names of private texts pass
RARER_MIN = 1.7  # least gap in log frequency: "existance" has 2.3 and "existence" 4.6
ORDINARY_MIN = 3.0  # a wrong form with as much is another word: "fut" for "est"; "recieve" has 2.8
ORDINARY_UK_MIN = 1.5  # in Ukrainian, where wordfreq read fewer slips: "честно", Russian, has 2.5
ENGLISH_MIN = 4.0  # in English: a word that learners take from there, "major" for "mejor"
EDITED_MAX = (
    1 / 3
)  # most changed letters, as a share of the word; "Ладна" for "Гарна" is another word
MARKED = ("de", "is")  # annotators say what is misspelt: twice so is enough for any word
ENDING = 2  # letters in which forms of a word may differ
CORRECT_GRAMMAR = ("es", "uk")  # corpora that correct endings, too, and do not say what is what
BALANCE = 3  # as in the profile `strict`: what goes both ways is a variant
TEI = "{http://www.tei-c.org/ns/1.0}"
# The kinds of the Icelandic Error Corpus that are slips of the pen or the ear, not of grammar.
ICELANDIC_KINDS = frozenset(
    {
        "nonword",
        "missing-letter",
        "extra-letter",
        "letter-rep",
        "swapped-letters",
        "missing-accent",
        "extra-accent",
        "n4nn",
        "nn4n",
        "i4y",
        "y4i",
    }
)
ACCENTS = re.compile("[\u0300-\u036f\u0900-\u0902\u093c]")
ROWS = Path(__file__).with_name("mined_left_out.tsv").read_text("utf-8").splitlines()
LEFT_OUT = {tuple(row.split("\t")[:2]) for row in ROWS if row[:1] != "#"}  # language, word


@dataclass(frozen=True)
class Corpus:
    """A folder of corrections in a language, whom to credit, and what reads it."""

    lang: str
    folder: str
    credit: str
    licence: str
    read: Callable[[Path, str, Counter[str]], Iterator[SentencePair]]  # counts words as they stand


def mined(miner: Miner, tasks: Iterable[Task], seen: Counter[str]) -> Iterator[SentencePair]:
    """Yield the pairs that a miner finds."""
    tally = Tally(words=seen)
    for task in tasks:
        yield from miner(task, tally)


def revisions(folder: Path, lang: str, seen: Counter[str]) -> Iterator[SentencePair]:
    """Mine the dumps of a folder that are in the language."""
    tasks, _ = tasks_of([str(folder)], lang)
    return mined(WikiMiner(language(lang), replace(STRICT, spelling_only=True)), tasks, seen)


def texts(
    rows: Iterable[tuple[str, str]], lang: str, seen: Counter[str], *, split: bool
) -> Iterator[SentencePair]:
    """Mine pairs of noisy and clean text."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "pairs.csv")
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("noisy", "clean"))
            for row in rows:
                writer.writerow(row)
                seen.update(language(lang).tokens(row[0]))
        miner = PairsMiner(language(lang), STRICT, split=split)
        yield from mined(miner, table_tasks([str(path)], miner)[0], seen)


def essays(folder: Path, lang: str, seen: Counter[str]) -> Iterator[SentencePair]:
    """Mine COWS-L2H: a row is an essay with the corrections of one or two annotators."""
    csv.field_size_limit(1 << 24)
    rows = (row for path in sorted(folder.glob("*.csv.gz")) for row in csv.DictReader(lines(path)))
    names = ("corrected1", "corrected2")
    return texts(
        ((row["essay"], row[n]) for row in rows for n in names if row[n]), lang, seen, split=True
    )


def aligned(folder: Path, lang: str, seen: Counter[str]) -> Iterator[SentencePair]:
    """Mine RUSpellRU: two files aligned by line."""
    sides = (lines(folder / f"{side}.even.txt.gz") for side in ("sources", "corrections"))
    return texts(zip(*sides, strict=True), lang, seen, split=False)


def editors(folder: Path, lang: str, seen: Counter[str]) -> Iterator[SentencePair]:
    """Mine UA-GEC: documents of a sentence a line, each as one or two editors have it."""
    files = members(folder / "gec-fluency.train.tar.gz")
    documents = {Path(name).name: text.splitlines() for name, text in files}
    rows = (
        row
        for name, clean in sorted(documents.items())
        if not name.endswith(".src.txt")
        for row in zip(documents[f"{name.partition('.')[0]}.src.txt"], clean, strict=True)
    )
    return texts(rows, lang, seen, split=False)


def spelling_edits(folder: Path, lang: str, seen: Counter[str]) -> Iterator[SentencePair]:
    """Read the words of Falko-MERLIN whose edit is of the type R:SPELL."""
    tokens: list[str] = []
    for unit, line in enumerate(lines(next(folder.glob("*.m2.gz")))):
        if line.startswith("S "):
            tokens = line[2:].split()
            seen.update(tokens)
        elif line.startswith("A ") and "|||R:SPELL|||" in line:
            span, _, correction, *_ = line[2:].split("|||")
            start, stop = map(int, span.split())
            yield from word(correction, " ".join(tokens[start:stop]), lang, unit)


def proofread(folder: Path, lang: str, seen: Counter[str]) -> Iterator[SentencePair]:
    """Read the words of the Icelandic Error Corpus that were marked as misspelt."""
    unit = 0
    for _, text in members(folder / "iceErrorCorpus.tar.gz"):
        root = ET.fromstring(text)
        seen.update(word.text or "" for word in root.iter(f"{TEI}w"))
        for revision in root.iter(f"{TEI}revision"):
            seen.subtract(side(revision, "corrected").split())
            unit += 1
            kinds = {error.get("xtype") for error in revision.iter(f"{TEI}error")}
            if kinds <= ICELANDIC_KINDS:
                yield from word(side(revision, "corrected"), side(revision, "original"), lang, unit)


def side(revision: ET.Element, name: str) -> str:
    """Return the tokens of a side of a TEI revision."""
    found = revision.find(f"{TEI}{name}")
    return "" if found is None else " ".join("".join(token.itertext()) for token in found)


def checked(folder: Path, lang: str, _: Counter[str]) -> Iterator[SentencePair]:
    """Read the hand-checked list of Icelandic misspellings, without their texts."""
    for unit, line in enumerate(lines(folder / "misspelling_cands_gold.even.txt.gz")):
        noisy, clean = line.split("\t")
        yield from word(clean.strip(), noisy.strip(), lang, unit)


def injected(folder: Path, lang: str, seen: Counter[str]) -> Iterator[SentencePair]:
    """Read the errors that RCP's authors mined from Wikipedia and put into SNIPS requests."""
    with (folder / f"{lang}.tsv").open(encoding="utf-8", newline="") as file:
        for unit, row in enumerate(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)):
            both = zip(row["old_utterance"].split(), row["new_utterance"].split(), strict=False)
            for clean, marked in both:
                seen.update([marked.lower()])
                if found := re.fullmatch(r"<(.+)\|\d+>", marked):
                    yield from word(clean.lower(), found[1].lower(), lang, unit)


def word(clean: str, noisy: str, lang: str, unit: int) -> Iterator[SentencePair]:
    """Yield a pair of words if the profile would take it in a sentence."""
    reason, kind = language(lang).word_kind(clean, noisy)
    most = STRICT.char_distance_max or 0
    if reason is None and Levenshtein.distance(clean, noisy) <= most:
        yield SentencePair(noisy, clean, lang, unit, (WordPair(clean, noisy, kind),))


def lines(path: Path) -> Iterator[str]:
    """Yield the lines of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\n")


def members(path: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of the files in an archive, without unpacking it to disk."""
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                yield member.name, io.TextIOWrapper(file, "utf-8").read()


RCP = "amazon-science/multilingual-robust-contrastive-pretraining, errors mined from Wikipedia"
CORPORA = (
    Corpus(
        "de",
        "falko-merlin",
        "Falko-MERLIN, learner German (spraakbanken/multiged-2023)",
        "CC-BY-SA-4.0",
        spelling_edits,
    ),
    Corpus(
        "en",
        "wiki-history",
        "the histories of Anarchism and two more pages of Wikipedia",
        "CC-BY-SA-4.0",
        revisions,
    ),
    Corpus("es", "cowsl2h", "COWS-L2H, learner Spanish (ucdaviscl/cowsl2h)", "Apache-2.0", essays),
    Corpus("es", "snips-multilingual", RCP, "Apache-2.0", injected),
    Corpus("fr", "snips-multilingual", RCP, "Apache-2.0", injected),
    Corpus("hi", "snips-multilingual", RCP, "Apache-2.0", injected),
    Corpus(
        "is",
        "ice-error",
        "Icelandic Error Corpus (antonkarl/iceErrorCorpus)",
        "CC-BY-4.0",
        proofread,
    ),
    Corpus(
        "is",
        "is-wiki-typos",
        "misspellings of Wikipedia (atlijas/wikipedia-revision-miner)",
        "MIT",
        checked,
    ),
    Corpus("ru", "ruspellru", "RUSpellRU, blogs (ai-forever/sage)", "MIT", aligned),
    Corpus(
        "uk",
        "ua-gec",
        "UA-GEC, texts corrected by editors (grammarly/ua-gec)",
        "CC-BY-4.0",
        editors,
    ),
)


def is_misspelling(entry: Alternative) -> bool:
    """Tell whether a reader takes the wrong form for a misspelling of a word that is known.

    It is none if it is a word itself, for an editor may have preferred another word or form; but
    what only lost its accents is one.
    """
    lang, clean, noisy = entry[:3]
    if not (is_word(clean) and is_word(noisy)) or {(lang, clean), (lang, noisy)} & LEFT_OUT:
        return False
    if forbidden_sequences(noisy):
        return False
    if clean.lower() == noisy.lower() or clean[0].isupper() != noisy[0].isupper():
        return False
    is_name = clean[0].isupper() and lang != "de"
    if zipf_frequency(clean, lang) < (NAME_MIN if is_name else KNOWN_MIN):
        return False
    if bare(clean) == noisy or (lang in MARKED and entry.count > 1):
        return True
    is_near = OSA.distance(clean, noisy) <= EDITED_MAX * len(clean)
    return is_near and not (is_known(clean, noisy, lang) or is_form(clean, noisy, lang))


def is_known(clean: str, noisy: str, lang: str) -> bool:
    """Tell whether a wrong form is too frequent for a misspelling."""
    frequency = zipf_frequency(noisy, lang)
    return (
        frequency >= (ORDINARY_UK_MIN if lang == "uk" else ORDINARY_MIN)
        or zipf_frequency(clean, lang) - frequency < RARER_MIN
        or (lang != "en" and zipf_frequency(noisy, "en") >= ENGLISH_MIN)
    )


def is_form(clean: str, noisy: str, lang: str) -> bool:
    """Tell whether the sides may be two forms of a word, in a corpus that corrects grammar."""
    if lang not in CORRECT_GRAMMAR or bare(clean) == bare(noisy):
        return False
    return max(len(clean), len(noisy)) - Prefix.similarity(clean, noisy) <= ENDING


def is_word(text: str) -> bool:
    """Tell whether a text is letters, with apostrophes and hyphens between them."""
    parts = re.split("['-]", text)
    return all(part and all(map(is_letter, part)) for part in parts)


def is_letter(sign: str) -> bool:
    """Tell letters and their marks from other signs."""
    return unicodedata.category(sign)[0] in "LM"


def bare(text: str) -> str:
    """Return a text without accents; in Devanagari, without dots and the moon above or below."""
    parts = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", ACCENTS.sub("", parts))


def dictionary(corpora: Iterable[Corpus], data: Path) -> list[Alternative]:
    """Return the misspellings of the corpora of a language, and how often the words were right."""
    seen = Counter[str]()
    with WordCounter() as counter:
        for corpus in corpora:
            for pair in corpus.read(data / corpus.folder, corpus.lang, seen):
                counter.add(pair)
        found = list(apply_thresholds(counter.rows(), Thresholds(balance=BALANCE)))
    seen = +seen  # an Icelandic word may be corrected into a part of another
    return [one._replace(frequency=seen[one.clean]) for one in filter(is_misspelling, found)]


def main() -> None:
    """Write the dictionary of every language."""
    data, out = paths(__doc__, data=None, out=OUT)
    for lang in sorted({corpus.lang for corpus in CORPORA}):
        corpora = [corpus for corpus in CORPORA if corpus.lang == lang]
        head = {
            "name": "wiki",
            "lang": lang,
            "source": "; ".join(corpus.credit for corpus in corpora),
            "license": " AND ".join(dict.fromkeys(corpus.licence for corpus in corpora)),
            "note": NOTE,
        }
        entries = dictionary(corpora, data)
        path = out / lang / "wiki.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_dictionary(entries, path, "lexicon", head)
        words = len({entry.clean for entry in entries})
        print(f"{path}: {len(entries):,} wrong forms of {words:,} words", file=sys.stderr)


if __name__ == "__main__":
    main()
