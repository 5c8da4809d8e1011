// Questions to the simulator in the page, or to a server, one after another; those that nobody wants any more are cancelled.
import { useEffect, useRef, useState } from 'preact/hooks';
import { inside, answer as answerHere, cancel as cancelHere } from './simulator.js';
import { questionOf, fieldOf, at, changed, valueOf, wrongsOf } from './state.js';

const mark = Array.from(crypto.getRandomValues(new Uint8Array(8)), byte => (byte % 36).toString(36)).join('');
const patience = 300;            // ms after which a question that is not wanted is cancelled; a sooner one just ends
let count = 0, turn = Promise.resolve(), running = null;

// Gives up the question that is being answered.
export const stop = () => { if (running) running.stopped = true; };

async function post(path, body) {
  const reply = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body, credentials: 'same-origin', cache: 'no-store' });
  if (!reply.ok) throw new Error(reply.status === 413 ? 'the scenario has more than 1 MiB' : await reply.text());
  return reply.json();
}
// The answer; null: it was not wanted before its turn came.
export function ask(question, wanted = () => true) {
  const mine = turn.then(async () => {
    if (!wanted()) return null;
    const id = `${mark}-${++count}`, began = performance.now(), own = running = { stopped: false };
    const watch = setInterval(() => {
      if (!own.stopped && (wanted() || performance.now() - began < patience)) return;
      clearInterval(watch);
      if (inside) cancelHere();
      else post(`/cancel/${id}`, '{}').catch(() => {});
    }, 50);
    try {
      const answer = await (inside ? answerHere(JSON.stringify(question)) : post(`/compute/${id}`, JSON.stringify(question)));
      document.documentElement.dataset.answered = `${Number(document.documentElement.dataset.answered ?? 0) + 1}`;        // for tests
      if (question.what === 'numbers') document.documentElement.dataset.took = `${performance.now() - began}`;
      return answer;
    } finally { clearInterval(watch); running = null; }
  });
  turn = mine.catch(() => {});
  return mine;
}

// The changes that a message of short memory names: [[path, value], ...].
export const advised = message => [...message.matchAll(/--set '?([\w.]+)=([^\s';]+|\{[^}]*\})'?/g)].map(one => [one[1], one[2]]);

// Changes that may make a scenario possible whose degrees or batch do not go together: of what was changed last, nearest
// values first, then the degree of data, and the nodes.
function candidates(variant, scenario, answer) {
  const tries = [], last = variant.latest ?? wrongsOf(answer).keys().next().value, now = last && Number(valueOf(variant, last));
  const number = path => Number(valueOf(variant, path) ?? at(scenario, path) ?? 1);
  const group = number('strategy.tensor') * number('strategy.pipeline') * number('strategy.context');
  const gpus = number('cluster.nodes') * number('cluster.gpus_per_node');
  if (gpus >= group && gpus % group === 0) tries.push(['strategy.data', gpus / group]);
  if (last && Number.isInteger(now) && fieldOf(last).kind === 'integer') {
    const near = [];
    for (let other = 1; other <= 2 * now && other <= 4096; other++) if (other !== now && other >= (fieldOf(last).least ?? 1)) near.push(other);
    near.sort((a, b) => Math.abs(Math.log(a / now)) - Math.abs(Math.log(b / now)));
    tries.push(...near.slice(0, 12).map(other => [last, other]));
  }
  tries.push(['cluster.nodes', Math.ceil(group * number('strategy.data') / number('cluster.gpus_per_node'))]);
  return tries.filter(([path, value]) => value >= 1 && String(value) !== valueOf(variant, path) && value !== at(scenario, path) || path === last);
}
const enough = 3;                // changes that are offered

// What the server says of a variant: {answer, shown (the last answer with numbers), advice, offers, timeline, failed, busy}.
export function useAnswer(variant, against, draws) {
  const [state, setState] = useState({ busy: true }), resolved = useRef(null), base = variant && (variant.text ?? variant.tour);
  useEffect(() => { resolved.current = null; }, [base]);
  const question = variant && JSON.stringify(questionOf(variant)), other = JSON.stringify(against ?? null);
  useEffect(() => {
    if (!variant) return undefined;
    let wanted = true;
    const put = more => wanted && setState(before => ({ ...before, ...more }));
    const timer = setTimeout(async () => {
      const asked = JSON.parse(question), still = () => wanted;
      try {
        put({ busy: true, failed: null });
        const answer = await ask({ ...asked, what: 'numbers', ...(against && { against }) }, still);
        if (!answer || !wanted) return;
        if (answer.numbers) resolved.current = answer.numbers.scenario;
        put({ answer, of: question, busy: false, offers: [], advice: null, ...(answer.numbers && { scenario: answer.numbers.scenario }), ...(answer.exit_code && { timeline: null }) });
        if (!answer.numbers && !resolved.current) {
          const plain = await ask({ ...asked, set: {}, what: 'numbers' }, still);      // what the fields stand at without the changes
          resolved.current = plain?.numbers?.scenario ?? null;
          put({ scenario: resolved.current });
        }
        if (answer.exit_code === 5) await help(answer, asked, still, put);
      } catch (error) { put({ of: question, busy: false, failed: error.message }); }
    }, 60);
    const help = async (answer, asked, still, put) => {
      if (answer.errors[0].rule === 'memory') {
        const advice = await ask({ ...asked, what: 'advice' }, still);
        const change = advice?.errors?.[0] ? advised(advice.errors[0].message) : [];
        return put({ advice, offers: change.length ? [change] : [] });
      }
      const offers = [];
      for (const [path, value] of candidates(variant, resolved.current, answer)) {
        if (offers.length === enough) break;
        const tried = await ask({ ...questionOf(changed(variant, path, String(value))), what: 'numbers' }, still);
        if (!tried || tried.exit_code) continue;
        offers.push([[path, String(value)]]);
        put({ offers: [...offers] });
      }
      return undefined;
    };
    return () => { wanted = false; clearTimeout(timer); };
  }, [question, other]);
  const busy = state.busy || state.of !== question;        // the answer is of another question
  const ready = draws && state.answer?.exit_code === 0 && !busy;
  useEffect(() => {
    if (!ready) return undefined;
    let wanted = true;
    const timer = setTimeout(() => ask({ ...JSON.parse(question), what: 'timeline' }, () => wanted)
      .then(answer => { if (wanted && answer) setState(before => ({ ...before, timeline: answer })); })
      .catch(error => { if (wanted) setState(before => ({ ...before, failed: error.message })); }), 150);
    return () => { wanted = false; clearTimeout(timer); };
  }, [ready, question, state.answer]);
  return { ...state, busy };
}
