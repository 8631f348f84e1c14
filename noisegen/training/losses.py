"""Objectives of all methods: functions from a batch and the network's output to named losses.

Each loss is a mean over the sentences or pairs of the batch. Batches are weighted by their size, so
one process and several processes give the same gradient. Objectives of distillation come first,
then objectives of heads on a frozen encoder, then contrastive losses of pre-training.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, mse_loss, normalize

from noisegen.training.objectives import Losses, objective

TEMPERATURE = 0.05  # default for all contrastive losses, as in RCP's code for NT-Xent
Classifier = Callable[[Tensor], Tensor]  # from vectors to logits of the languages


@dataclass(frozen=True)
class Batch:
    """The teacher's vectors that a student learns from in a batch of distillation.

    `teacher` (sentences, width): vectors of the clean texts. `negatives` (any number, width):
    vectors of other texts, for contrastive objectives. `temperature` divides the cosines of these
    objectives.
    """

    teacher: Tensor
    negatives: Tensor | None = None
    temperature: float = TEMPERATURE


@dataclass(frozen=True)
class Output:
    """The student's vectors of the noisy side, and of the clean side if an objective needs them."""

    noisy: Tensor
    clean: Tensor | None = None

    @property
    def clean_side(self) -> Tensor:
        """The vectors of the clean side; raises ValueError if they were not computed."""
        if self.clean is None:
            raise ValueError("this objective needs the student's vectors of the clean side")
        return self.clean


@objective("mse_sum")
def mse_sum(batch: Batch, output: Output) -> Losses:
    """Return the mean squared distance between student and teacher (RoLASER, section 4).

    The student encodes noisy text, the teacher its clean text. Squares are summed over dimensions.
    """
    return {"noisy": _squared(batch.teacher, output.noisy)}


@objective("mse_mean")
def mse_mean(batch: Batch, output: Output) -> Losses:
    """Return the mean squared distance between student and teacher, divided by the width.

    The student encodes noisy text, the teacher its clean text. MSELoss of sentence-transformers
    computes the same.
    """
    return {"noisy": mse_loss(output.noisy, batch.teacher)}


@objective("two_term", "distil", "clean")
def two_term(batch: Batch, output: Output) -> Losses:
    """Return the mean squared distances between student and teacher (CT-XLMR-SE, section 3).

    The teacher encodes clean text. The student encodes clean text for the loss `clean`, and noisy
    text for the loss `noisy`. Squares are summed over dimensions.
    """
    return {
        "clean": _squared(batch.teacher, output.clean_side),
        "noisy": _squared(batch.teacher, output.noisy),
    }


@objective("two_term:mean", "distil", "clean")
def two_term_mean(batch: Batch, output: Output) -> Losses:
    """Return the losses of `two_term` as MSELoss of sentence-transformers computes them.

    They are means over sides, sentences and dimensions: `two_term` divided by twice the width.
    """
    return {
        "clean": mse_loss(output.clean_side, batch.teacher) / 2,
        "noisy": mse_loss(output.noisy, batch.teacher) / 2,
    }


@objective("snr")
def snr(batch: Batch, output: Output) -> Losses:
    """Return the mean of |S(noisy) - T(clean)| / |T(clean)| (RoLASER's released launcher).

    S are vectors of the student, T vectors of the teacher.
    """
    error = torch.linalg.vector_norm(batch.teacher - output.noisy, dim=1)
    return {"noisy": (error / torch.linalg.vector_norm(batch.teacher, dim=1)).mean()}


@objective("cosine")
def cosine(batch: Batch, output: Output) -> Losses:
    """Return the mean of 1 - cosine of S(noisy) and T(clean) (RoLASER's default criterion).

    S are vectors of the student, T vectors of the teacher.
    """
    return {"noisy": (1 - cosine_similarity(batch.teacher, output.noisy)).mean()}


@objective("info_nce", "distil", "negatives")
def info_nce(batch: Batch, output: Output) -> Losses:
    """Return the cross-entropy of choosing the clean text of each noisy text among candidates.

    A candidate is the teacher's vector of a clean text in the batch, or of a negative. Its score is
    its cosine with the student's vector of the noisy text, divided by the temperature.
    """
    targets = batch.teacher
    if batch.negatives is not None:
        targets = torch.cat([targets, batch.negatives])
    targets = normalize(targets)
    scores = normalize(output.noisy) @ targets.T / batch.temperature
    right = torch.arange(len(scores), device=scores.device)
    same = targets[: len(scores)] @ targets.T > 1 - 1e-4  # the same clean text in another pair
    same[right, right] = False
    return {"contrast": cross_entropy(scores.masked_fill(same, -inf), right)}


