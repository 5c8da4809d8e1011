// The simulator inside of the page: a worker that holds WebAssembly (web/worker.js). Where the page has none, a server answers.
import { partsOf, textOf } from '../data.js';

const packed = document.getElementById('simulator')?.textContent, late = 25000;      // ms: a question ends itself after 20 s
export const inside = !!packed;
let started = null, worker = null, waiting = null, count = 0;

// The parts, once: the text of the worker, its compiled program, and its files.
async function unpack() {
  if (typeof WebAssembly === 'undefined') throw new Error('this browser has no WebAssembly, or it is turned off; the program dtsim answers without a browser');
  const parts = await partsOf(packed), files = { ...parts };
  delete files['worker.js'];
  delete files['program.wasm'];
  return { url: URL.createObjectURL(new Blob([textOf(parts['worker.js'])], { type: 'text/javascript' })), files, module: await WebAssembly.compile(parts['program.wasm']) };
}

function put(message) {
  return new Promise((resolve, reject) => {
    waiting = { resolve, reject, id: ++count };
    worker.postMessage({ ...message, id: count });
  });
}
function end() {
  worker?.terminate();
  worker = null;
}
async function begin() {
  const { url, files, module } = await (started ??= unpack());
  worker = new Worker(url);
  worker.onmessage = ({ data }) => { if (data.id === waiting?.id) { document.documentElement.dataset.memory = `${data.memory ?? ''}`; waiting.resolve(data); } };
  worker.onerror = event => waiting?.resolve({ died: event.message || 'the worker did not start' });
  worker.postMessage({ module, files });
}
const crash = 0, unwanted = 2;        // enum pool_loss

// The answer to a question, as a server's. A question that ends the worker, or does not end, costs that worker.
export async function answer(question) {
  if (!worker) await begin();
  const timer = setTimeout(() => waiting?.resolve({ lost: [unwanted, ''] }), late);
  const found = await put({ question });
  clearTimeout(timer);
  if (found.answer !== undefined) return JSON.parse(found.answer);
  end();
  if (found.cancelled) return { errors: [{ message: 'cancelled' }], exit_code: 130 };
  await begin();
  const told = await put({ lost: found.lost ?? [crash, found.died] });
  return told.answer === undefined ? { errors: [{ message: told.died ?? 'the simulator ended' }], exit_code: 1 } : JSON.parse(told.answer);
}
export function cancel() { waiting?.resolve({ cancelled: true }); }
// Reads and compiles while the page is drawn.
if (inside) begin().catch(() => {});
