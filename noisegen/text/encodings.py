"""The likely encoding of text that is not UTF-8, by the letters of languages."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

# Letters of languages beside a to z, by the encoding in which old files have them. The names are
# known to Python and to iconv. In a tie the first one counts.
_LETTERS = (
    ("windows-1252", "äöüß"),
    ("windows-1252", "éèàçâêîôûëïùœ"),
    ("windows-1252", "áéíóúñü¿¡ºª"),
    ("windows-1252", "ãõáâàéêíóôúçºª"),
    ("windows-1252", "àèéìòù"),
    ("windows-1252", "åäöéæø"),
    ("windows-1252", "áéíóúýþæðö"),
    ("windows-1255", "אבגדהוזחטיךכלםמןנסעףפץצקרשת"),
    ("windows-1251", "абвгдежзийклмнопрстуфхцчшщъыьэюяё№"),
    ("windows-1251", "абвгґдеєжзиіїйклмнопрстуфхцчшщьюяў№"),
    ("windows-1251", "абвгдежзијклмнопрстуфхцчшљњђћџѓќ"),
    ("windows-1250", "ąćęłńóśźż"),
    ("windows-1250", "áčďéěíňóřšťúůýžĺľôŕä"),
    ("windows-1250", "áéíóöőúüű"),
    ("windows-1250", "ăâîşţ"),
    ("windows-1250", "čćžšđ"),
    ("windows-1254", "çğıöşüâî"),
    ("windows-1257", "ąčęėįšųūž"),
    ("windows-1257", "āčēģīķļņšūž"),
    ("windows-1257", "äöõüšž"),
    ("windows-1253", "αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώϊ"),
    ("windows-1256", "ابتثجحخدذرزسشصضطظعغفقكلمنهويىةءآأؤإئپچژگ،؛؟"),
    ("koi8-r", "абвгдежзийклмнопрстуфхцчшщъыьэюяё"),
    ("iso-8859-2", "ąćęłńóśźż"),
    ("iso-8859-2", "áčďéěíňóřšťúůýžĺľôŕä"),
    ("macintosh", "äöüßéèàçâêîôûëïùáíóúñ"),
)
# Ranges or frequent characters of languages that are written in two bytes per character, and the
# share of a text that they make up at least.
_CHARACTERS = (
    ("cp932", "[ぁ-ヺ、。]", 0.33),
    ("euc-jp", "[ぁ-ヺ、。]", 0.33),
    ("cp949", "[가-힣]", 0.9),
    ("gb18030", "[的一是在不了有和人这中大为上个国我以要他时来用们，。]", 0.25),
    ("big5", "[的一是在不了有和人這中大為上個國我以要他時來用們，。]", 0.25),
)
_MARKS = "“”‘’„–—…«»°§\N{NO-BREAK SPACE}"
_LATIN = re.compile(r"windows-125[0247]|iso-8859-2|macintosh")
_MIXED = re.compile(r"[a-zA-Z][^\W\d_a-zA-Z]|[^\W\d_a-zA-Z][a-zA-Z]")


def likely_encoding(text: bytes) -> str:
    """Return the likely encoding of a text with bytes that are not UTF-8; '' if none fits well.

    On two lines of news in 28 languages the encoding is right for 95 %. With lines of Latin script
    that have few accents, encodings of neighbouring languages give the same text.
    """
    return max(_scores(text), default=(0.0, 0, ""))[2]


def _scores(text: bytes) -> Iterator[tuple[float, int, str]]:
    """Yield (score, priority, encoding) for each set of letters that scores over a half.

    The score is the share of non-ASCII characters that are in the set, less the share of letters
    in odd places: capitals after small letters, and Latin letters within words of other scripts.
    Up to two characters tell nothing about an encoding of another script.
    """
    for place, (name, letters, share) in enumerate(_sets()):
        try:
            decoded = text.decode(name)
        except UnicodeDecodeError:
            continue
        count = sum(not char.isascii() for char in decoded)
        good = len(letters.findall(decoded)) / share
        odd = sum(a.islower() and b.isupper() for a, b in pairwise(decoded))
        if not _LATIN.fullmatch(name):
            odd += len(_MIXED.findall(decoded))
        score = (min(good, count) - odd) / max(1, count)
        if score > 0.5 and (count > 2 or _LATIN.fullmatch(name)):
            yield score, -place, name


@cache
def _sets() -> list[tuple[str, re.Pattern[str], float]]:
    """Return the encoding, a pattern of its characters and their share, for each language."""
    found = []
    for name, letters in _LETTERS:
        capitals = "".join(char for char in letters.upper() if not char.isascii())
        found.append((name, re.compile(f"[{letters}{capitals}{_MARKS}]"), 1.0))
    return found + [(name, re.compile(letters), share) for name, letters, share in _CHARACTERS]
