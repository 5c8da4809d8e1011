// A lesson: what is a bubble? Five states of the page, with two sentences each; their numbers are those of the answers.
import { html } from '../parts.js';
import { bytes, percent } from '../format.js';

const variant = (...set) => ({ tour: '04-1f1b', text: null, file: null, set });
const halves = [['strategy.chunks', '2'], ['model.stages.forward', '0.5 s'], ['model.stages.backward', '1 s'], ['model.stages.activation', '0.5 GiB']];
const steps = [
  { title: 'GPipe', a: variant(['strategy.schedule', 'gpipe']),
    say: a => `Each of four GPUs has a quarter of the layers, so it waits until the first of twelve micro-batches has come to it, and for the last one on the way back: this waiting is the bubble, ${percent(a.bubble_fraction)} of the iteration. All forwards run before the first backward, so the fullest GPU keeps the activations of all twelve, ${bytes(a.peak_memory_bytes)}.` },
  { title: '1F1B', a: variant(),
    say: a => `A GPU now runs the backward of a micro-batch as soon as it can, one forward and one backward in turn; the bubble stays, ${percent(a.bubble_fraction)}. What is done is released, so the fullest GPU keeps four micro-batches at most, ${bytes(a.peak_memory_bytes)}.` },
  { title: 'interleaved', a: variant(['strategy.schedule', 'interleaved'], ...halves),
    say: a => `Each GPU has two thin slices of the layers instead of a thick one, so that work comes to the last GPU in half of the time: the bubble is ${percent(a.bubble_fraction)}. More micro-batches are under way at once, ${bytes(a.peak_memory_bytes)}, and each crosses between GPUs about twice as often, which costs time on a real network.` },
  { title: 'zero bubble', a: variant(['strategy.schedule', 'zb-h1']),
    say: a => `A backward has two halves, and only the one for the inputs is waited for; the one for the weights can run whenever a GPU has nothing else to do. It fills holes: the bubble is ${percent(a.bubble_fraction)}, in the ${bytes(a.peak_memory_bytes)} of 1F1B.` },
  { title: 'bubble and memory', a: variant(['strategy.schedule', 'interleaved'], ...halves), b: variant(['strategy.schedule', 'zb-v'], ...halves),
    say: (a, b) => `Both variants cut the layers into two slices a GPU; B also lets them go down and up again, in a V, and halves the backward: ${percent(b.bubble_fraction)} of bubble in ${bytes(b.peak_memory_bytes)}, against ${percent(a.bubble_fraction)} in ${bytes(a.peak_memory_bytes)}. A schedule is a bargain between waiting, memory and messages: change the micro-batches or the stages on the left, and see who wins.` },
];
export const lessons = steps.length;
// The state of a step, from 1.
export const stepOf = number => ({ a: structuredClone(steps[number - 1].a), b: structuredClone(steps[number - 1].b ?? null), lesson: number });

const same = (one, other) => JSON.stringify([one?.tour, one?.text, one?.set]) === JSON.stringify([other?.tour, other?.text, other?.set]);

export function Lesson({ number, variants, a, b, go, end }) {
  const step = steps[number - 1], ready = a && (b || !step.b), own = !same(variants.a, step.a) || (step.b && !same(variants.b, step.b));
  const said = () => own ? `You have changed values: the bubble is ${percent(a.bubble_fraction)} now, and the fullest GPU takes ${bytes(a.peak_memory_bytes)}. Is it what you expected?` : step.say(a, b);
  return html`<section class="part lesson" id="lesson" aria-label="lesson"><h2>What is a bubble? ${number} of ${lessons}: ${step.title}</h2>
    <p class="lead" aria-live="polite">${ready ? said() : 'The numbers are being computed, or these values do not go together.'}</p>
    <div class="tools"><button id="lesson-back" disabled=${number === 1} onClick=${() => go(number - 1)}>back</button>
      <button id="lesson-next" disabled=${number === lessons} onClick=${() => go(number + 1)}>next</button>
      <button id="lesson-again" onClick=${() => go(number)}>this step as it was</button>
      <button id="lesson-end" onClick=${end}>end the lesson</button></div></section>`;
}
