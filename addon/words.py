"""The interface in other languages. Labels and tooltips are Blender's to translate; messages, which the program puts
together in English, are taken apart again, phrase by phrase, when they are shown."""

from __future__ import annotations

import inspect
import json
import re
from functools import cache, lru_cache

import bpy

from .preset import FOLDER

NAME = "armature_dynamics"

CONTEXTS = ("*", "Operator", NAME)
"""Where Blender looks for what is written on labels, on buttons, and on settings: those have a context of their own, as
some of Blender's own words are about something else."""

LABELLED = {
    "turn on {}": 0,
    "armature {} has settings that do not count beside those of {}: {}": 2,
    "keys of settings count only at the start frame: {}": 0,
    "{}: {} is {}; it must be a name": 1,
    "{}: {} is {}; it must be one of {}": 1,
    "{}: {} is {}; it must be {}": 1,
    "{}: {} is {}; it must be from {} to {}": 1,
    "{}: {} {} is not in this file; choose it anew": 1,
}
"""Phrases with the label of a setting in them, or several, and in which place."""

BETWEEN = (", ", " and ")
"""What lists are joined with."""


@cache
def languages() -> tuple[str, ...]:
    """The languages that there are dictionaries for."""
    return tuple(sorted(path.stem for path in (FOLDER / "words").glob("*.json")))


@cache
def dictionary(language: str) -> dict[str, str]:
    """What each English text is in a language; {} stands for what is only known later."""
    return json.loads((FOLDER / "words" / f"{language}.json").read_text(encoding="utf-8"))


def mark(classes, settings) -> None:
    """Gives the settings of classes that are not registered yet, and others, their context."""
    owned = [setting for cls in classes for owner in cls.__mro__ for setting in inspect.get_annotations(owner).values()]
    for setting in (*owned, *settings):
        # annotations of others, and settings as Blender has them before it registers them
        if hasattr(setting, "keywords"):
            setting.keywords["translation_context"] = NAME


def register(classes) -> None:
    """Lets Blender know the words, and those of the classes' docstrings as it has them, with their line breaks."""
    spread = {" ".join(cls.__doc__.split()): cls.__doc__ for cls in classes if cls.__doc__}
    catalogs = {}
    for language in languages():
        words = dictionary(language)
        words = words | {spread[text]: words[text] for text in spread.keys() & words.keys()}
        catalog = {(context, text): word for text, word in words.items() for context in CONTEXTS if "{}" not in text}
        # newer Blenders call a language by its own name, older ones by that and its country's
        catalogs |= {language: catalog, f"{language}_{language.upper()}": catalog}
    bpy.app.translations.register(NAME, catalogs)


def unregister() -> None:
    bpy.app.translations.unregister(NAME)


def language() -> str:
    """The language of the interface, or an empty string for English and those without a dictionary."""
    code = (bpy.app.translations.locale or "").partition("_")[0]
    return code if code in languages() and bpy.context.preferences.view.use_translate_interface else ""


def said(text: str, code: str | None = None) -> str:
    """A message of one or more lines in the language of the interface, or the one with that code."""
    code = language() if code is None else code
    return "\n".join(_line(line, code) for line in text.splitlines()) if code else text


@lru_cache(maxsize=4096)
def _line(text: str, code: str) -> str:
    words = dictionary(code)
    return words[text] if text in words else _parts(text, code)


def _parts(text: str, code: str) -> str:
    """The translation of what is no text of the dictionary as it stands: of a pattern, or of several texts in one."""
    whole = _pattern(text, code)
    if whole is not None:
        return whole
    for match in re.finditer(": ", text):
        rest = _phrase(text[match.end() :], code)
        if rest is not None:
            return f"{_pattern(text[: match.start()], code) or text[: match.start()]}: {rest}"
    if "; " in text:
        return "; ".join(_line(part, code) for part in text.split("; "))
    for between in BETWEEN:
        phrases = [_phrase(part, code) for part in text.split(between)]
        if len(phrases) > 1 and None not in phrases:
            return dictionary(code).get(between, between).join(phrases)
    head, colon, rest = text.partition(": ")
    return f"{head}: {_line(rest, code)}" if colon else text


def _phrase(text: str, code: str) -> str | None:
    """A text of the dictionary, or a pattern of it; None for others. A capital may begin somebody's name."""
    if text in dictionary(code) and (text[0].islower() or " " in text):
        return dictionary(code)[text]
    return _pattern(text, code)


def _pattern(text: str, code: str) -> str | None:
    for pattern, english, word in _patterns(code):
        match = pattern.fullmatch(text)
        if match:
            groups = [_group(group, code) for group in match.groups()]
            if english in LABELLED:
                place = LABELLED[english]
                labels = [dictionary(code).get(label) for label in match.groups()[place].split(", ")]
                groups[place] = groups[place] if None in labels else ", ".join(labels)
            return word.format(*groups)
    return None


def _group(text: str, code: str) -> str:
    phrase = _phrase(text, code)
    return _parts(text, code) if phrase is None else phrase


@cache
def _patterns(code: str) -> list[tuple[re.Pattern, str, str]]:
    """The texts with something in them, the longest first; those that begin with a space or a sign follow others."""
    found = []
    for english, word in dictionary(code).items():
        if "{}" in english:
            follows, own = english[0] in " ,.", english
            hole = "(.+)" if follows else "((?:(?!; ).)+?)"  # what is put in is no sentence with a remedy
            if follows:
                own, word = f"{{}}{english}", f"{{}}{word}"
            found.append((re.compile(hole.join(map(re.escape, own.split("{}")))), english, word))
    return sorted(found, key=lambda own: -len(own[1].replace("{}", "")))
