// Token ids of a noisegen student, as Python's tokenizers gives them.
//
// @huggingface/tokenizers, which transformers.js uses too, ignores `single_word` of added tokens: it
// would find the noisy word `ur` inside `your`. Here these tokens are taken out of tokenizer.json, and
// `splitter_normalized`, the part of the library that finds added tokens in a text, looks them up
// as whole words instead.
import { Tokenizer } from "./library/tokenizers.min.mjs";

// A letter or another character of a word, as Rust's regular expressions define \w.
const CHARACTER = String.raw`[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]`;
const ENDS = new RegExp(`(?<!${CHARACTER})|(?!${CHARACTER})`, "gu"); // where a word may begin or end

// Return a function that maps a text to its ids; `json` is tokenizer.json.
export function encoderOf(json) {
  const isWord = (token) => token.single_word && token.normalized;
  const words = json.added_tokens.filter(isWord);
  const tokenizer = new Tokenizer({ ...json, added_tokens: json.added_tokens.filter((t) => !isWord(t)) }, {});
  const known = new Map(); // normalised word -> text of its token
  const contents = words.map((token) => token.content);
  for (const [i, normal] of normalised(tokenizer, contents).entries()) {
    tokenizer.added_tokens_map.set(contents[i], words[i]);
    known.set(normal, contents[i]);
  }
  const longest = Math.max(0, ...[...known.keys()].map((word) => word.length));
  tokenizer.splitter_normalized = { split: (text) => split(text, known, longest) };
  const most = json.truncation?.max_length ?? Infinity;
  return (text) => {
    const ids = tokenizer.encode(text).ids;
    return ids.length > most ? [...ids.slice(0, most - 1), ids.at(-1)] : ids;
  };
}

// Normalise all words in one text, which is fifty times faster than one by one.
function normalised(tokenizer, words) {
  if (!tokenizer.normalizer) return words;
  const together = tokenizer.normalizer(words.join(" ")).split(" ");
  return together.length === words.length ? together : words.map((word) => tokenizer.normalizer(word));
}

// Split a text into known words, each as the text of its token, and the stretches between them.
function split(text, known, longest) {
  const ends = [...text.matchAll(ENDS)].map((found) => found.index);
  const parts = [];
  let rest = 0; // start of the stretch that has no known word so far
  for (let i = 0; i < ends.length; i++) {
    if (ends[i] < rest) continue;
    let j = i; // the longest known word from here on
    for (let k = i + 1; k < ends.length && ends[k] - ends[i] <= longest; k++) {
      if (known.has(text.slice(ends[i], ends[k]))) j = k;
    }
    if (j === i) continue;
    if (ends[i] > rest) parts.push(text.slice(rest, ends[i]));
    parts.push(known.get(text.slice(ends[i], ends[j])));
    rest = ends[j];
  }
  if (rest < text.length) parts.push(text.slice(rest));
  return parts;
}
