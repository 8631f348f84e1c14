"""Derive noisegen/dictionaries/LANG/nums.tsv, rules that write numbers in words, from CLDR.

Usage: `python -m tools.number_words FOLDER`, CLDR's folder of rule-based number formats
(`common/rbnf` of unicode-org/cldr, or `unicode_rbnf/rbnf` of the package unicode-rbnf). The words
of percent, currencies and the decimal sign are in number_signs.tsv. Rules that nothing calls are
left out.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from noisegen.text.resources import DICTIONARIES
from noisegen.transforms import rows_of

HEAD = """# name: nums
# lang: {}
# source: CLDR rule-based number formats (common/rbnf/{}.xml), by tools/number_words.py
# license: Unicode-DFS-2016 (see any/nums.LICENSE.txt)
# note: rules of UTS #35, part 3; point, group, amount and ending were written for noisegen
rule\tfrom\tradix\twords
"""
NUMBER_MAX = 10**12
FILES = {"nb": "no"}  # language -> name of its file in CLDR, where they differ
LETTERS = {"ro": str.maketrans("şţ", "șț"), "uk": str.maketrans("ʼ", "'")}  # as people type them
APART = ("en",)  # languages whose recognisers write 'thirty five'
SIGNS = Path(__file__).with_name("number_signs.tsv")
_CALLED = re.compile("[=←→]%([^=←→]+)[=←→]")
_CALL_OR_HYPHEN = re.compile("(?P<called>[=←→]%[^=←→]+[=←→])|-")
Rules = dict[str, list[tuple[str, str, str]]]  # rule -> first number, radix, words


def name_of(rule: str) -> str:
    """Return the short name of a rule of CLDR.

    >>> name_of("%spellout-cardinal-masculine"), name_of("%%2d-year")
    ('cardinal-masculine', '2d-year')
    """
    return rule.lstrip("%").removeprefix("spellout-").replace("numbering-year", "year")


def rules_in(path: Path, is_apart: bool) -> Rules:
    """Return the rules that spell numbers below `NUMBER_MAX` in a file of CLDR."""
    rules = defaultdict[str, list[tuple[str, str, str]]](list)
    for ruleset in ElementTree.parse(path).getroot().iterfind(".//ruleset"):
        for rule in ruleset.iterfind("rbnfrule"):
            first = rule.get("value", "")
            if not first.isdecimal() or int(first) >= NUMBER_MAX:
                continue
            words = (rule.text or "").removesuffix(";").removeprefix("'").replace("\u00ad", "")
            if is_apart:
                words = _CALL_OR_HYPHEN.sub(lambda call: call["called"] or " ", words)
            words = re.sub("(?<=[=←→])%+[^=←→]+", lambda name: "%" + name_of(name[0]), words)
            rules[name_of(ruleset.get("type", ""))].append((first, rule.get("radix", ""), words))
    return rules


def called_from(names: list[str], rules: Rules) -> list[str]:
    """Return the names of rules with those that they call, each once."""
    found = [*dict.fromkeys(names)]
    for name in found:
        for _, _, words in rules[name]:
            found += [called for called in _CALLED.findall(words) if called not in found]
    return found


def main(folder: Path) -> None:
    """Write the rules of all languages of number_signs.tsv."""
    signs = defaultdict[str, list[tuple[str, str, str]]](list)
    for lang, kind, sign, words in rows_of(SIGNS):
        signs[lang].append((kind, sign, words))
    for lang, rows in signs.items():
        file = FILES.get(lang, lang)
        rules = rules_in(folder / f"{file}.xml", lang in APART)
        first = ["numbering", "year", *_CALLED.findall(" ".join(words for _, _, words in rows))]
        lines = [f"{kind}\t{sign}\t\t{words}" for kind, sign, words in rows]
        for name in called_from(first, rules):
            lines += [f"{name}\t{start}\t{radix}\t{words}" for start, radix, words in rules[name]]
        text = HEAD.format(lang, file) + "\n".join(lines) + "\n"
        text = text.translate(LETTERS.get(lang, {}))
        path = DICTIONARIES / lang / "nums.tsv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