@objective("nt_xent", "distil", "clean")
def nt_xent(batch: Batch, output: Output) -> Losses:
    """Return NT-Xent of the student's vectors of noisy and clean text (RCP, equation 1).

    In a batch of N pairs, each of the 2N vectors is an anchor with 2N - 2 negatives.
    """
    pairs = torch.arange(len(output.noisy), device=output.noisy.device)
    sides = Sides(torch.cat([output.noisy, output.clean_side]), pairs.repeat(2))
    return nt_xent_of_sides(sides, batch.temperature)


def _squared(teacher: Tensor, student: Tensor) -> Tensor:
    return (teacher - student).square().sum(1).mean()


@dataclass(frozen=True)
class PairBatch:
    """Pairs for heads: vectors (pairs, width) and label indices (pairs,) of source and target."""

    source: Tensor
    target: Tensor
    source_label: Tensor
    target_label: Tensor

    def part(self, first: int, stop: int) -> "PairBatch":
        """Return the pairs with the indices from `first` to `stop` - 1."""
        columns = self.source, self.target, self.source_label, self.target_label
        return PairBatch(*(column[first:stop] for column in columns))


def _no_classifier(vectors: Tensor) -> Tensor:
    raise ValueError("this objective needs a classifier of languages")


@dataclass(frozen=True)
class Disentangled:
    """Output of the heads: meaning and language vectors (pairs, width) of both sides.

    `classifier` predicts languages from language vectors (DREAM). `discriminator` predicts
    languages from meaning vectors (MEAT); it is frozen while the heads learn to deceive it.
    """

    source_meaning: Tensor
    source_language: Tensor
    target_meaning: Tensor
    target_language: Tensor
    classifier: Classifier = _no_classifier
    discriminator: Classifier = _no_classifier

    @property
    def sides(self) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Two tuples (meaning vectors, language vectors): of all sources, and of all targets."""
        source = self.source_meaning, self.source_language
        target = self.target_meaning, self.target_language
        return source, target


@objective("dream", "heads", "partners")
def dream(batch: PairBatch, output: Disentangled) -> Losses:
    """Return DREAM's losses of the pairs in the first half of a batch.

    Each pair is compared with a random partner: pair i of the first half with pair i of the second
    half. The last pair of an odd batch is left out. The reconstruction loss is a squared error. The
    released code computes a third language term but does not use it; the objective
    `dream:third-term` does.
    """
    half = len(batch.source) // 2
    here, there = slice(0, half), slice(half, 2 * half)
    (m_s, l_s), (m_t, l_t) = output.sides
    named_s = _mean_cross_entropy(output.classifier, l_s[here], batch.source_label[here])
    named_t = _mean_cross_entropy(output.classifier, l_t[here], batch.target_label[here])
    return {
        "semantic": _cosine_distance(m_s[here], m_t[here])
        + (_positive_cosine(m_s[here], m_s[there]) + _positive_cosine(m_t[here], m_t[there])),
        "reconstruction": _mean_square(m_s[here] + l_s[here], batch.source[here])
        + _mean_square(m_t[here] + l_t[here], batch.target[here]),
        "language": _cosine_distance(l_s[here], l_s[there])
        + _cosine_distance(l_t[here], l_t[there]),
        "identification": named_s + named_t,
    }


@objective("dream:third-term", "heads", "partners")
def dream_third_term(batch: PairBatch, output: Disentangled) -> Losses:
    """Return DREAM's losses, with the third language term that its released code does not use.

    This term makes the language vectors of the two sides of a pair orthogonal.
    """
    half = len(batch.source) // 2
    third = _positive_cosine(output.source_language[:half], output.target_language[:half])
    terms = dream(batch, output)
    return {**terms, "language": terms["language"] + third}


@objective("meat", "heads", "discriminator")
def meat(batch: PairBatch, output: Disentangled) -> Losses:
    """Return MEAT's losses. Minimising them has these effects.

    `reconstruction`: meaning vector + language vector has the direction of the encoder's vector.
    `cross_reconstruction`: the same holds with the meaning vector of the other side of the pair.
    `language`: the language vectors of the two sides are orthogonal. `adversarial`: the
    discriminator cannot predict the language from a meaning vector.
    """
    (m_s, l_s), (m_t, l_t) = output.sides
    return {
        "reconstruction": _cosine_distance(m_s + l_s, batch.source)
        + _cosine_distance(m_t + l_t, batch.target),
        "cross_reconstruction": _cosine_distance(m_s + l_t, batch.target)
        + _cosine_distance(m_t + l_s, batch.source),
        "language": _positive_cosine(l_s, l_t),
        "adversarial": _uniform_cross_entropy(output.discriminator, m_s)
        + _uniform_cross_entropy(output.discriminator, m_t),
    }


def discrimination(batch: PairBatch, output: Disentangled, discriminator: Classifier) -> Tensor:
    """Return the loss of MEAT's discriminator, which predicts languages from meaning vectors."""
    source = _mean_cross_entropy(discriminator, output.source_meaning.detach(), batch.source_label)
    target = _mean_cross_entropy(discriminator, output.target_meaning.detach(), batch.target_label)
    return source + target


