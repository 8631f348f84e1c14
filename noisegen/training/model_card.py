"""README.md of a student: what it is, how it was made, what it reached."""

from collections.abc import Mapping
from typing import Any

import yaml

_CARD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags:
- sentence-transformers
- noisegen
- robustness
---

# A sentence encoder for noisy text

This student of `{teacher}` was trained by noisegen {version} to put a noisy sentence where its
teacher puts the clean one.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("PATH/TO/THIS/FOLDER")
vectors = model.encode(["see you tomorrow", "c u 2moro"])
```
{prepared}
## What it reached

On pairs kept out of training, with noise of the same kind (training chose its checkpoint by the
first figure):

| figure | value |
| --- | ---: |
{figures}

`drift` is the mean of 1 - cosine between student and teacher on clean text, `anchored` between the
student on noisy and the teacher on clean text, `distance` between the student's noisy and clean
side; `missed` is the share of noisy sentences whose nearest clean vector of the teacher is another
sentence's.

## How it was made

{pairs:,} pairs in {updates:,} updates and {seconds:,.0f} seconds; {parameters:,} weights.

```yaml
{settings}```

The data and the teacher have licences of their own, which hold for this model too.
"""

_PREPARED = """
Its texts were prepared by `noisegen.preparing.{prepare}.{prepare}_text`. noisegen does so by itself
when it opens this folder; for sentence-transformers, do it to each text before `encode`.
"""


def model_card(said: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return the card, from the run's settings and figures."""
    figures = "\n".join(f"| {name} | {value:.4f} |" for name, value in found["validation"].items())
    prepare = said.get("prepare")
    return _CARD.format(
        figures=figures,
        prepared=_PREPARED.format(prepare=prepare) if prepare else "",
        settings=yaml.safe_dump(dict(said), sort_keys=False, allow_unicode=True),
        **{name: said[name] for name in ("teacher", "version")},
        **{name: found[name] for name in ("pairs", "updates", "seconds", "parameters")},
    )
