"""Other forms the same words can hide in: encodings, number words, letters apart. What a guard reads beside the text itself."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterator
from urllib.parse import unquote

from realcli.benchmark.words import tokens, visible

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2}[\s:]?){4,})")
_ALIKE = str.maketrans("аеорсухіјѕԁһոαοеιυν", "aeopcyxijsdhnaoeiuv")  # Cyrillic and Greek letters that look Latin
_LEET = str.maketrans("013457@$", "oieastas")
SHORTEST = 4  # characters; a shorter term stands in too much once its letters are taken apart

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBERS = {word: value for value, word in enumerate(_UNITS.split())}
_NUMBERS |= {word: 10 * (at + 2) for at, word in enumerate(_TENS.split())}
_NUMBERS |= {"nought": 0, "oh": 0, "dozen": 12}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_FOREIGN_UNITS = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn",
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize",
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
    "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici",
)
_FOREIGN = {word: value for words in _FOREIGN_UNITS for value, word in enumerate(words.split())}
_FOREIGN_TENS = (
    "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "vingt trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix",
    "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
)
_FOREIGN |= {word: 10 * (at + 2) for words in _FOREIGN_TENS for at, word in enumerate(words.split())}


def squeezed(text: str) -> str:
    """Letters and digits alone, in lower case, look-alikes as Latin letters."""
    return "".join(tokens(visible(text).translate(_ALIKE)))


def decoded(text: str) -> Iterator[str]:
    """What stands in the text in another encoding, and the text in other alphabets."""
    for run in _BASE64.findall(text):
        for alphabet in (base64.b64decode, base64.urlsafe_b64decode):
            try:
                yield from _readable(alphabet(run + "=" * (-len(run) % 4)))
            except (binascii.Error, ValueError):
                continue
    for run in _HEX.findall(text):
        yield from _readable(bytes.fromhex(re.sub(r"[\s:]", "", run)))
    if "%" in text:
        yield unquote(text)
    yield codecs.encode(text, "rot13")
    yield text[::-1]
    yield visible(text).translate(_LEET)


def _readable(data: bytes) -> Iterator[str]:
    text = data.decode("utf-8", "ignore")
    if len(text) >= SHORTEST and sum(char.isprintable() for char in text) >= 0.9 * len(text):
        yield text


def numbers_said(text: str) -> set[str]:
    """Numbers written as words, in digits: as one number, and digit by digit ("eight oh eight oh" is 808 0 and 8080)."""
    found: set[str] = set()
    run: list[str] = []
    for word in [*tokens(text.replace("-", " ")), ""]:
        if word in _NUMBERS or word in _SCALES or word in _FOREIGN or (run and word == "and"):
            run.append(word)
        elif run:
            found |= _values(run)
            run = []
    return found


def _values(run: list[str]) -> set[str]:
    words = [word for word in run if word != "and"]
    if len(words) == 1 and words[0] in ("one", "un", "uno", "oh", "once", "sei", "six", "null"):
        return set()  # words of their own
    values = [_NUMBERS.get(word, _FOREIGN.get(word)) for word in words]
    digits = [value for value in values if value is not None]
    said = {"".join(map(str, digits)), "".join(map(str, _tens_and_units(digits)))}
    total = part = 0
    for word in words:
        if word in _SCALES:
            part = max(part, 1) * _SCALES[word]
            if _SCALES[word] > 100:
                total, part = total + part, 0
        else:
            part += _NUMBERS.get(word, _FOREIGN.get(word, 0))
    return {number for number in (*said, str(total + part)) if number}


def _tens_and_units(values: list[int]) -> list[int]:
    """Forty and seven are one group of digits, 47."""
    groups: list[int] = []
    for value in values:
        if groups and 20 <= groups[-1] < 100 and groups[-1] % 10 == 0 and 0 < value < 10:
            groups[-1] += value
        else:
            groups.append(value)
    return groups
