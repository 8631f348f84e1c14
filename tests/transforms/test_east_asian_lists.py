"""Chinese, Japanese and Thai word lists and marks: what they do, how often; both forms agree."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import both, compare, single
from test_transforms import noised

from benchmarks import real_pairs
from noisegen.augmentation.on_the_fly import Noising
from noisegen.data.pairs import Pairs
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import examples_in, get
from noisegen.realism.two_sample import two_sample
from noisegen.testing import check_transform
from noisegen.text.resources import DICTIONARIES
from noisegen.transforms import rows_of

SENTENCES = {
    "zh": (
        "我已经知道了，因为他不在家，所以明天再说吧。",
        "你做的菜很好吃，谢谢你！",
        "應該早一點告訴我們，對不起……",
        "为什么不喜欢这样的东西？他妈的，他说“没有时间”。",
        "請問你是哪裡人？看https://example.org/再见，#在家 @你 再见",
        "老师，星期一晚上一起去图书馆、食堂好不好",
    ),
    "ja": (
        "昨日は雨が降っていたので、家で映画を見ていました。",
        "それは私のものではないと思います…。",
        "やはり新型コロナウイルスは怖いですね！",
        "スマートフォンを忘れてしまった。本当に面倒くさい。",
        "月曜日に友達と会う。https://example.org/見る #見る",
        "早く食べなければならないのですが、沢山は無理です。",
    ),
    "th": (
        "เขาไม่รู้ว่าจะมาอย่างไร แต่ก็อยากไปคอนเสิร์ตกับแฟนคลับ",
        "ใช่ไหมคะ หนังสืออยู่ที่ไหนครับ555 ดีมากเลย",
        "ผู้ชายคนหนึ่งโพสต์ในเฟซบุ๊กว่าเศร้ามากๆ แล้วก็กรี๊ด",
        "นิยายเรื่องนี้น่ารักจริงๆ เธออัปเดตเมื่อไร https://example.org/เขา",
        "ฉันเป็นนักเรียน เรียนอยู่มหาวิทยาลัย BNK48 นะ",
        "อะไรก็ได้ จะเอาอย่างนี้หรือเปล่า กูเห็นแล้ว น่ารักมาก ฮือ",
    ),
}
LISTS = [
    ("zh", name) for name in ("homo", "look", "phon", "init", "clip", "rebus", "cens", "week")
] + [("ja", name) for name in ("homo", "phon", "kana", "clip")]
LISTS += [("th", name) for name in ("phon", "clip")]


def rows_in(lang, count=60):
    """Sentences, and joints of two, so that there are many."""
    own = SENTENCES[lang]
    return [*own, *(own[n % 6] + own[n // 6 % 6][n % 5 :] for n in range(count))]


@pytest.mark.parametrize(("lang", "name"), LISTS)
def test_lists_keep_the_promises_and_agree_in_both_forms(lang, name):
    check_transform(name, lang, SENTENCES[lang])
    assert compare(single(name, rate=1), rows_in(lang), lang=lang) > 0
    assert compare(single(name, rate=0.5), rows_in(lang), lang=lang) > 0


@pytest.mark.parametrize("lang", ["zh", "ja", "th"])
def test_all_lists_of_a_recipe_run_together(lang):
    """Each finds its own matches, and its own phrases stay."""
    recipe = Recipe.of([f"{name}:rate=0.6" for listed, name in LISTS if listed == lang])
    assert compare(recipe, rows_in(lang), lang=lang) > 40


@given(
    st.lists(
        st.text("我在再见做的，。 a东東京はてるい々ー\u3099เขาไมหครับ่้", max_size=20),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=20)
@pytest.mark.parametrize(("lang", "name"), [("zh", "homo"), ("ja", "phon"), ("th", "phon")])
def test_both_forms_agree_on_any_text(lang, name, rows):
    ours, expected = both(single(name, rate=0.7), rows, lang=lang)
    assert ours == expected


@pytest.mark.parametrize(
    ("lang", "name", "clean", "some_of"),
    [
        ("zh", "homo", "再", {"在"}),
        ("zh", "homo", "地", {"的"}),
        ("zh", "homo", "應該", {"應改", "因該"}),
        ("zh", "look", "而已", {"而己"}),
        ("zh", "phon", "没有", {"木有"}),
        ("zh", "init", "永远的神", {"yyds"}),
        ("zh", "clip", "你说什么", {"你说啥"}),
        ("zh", "rebus", "我爱你", {"520", "521"}),
        ("zh", "week", "星期一", {"周一", "礼拜一"}),
        ("ja", "homo", "以外", {"意外"}),
        ("ja", "phon", "見ている", {"見てる"}),
        ("ja", "phon", "行かなければ", {"行かなきゃ"}),
        ("ja", "phon", "これではない", {"これじゃない"}),
        ("ja", "kana", "出来る", {"できる"}),
        ("ja", "clip", "スマートフォン", {"スマホ"}),
        ("th", "phon", "เขาไม่รู้", {"เค้าไม่รู้"}),
        ("th", "phon", "ใช่ไหมคะ", {"ใช่มั้ยคะ"}),
        ("th", "clip", "แฟนคลับ555", {"ฟค.555", "ฟค555"}),
    ],
)
def test_words_become_what_people_write(lang, name, clean, some_of):
    assert some_of <= set(noised(name, [clean] * 300, lang))


@pytest.mark.parametrize(
    ("lang", "name", "row"),
    [
        ("ja", "clip", "東京都庁"),  # 東京都 is part of another word
        ("ja", "kana", "食事の仕事"),  # so is 事
        ("ja", "phon", "こどもの日"),  # not もの
        ("ja", "phon", "もの静か"),
        ("ja", "kana", "いいえ"),
        ("zh", "phon", "于是目的了解"),  # not 是, 的, 了
        ("zh", "rebus", "酒吧和平"),  # not 吧, 和
        ("ja", "homo", "有名"),  # 勇名 is a word of books
        ("th", "phon", "ภูเขา"),  # not เขา
        ("th", "phon", "กูเกิล"),
        ("th", "long", "มากกว่า"),
    ],
)
def test_parts_of_other_words_stay(lang, name, row):
    assert set(noised(name, [row] * 500, lang)) == {row}


@pytest.mark.parametrize("lang", ["zh", "ja"])
def test_brackets_and_repeated_marks_stay(lang):
    row = "「好」『好』“好”（好）好！！好？？？好。。。好"
    assert set(noised("mark", [row] * 200, lang)) == {row}


def test_marks_do_not_reach_into_the_next_row():
    """Three full stops in a row stay, but not where a row ends between them."""
    assert len(set(noised("mark", ["好。", "。。好"] * 200, "zh")[::2])) > 2


def test_a_traditional_text_stays_traditional():
    rows = noised("homo", ["應該", "覺得", "後來", "個"] * 100, "zh")
    simplified = set("应该觉后来个发会时这们说对过还")
    assert not simplified & set("".join(rows))


def test_traditional_characters_are_those_that_people_in_taiwan_type():
    """OpenCC's own standard has 爲, 裏 and 臺; posts have 為, 裡 and 台."""
    changed = [
        word for word in ("為", "這裡", "台灣") if len({*noised("homo", [word] * 300, "zh")}) > 1
    ]
    assert changed == ["為", "這裡", "台灣"]
    words = (DICTIONARIES / "zh" / "homo.tsv").read_text(encoding="utf-8")
    assert not {*"爲裏臺羣衆喫"} & {*words}


