"""README.md of a pre-trained model: what it is, how it was made, what it reached."""

from collections.abc import Mapping
from typing import Any

import yaml

_CARD = """---
library_name: transformers
pipeline_tag: fill-mask
tags:
- sentence-transformers
- noisegen
- robustness
---

# A language model pre-trained on noisy and clean text

`{student}`, trained on by noisegen {version} to fill masks on the noisy and the clean side of pairs
(`{objective}`). It is a start for fine-tuning.

```python
from transformers import AutoModel, AutoModelForMaskedLM

network = AutoModel.from_pretrained("PATH/TO/THIS/FOLDER")  # or with the head that fills masks:
model = AutoModelForMaskedLM.from_pretrained("PATH/TO/THIS/FOLDER")
```

`SentenceTransformer` opens the folder too: its vectors are means over the tokens.

## What it reached

On pairs kept out of training (training chose its checkpoint by the first figure):

| figure | value |
| --- | ---: |
{figures}

`loss_mlm_noisy` and `loss_mlm_clean` are the cross-entropy under masks, `loss_contrast` that of
finding a text's other side among those of its batch. Without masks, `distance` is the mean of
1 - cosine between noisy and clean side; `missed` is the share of noisy sentences whose nearest
clean one is another's.

## How it was made

{pairs:,} pairs in {updates:,} updates and {seconds:,.0f} seconds; {parameters:,} weights.

```yaml
{settings}```

The data and the model it began as have licences of their own, which hold for this model too.
"""


def model_card(said: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return the card, from the run's settings and figures."""
    figures = "\n".join(f"| {name} | {value:.4f} |" for name, value in found["validation"].items())
    return _CARD.format(
        figures=figures,
        settings=yaml.safe_dump(dict(said), sort_keys=False, allow_unicode=True),
        **{name: said[name] for name in ("student", "objective", "version")},
        **{name: found[name] for name in ("pairs", "updates", "seconds", "parameters")},
    )