@objective("oracle", "heads", "partners")
def oracle(batch: PairBatch, output: Disentangled) -> Losses:
    """Return ORACLE's losses.

    `intra_class` makes the language vectors of all sources similar, and of all targets. It is the
    mean over i != j of 2 - cos(l_s^i, l_s^j) - cos(l_t^i, l_t^j). `inter_class` makes meaning and
    language vector orthogonal. It is the mean of max(0, cos(m_s, l_s)) + max(0, cos(m_t, l_t)).
    Here m are meaning and l language vectors, s source and t target, i and j indices of pairs.
    """
    return {"intra_class": _intra_class(output), "inter_class": _between(output)}


@objective("oracle:intra", "heads", "partners")
def oracle_intra(batch: PairBatch, output: Disentangled) -> Losses:
    """Return ORACLE's `intra_class` alone, as in the ablation of its section 7.3."""
    return {"intra_class": _intra_class(output)}


@objective("oracle:inter", "heads")
def oracle_inter(batch: PairBatch, output: Disentangled) -> Losses:
    """Return ORACLE's `inter_class` alone, so that each of its two losses can have a weight."""
    return {"inter_class": _between(output)}


@objective("oracle:reference-code", "heads", "partners")
def oracle_reference_code(batch: PairBatch, output: Disentangled) -> Losses:
    """Return ORACLE's losses as the released configurations compute them (class "oracle_new").

    `intra_class` also compares each language vector with itself, which gives (B - 1)/B of the
    paper's value in a batch of B pairs. `inter_class` compares the language vectors of the two
    sides of a pair, where the paper compares meaning and language vectors.
    """
    apart = _positive_cosine(output.source_language, output.target_language)
    return {"intra_class": _intra_class(output, diagonal=True), "inter_class": apart}


@objective("oracle:main", "heads", "partners")
def oracle_main(batch: PairBatch, output: Disentangled) -> Losses:
    """Return the one loss of the released code's "oracle_main": half of ORACLE's `inter_class`."""
    return {"inter_class": _between(output) / 2}


@objective("oracle:pair", "heads", "partners")
def oracle_pair(batch: PairBatch, output: Disentangled) -> Losses:
    """Return the one loss of "oracle_pair": `intra_class` of `oracle:reference-code`."""
    return {"intra_class": _intra_class(output, diagonal=True)}


@objective("oracle:orth", "heads")
def oracle_orth(batch: PairBatch, output: Disentangled) -> Losses:
    """Return the one loss of "oracle_orth": `inter_class` of `oracle:reference-code`."""
    return {"inter_class": _positive_cosine(output.source_language, output.target_language)}


@objective("oracle:abs", "heads", "partners")
def oracle_abs(batch: PairBatch, output: Disentangled) -> Losses:
    """Return the losses of "oracle_abs": as `oracle:reference-code`, with |cosine| of languages."""
    apart = _mean(cosine_similarity(output.source_language, output.target_language).abs())
    return {"intra_class": _intra_class(output, diagonal=True), "inter_class": apart}


@objective("oracle:all", "heads")
def oracle_all(batch: PairBatch, output: Disentangled) -> Losses:
    """Return the one loss of "oracle_all": the mean of its three orthogonality terms.

    They compare the languages of a pair, and meaning and language of each side.
    """
    apart = _positive_cosine(output.source_language, output.target_language)
    return {"inter_class": (apart + _between(output)) / 3}


@objective("oracle:old", "heads", "partners")
def oracle_old(batch: PairBatch, output: Disentangled) -> Losses:
    """Return the losses of the released code's "oracle_old". Minimising them has these effects.

    `intra_class`: the language vectors of all sources are similar, and of all targets. `semantic`:
    the two meaning vectors of a pair are similar. `orthogonal`: |cosine| of meaning and language
    vector is small. `inter_class`: the two language vectors of a pair are orthogonal.
    """
    (m_s, l_s), (m_t, l_t) = output.sides
    source, target = (_mean(cosine_similarity(*side).abs()) for side in output.sides)
    return {
        "intra_class": _intra_class(output, diagonal=True),
        "semantic": _cosine_distance(m_s, m_t),
        "orthogonal": source + target,
        "inter_class": _positive_cosine(l_s, l_t),
    }


def _between(output: Disentangled) -> Tensor:
    source, target = (_positive_cosine(*side) for side in output.sides)
    return source + target


