"""Derive noisegen/dictionaries/zh/homo.tsv, Chinese words that sound alike, from public data.

Usage, where the extra `zh` is installed (jieba 0.42.1, pypinyin 0.55.0, opencc 0.1.7):

    python tools/chinese_homophones.py [OUT.tsv]

Read at derivation time only:
- jieba: its words and how often each occurs (MIT);
- pypinyin: how a word is read (MIT, as are its tables);
- opencc-python-reimplemented: traditional characters as in Taiwan (Apache-2.0).

A word may become another that is typed with the same letters, as when the wrong candidate of an
input method is taken; so may each of its characters, also for one that differs in a sound which
many speakers do not tell apart. Candidates weigh by frequency, and so does the word itself, which
stays: 再 often becomes 在, 在 seldom 再.
"""

import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

warnings.simplefilter("ignore")  # jieba's source has invalid escapes

from opencc import OpenCC  # noqa: E402
from pypinyin import Style, lazy_pinyin  # noqa: E402

from tools.paths import paths  # noqa: E402

OUT = Path(__file__).parents[1] / "noisegen/dictionaries/zh/homo.tsv"
WORDS, CHARACTERS = 6_000, 2_500  # the most frequent ones, which may change
CANDIDATES = 40_000  # words among which candidates are looked for
WORD_FORMS, CHARACTER_FORMS = 5, 10  # alternatives of each, the likeliest
POWER = 0.6  # exponent of a frequency: rare characters give way to common ones
STAYS = 4  # how much more a word weighs than a candidate of its frequency
WHOLE_WORD = 2.0  # a word for a word, against a character for a character
SAME_TONE, OTHER_TONE, NEAR = 1.0, 0.5, 0.25
ALIKE = (("zh", "z"), ("ch", "c"), ("sh", "s"))
ENDS_ALIKE = (("ang", "an"), ("eng", "en"), ("ing", "in"))
LISTED = 0.03  # least relative frequency: rarer characters come far below in a list of candidates
LEAST = 8  # thousandths of an alternative; few write what is rarer
MOST = 400  # thousandths of all alternatives: a rare word, too, is mostly typed as it is
COUNTS = {"的": 3_000_000}  # jieba has a tenth of it, fewer than of 了
# Readings that pypinyin gives no word of one character.
PARTICLES = {"的": "de5", "得": "de5", "地": "de5", "着": "zhe5", "了": "le5", "都": "dou1"}
HEAD = """# name: homo
# lang: zh
# of: 1000
# source: jieba and pypinyin, by tools/chinese_homophones.py ({})
# license: MIT (see homo.LICENSE.txt)
clean\tnoisy\tweight
"""

simplified, _traditional = OpenCC("t2s").convert, OpenCC("s2tw").convert


def traditional(word: str) -> str:
    """Return the traditional characters that people in Taiwan type."""
    return str(_traditional(word)).replace("臺", "台").replace("汙", "污")


def words() -> Counter[str]:
    """Return jieba's words of simplified Han characters, with how often they occur."""
    lines = files("jieba").joinpath("dict.txt").read_text("utf-8").splitlines()
    rows = (line.split(" ") for line in lines)
    counts = {word: int(count) for word, count, _ in rows} | COUNTS
    return Counter(
        {
            word: count
            for word, count in counts.items()
            if all("\u4e00" <= sign <= "\u9fff" for sign in word) and simplified(word) == word
        }
    )


def readings(word: str) -> tuple[str, ...]:
    """Return the syllables of a word with their tones: '再' -> ('zai4',)."""
    if word in PARTICLES:
        return (PARTICLES[word],)
    return tuple(lazy_pinyin(word, style=Style.TONE3, neutral_tone_with_five=True))


def near(syllable: str) -> set[str]:
    """Return the syllables, without tones, that some do not tell from one."""
    begins = {syllable}
    for pair in ALIKE:
        for one, other in (pair, pair[::-1]):
            rest = syllable.removeprefix(one)
            if rest != syllable and rest[:1] in "aeiouv":
                begins.add(other + rest)
    ends = set(begins)
    for pair in ENDS_ALIKE:
        for one, other in (pair, pair[::-1]):
            ends |= {form.removesuffix(one) + other for form in begins if form.endswith(one)}
    return ends - {syllable}


