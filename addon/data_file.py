"""Files of settings that people hand on: JSON, with a format and its version in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from .problem import ConversionError


def load(path: Path) -> dict:
    """The content of a file. Raises ConversionError where it is none of ours."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConversionError(f"{path}: cannot be read ({error.strerror}); choose another file") from error
    except ValueError as error:
        raise ConversionError(f"{path}: is no JSON file ({error}); mend that place or export it again") from error
    return content if isinstance(content, dict) else {}


def check_version(path: Path, content: dict, known: int) -> None:
    """Raises ConversionError for a file that is newer than what is known."""
    version = content.get("version")
    if not isinstance(version, int) or not 1 <= version <= known:
        raise ConversionError(f"{path}: has version {version!r}, and {known} is known; update the extension")


def is_other(path: Path) -> bool:
    """Whether a device or the like is there, which a file must not replace."""
    # where a shell redirects it, even /dev/stdout is a file
    return path.parent == Path("/dev") or (path.exists() and not path.is_file())


def write(path: Path, text: str) -> None:
    """Writes a file, whole or not at all; a link keeps pointing to it. Raises ConversionError where it cannot be
    written."""
    if is_other(path):
        raise ConversionError(f"{path}: is no file that could be replaced; choose another place")
    try:
        replace(path, lambda part: part.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise ConversionError(f"{path}: cannot be written ({error.strerror}); choose another place") from error


def replace(path: Path, save: Callable[[Path], object]) -> None:
    """Lets `save` write a file, whole or not at all; a link keeps pointing to it."""
    place = path.resolve()
    part = place.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        save(part)
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