def _intra_class(output: Disentangled, *, diagonal: bool = False) -> Tensor:
    """Return the mean 1 - cosine of any two sources' language vectors, plus the targets' mean.

    With `diagonal`, the mean includes each vector with itself. The time is O(rows x width): the sum
    of all cosines is the squared length of the sum of the unit vectors.
    """
    rows, terms = len(output.source_language), []
    for vectors in (output.source_language, output.target_language):
        units = normalize(vectors)
        every = units.sum(0).square().sum()
        if diagonal:
            mean = every / max(1, rows**2)
        else:
            mean = (every - units.square().sum()) / max(1, rows * (rows - 1))
        terms.append(1 - mean if rows > 1 - diagonal else vectors.new_zeros(()))
    return terms[0] + terms[1]


def _cosine_distance(x: Tensor, y: Tensor) -> Tensor:
    """Return the mean of 1 - cosine(x[i], y[i]) over rows i: 0 if all x[i], y[i] are parallel."""
    return _mean(1 - cosine_similarity(x, y))


def _positive_cosine(x: Tensor, y: Tensor) -> Tensor:
    """Return the mean of max(0, cosine(x[i], y[i])) over i: 0 if all x[i], y[i] are orthogonal."""
    return _mean(cosine_similarity(x, y).clamp_min(0))


def _uniform_cross_entropy(discriminator: Classifier, vectors: Tensor) -> Tensor:
    """Return the cross-entropy of the discriminator's prediction with the uniform distribution.

    It is lowest if the discriminator gives all languages the same probability.
    """
    return _mean(-discriminator(vectors).log_softmax(1).mean(1))


def _mean_cross_entropy(layer: Classifier, vectors: Tensor, labels: Tensor) -> Tensor:
    return _mean(cross_entropy(layer(vectors), labels, reduction="none"))


def _mean_square(x: Tensor, y: Tensor) -> Tensor:
    return mse_loss(x, y, reduction="sum") / max(1, x.numel())


def _mean(values: Tensor) -> Tensor:
    return values.sum() / max(1, len(values))


@dataclass(frozen=True)
class Sides:
    """Vectors (2N, width) of both sides of N pairs, noisy sides first, and vectors of other texts.

    `others` (any number, width) are the vectors of other texts, used as negatives only. For each
    row of `vectors`, `owners` has the index of its clean text; for `others`, `owners_of_others`.
    """

    vectors: Tensor
    owners: Tensor
    others: Tensor | None = None
    owners_of_others: Tensor | None = None

    def scores(self, temperature: float) -> Tensor:
        """Return the cosines of the 2N vectors with all vectors, divided by the temperature.

        The shape is (2N, 2N + number of others). The score of a vector with itself is -inf, so that
        it is no negative. It is also -inf for vectors of two pairs with the same clean text, such
        as two noisy copies of a sentence.
        """
        units, owners = normalize(self.vectors), self.owners
        scores = units @ units.T / temperature
        if self.others is not None and self.owners_of_others is not None:
            of_others = units @ normalize(self.others).T / temperature
            scores = torch.cat([scores, of_others], 1)
            owners = torch.cat([owners, self.owners_of_others])
        same = self.owners[:, None] == owners
        same[torch.arange(len(same), device=same.device), self.other_sides] = False
        return scores.masked_fill(same, -inf)

    @property
    def other_sides(self) -> Tensor:
        """For each row of `vectors`, the index of the row with the other side of its pair."""
        rows = torch.arange(len(self.vectors), device=self.vectors.device)
        return rows.roll(len(rows) // 2)


@objective("nt_xent", "pretrain")
def nt_xent_of_sides(sides: Sides, temperature: float = TEMPERATURE) -> Losses:
    """Return NT-Xent as RCP's code computes it: a mean over 2N anchors, the vectors of N pairs.

    All cosines are divided by the temperature. The positive of an anchor is the other side of its
    pair. Its negatives are both sides of pairs with other clean texts (2N - 2 if no two pairs share
    a clean text) and the vectors of earlier updates.
    """
    scores = sides.scores(temperature)
    return {"contrast": cross_entropy(scores, sides.other_sides)}


@objective("nt_xent:printed", "pretrain")
def nt_xent_printed(sides: Sides, temperature: float = TEMPERATURE) -> Losses:
    """Return NT-Xent as RCP prints it in equation 1.

    The cosine of anchor and positive is not divided by the temperature, and the loss is a sum over
    2N anchors, the vectors of N pairs.
    """
    scores = sides.scores(temperature)
    near = scores.gather(1, sides.other_sides[:, None])[:, 0] * temperature
    return {"contrast": (scores.logsumexp(1) - near).sum()}
