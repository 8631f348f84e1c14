// Loads both encoders and turns texts into vectors, beside the page so that it never stands still.
import * as ort from "./library/ort.wasm.min.mjs";
import { encoderOf } from "./tokens.js";

ort.env.wasm.wasmPaths = new URL("library/", import.meta.url).href;
ort.env.wasm.numThreads = 1; // more need headers that a static server does not send

// Fetch a file of the Space; report the bytes of each piece.
async function file(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  const pieces = [];
  for (const reader = answer.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return new Blob(pieces);
    pieces.push(value);
    postMessage({ bytes: value.length });
  }
}

async function open(name) {
  const json = JSON.parse(await (await file(`${name}/tokenizer.json`)).text());
  const graph = await (await file(`${name}/onnx/model_quantized.onnx`)).arrayBuffer();
  return { idsOf: encoderOf(json), session: await ort.InferenceSession.create(new Uint8Array(graph)) };
}

async function vectorOf({ idsOf, session }, text) {
  const ids = idsOf(text);
  const row = (numbers) => new ort.Tensor("int64", BigInt64Array.from(numbers, BigInt), [1, ids.length]);
  const given = { input_ids: row(ids), attention_mask: row(ids.map(() => 1)) };
  return (await session.run(given)).sentence_embedding.data;
}

const fail = (error) => postMessage({ error: String(error.message ?? error) });
const encoders = (async () => ({ student: await open("student"), teacher: await open("teacher") }))();
encoders.then(() => postMessage({ ready: true }), fail);

// Texts wait for each other: a session works on one at a time.
let last = encoders;
onmessage = ({ data: text }) => {
  last = last.then(async () => {
    const { student, teacher } = await encoders;
    postMessage({ text, student: await vectorOf(student, text), teacher: await vectorOf(teacher, text) });
  }).catch(fail);
};