def character_forms(counts: Counter[str]) -> dict[str, dict[str, float]]:
    """Return the homophones of each character, with weights."""
    frequency, sounds = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for word, count in counts.most_common(CANDIDATES):
        for sign, sound in zip(word, readings(word), strict=True):
            frequency[sign] += count
            sounds[sign][sound] += count
    heard = defaultdict[str, list[tuple[str, str, float]]](list)  # by syllable: sign, tone, weight
    for sign, found in sounds.items():
        for sound, count in found.items():
            heard[sound[:-1]].append((sign, sound[-1], count**POWER))
    forms = {}
    for sign, _ in frequency.most_common():
        weights = Counter[str]()
        for sound, count in sounds[sign].items():
            share = count / frequency[sign]
            for other, tone, weight in heard[sound[:-1]]:
                weights[other] += share * weight * (SAME_TONE if tone == sound[-1] else OTHER_TONE)
            for other, _, weight in (row for part in near(sound[:-1]) for row in heard[part]):
                weights[other] += share * weight * NEAR
        least = frequency[sign] * LISTED
        listed = {form: weight for form, weight in weights.items() if frequency[form] >= least}
        forms[sign] = {**listed, sign: frequency[sign] ** POWER * STAYS}
    return forms


def likeliest(forms: dict[str, float], clean: str, most: int) -> list[tuple[str, int]]:
    """Return the heaviest alternatives in thousandths; the rest is the chance of the word."""
    others = sorted((-weight, form) for form, weight in forms.items() if form != clean)[:most]
    heard = -sum(weight for weight, _ in others)
    total = max(forms[clean] + heard, heard * 1000 / MOST)
    shares = [(form, round(-1000 * weight / total)) for weight, form in others]
    return [(form, share) for form, share in shares if share >= LEAST]


def word_forms(
    counts: Counter[str], characters: dict[str, dict[str, float]]
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the most frequent words of two characters or more with their replacements."""
    alike = defaultdict[tuple[str, ...], list[str]](list)
    longer = [word for word, _ in counts.most_common(CANDIDATES) if len(word) > 1]
    for word in longer:
        alike[tuple(sound[:-1] for sound in readings(word))].append(word)
    for word in longer[:WORDS]:
        own = counts[word] ** POWER
        sounds = tuple(sound[:-1] for sound in readings(word))
        forms = {other: counts[other] ** POWER * WHOLE_WORD for other in alike[sounds]}
        for at, sound in enumerate(sounds):
            for other in near(sound):
                for form in alike.get((*sounds[:at], other, *sounds[at + 1 :]), ()):
                    forms.setdefault(form, counts[form] ** POWER * WHOLE_WORD * NEAR)
        for at, sign in enumerate(word):
            found = characters[sign]
            for other, weight in found.items():
                form = word[:at] + other + word[at + 1 :]
                forms.setdefault(form, own * weight / found[sign] * STAYS)
        yield word, {**forms, word: own * STAYS}


def in_both_scripts(clean: str, forms: list[tuple[str, int]]) -> Iterator[tuple[str, str, int]]:
    """Yield the rows of a word; a word shared by both scripts has the shared alternatives."""
    other = traditional(clean)
    if other == clean:
        yield from ((clean, form, share) for form, share in forms if traditional(form) == form)
        return
    for form, share in forms:
        yield clean, form, share
        yield other, traditional(form), share


def main() -> None:
    """Write the table."""
    (out,) = paths(__doc__, out=OUT)
    counts = words()
    characters = character_forms(counts)
    listed = [
        *(
            (sign, likeliest(characters[sign], sign, CHARACTER_FORMS))
            for sign in [*characters][:CHARACTERS]
        ),
        *(
            (word, likeliest(forms, word, WORD_FORMS))
            for word, forms in word_forms(counts, characters)
        ),
    ]
    rows = {row[:2]: row[2] for clean, forms in listed for row in in_both_scripts(clean, forms)}
    packages = ("jieba", "pypinyin", "opencc-python-reimplemented")
    head = HEAD.format(", ".join(f"{name} {version(name)}" for name in packages))
    totals = Counter[str]()  # traditional words with several simplified forms count too
    for (clean, _), weight in rows.items():
        totals[clean] += weight
    lines = [
        f"{clean}\t{noisy}\t{weight * MOST // max(totals[clean], MOST)}\n"
        for (clean, noisy), weight in sorted(rows.items())
    ]
    out.write_text(head + "".join(lines), encoding="utf-8", newline="\n")
    print(f"{len(lines):,} rows -> {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