def test_candidates_far_below_in_a_list_are_not_taken():
    assert "握們" not in noised("homo", ["我們"] * 2_000, "zh")


def test_chinese_posts_have_no_shape_alikes():
    """Who types by sound does not write 找們 for 我們."""
    steps = Recipe.named("ugc").mix_of("zh").steps()
    assert "look" not in [step.transform for step in steps]


def test_frequent_characters_stay_more_often_than_they_come():
    """The particle 的 is seldom mistaken, 地 often is, and becomes 的."""
    stay = [noised("homo", [sign] * 1_000, "zh").count(sign) for sign in "的地"]
    assert stay[0] > 850
    assert noised("homo", ["地"] * 1_000, "zh").count("的") > noised(
        "homo", ["的"] * 1_000, "zh"
    ).count("地")


PRINTED = ("“It’s no ‘use’”", "so − ‘no’", "„so…“")


@pytest.mark.parametrize(("lang", "changed"), [("zh", 20), ("ja", 20), ("en", 3)])
def test_marks_keep_the_promises_and_agree_in_both_forms(lang, changed, odd_texts):
    rows = rows_in(lang) if lang in SENTENCES else list(PRINTED)
    check_transform("mark", lang, tuple(rows[:3]))
    assert compare(single("mark", rate=1), [*rows, *odd_texts], lang=lang) >= changed


def test_who_types_plain_types_all_plain():
    assert noised("mark", list(PRINTED[:2]), "en") == ["\"It's no 'use'\"", "so - 'no'"]
    assert set(noised("mark", [PRINTED[2]] * 500, "fr")) == {'"so..."', '"so.."'}
    [(clean, noisy)] = examples_in(get("mark").summary)
    assert noisy in noised("mark", [clean] * 100, "en")


@given(st.lists(st.text("…。，！？、a 我『\ufe0e\u3099", max_size=12), min_size=1, max_size=8))
@settings(max_examples=30)
@pytest.mark.parametrize("lang", ["zh", "ja"])
def test_marks_of_any_text_agree_in_both_forms(lang, rows):
    ours, expected = both(single("mark", rate=0.7), rows, lang=lang)
    assert ours == expected


def test_the_rate_of_marks_is_the_chance_of_each():
    """Of the commas, 84 in 97 stay at rate 1 at the end of a row."""
    stays = noised("mark", ["好，"] * 4_000, "zh").count("好，") / 4_000
    table = [
        int(row[2])
        for row in rows_of(DICTIONARIES / "zh" / "mark.tsv")
        if row[0] == "，" and row[3] == ""
    ]
    assert stays == pytest.approx(table[0] / sum(table), abs=0.03)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "rate"), [("sighan", 0.25), ("mucgec", 0.12)])
def test_a_classifier_hardly_tells_homophones_from_real_slips(name, rate):
    if name not in real_pairs.available():
        pytest.skip("no development data")
    noisy, clean = zip(*real_pairs.load(name), strict=True)
    real = Pairs(list(noisy), list(clean)).sample(1_000)
    made = Noising("zh").noise(Recipe.of([f"homo:rate={rate}"]), real.clean)
    changed = two_sample(real, Pairs(made, real.clean)).changed_rows
    assert changed is not None
    assert changed.value <= 0.70
