"""Model files: a JSON header and named arrays in one safetensors file, with a digest of both, written atomically.

docs/guide/model-files.md describes them for readers without headwater.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.values import AnyArray
from headwater.io.files.atomic import atomic_write
from headwater.io.files.records import Damaged

FORMAT_NUMBER = 1  # of model files; it rises when older versions cannot read what is written
HEADER_KEY = "headwater"  # the key of the header in the metadata of the file
DIGEST_KEY = "digest"  # the name of the array that holds the digest

Arrays = Mapping[str, AnyArray]
Header = dict[str, Any]  # values that JSON can hold


def pack(header: Mapping[str, object], arrays: Arrays) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Return what safetensors is to write: the arrays, with the digest of all, and the metadata."""
    text = json.dumps({"format": FORMAT_NUMBER, **header}, allow_nan=False, ensure_ascii=False)
    plain = {name: np.array(array, order="C") for name, array in arrays.items()}
    return {**plain, DIGEST_KEY: _digest(text, plain)}, {HEADER_KEY: text}


def to_bytes(header: Mapping[str, object], arrays: Arrays) -> bytes:
    """Return the bytes of a model file."""
    from safetensors.numpy import save

    return save(*pack(header, arrays))


def write(path: Path, header: Mapping[str, object], arrays: Arrays) -> None:
    """Write a model file atomically: a reader of the path finds the old file or the new one, never a part of one."""
    from safetensors.numpy import save_file

    packed = pack(header, arrays)
    try:
        with atomic_write(path) as place:
            save_file(packed[0], str(place), packed[1])
    except (IsADirectoryError, FileNotFoundError):
        raise
    except Exception as error:
        raise OSError(f"{path} cannot be written: {_first_line(error)}") from error


def read(path: Path) -> tuple[Header, dict[str, AnyArray]]:
    """Return header and arrays of a model file, or say what is wrong with it."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory, and should be a model file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.is_file():  # reading a pipe would wait for its writer, and a device may have no end
        raise OSError(f"{path} is no regular file, and should be a model file")
    return _unpack(path, str(path))


def from_bytes(data: bytes, name: str = "the model") -> tuple[Header, dict[str, AnyArray]]:
    """Return header and arrays of the bytes of a model file, or say what is wrong with them."""
    return _unpack(data, name)


def _unpack(source: Path | bytes, name: str) -> tuple[Header, dict[str, AnyArray]]:
    try:
        text, arrays = _load(source)
    except (OSError, Damaged) as error:
        raise type(error)(f"{name} cannot be read: {_first_line(error)}") from error
    except Exception as error:  # the library may raise anything for a file of another format
        raise Damaged(f"{name} is no model file of headwater, or only a part of one: {_first_line(error)}") from error
    if text is None:
        raise Damaged(f"{name} is a file of safetensors, but no model of headwater")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{name} is damaged: its header is no JSON") from error
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise Damaged(f"{name} is damaged: its header names no format")
    if header["format"] != FORMAT_NUMBER:
        newer = (
            "a newer headwater than this; update headwater to read it" if header["format"] > FORMAT_NUMBER else "no headwater"
        )
        raise Damaged(f"{name} has the format {str(header['format'])[:20]}, which was written by {newer}")
    digest = arrays.pop(DIGEST_KEY, None)
    if digest is None or not np.array_equal(digest, _digest(text, arrays)):
        raise Damaged(f"{name} is damaged: its content is not what was written")
    return header, arrays


def _load(source: Path | bytes) -> tuple[str | None, dict[str, AnyArray]]:
    from safetensors import safe_open
    from safetensors.numpy import load

    if isinstance(source, bytes):
        size = int.from_bytes(source[:8], "little")
        loaded = load(source)  # this checks the sizes
        metadata = json.loads(source[8 : 8 + size]).get("__metadata__") or {}
        return metadata.get(HEADER_KEY), {name: np.array(array) for name, array in loaded.items()}
    with safe_open(str(source), framework="numpy") as file:
        metadata = file.metadata() or {}
        return metadata.get(HEADER_KEY), {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118


def _digest(text: str, arrays: Arrays) -> NDArray[np.uint8]:
    """A digest of the header and of every array: its name, type, shape and bytes."""
    digest = hashlib.blake2b(text.encode(), digest_size=32)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data if array.size else b"")
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
