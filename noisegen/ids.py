"""Row ids as 64-bit numbers: an integer is itself, and so is text that spells one."""

import re
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.draws import MASK, U64
from noisegen.text import as_numpy

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def id_number(row_id: int | str) -> int:
    """Return the 64-bit number of one id; other text is hashed (BLAKE2b, 8 bytes)."""
    if isinstance(row_id, int):
        return row_id & MASK
    if _INTEGER.fullmatch(row_id) and -(2**63) <= int(row_id) < 2**63:
        return int(row_id) & MASK
    return int.from_bytes(blake2b(row_id.encode(), digest_size=8).digest(), "little")


def id_numbers(row_ids: pa.Array) -> U64:
    """Return `id_number` of every id of an integer or string column."""
    if pa.types.is_integer(row_ids.type):
        numbers: U64 = as_numpy(row_ids.cast(pa.uint64(), safe=False))
        return numbers
    texts = pc.cast(row_ids, pa.string()).to_pylist()
    return np.fromiter((id_number(text) for text in texts), np.uint64, len(texts))
