"""The figures of an evaluation by name: what they are, and which way is better."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """`better` is 'low', 'high' or '' (neither); `unit` is '%', 'points' or ''."""

    name: str
    title: str
    better: str
    unit: str
    meaning: str


METRICS = {
    metric.name: metric
    for metric in (
        Metric("distance", "cosine distance", "low", "",
               "mean 1 - cos(m[noisy], m[clean]) over all pairs"),
        Metric("distance_changed", "distance, changed pairs", "low", "",
               "mean 1 - cos(m[noisy], m[clean]) over the pairs whose sides differ"),
        Metric("drift", "clean drift", "low", "",
               "mean 1 - cos(m[clean], baseline[clean])"),
        Metric("anchored_distance", "anchored distance", "low", "",
               "mean 1 - cos(m[noisy], baseline[clean])"),
        Metric("xsim_error", "xSIM error", "low", "%",
               "noisy sentences whose nearest clean one is wrong, ratio margin, k = 4"),
        Metric("xsim_error_reverse", "xSIM error, clean to noisy", "low", "%",
               "clean sentences whose nearest noisy one is wrong"),
        Metric("xsim_hard_error", "xSIM error among hard negatives", "low", "%",
               "noisy sentences nearer to a wrong clean one, or one with a thing altered"),
        Metric("xsim_hard_number", "- a number altered", "low", "%",
               "share lost to a hard negative of this type"),
        Metric("xsim_hard_entity", "- a name altered", "low", "%",
               "share lost to a hard negative of this type"),
        Metric("xsim_hard_causality", "- a statement turned round", "low", "%",
               "share lost to a hard negative of this type"),
        Metric("xsim_hard_misaligned", "- another sentence", "low", "%",
               "share lost to a sentence that is no hard negative of the right one"),
        Metric("accuracy_forward", "retrieval accuracy, noisy to clean", "high", "%",
               "cosine of the right target at least that of all others"),
        Metric("accuracy_backward", "retrieval accuracy, clean to noisy", "high", "%",
               "cosine of the right source at least that of all others"),
        Metric("sts_clean", "STS, both clean", "high", "points",
               "100 x Spearman of cosine and human score"),
        Metric("sts_one_noisy", "STS, one side noisy", "high", "points",
               "100 x Spearman of cosine and human score, the first sentence noisy"),
        Metric("sts_both_noisy", "STS, both noisy", "high", "points",
               "100 x Spearman of cosine and human score, both noisy by different seeds"),
        Metric("class_similarity", "class similarity D_avg", "high", "",
               "class-weighted mean cosine of two texts of a class"),
        Metric("accuracy_clean", "classification, clean", "high", "%",
               "logistic regression on vectors of clean text, tested on clean"),
        Metric("accuracy_noisy", "classification, noisy", "high", "%",
               "logistic regression on vectors of clean text, tested on noisy"),
        Metric("f1_clean", "macro F1, clean", "high", "%",
               "macro F1 of the classification of clean text"),
        Metric("f1_noisy", "macro F1, noisy", "high", "%",
               "macro F1 of the classification of noisy text"),
        Metric("average_precision_clean", "pair classification, clean", "high", "%",
               "average precision of cosine"),
        Metric("average_precision_noisy", "pair classification, noisy", "high", "%",
               "average precision of cosine, one side noisy"),
        Metric("ttr_ratio", "type/token ratio, noisy over clean", "", "",
               "of the baseline's pieces (RoLASER, section 5)"),
    )
}  # fmt: skip
